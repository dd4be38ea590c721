//! An interval of the median where rounds are not independent.

use super::autocorrelation::rank_autocorrelation;
use super::quantile::ordered;
use super::random::SplitMix64;
use super::rounds::CONFIDENCE;
use super::{Interval, median, median_interval};

/// Resampled series; an end of the interval is the 50th of their medians from its side.
const RESAMPLES: usize = 2_000;
/// The same samples always have the same interval.
const SEED: u64 = 1;

/// A 95 % interval of the median of a stationary series whose neighbours are alike, by a block
/// bootstrap. The series is in the order in which it was taken.
///
/// - **Resampling**: the circular block bootstrap (Politis and Romano, "A circular block-resampling
///   procedure for stationary data", 1992, after Künsch, Annals of Statistics 17, 1989): blocks of
///   neighbours are drawn with replacement, the end joined to the beginning, until the series is as
///   long as before. What lies within a block stays correlated as it was.
/// - **Block length**: `b = 1.1447 (4 r^2 n / (1 - r^2)^2)^(1/3)` with the rank correlation `r` of
///   neighbours, the optimum for an autoregressive series of order 1 (Andrews, "Heteroskedasticity
///   and autocorrelation consistent covariance matrix estimation", Econometrica 59, 1991: the
///   variance of the bootstrap is his Bartlett estimate). At least 2, at most `n / 3` and
///   `3 sqrt(n)`.
/// - **Ends**: the 2.5 % and 97.5 % quantiles of 2,000 resampled medians, moved away from the median
///   by what few blocks hide (Kiefer and Vogelsang, "A new asymptotic theory for
///   heteroskedasticity-autocorrelation robust tests", Econometric Theory 21, 2005: the critical
///   value grows from 1.96 with `b / n`). Never outside the samples, and never inside the
///   order-statistic interval: the result is the hull of both.
///
/// It covers less than 95 %, if far more than the interval for independent values. Simulated on
/// autoregressive series of order 1, normal and log-normal (4,000 of each kind up to 200 values,
/// 1,000 of 600 values); the lower of the two:
///
/// | coefficient | values | order statistics | this interval |
/// | --- | --- | --- | --- |
/// | 0.3 | 30, 60, 200, 600 | 0.89, 0.92, 0.90, 0.89 | 0.93, 0.94, 0.94, 0.94 |
/// | 0.5 | 30, 60, 200, 600 | 0.82, 0.84, 0.82, 0.80 | 0.90, 0.91, 0.93, 0.93 |
/// | 0.8 | 30, 60, 200, 600 | 0.57, 0.61, 0.57, 0.57 | 0.80, 0.86, 0.91, 0.92 |
///
/// A series that drifts has no one median, and no interval mends that.
///
/// `None` where [`median_interval`] is, where there are fewer than 10 values, or all are the same.
///
/// ```
/// use fragbench::stats::{block_median_interval, median_interval};
///
/// let slow: Vec<f64> = (0..60).map(|i| f64::from(i % 20)).collect();
/// let wide = block_median_interval(&slow).unwrap();
/// let narrow = median_interval(&slow, 0.95).unwrap();
/// assert!(wide.low < narrow.low && narrow.high < wide.high);
/// ```
pub fn block_median_interval(series: &[f64]) -> Option<Interval> {
    let independent = median_interval(series, CONFIDENCE)?;
    let center = median(series)?;
    let ascending = ordered(series)?;
    let block = block_length(series.len(), rank_autocorrelation(series)?);
    let medians = ordered(&resampled_medians(series, &ascending, block))?;
    let tail = (1.0 - CONFIDENCE) / 2.0;
    let from_end = (tail * RESAMPLES as f64).floor() as usize - 1;
    let stretch = few_blocks(block as f64 / series.len() as f64);
    let moved = |end: f64| {
        (center + (end - center) * stretch).clamp(ascending[0], ascending[ascending.len() - 1])
    };
    Some(Interval {
        low: moved(medians[from_end]).min(independent.low),
        high: moved(medians[RESAMPLES - 1 - from_end]).max(independent.high),
    })
}

/// The length of a block for `n` values whose neighbours have this correlation.
fn block_length(n: usize, correlation: f64) -> usize {
    let n = n as f64;
    let r = correlation.clamp(0.0, 0.99);
    let optimum = 1.1447 * (4.0 * r * r * n / (1.0 - r * r).powi(2)).cbrt();
    // A float-to-integer `as` saturates.
    optimum.ceil().min(n / 3.0).min(3.0 * n.sqrt()).max(2.0) as usize
}

/// How much wider an interval has to be whose blocks each hold this share of the values: the
/// polynomial of Kiefer and Vogelsang (2005, table 1, Bartlett kernel, 97.5 %) over its value at 0.
fn few_blocks(share: f64) -> f64 {
    1.0 + (2.9694 * share + 0.4160 * share.powi(2) - 0.5324 * share.powi(3)) / 1.9600
}

