//! How samples of calls are distributed.

use super::Source;
use super::latency::{CALLS, values};
use crate::stats;
use crate::summary::Metric;

/// Samples of one call, counted.
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram {
    /// The case.
    pub case: String,
    /// Which of a run's processes took the samples, from 0.
    pub process: u32,
    /// The call.
    pub metric: Metric,
    /// From where to where, in nanoseconds, and how many samples lie there: ascending, without the
    /// empty ones at either end.
    pub bins: Vec<(f64, f64, u64)>,
    /// Where samples heap up, in nanoseconds; see [`stats::modes`].
    pub heaps: Vec<f64>,
}

/// Bins of a doubling.
const BINS: i32 = 8;

/// The histograms of a case of latency.
pub fn histograms(source: &Source<'_>) -> Vec<Histogram> {
    let of_call = |(call, metric, _): (&str, Metric, Metric)| {
        let values = values(source.allocation, call)?;
        let bins = bins(&values);
        (!bins.is_empty()).then(|| Histogram {
            case: source.allocation.case.clone(),
            process: source.allocation.process,
            metric,
            bins,
            heaps: stats::modes(&values),
        })
    };
    CALLS.into_iter().filter_map(of_call).collect()
}

/// Positive values in bins of an eighth of a doubling.
fn bins(values: &[f64]) -> Vec<(f64, f64, u64)> {
    let edge = |bin: i32| (f64::from(bin) / f64::from(BINS)).exp2();
    let bin = |value: f64| (value.log2() * f64::from(BINS)).floor() as i32;
    let mut all: Vec<i32> = values.iter().filter(|ns| **ns > 0.0).map(|ns| bin(*ns)).collect();
    all.sort_unstable();
    let (Some(&first), Some(&last)) = (all.first(), all.last()) else { return Vec::new() };
    let count = |bin: i32| {
        all.partition_point(|other| *other <= bin) - all.partition_point(|other| *other < bin)
    };
    (first..=last).map(|bin| (edge(bin), edge(bin + 1), count(bin) as u64)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_positive_value_is_in_the_bin_around_it() {
        let values: Vec<f64> = (0..500).map(|n| f64::from(n * n % 1000)).collect();
        let found = bins(&values);
        let positive = values.iter().filter(|value| **value > 0.0).count() as u64;
        assert_eq!(found.iter().map(|(.., count)| count).sum::<u64>(), positive);
        for &(low, high, count) in &found {
            let inside = |value: &&f64| low <= **value && **value < high;
            assert_eq!(values.iter().filter(inside).count() as u64, count, "{low} {high}");
            assert!((high / low - 2f64.powf(0.125)).abs() < 1e-12);
        }
        assert!(found[0].2 > 0 && found[found.len() - 1].2 > 0);
        assert!(found.windows(2).all(|two| two[0].1 == two[1].0));
        assert_eq!(bins(&[0.0, -1.0]), []);
    }
}
