//! What selftests say: how far a clock can be trusted, and how often nothing was found to differ.

use std::collections::BTreeMap;

use serde::Serialize;
use statrs::distribution::{Binomial, DiscreteCDF};

use super::{Figure, Metric, rows};
use crate::experiment::MOVED;
use crate::record::{ClockTest, Group, Run};
use crate::stats;

/// How often an interval that holds its promise misses.
const LEVEL: f64 = 0.05;

/// How seldom more is found by chance than is [allowed](SameCount::allowed).
const CHANCE: f64 = 0.025;

/// By how much clocks may differ, relative: a tenth of what suites aim at for a ratio, so that no
/// bandwidth is wrong by more than that.
pub const CLOCKS_AGREE: f64 = 0.005;

/// A device's timer in figures.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClockFigures {
    /// The smallest step between two different intervals, in nanoseconds.
    pub step_ns: Option<u64>,
    /// The shortest launch, by the device's timer, in nanoseconds.
    pub short_ns: Figure,
    /// What the host pays for such an interval beside it, in nanoseconds.
    pub host_ns: Figure,
    /// Long intervals by the device's timer over those by the host's clock.
    pub agreement: Figure,
}

impl ClockFigures {
    /// The figures of a test; none where a clock told nothing.
    pub fn of(test: &ClockTest) -> Option<ClockFigures> {
        let floats = |values: &[u64]| values.iter().map(|ns| *ns as f64).collect::<Vec<f64>>();
        let beside = test.short_host_ns.iter().zip(&test.short_ns);
        let beside: Vec<f64> = beside.map(|(host, own)| *host as f64 - *own as f64).collect();
        let pairs = test.long_ns.iter().zip(&test.long_host_ns);
        let ratios: Vec<f64> = pairs.map(|(own, host)| *own as f64 / *host as f64).collect();
        let mut steps = test.short_ns.clone();
        steps.sort_unstable();
        steps.dedup();
        Some(ClockFigures {
            step_ns: steps.windows(2).map(|pair| pair[1] - pair[0]).min(),
            short_ns: Figure::within(&floats(&test.short_ns))?,
            host_ns: Figure::within(&beside)?,
            agreement: Figure::within(&ratios)?,
        })
    }

    /// What is wrong with the clock; none where it agrees with the host's.
    pub fn complaint(&self) -> Option<String> {
        let ratio = self.agreement.median.unwrap_or(f64::NAN);
        let agrees = (ratio - 1.0).abs() <= CLOCKS_AGREE;
        (!agrees).then(|| {
            format!(
                "the device's timer gives {ratio:.4} of what the host's clock gives for the same \
                 work, and not 1 within {CLOCKS_AGREE}"
            )
        })
    }
}

/// How often kernels that were compared with themselves were called different.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SameCount {
    /// `same`: over the same data; `moved`: over data of its own for each arm, placed anew a few times.
    pub kind: String,
    /// Comparisons with an interval.
    pub comparisons: u64,
    /// Of these, those whose interval does not hold 1.
    pub different: u64,
    /// Those that would have been called different if all rounds were independent, whatever lay where:
    /// the same as `different` where nothing was moved.
    pub different_within: u64,
    /// The median half-width of the intervals, relative.
    pub half_width: Option<f64>,
}

impl SameCount {
    /// The most that chance allows: more come in less than 2.5 % of all tests where nothing differs.
    pub fn allowed(&self) -> u64 {
        let Ok(by_chance) = Binomial::new(LEVEL, self.comparisons) else { return 0 };
        (0..self.comparisons).find(|most| by_chance.sf(*most) <= CHANCE).unwrap_or(self.comparisons)
    }
}

/// Counts comparisons of kernels with themselves, by kind.
pub fn count_same(run: &Run, groups: &[Group]) -> Vec<SameCount> {
    let mut counts: BTreeMap<String, (SameCount, Vec<f64>)> = BTreeMap::new();
    for group in groups {
        let kind = group.kernel.refinement.clone().unwrap_or_default();
        let rows = rows("", run, std::slice::from_ref(group));
        let row = rows.iter().find(|row| row.metric == Metric::SameRatio);
        let Some((row, interval)) = row.and_then(|row| Some((row, row.figure.ci()?))) else {
            continue;
        };
        let (count, half_widths) = counts.entry(kind.clone()).or_default();
        let differs = |interval: &stats::Interval| u64::from(!interval.contains(1.0));
        count.kind = kind;
        count.comparisons += 1;
        count.different += differs(&interval);
        count.different_within += match count.kind == MOVED {
            true => within(group).map_or(0, |interval| differs(&interval)),
            false => differs(&interval),
        };
        half_widths.extend(row.figure.relative_half_width());
    }
    let figures = counts.into_values();
    figures
        .map(|(count, widths)| SameCount { half_width: stats::median(&widths), ..count })
        .collect()
}

/// The interval of all rounds of a group, as if nothing had been moved between them.
fn within(group: &Group) -> Option<stats::Interval> {
    let ratios = super::sample::paired_arms(group, "b", "a");
    Figure::within(&ratios)?.ci()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chance_allows_16_of_200() {
        let allowed = |comparisons| SameCount { comparisons, ..SameCount::default() }.allowed();
        assert_eq!([0, 1, 20, 200, 1000].map(allowed), [0, 1, 3, 16, 64]);
    }

    #[test]
    fn a_clock_in_figures() {
        let test = ClockTest {
            short_ns: vec![2_048, 2_080, 2_048, 2_144, 2_080, 2_048],
            short_host_ns: vec![12_048; 6],
            long_ns: vec![10_000_000; 8],
            long_host_ns: vec![10_010_000; 8],
            ..ClockTest::default()
        };
        let figures = ClockFigures::of(&test).unwrap();
        assert_eq!((figures.step_ns, figures.short_ns.median), (Some(32), Some(2_064.0)));
        assert_eq!(figures.host_ns.median, Some(9_984.0));
        assert_eq!(figures.complaint(), None);
        let slow = ClockTest { long_host_ns: vec![10_100_000; 8], ..test };
        let complaint = ClockFigures::of(&slow).unwrap().complaint().unwrap();
        assert!(complaint.contains("0.9901"), "{complaint}");
        assert_eq!(ClockFigures::of(&ClockTest::default()), None);
    }
}
