//! Rows of a group that compares a gather with what is done against the TLB's misses in it.

use super::access::bandwidths;
use super::row::Row;
use super::sample;
use super::source::{Finding, Source};
use super::{Figure, Metric};
use crate::experiment::tlb_groups;
use crate::record::{Arm, Duels};

/// The refinement of such a group's kernel.
pub use crate::experiment::MITIGATIONS as REFINEMENT;

/// The gather as it is, and the same within the TLB's reach.
const BASELINES: [(Metric, &str); 2] =
    [(Metric::MitigationRatio, "scattered"), (Metric::ReachShare, "in_reach")];

/// A bandwidth row for each arm, then what each makes of the gather as it is, and which share of the
/// bandwidth within reach it has; and the groups of multiprocessors, where they were found for it.
pub fn rows(source: &Source<'_>) -> Vec<Row> {
    if let Some(why) = source.refusal() {
        return vec![source.without_figures(Metric::MitigationRatio, None, why)];
    }
    let arms = &source.group.arms;
    let against = |(metric, base): (Metric, &'static str)| {
        arms.iter().filter_map(move |arm| ratio(source, metric, arm, base))
    };
    let ratios = BASELINES.into_iter().flat_map(against);
    let rows = bandwidths(source.group).chain(ratios).map(|finding| source.found(&finding));
    rows.chain(source.group.duels.iter().map(|duels| groups(source, duels))).collect()
}

fn ratio<'a>(
    source: &Source<'a>,
    metric: Metric,
    arm: &'a Arm,
    base: &'static str,
) -> Option<Finding<'a>> {
    let base = source.group.arm(base).filter(|base| base.name != arm.name)?;
    Some(Finding {
        metric,
        arm,
        baseline: Some(&base.name),
        parts: vec![arm, base],
        values: sample::paired_arms(source.group, &arm.name, &base.name),
        placement_medians: Vec::new(),
        target_ppm: None,
    })
}

/// How many groups of multiprocessors share a TLB, and how sure that is.
fn groups(source: &Source<'_>, duels: &Duels) -> Row {
    let mut row = source.row(Metric::TlbGroups, Some("duels"));
    let Some(sharing) = tlb_groups(duels) else { return row };
    let number =
        |unit: &usize| duels.multiprocessors.get(*unit).map_or_else(String::new, u32::to_string);
    let group = |group: &Vec<usize>| group.iter().map(number).collect::<Vec<_>>().join("+");
    let groups: Vec<String> = sharing.groups.iter().map(group).collect();
    let cycles = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |of| format!("{of:.1}"));
    let parts = [
        ("threshold_cycles", cycles(Some(sharing.threshold))),
        ("weakest_within_cycles", cycles(sharing.weakest_within)),
        ("strongest_between_cycles", cycles(sharing.strongest_between)),
        ("incomplete", sharing.incomplete.to_string()),
        ("across_gpcs", across_gpcs(duels, &sharing.groups)),
        ("window_bytes", (duels.pages * duels.page_bytes).to_string()),
        ("took_ns", duels.took_ns.to_string()),
        ("groups", groups.join("/")),
    ];
    let parts: Vec<String> =
        parts.into_iter().map(|(key, value)| format!("{key}={value}")).collect();
    row.parameters = parts.join(";");
    let count = sharing.groups.len();
    row.figure = Figure { samples: Some(1), median: Some(count as f64), ..Figure::default() };
    row
}

/// How many groups have members in more than one GPC, as clusters of blocks tell them; `-` where there are
/// none.
fn across_gpcs(duels: &Duels, groups: &[Vec<usize>]) -> String {
    if duels.clusters.is_empty() {
        return "-".to_owned();
    }
    let mut gpc_of: Vec<usize> = (0..duels.multiprocessors.len()).collect();
    let place = |number: &u32| duels.multiprocessors.binary_search(number).ok();
    for cluster in &duels.clusters {
        let members: Vec<usize> = cluster.iter().filter_map(place).collect();
        let known: Vec<usize> = members.iter().map(|&unit| gpc_of[unit]).collect();
        let Some(&least) = known.iter().min() else { continue };
        gpc_of.iter_mut().filter(|gpc| known.contains(gpc)).for_each(|gpc| *gpc = least);
    }
    let is_across =
        |group: &&Vec<usize>| group.iter().any(|&unit| gpc_of[unit] != gpc_of[group[0]]);
    groups.iter().filter(is_across).count().to_string()
}
