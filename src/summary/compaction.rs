//! Rows of a group that copies fragments together, and reads them before and after.

use std::collections::BTreeMap;

use super::access::bandwidths;
use super::row::Row;
use super::sample;
use super::source::{Finding, Source};
use super::{Figure, Metric};
use crate::record::{Arm, Status};
use crate::stats;

/// The refinement of such a group's kernel.
pub use crate::experiment::COMPACTION as REFINEMENT;

/// A bandwidth row for each arm, and after how many passes the copy has paid: its time by what a pass
/// over packed fragments takes less than one over scattered ones, round by round.
pub fn rows(source: &Source<'_>) -> Vec<Row> {
    let metric = Metric::BreakEvenPasses;
    if let Some(why) = source.refusal() {
        return vec![source.without_figures(metric, Some(REFINEMENT), why)];
    }
    let group = source.group;
    let bandwidths = bandwidths(group).map(|finding| source.found(&finding));
    let arms = [REFINEMENT, "scattered", "packed"].map(|name| group.arm(name));
    let [Some(copy), Some(scattered), Some(packed)] = arms else { return bandwidths.collect() };
    let [copied, before, after] = [copy, scattered, packed].map(times);
    let paired = |round: &u32| Some((copied.get(round)?, before.get(round)? - after.get(round)?));
    let rounds: Vec<(&f64, f64)> = copied.keys().filter_map(paired).collect();
    let gains: Vec<f64> = rounds.iter().map(|(_, gain)| *gain).collect();
    let row = match stats::median_interval(&gains, stats::CONFIDENCE) {
        // Else what is divided by may be nothing.
        Some(interval) if interval.low > 0.0 => source.found(&Finding {
            metric,
            arm: copy,
            baseline: Some(&packed.name),
            parts: vec![copy, scattered, packed],
            values: rounds.iter().map(|(copied, gain)| *copied / gain).collect(),
            placement_medians: Vec::new(),
            target_ppm: None,
        }),
        _ => {
            let why = "a pass over packed fragments is not faster: the copy never pays".to_owned();
            let mut row = source.without_figures(metric, Some(REFINEMENT), (Status::Skipped, why));
            row.figure = Figure::default();
            row
        }
    };
    bandwidths.chain([row]).collect()
}

/// Nanoseconds of one launch in each round.
fn times(arm: &Arm) -> BTreeMap<u32, f64> {
    let bytes = arm.read_bytes.saturating_add(arm.written_bytes) as f64;
    sample::effective(arm).into_iter().map(|(round, rate)| (round, bytes / rate)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Check, Refined, Samples};
    use crate::summary::fixture::{self, Shape};

    /// Arms that take so many nanoseconds each.
    fn rows_of(copied: u64, scattered: u64, packed: u64) -> Vec<Row> {
        let mut group = Shape::default().group();
        group.kernel = Refined::new(group.kernel.base.clone(), REFINEMENT);
        group.arms.truncate(3);
        let arms = [("compaction", copied), ("scattered", scattered), ("packed", packed)];
        let checks = group.checks.clone();
        group.checks.clear();
        for (arm, (name, ns)) in group.arms.iter_mut().zip(arms) {
            arm.name = name.to_owned();
            arm.samples = Samples::default();
            (0..40)
                .for_each(|round| arm.samples.push(round, 0, 2, 2 * (ns + u64::from(round % 3))));
            let own = |check: &Check| Check { arm: name.to_owned(), ..check.clone() };
            group.checks.extend(checks.iter().map(own));
        }
        crate::summary::rows("r", &fixture::gpu_run(), std::slice::from_ref(&group))
    }

    #[test]
    fn a_copy_pays_after_its_time_by_what_a_pass_gains() {
        let rows = rows_of(9_000_000, 5_000_000, 2_000_000);
        let row = rows.iter().find(|row| row.metric == Metric::BreakEvenPasses).unwrap();
        assert!((row.figure.median.unwrap() - 3.0).abs() < 1e-5, "{:?}", row.figure);
        assert_eq!((row.baseline.as_deref(), row.arm()), (Some("packed"), Some("compaction")));
    }

    #[test]
    fn what_gains_nothing_never_pays() {
        let rows = rows_of(9_000_000, 2_000_000, 2_000_000);
        let row = rows.iter().find(|row| row.metric == Metric::BreakEvenPasses).unwrap();
        assert_eq!((&row.status, row.figure.median), (&Status::Skipped, None));
        assert!(row.reason.as_ref().unwrap().contains("never pays"));
    }
}
