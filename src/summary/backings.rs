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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::fixture;

    fn found() -> Vec<Row> {
        crate::summary::rows("r", &fixture::gpu_run(), &fixture::scatter_groups())
    }

    #[test]
    fn each_order_is_held_against_that_in_order_over_the_same_fragments() {
        let rows = found();
        let case = "scatter/kernel=gather_read.backings/pattern=random/fragment=128B/\
                    footprint=128GiB/chunk=2MiB/arm=";
        let of = |arm: &str, metric| {
            rows.iter().find(|row| row.metric == metric && row.case == format!("{case}{arm}"))
        };
        let ratio = |arm: &str| of(arm, Metric::BackingRatio).unwrap();
        assert_eq!(ratio("shuffled.1").baseline.as_deref(), Some("in_order"));
        assert_eq!(ratio("shuffled.1.sorted").baseline.as_deref(), Some("in_order.sorted"));
        let median = |arm: &str| ratio(arm).figure.median.unwrap();
        assert!((median("reversed") - 0.5).abs() < 0.001);
        assert!((median("reversed.sorted") - 1.0).abs() < 0.001);
        assert!(of("in_order", Metric::BackingRatio).is_none());
        assert!(of("in_order", Metric::EffectiveBandwidth).is_some());
        assert_eq!(ratio("shuffled.1").backing.as_deref(), Some("shuffled.1"));
    }

    #[test]
    fn a_range_tells_once_how_long_it_took_to_map() {
        let rows = found();
        let mapped: Vec<&Row> = rows.iter().filter(|row| row.metric == Metric::MapTime).collect();
        let arms: Vec<Option<&str>> = mapped.iter().map(|row| row.arm()).collect();
        assert_eq!(arms, [Some("in_order"), Some("shuffled.1")]);
        assert_eq!(mapped[0].figure.median, Some(65_536.0 * 52_000.0 + 40_000.0));
        assert_eq!(mapped[0].parameter("chunks"), Some("65536"));
        assert_eq!(mapped[1].parameter("create_ns"), Some("0"));
    }

    #[test]
    fn a_group_that_was_skipped_has_one_row() {
        let mut group = fixture::scatter_groups().remove(0);
        (group.status, group.reason) = (crate::record::Status::Skipped, Some("too long".into()));
        let rows = crate::summary::rows("r", &fixture::gpu_run(), &[group]);
        assert_eq!((rows.len(), rows[0].metric), (1, Metric::BackingRatio));
        assert_eq!(rows[0].reason.as_deref(), Some("too long"));
    }
}
