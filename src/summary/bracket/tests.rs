//! Brackets against a definition by brute force, and by hand where the data are awkward.

use proptest::prelude::*;

use super::*;
use crate::summary::{Figure, fixture};

/// Rows of one curve with these sizes and intervals, in the order given.
fn curve(points: &[(u64, f64, f64)]) -> Vec<Row> {
    let groups = [fixture::Shape::default().group()];
    let rows = crate::summary::rows("r", &fixture::gpu_run(), &groups);
    let like = rows.iter().find(|row| row.metric == Metric::RelativeBandwidth).unwrap();
    let row = |&(size, low, high): &(u64, f64, f64)| Row {
        fragment_bytes: Some(size),
        figure: Figure {
            median: Some((low + high) / 2.0),
            ci_low: Some(low),
            ci_high: Some(high),
            ..Figure::default()
        },
        ..like.clone()
    };
    points.iter().map(row).collect()
}

fn only(rows: &[Row], threshold: f64) -> Bracket {
    let found = brackets(rows, threshold);
    assert_eq!(found.len(), 1);
    found.into_iter().next().unwrap()
}

#[test]
fn a_dip_at_a_large_size_moves_the_bracket_above_it() {
    let rows = curve(&[(32, 0.97, 0.98), (64, 0.5, 0.6), (128, 0.96, 0.97)]);
    assert_eq!(only(&rows, 0.95).outcome(), Outcome::Between(64, 128));
    let rows = curve(&[(32, 0.97, 0.98), (64, 0.96, 0.97), (128, 0.5, 0.6)]);
    assert_eq!(only(&rows, 0.95).outcome(), Outcome::NotReached(128));
}

#[test]
fn a_straddling_interval_is_never_taken_for_either_side() {
    let rows = curve(&[(32, 0.1, 0.2), (64, 0.94, 0.96), (128, 0.96, 0.97)]);
    let bracket = only(&rows, 0.95);
    assert_eq!(bracket.outcome(), Outcome::Between(32, 128));
    assert_eq!(bracket.undecided(), [64]);
    let rows = curve(&[(32, 0.97, 0.98), (64, 0.94, 0.96)]);
    assert_eq!(only(&rows, 0.95).outcome(), Outcome::Ambiguous);
    let rows = curve(&[(32, 0.94, 0.96), (64, 0.97, 0.98)]);
    assert_eq!(only(&rows, 0.95).outcome(), Outcome::AmbiguousBelow(64));
}

#[test]
fn the_threshold_itself_is_enough() {
    assert_eq!(only(&curve(&[(32, 0.95, 0.95)]), 0.95).outcome(), Outcome::Everywhere(32));
}

#[test]
fn a_figure_without_an_interval_decides_nothing() {
    let mut rows = curve(&[(32, 0.97, 0.98)]);
    rows[0].figure.ci_low = None;
    assert_eq!(only(&rows, 0.95).outcome(), Outcome::Ambiguous);
}

#[test]
fn a_size_without_figures_is_not_measured() {
    let mut rows = curve(&[(32, 0.97, 0.98), (64, 0.97, 0.98)]);
    rows[1].figure = Figure::default();
    assert_eq!(only(&rows, 0.95).sizes, [32]);
    assert!(brackets(&rows[1..], 0.95).is_empty());
}

#[test]
fn curves_of_other_footprints_and_other_metrics_stay_apart() {
    let mut rows = curve(&[(32, 0.97, 0.98), (64, 0.1, 0.2), (128, 0.1, 0.2)]);
    rows[1].footprint_bytes = Some(1 << 20);
    rows[2].metric = Metric::OrderRatio;
    let outcomes: Vec<_> = brackets(&rows, 0.95).iter().map(Bracket::outcome).collect();
    assert_eq!(outcomes, [Outcome::NotReached(64), Outcome::Everywhere(32)]);
}

#[test]
fn a_size_measured_twice_must_hold_twice() {
    let rows = curve(&[(32, 0.97, 0.98), (32, 0.94, 0.96)]);
    assert_eq!(only(&rows, 0.95).outcome(), Outcome::Ambiguous);
}

proptest! {
    #[test]
    fn brackets_are_what_their_definition_says(
        points in prop::collection::btree_map(1u64..40, (0u8..20, 0u8..5), 1..10),
        threshold in 0u8..25,
    ) {
        let scaled = |x: u8| f64::from(x) / 20.0;
        let t = scaled(threshold);
        let points: Vec<(u64, f64, f64)> = points
            .into_iter()
            .map(|(size, (low, width))| (size, scaled(low), scaled(low + width)))
            .collect();
        let mut shuffled = points.clone();
        shuffled.reverse();
        let bracket = only(&curve(&shuffled), t);

        let holds_from = |from: u64| points.iter().filter(|p| p.0 >= from).all(|p| p.1 >= t);
        let above = points.iter().map(|p| p.0).filter(|&size| holds_from(size)).min();
        let below = points.iter().filter(|p| p.2 < t).map(|p| p.0).max();
        let open: Vec<u64> =
            points.iter().filter(|p| p.1 < t && t <= p.2).map(|p| p.0).collect();
        prop_assert_eq!(bracket.above, above);
        prop_assert_eq!(bracket.below, below);
        prop_assert_eq!(&bracket.ambiguous, &open);

        let (smallest, largest) = (points[0], points[points.len() - 1]);
        match bracket.outcome() {
            Outcome::Everywhere(size) => {
                prop_assert_eq!(size, smallest.0);
                prop_assert!(points.iter().all(|p| p.1 >= t));
            }
            Outcome::Between(low, high) => {
                prop_assert!(low < high && holds_from(high));
                prop_assert!(points.iter().any(|p| p.0 == low && p.2 < t));
            }
            Outcome::AmbiguousBelow(size) => {
                prop_assert!(holds_from(size) && points.iter().all(|p| p.2 >= t));
                prop_assert_eq!(bracket.undecided(), open);
            }
            Outcome::NotReached(size) => prop_assert!(size == largest.0 && largest.2 < t),
            Outcome::Ambiguous => prop_assert!(largest.1 < t && t <= largest.2),
        }
    }
}
