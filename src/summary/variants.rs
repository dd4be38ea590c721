//! Rows of a group that compares a kernel with its competitors.

use super::Metric;
use super::access::bandwidths;
use super::row::Row;
use super::sample;
use super::source::{Finding, Source};
use crate::record::Arm;

/// The refinement of such a group's kernel.
pub const REFINEMENT: &str = "variants";

/// A bandwidth row for each arm, and each competitor against the default over the same bytes.
pub fn rows(source: &Source<'_>) -> Vec<Row> {
    if let Some(why) = source.refusal() {
        return vec![source.without_figures(Metric::VariantRatio, None, why)];
    }
    let competitors = source.group.arms.iter().filter_map(|arm| against_default(source, arm));
    bandwidths(source.group).chain(competitors).map(|finding| source.found(&finding)).collect()
}

/// A competitor's arm is named like the default's, with the variant after a dot.
fn against_default<'a>(source: &Source<'a>, arm: &'a Arm) -> Option<Finding<'a>> {
    let (name, _) = arm.name.split_once('.')?;
    let default = source.group.arm(name)?;
    Some(Finding {
        metric: Metric::VariantRatio,
        arm,
        baseline: Some(&default.name),
        parts: vec![arm, default],
        values: sample::paired_arms(source.group, &arm.name, &default.name),
        placement_medians: Vec::new(),
        target_ppm: None,
    })
}
