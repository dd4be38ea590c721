//! What would spoil a run on a device, and what to do about it: from the device's facts and what stands
//! around it, before anything is measured.

mod gpu;
mod host;
mod ptx;
#[cfg(test)]
mod tests;

use std::fmt;

use serde::Serialize;

use crate::device::Surroundings;
use crate::device::modules::MODULES;
use crate::record::DeviceFacts;

/// Something that would spoil a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What was found.
    pub what: String,
    /// Why it matters.
    pub why: String,
    /// What to do about it.
    pub cure: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}; {}", self.what, self.why, self.cure)
    }
}

/// Everything that would spoil a run on the device. What is not known is no finding, but that NVML is
/// absent is one.
pub fn diagnose(facts: &DeviceFacts, around: &Surroundings) -> Vec<Finding> {
    match facts.is_host() {
        true => host::findings(facts, around),
        false => {
            let mut findings = gpu::findings(facts, around);
            findings.extend(ptx::findings(facts, MODULES));
            findings
        }
    }
}

/// The findings among these that hold.
fn those<const N: usize>(candidates: [(bool, [&str; 3]); N]) -> Vec<Finding> {
    let holding = candidates.into_iter().filter(|(holds, _)| *holds);
    holding.map(|(_, texts)| finding(texts)).collect()
}

fn finding([what, why, cure]: [&str; 3]) -> Finding {
    Finding { what: what.to_owned(), why: why.to_owned(), cure: cure.to_owned() }
}
