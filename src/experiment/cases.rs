//! The cases of a suite, whatever their experiment.

use std::time::Duration;

use super::allocation::{self, AllocationPlan};
use super::plan::Plan;
use super::scatter;
use super::scene::Heap;
use super::suite::{Suite, plans};
use crate::record::{DeviceKind, Entry, Experiment, Lost, Status};

/// A case that is to be measured. Nothing in it depends on a device.
#[derive(Clone, Debug, PartialEq)]
pub enum Case {
    /// Arms that are compared over a layout.
    Bandwidth(Box<Plan>),
    /// An allocator in a state.
    Allocation(AllocationPlan),
}

impl Case {
    /// The experiment that it belongs to.
    pub fn experiment(&self) -> Experiment {
        match self {
            Case::Bandwidth(plan) => plan.experiment.clone(),
            Case::Allocation(plan) => plan.experiment(),
        }
    }

    /// The case id.
    pub fn id(&self) -> String {
        match self {
            Case::Bandwidth(plan) => plan.case(),
            Case::Allocation(plan) => plan.case(),
        }
    }

    /// Device memory that it takes at least, in bytes.
    pub fn memory_bytes(&self) -> u64 {
        match self {
            Case::Bandwidth(plan) => plan.memory_bytes(),
            Case::Allocation(plan) => plan.memory_bytes(),
        }
    }

    /// Whether it takes all of the device's memory, whatever the limit is.
    pub fn fills_device(&self) -> bool {
        matches!(self, Case::Allocation(plan) if plan.fills_device())
    }

    /// Device memory that it takes at its peak within a memory limit, in bytes.
    pub fn peak_bytes(&self, memory_limit_bytes: u64) -> u64 {
        match self {
            Case::Bandwidth(plan) => plan.peak_bytes(memory_limit_bytes),
            Case::Allocation(plan) => plan.memory_bytes(),
        }
    }

    /// A rough guess of its wall time on a device of this memory bandwidth, in bytes a second.
    pub fn estimate(&self, bytes_per_s: f64) -> Duration {
        match self {
            Case::Bandwidth(plan) => plan.estimate(bytes_per_s),
            Case::Allocation(plan) => plan.estimate(),
        }
    }

    /// The aged heap that it lies in.
    pub fn heap(&self) -> Option<Heap> {
        match self {
            Case::Bandwidth(plan) => plan.heap(),
            Case::Allocation(_) => None,
        }
    }

    /// Whether it is prepared in a process that nothing else was done in: what came before is part of
    /// an allocator's state.
    pub fn needs_fresh_process(&self) -> bool {
        matches!(self, Case::Allocation(plan) if plan.is_on_device())
    }

    /// Its record where it was skipped.
    pub fn skipped(&self, why: String) -> Entry {
        self.record(Status::Skipped, why)
    }

    /// Its record where what was to measure it was lost.
    pub fn lost(&self, why: String) -> Entry {
        self.record(Status::Failed, why).with_lost(Lost::Worker)
    }

    fn record(&self, status: Status, why: String) -> Entry {
        match self {
            Case::Bandwidth(plan) => Entry::Group(Box::new(plan.record(status, Some(why)))),
            Case::Allocation(plan) => Entry::Allocation(Box::new(plan.record(status, Some(why)))),
        }
    }
}

/// The cases of a suite on a kind of device, in the order in which they are measured: first those
/// of the bandwidth and of scattered memory, which share a process, then the allocators.
pub fn cases(suite: Suite, kind: &DeviceKind) -> Vec<Case> {
    let groups = plans(suite, kind).into_iter().chain(scatter::plans(suite, kind));
    let groups = groups.map(|plan| Case::Bandwidth(Box::new(plan)));
    groups.chain(allocation::plans(suite, kind).into_iter().map(Case::Allocation)).collect()
}
