//! Rows of a group that compares a kernel with itself.

use super::access::bandwidths;
use super::row::Row;
use super::sample::{self, Rates};
use super::source::{Finding, Source};
use super::{Figure, Metric};
use crate::experiment::{MOVED, SAME};
use crate::record::Group;

/// The refinements of such a group's kernel: over the same data, and over data of its own for each arm,
/// placed anew a few times.
pub const REFINEMENTS: [&str; 2] = [SAME, MOVED];

/// A bandwidth row for each arm, and their ratio, which is 1 but for chance: between placements where
/// there were several, since where data lie may really make one arm faster in all rounds of a placement.
pub fn rows(source: &Source<'_>) -> Vec<Row> {
    if let Some(why) = source.refusal() {
        return vec![source.without_figures(Metric::SameRatio, Some("b"), why)];
    }
    let ratio = ratio(source.group).map(|finding| {
        let medians = &finding.placement_medians;
        let mut row = source.found(&finding);
        if medians.len() > 1 {
            row.figure = Figure::between(&row.figure, medians);
        }
        row
    });
    let arms = bandwidths(source.group).map(|finding| source.found(&finding));
    arms.chain(ratio).collect()
}

fn ratio(group: &Group) -> Option<Finding<'_>> {
    let (a, b) = (group.arm("a")?, group.arm("b")?);
    let (above, below) = (sample::effective(b), sample::effective(a));
    let medians = sample::by_placement(b, &ratios(&above, &below));
    Some(Finding {
        metric: Metric::SameRatio,
        arm: b,
        baseline: Some("a"),
        parts: vec![a, b],
        values: sample::paired(&above, &below),
        placement_medians: medians,
        target_ppm: group.target_half_width_ppm,
    })
}

fn ratios(above: &Rates, below: &Rates) -> Rates {
    let ratio = |(round, rate): (&u32, &f64)| Some((*round, rate / below.get(round)?));
    above.iter().filter_map(ratio).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{PatternName, Refined, Samples};
    use crate::summary::fixture::{self, Shape};

    /// Arms of which the second takes `factors[placement]` times as long in its rounds.
    fn group(refinement: &str, factors: &[f64]) -> Group {
        let mut group = Shape::default().group();
        group.kernel = Refined::new(group.kernel.base.clone(), refinement);
        group.pattern = PatternName::Shuffled.into();
        group.arms.truncate(2);
        for (arm, name) in group.arms.iter_mut().zip(["a", "b"]) {
            arm.samples = Samples::default();
            for (placement, factor) in factors.iter().enumerate() {
                for round in 0..20 {
                    let own = if name == "b" { *factor } else { 1.0 };
                    let ns = (1e6 + f64::from(round * 7 % 20)) * own;
                    arm.samples.push(20 * placement as u32 + round, 0, 1, ns as u64);
                    arm.samples.placement.push(placement as u32);
                }
            }
            arm.name = name.to_owned();
        }
        group.arms[0].read_bytes = group.arms[1].read_bytes;
        let mut checks = Vec::new();
        for check in &group.checks {
            checks.extend(
                ["a", "b"].map(|arm| crate::record::Check { arm: arm.to_owned(), ..check.clone() }),
            );
        }
        group.checks = checks;
        group
    }

    fn same_ratio(group: &Group) -> (Row, Option<bool>) {
        let rows = crate::summary::rows("r", &fixture::gpu_run(), std::slice::from_ref(group));
        let row = rows.into_iter().find(|row| row.metric == Metric::SameRatio).unwrap();
        let different = row.figure.ci().map(|interval| !interval.contains(1.0));
        (row, different)
    }

    #[test]
    fn a_difference_is_told_and_none_is_not() {
        let (row, different) = same_ratio(&group("same", &[1.0]));
        assert_eq!((different, row.figure.interval), (Some(false), Some("within")));
        assert_eq!(same_ratio(&group("same", &[1.01])).1, Some(true));
    }

    #[test]
    fn placements_are_the_unit_where_there_are_several() {
        // Each placement by itself differs without doubt, and their mean does not.
        let (row, different) = same_ratio(&group("moved", &[0.99, 1.01, 0.992, 1.008, 1.0]));
        assert_eq!((different, row.figure.interval), (Some(false), Some("between")));
        assert_eq!((row.placements, row.figure.samples), (Some(5), Some(100)));
        assert!(row.figure.ci().unwrap().half_width() > 0.005, "{row:?}");
        let moved = [1.01, 1.011, 1.009, 1.0101, 1.0102];
        assert_eq!(same_ratio(&group("moved", &moved)).1, Some(true));
    }
}
