//! The rows of cases of allocators.

mod capacity;
mod classic;
mod histogram;
mod latency;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use super::{Flag, Metric, Row, group_flags};
use crate::record::{Allocation, Experiment, MemoryKind, Run, Status};

pub use capacity::{LENGTHS, OWNERS};
pub use classic::TRIES;
pub use histogram::{Histogram, histograms};
pub use latency::ratios;

/// A case and the run that it belongs to.
pub struct Source<'a> {
    pub run_id: &'a str,
    pub run: &'a Run,
    pub allocation: &'a Allocation,
}

/// The rows of a case: its figures, or one that says why there are none.
pub fn rows(source: &Source<'_>) -> Vec<Row> {
    let allocation = source.allocation;
    let (found, metric) = match allocation.experiment {
        Experiment::Latency => (latency::rows(source), Metric::AllocLatency),
        Experiment::Capacity => (capacity::after_holes(source), Metric::LargestAllocatable),
        Experiment::Granule => (capacity::granules(source), Metric::Granule),
        _ => (classic::rows(source), Metric::FailureProbability),
    };
    if allocation.status == Status::Ok && !found.is_empty() {
        return found;
    }
    let status = match &allocation.status {
        Status::Ok => Status::Failed,
        other => other.clone(),
    };
    let reason = allocation.reason.clone().unwrap_or_else(|| "no reason is given".into());
    vec![Row { status, reason: Some(reason), ..source.row(metric, None) }]
}

impl Source<'_> {
    /// A row without figures.
    fn row(&self, metric: Metric, arm: Option<&str>) -> Row {
        let Source { run_id, run, allocation } = *self;
        let arm = arm.map(|name| format!("/arm={name}")).unwrap_or_default();
        Row {
            case: format!("{}{arm}", allocation.case),
            allocator: Some(allocation.allocator.clone()),
            state: allocation.asked_state.clone(),
            parameters: format!("memory={}", allocation.memory),
            request_bytes: allocation.request_bytes,
            live_blocks: allocation.state.as_ref().map(|state| state.live_blocks),
            verified: allocation.status == Status::Ok,
            flags: self.flags(),
            ..Row::of_run(run_id, run, allocation.experiment.clone(), metric)
        }
    }

    fn flags(&self) -> BTreeSet<Flag> {
        let Source { run, allocation, .. } = *self;
        let mut flags = BTreeSet::new();
        if allocation.memory == MemoryKind::Device {
            let is_shared = group_flags::is_shared(&run.device, allocation.condition.as_ref());
            flags.extend(is_shared.then_some(Flag::SharedDevice));
            flags.extend((run.device.wsl == Some(true)).then_some(Flag::Wsl));
            let is_disturbed = allocation.free_bytes.is_some_and(|[before, after]| before != after);
            flags.extend(is_disturbed.then_some(Flag::Disturbed));
        }
        flags
    }
}

/// More parameters of a row, `key=value;…`.
fn with_parameters<const N: usize>(mut row: Row, more: [(&str, Option<String>); N]) -> Row {
    for (key, value) in more {
        if let Some(value) = value {
            row.parameters += &format!(";{key}={value}");
        }
    }
    row
}
