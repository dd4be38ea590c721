//! Whether the kernels do what they should, and whether the verification sees it where they do not.
//!
//! Every kernel runs over random small layouts. A sound run has to pass each check, so that a check
//! that always complains is found out. Then faults are planted: a launch of something else than what
//! is expected, or a byte or index entry that is changed behind the verification's back. Each has to
//! be seen by the check that is there for it, and where that can be told with exactly the number of
//! mismatches that it makes.

mod cases;
pub mod clock;
mod entries;
mod fragments;
mod ledger;
mod rig;
pub mod statistics;
mod stream;
mod trial;
mod varied;

use std::time::Instant;

use serde::{Deserialize, Serialize};
use serde_json::Map;

use crate::device::{
    Device, DeviceError, Entry, Movement, Mover, Variant, VariedEntry, VariedMover,
    modules::MODULES,
};
use crate::kernel::Verifier;
use crate::record::{Selftest, Status};
use cases::Dice;
use ledger::Ledger;

/// Layouts that each kernel runs on unless asked otherwise: every pattern in every order.
pub const LAYOUTS: u64 = 30;

/// What is tested: one kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// A kernel of ours.
    Kernel(Mover),
    /// One for fragments of varying length.
    Varied(VariedMover),
    /// The driver's copy.
    DriverCopy,
}

/// A kernel's record, and whether the device can still be used.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tested {
    /// The record.
    pub record: Selftest,
    /// The device gave an error after which nothing more can be expected of this process.
    pub device_lost: bool,
}

impl Subject {
    /// Every kernel, whether a device has it or not.
    pub fn all() -> Vec<Subject> {
        let kernels = Mover::all().into_iter().map(Subject::Kernel);
        let varied = VariedMover::all().into_iter().map(Subject::Varied);
        kernels.chain(varied).chain([Subject::DriverCopy]).collect()
    }

    /// The kernel with this name.
    pub fn named(name: &str) -> Option<Subject> {
        Subject::all().into_iter().find(|subject| subject.name() == name)
    }

    /// The entry point's name, or `driver_copy`.
    pub fn name(self) -> String {
        self.entry().map_or_else(|| "driver_copy".to_owned(), Entry::name)
    }

    /// The entry point; none of the driver's copy.
    pub fn entry(self) -> Option<Entry> {
        match self {
            Subject::Kernel(mover) => Some(Entry::Move(mover)),
            Subject::Varied(mover) => Some(Entry::Varied(VariedEntry::Move(mover))),
            Subject::DriverCopy => None,
        }
    }

    /// What it does; none of the driver's copy.
    pub fn movement(self) -> Option<Movement> {
        match self {
            Subject::Kernel(mover) => Some(mover.movement),
            Subject::Varied(mover) => Some(mover.movement),
            Subject::DriverCopy => None,
        }
    }

    /// The record of a test that did not take place.
    pub fn record(self, status: Status, reason: Option<String>) -> Selftest {
        let variant = match self {
            Subject::Kernel(mover) => mover.variant,
            Subject::Varied(mover) => mover.variant,
            Subject::DriverCopy => Variant::Default,
        };
        Selftest {
            kernel: self.name(),
            variant: variant.to_string(),
            module: None,
            layouts: 0,
            compared: 0,
            mismatches: 0,
            faults: Vec::new(),
            status,
            reason,
            wall_ns: 0,
            extra: Map::new(),
        }
    }

    /// Why the device does not have the kernel; none where it does.
    fn absence(self, device: &dyn Device) -> Option<String> {
        let entry = self.entry().filter(|entry| !device.has(*entry))?;
        if device.facts().is_host() {
            return Some("GPU-only: the host has no kernel of this name".to_owned());
        }
        // The last one asks least of a device.
        let name = entry.modules().last().copied().unwrap_or_default();
        let module = MODULES.iter().find(|module| module.name == name);
        let (major, minor) = module.map_or((0, 0), |module| module.least_capability);
        Some(format!(
            "this device has not loaded the module `{name}` (compute capability {major}.{minor} and \
             later)"
        ))
    }
}

/// Tests every kernel over so many layouts each; `progress` sees each record as it ends.
pub fn run(
    device: &dyn Device,
    seed: u64,
    layouts: u64,
    progress: &mut dyn FnMut(&Selftest),
) -> Vec<Selftest> {
    let mut lost = false;
    let test = |subject: Subject| {
        let record = if lost {
            let reason = "the device was lost before its turn came".to_owned();
            subject.record(Status::Failed, Some(reason))
        } else {
            let tested = test(device, subject, seed, layouts);
            lost = tested.device_lost;
            tested.record
        };
        progress(&record);
        record
    };
    Subject::all().into_iter().map(test).collect()
}

/// Tests one kernel. Whatever goes wrong is in the record.
pub fn test(device: &dyn Device, subject: Subject, seed: u64, layouts: u64) -> Tested {
    if let Some(reason) = subject.absence(device) {
        let record = subject.record(Status::Skipped, Some(reason));
        return Tested { record, device_lost: false };
    }
    let begin = Instant::now();
    let mut ledger = Ledger::default();
    let mut dice = Dice::new(seed, &subject.name());
    let mut each = |verifier: &Verifier<'_>, n| {
        if ledger.complaint().is_some() {
            return Ok(());
        }
        ledger.layouts += 1;
        match subject {
            Subject::Kernel(mover) if mover.movement.has_layout() => {
                fragments::test(device, verifier, mover, n, &mut dice, &mut ledger)
            }
            Subject::Kernel(mover) => {
                stream::test(device, verifier, Some(mover), &mut dice, &mut ledger)
            }
            Subject::Varied(mover) => {
                varied::test(device, verifier, mover, n, &mut dice, &mut ledger)
            }
            Subject::DriverCopy => stream::test(device, verifier, None, &mut dice, &mut ledger),
        }
    };
    let result = Verifier::new(device)
        .and_then(|verifier| (0..layouts).try_for_each(|n| each(&verifier, n)));
    let device_lost = matches!(result, Err(DeviceError::Call { .. }));
    let error = result.err().map(|error| format!("{error}, on {}", ledger.what));
    let reason = ledger.complaint().map(str::to_owned).or(error);
    let status = if reason.is_none() { Status::Ok } else { Status::Failed };
    let mut record = subject.record(status, reason);
    ledger.write(&mut record);
    let module = subject.entry().and_then(|entry| device.module(entry));
    record.module = module.map(str::to_owned);
    record.wall_ns = begin.elapsed().as_nanos() as u64;
    Tested { record, device_lost }
}
