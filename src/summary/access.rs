//! Rows of a group that compares a scattered layout with the same fragments packed.

use super::Metric;
use super::row::Row;
use super::sample;
use super::source::{Finding, Source};
use crate::record::Group;

/// Each ratio with its two arms.
const RATIOS: [(Metric, &str, &str); 5] = [
    (Metric::RelativeBandwidth, "scattered", "packed"),
    (Metric::IndirectionRatio, "packed", "stream"),
    (Metric::DensityRatio, "sorted", "packed"),
    (Metric::OrderRatio, "scattered", "sorted"),
    (Metric::TotalRatio, "scattered", "stream"),
];

/// A bandwidth row for each arm, then a row for each ratio of two arms that the group has.
pub fn rows(source: &Source<'_>) -> Vec<Row> {
    if let Some(why) = source.refusal() {
        let mut row = source.without_figures(Metric::RelativeBandwidth, Some("scattered"), why);
        row.baseline = Some("packed".to_owned());
        return vec![row];
    }
    let arms = bandwidths(source.group);
    let ratios = RATIOS
        .iter()
        .filter_map(|&(metric, above, below)| ratio(source.group, metric, above, below));
    arms.chain(ratios).map(|finding| source.found(&finding)).collect()
}

/// The effective bandwidth of each arm.
pub fn bandwidths(group: &Group) -> impl Iterator<Item = Finding<'_>> {
    group.arms.iter().map(|arm| Finding {
        metric: Metric::EffectiveBandwidth,
        arm,
        baseline: None,
        parts: vec![arm],
        values: sample::effective(arm).into_values().collect(),
        placement_medians: sample::placement_medians(arm),
        target_ppm: None,
    })
}

fn ratio<'a>(group: &'a Group, metric: Metric, above: &str, below: &'a str) -> Option<Finding<'a>> {
    let (numerator, denominator) = (group.arm(above)?, group.arm(below)?);
    let aimed_at = metric == Metric::RelativeBandwidth;
    Some(Finding {
        metric,
        // All ratios of a group stand side by side on the scattered arm.
        arm: group.arm("scattered").unwrap_or(numerator),
        baseline: Some(below),
        parts: vec![numerator, denominator],
        values: sample::paired_arms(group, above, below),
        placement_medians: Vec::new(),
        target_ppm: group.target_half_width_ppm.filter(|_| aimed_at),
    })
}
