//! The rows of a run.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use super::flat::FlatTimes;
use super::source::Source;
use super::{
    Histogram, Row, Times, access, allocation, backings, between, ceiling, compaction, dropped,
    mitigations, reach, same, variants,
};
use crate::record::{Allocation, Entry, Group, KernelName, Run};

/// A run with all that is derived from its groups: what a report is made of.
#[derive(Clone, Debug)]
pub struct Summary {
    /// Where the figures come from.
    pub run: Run,
    /// The rows of the summary table.
    pub rows: Vec<Row>,
    /// Where the time went.
    pub times: Times,
    /// How the times of allocators' calls are distributed.
    pub histograms: Vec<Histogram>,
}

impl Summary {
    /// The summary of a run and its groups.
    pub fn of(run: Run, groups: &[Group]) -> Summary {
        let rows = rows(&run_id(&run), &run, groups);
        let times = Times::of(groups.iter().map(|group| &group.phases));
        Summary { run, rows, times, histograms: Vec::new() }
    }

    /// The summary of a run and all its cases: groups first, then allocators.
    pub fn of_entries(run: Run, entries: Vec<Entry>) -> Summary {
        let (mut groups, mut allocations) = (Vec::new(), Vec::new());
        for entry in entries {
            match entry {
                Entry::Group(group) => groups.push(*group),
                Entry::Allocation(allocation) => allocations.push(*allocation),
            }
        }
        let Summary { run, mut rows, .. } = Summary::of(run, &groups);
        let run_id = run_id(&run);
        rows.extend(of_allocations(&run_id, &run, &allocations));
        let source = |allocation| allocation::Source { run_id: &run_id, run: &run, allocation };
        let histograms =
            allocations.iter().flat_map(|one| allocation::histograms(&source(one))).collect();
        let phases = groups.iter().map(|group| &group.phases);
        let phases = phases.chain(allocations.iter().map(|one| &one.phases));
        Summary { times: Times::of(phases), run, rows, histograms }
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
    let kept: Vec<Kept> = groups.iter().map(dropped::without_spoiled).collect();
    let flat_times = &FlatTimes::of(&run.device, kept.iter().map(|(group, _)| &**group));
    let rows_of = |(group, dropped_rounds): &Kept| {
        let dropped_rounds = *dropped_rounds;
        let source = Source { run_id, run, group, dropped_rounds, median_sm_khz, flat_times };
        match (&group.kernel.base, group.kernel.refinement.as_deref()) {
            (KernelName::Ceiling, _) => ceiling::rows(&source),
            (_, Some(variants::REFINEMENT)) => variants::rows(&source),
            (_, Some(backings::REFINEMENT)) => backings::rows(&source),
            (_, Some(compaction::REFINEMENT)) => compaction::rows(&source),
            (_, Some(mitigations::REFINEMENT)) => mitigations::rows(&source),
            (_, Some(refinement)) if same::REFINEMENTS.contains(&refinement) => same::rows(&source),
            _ => access::rows(&source),
        }
    };
    let merged = |kept: Vec<&Kept>| match kept[..] {
        [one] => rows_of(one),
        _ => between::merged(
            kept.iter().map(|one| rows_of(one)).collect(),
            kept[0].0.target_half_width_ppm,
        ),
    };
    let mut rows: Vec<Row> = match groups.iter().any(|group| group.process > 0) {
        true => by_case(&kept).into_iter().flat_map(merged).collect(),
        false => kept.iter().flat_map(rows_of).collect(),
    };
    rows.extend(of_curves(run_id, run, &kept));
    rows
}

/// What follows from several groups together. Those of several processes make rows together.
fn of_curves(run_id: &str, run: &Run, kept: &[Kept<'_>]) -> Vec<Row> {
    let mut processes: BTreeMap<u32, Vec<(&Group, u32)>> = BTreeMap::new();
    for (group, dropped_rounds) in kept {
        processes.entry(group.process).or_default().push((group, *dropped_rounds));
    }
    let of = |groups: Vec<(&Group, u32)>| reach::rows(run_id, run, &groups);
    let mut rows: Vec<Vec<Row>> = processes.into_values().map(of).collect();
    match rows.len() {
        0 => Vec::new(),
        1 => rows.remove(0),
        _ => between::merged(rows, None),
    }
}

/// The rows of allocators. Those of several processes are made together.
fn of_allocations(run_id: &str, run: &Run, allocations: &[Allocation]) -> Vec<Row> {
    let mut cases: Vec<(&str, Vec<Vec<Row>>)> = Vec::new();
    for one in allocations {
        let rows = allocation::rows(&allocation::Source { run_id, run, allocation: one });
        match cases.iter_mut().find(|(case, _)| *case == one.case) {
            Some((_, processes)) => processes.push(rows),
            None => cases.push((&one.case, vec![rows])),
        }
    }
    let merged = |mut processes: Vec<Vec<Row>>| match processes.len() {
        1 => processes.remove(0),
        _ => between::merged(processes, None),
    };
    let mut ratios: BTreeMap<u32, Vec<Row>> = BTreeMap::new();
    for (process, row) in allocation::ratios(run_id, run, allocations) {
        ratios.entry(process).or_default().push(row);
    }
    let rows = cases.into_iter().flat_map(|(_, processes)| merged(processes));
    let ratios: Vec<Vec<Row>> = ratios.into_values().collect();
    rows.chain(if ratios.is_empty() { Vec::new() } else { merged(ratios) }).collect()
}

/// A group without its spoiled rounds, and how many those were.
type Kept<'a> = (Cow<'a, Group>, u32);

/// The groups of each case, one for each process.
fn by_case<'a, 'b>(kept: &'b [Kept<'a>]) -> Vec<Vec<&'b Kept<'a>>> {
    let mut places: HashMap<&str, usize> = HashMap::new();
    let mut cases: Vec<Vec<&Kept<'a>>> = Vec::new();
    for one in kept {
        let place = *places.entry(&one.0.case).or_insert(cases.len());
        match cases.get_mut(place) {
            Some(case) => case.push(one),
            None => cases.push(vec![one]),
        }
    }
    cases
}