fn resampled_medians(series: &[f64], ascending: &[f64], block: usize) -> Vec<f64> {
    let n = series.len();
    let place = |value: &f64| ascending.partition_point(|other| other < value);
    // Twice, so that a block may run over the end.
    let places: Vec<usize> = series.iter().chain(series).map(place).collect();
    let mut random = SplitMix64::new(SEED);
    // Counting how often each place is drawn finds the median without sorting each resample.
    let mut counts = vec![0; n];
    let mut one = || {
        counts.fill(0);
        let mut left = n;
        while left > 0 {
            let start = random.below(n);
            let length = block.min(left);
            places[start..start + length].iter().for_each(|&place| counts[place] += 1);
            left -= length;
        }
        let (low, high) = (drawn(&counts, (n - 1) / 2), drawn(&counts, n / 2));
        ascending[low] * 0.5 + ascending[high] * 0.5
    };
    (0..RESAMPLES).map(|_| one()).collect()
}

/// The place of the `rank`-th value, from 0, among those drawn.
fn drawn(counts: &[usize], rank: usize) -> usize {
    let mut passed = 0;
    let holds = |&count: &usize| {
        passed += count;
        passed > rank
    };
    counts.iter().position(holds).unwrap_or(counts.len() - 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::stats::simulate::Generator;

    #[test]
    fn covers_clearly_more_than_order_statistics() {
        const CASES: u32 = 400;
        for (n, at_least, more) in [(60, 0.88, 0.03), (200, 0.9, 0.06)] {
            let mut random = Generator::new(1989);
            let (mut bootstrap, mut order) = (0, 0);
            for _ in 0..CASES {
                let series = random.autoregressive(n, 0.5);
                let covers =
                    |interval: Option<Interval>| u32::from(interval.unwrap().contains(0.0));
                bootstrap += covers(block_median_interval(&series));
                order += covers(median_interval(&series, CONFIDENCE));
            }
            let share = |count: u32| f64::from(count) / f64::from(CASES);
            let (bootstrap, order) = (share(bootstrap), share(order));
            println!("{n}: {bootstrap}, order statistics {order}");
            assert!(bootstrap > at_least && bootstrap > order + more, "{n}: {bootstrap} {order}");
        }
    }

    #[test]
    fn block_lengths_follow_the_rule() {
        // 1.1447 x (4 x 0.25 x n / 0.5625)^(1/3) is 5.43 for 60 values and 8.11 for 200.
        assert_eq!([60, 200].map(|n| block_length(n, 0.5)), [6, 9]);
        assert_eq!(block_length(200, 0.0), 2);
        assert_eq!(block_length(200, -0.7), 2);
        assert_eq!([30, 900].map(|n| block_length(n, 1.0)), [10, 90]);
    }

    #[test]
    fn few_blocks_want_the_width_that_they_are_simulated_to_want() {
        // The 95 % point of |mean| over its Bartlett standard error, of independent values.
        let (n, lag) = (200, 20);
        let mut random = Generator::new(2005);
        let mut ratios: Vec<f64> = (0..4000)
            .map(|_| {
                let values: Vec<f64> = (0..n).map(|_| random.normal()).collect();
                let mean = values.iter().sum::<f64>() / n as f64;
                let sums: Vec<f64> = values
                    .iter()
                    .scan(0.0, |sum, value| {
                        *sum += value - mean;
                        Some(*sum)
                    })
                    .collect();
                let squares: f64 = sums.iter().map(|sum| sum * sum).sum();
                let lagged: f64 = sums.iter().zip(&sums[lag..]).map(|(a, b)| a * b).sum();
                let variance = 2.0 * (squares - lagged) / (n * lag) as f64;
                mean.abs() * (n as f64 / variance).sqrt()
            })
            .collect();
        ratios.sort_by(f64::total_cmp);
        assert!((ratios[3800] / (1.96 * few_blocks(0.1)) - 1.0).abs() < 0.06, "{}", ratios[3800]);
        assert_eq!(few_blocks(0.0), 1.0);
    }

    #[test]
    fn a_resample_of_whole_rounds_is_the_sample() {
        let series: Vec<f64> = (0..11).map(|i| f64::from(i * 7 % 11)).collect();
        let medians = resampled_medians(&series, &ordered(&series).unwrap(), 11);
        assert!(medians.iter().all(|&median| median == 5.0));
    }

    #[test]
    fn the_same_samples_have_the_same_interval() {
        let series = Generator::new(3).autoregressive(60, 0.5);
        assert_eq!(block_median_interval(&series), block_median_interval(&series));
    }

    #[test]
    fn what_cannot_be_bounded_is_none() {
        assert_eq!(block_median_interval(&[]), None);
        assert_eq!(block_median_interval(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]), None);
        assert_eq!(block_median_interval(&[1.0; 30]), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn never_narrower_than_order_statistics_and_never_outside(
            series in prop::collection::vec(-1e3..1e3f64, 10..60),
        ) {
            if let Some(wide) = block_median_interval(&series) {
                let narrow = median_interval(&series, CONFIDENCE).unwrap();
                prop_assert!(wide.low <= narrow.low && narrow.high <= wide.high);
                prop_assert!(series.iter().any(|&value| value <= wide.low));
                prop_assert!(series.iter().any(|&value| value >= wide.high));
            }
        }

        #[test]
        fn no_panic_on_odd_input(series in prop::collection::vec(any::<f64>(), 0..40)) {
            let found = block_median_interval(&series);
            prop_assert!(found.is_none_or(|ends| ends.low.is_finite() && ends.low <= ends.high));
        }
    }
}
