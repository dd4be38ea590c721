//! Rows of a group that reads the same physical chunks in several orders.

use super::access::bandwidths;
use super::row::Row;
use super::sample;
use super::source::{Finding, Source};
use super::{Figure, Metric};
use crate::record::Arm;

/// The refinement of such a group's kernel.
pub use crate::experiment::BACKINGS as REFINEMENT;

/// The order that others are held against.
pub(super) const IN_ORDER: &str = "in_order";

/// A bandwidth row for each arm, then each order of chunks against the one in which they were made, over
/// the same fragments in the same order; and how long the ranges took to map.
pub fn rows(source: &Source<'_>) -> Vec<Row> {
    if let Some(why) = source.refusal() {
        return vec![source.without_figures(Metric::BackingRatio, None, why)];
    }
    let others = source.group.arms.iter().filter_map(|arm| against_order(source, arm));
    let measured = bandwidths(source.group).chain(others).map(|finding| source.found(&finding));
    measured.chain(mapped(source)).collect()
}

fn against_order<'a>(source: &Source<'a>, arm: &'a Arm) -> Option<Finding<'a>> {
    let is_base = |other: &&Arm| {
        other.backing.as_deref() == Some(IN_ORDER)
            && other.order == arm.order
            && other.name != arm.name
    };
    let base = source.group.arms.iter().find(is_base)?;
    Some(Finding {
        metric: Metric::BackingRatio,
        arm,
        baseline: Some(&base.name),
        parts: vec![arm, base],
        values: sample::paired_arms(source.group, &arm.name, &base.name),
        placement_medians: Vec::new(),
        target_ppm: source.group.target_half_width_ppm.filter(|_| arm.name == "shuffled.1"),
    })
}

/// What it took to put memory under the ranges, where this group was the first to use them.
fn mapped<'a>(source: &'a Source<'_>) -> impl Iterator<Item = Row> + 'a {
    source.group.mappings.iter().filter_map(|mapping| {
        let arm = source.group.arms.iter().find(|arm| arm.name == mapping.backing)?;
        let mut row = source.of_arm(Metric::MapTime, arm);
        let ns = mapping.reserve_ns + mapping.create_ns + mapping.map_ns + mapping.open_ns;
        let parts = [
            ("chunk_bytes", mapping.chunk_bytes),
            ("chunks", mapping.chunks),
            ("create_ns", mapping.create_ns),
            ("map_ns", mapping.map_ns),
            ("open_ns", mapping.open_ns),
        ];
        for (key, value) in parts {
            row.parameters += &format!(";{key}={value}");
        }
        row.parameters = row.parameters.trim_start_matches(';').to_owned();
        row.figure = Figure { samples: Some(1), median: Some(ns as f64), ..Figure::default() };
        Some(row)
    })
}
