//! The rows of a run.

use std::collections::HashMap;

use super::source::Source;
use super::{Row, Times, access, between, ceiling, dropped, same, variants};
use crate::record::{Group, KernelName, Run};

/// A run with all that is derived from its groups: what a report is made of.
#[derive(Clone, Debug)]
pub struct Summary {
    /// Where the figures come from.
    pub run: Run,
    /// The rows of the summary table.
    pub rows: Vec<Row>,
    /// Where the time went.
    pub times: Times,
}

impl Summary {
    /// The summary of a run and its groups.
    pub fn of(run: Run, groups: &[Group]) -> Summary {
        let rows = rows(&run_id(&run), &run, groups);
        Summary { run, rows, times: Times::of(groups) }
    }
}

/// An id of the run, from when it started and on what device: `2026-12-02T10-15-00Z-cuda0`.
pub fn run_id(run: &Run) -> String {
    let started: String =
        run.started.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    let device: String = run.device.id.chars().filter(char::is_ascii_alphanumeric).collect();
    format!("{started}-{device}")
}

/// The rows of a run: case by case, in the order in which these were begun.
///
/// A group that was measured and verified makes a row for each arm and each ratio. Any other makes
/// one row without figures that says why. Groups of several processes make rows together.
pub fn rows(run_id: &str, run: &Run, groups: &[Group]) -> Vec<Row> {
    let median_sm_khz = dropped::median_sm_khz(groups.iter().flat_map(|group| &group.arms));
    let rows_of = |group: &Group| {
        let (group, dropped_rounds) = dropped::without_spoiled(group);
        let source = Source { run_id, run, group: &group, dropped_rounds, median_sm_khz };
        match (&group.kernel.base, group.kernel.refinement.as_deref()) {
            (KernelName::Ceiling, _) => ceiling::rows(&source),
            (_, Some(variants::REFINEMENT)) => variants::rows(&source),
            (_, Some(refinement)) if same::REFINEMENTS.contains(&refinement) => same::rows(&source),
            _ => access::rows(&source),
        }
    };
    let merged = |groups: Vec<&Group>| {
        if let [group] = groups[..] {
            return rows_of(group);
        }
        let rows = groups.iter().map(|group| rows_of(group)).collect();
        between::merged(rows, groups[0].target_half_width_ppm)
    };
    let repeated = groups.iter().any(|group| group.process > 0);
    match repeated {
        true => by_case(groups).into_iter().flat_map(merged).collect(),
        false => groups.iter().flat_map(rows_of).collect(),
    }
}

/// The groups of each case, one for each process.
fn by_case(groups: &[Group]) -> Vec<Vec<&Group>> {
    let mut places: HashMap<&str, usize> = HashMap::new();
    let mut cases: Vec<Vec<&Group>> = Vec::new();
    for group in groups {
        let place = *places.entry(&group.case).or_insert(cases.len());
        match cases.get_mut(place) {
            Some(case) => case.push(group),
            None => cases.push(vec![group]),
        }
    }
    cases
}
