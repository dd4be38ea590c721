//! The rows of a run.

use super::source::Source;
use super::{Row, access, ceiling};
use crate::record::{Group, KernelName, Run};

/// An id of the run, from when it started and on what device: `2026-12-02T10-15-00Z-cuda0`.
pub fn run_id(run: &Run) -> String {
    let started: String =
        run.started.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    let device: String = run.device.id.chars().filter(char::is_ascii_alphanumeric).collect();
    format!("{started}-{device}")
}

/// The rows of a run: group by group, in the order of the groups.
///
/// A group that was measured and verified makes a row for each arm and each ratio. Any other makes
/// one row without figures that says why.
pub fn rows(run_id: &str, run: &Run, groups: &[Group]) -> Vec<Row> {
    groups
        .iter()
        .flat_map(|group| {
            let source = Source { run_id, run, group };
            match group.kernel {
                KernelName::Ceiling => ceiling::rows(&source),
                _ => access::rows(&source),
            }
        })
        .collect()
}
