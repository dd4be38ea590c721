//! Intervals for quantiles that hold for any distribution.

use statrs::distribution::{Binomial, DiscreteCDF};

use super::quantile::ordered;

/// A closed interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl Interval {
    /// Half the distance between the ends, in their unit.
    pub fn half_width(&self) -> f64 {
        self.high / 2.0 - self.low / 2.0
    }

    /// Whether `value` lies between the ends or on one.
    pub fn contains(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }
}

/// A confidence interval of the `q`-quantile from two order statistics.
///
/// Of `n` independent samples, the number at or below the true quantile is binomial with `n` and
/// `q`, whatever the distribution (at least as many where it has atoms). So the order statistics
/// of ranks `l` and `u` enclose the quantile but for `P(B < l) + P(B >= u)` (Conover, "Practical
/// Nonparametric Statistics", 3rd edition, section 3.2; Hahn and Meeker, "Statistical Intervals",
/// section 5.2). The ranks are the innermost for which **each** of these tails is at most
/// `(1 - confidence) / 2`: the coverage is at least `confidence`, the interval is the shortest that
/// treats both ends alike, and neither end hides behind the other.
///
/// `None` where the sample is too small to bound the quantile on both sides (at 95 %: below 6
/// samples for the median, 368 for p99, 3,688 for p99.9), where a sample is not finite, or where
/// `q` or `confidence` is not strictly between 0 and 1.
///
/// ```
/// let samples: Vec<f64> = (1..=15).map(f64::from).collect();
/// let interval = fragbench::stats::quantile_interval(&samples, 0.5, 0.95).unwrap();
/// assert_eq!((interval.low, interval.high), (4.0, 12.0));
/// ```
pub fn quantile_interval(samples: &[f64], q: f64, confidence: f64) -> Option<Interval> {
    let (lower, upper) = ranks(samples.len() as u64, q, confidence)?;
    let ordered = ordered(samples)?;
    Some(Interval { low: ordered[lower as usize - 1], high: ordered[upper as usize - 1] })
}

/// [`quantile_interval`] of the median.
pub fn median_interval(samples: &[f64], confidence: f64) -> Option<Interval> {
    quantile_interval(samples, 0.5, confidence)
}

/// The ranks, from 1, of the order statistics that bound the quantile.
fn ranks(n: u64, q: f64, confidence: f64) -> Option<(u64, u64)> {
    let open_unit = |x: f64| 0.0 < x && x < 1.0;
    if n == 0 || !open_unit(q) || !open_unit(confidence) {
        return None;
    }
    let tail = (1.0 - confidence) / 2.0;
    let at_or_below = Binomial::new(q, n).ok()?;
    let lower = first(n, |k| at_or_below.cdf(k) > tail);
    let upper = first(n, |k| at_or_below.sf(k) <= tail) + 1;
    (lower >= 1 && upper <= n).then_some((lower, upper))
}

/// The first of `0..n` for which a condition holds that never stops holding, or `n`.
fn first(n: u64, holds: impl Fn(u64) -> bool) -> u64 {
    let (mut from, mut to) = (0, n);
    while from < to {
        let middle = from + (to - from) / 2;
        if holds(middle) { to = middle } else { from = middle + 1 }
    }
    from
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::stats::simulate::Generator;

    /// `P(from <= B < to)`, summed from the definition.
    fn probability(n: u64, q: f64, from: u64, to: u64) -> f64 {
        let mut log_choose = 0.0;
        let mut sum = 0.0;
        for k in 0..to {
            if k >= from {
                sum += (log_choose + k as f64 * q.ln() + (n - k) as f64 * (-q).ln_1p()).exp();
            }
            log_choose += ((n - k) as f64 / (k + 1) as f64).ln();
        }
        sum
    }

    #[test]
    fn smallest_samples_that_bound_a_quantile() {
        for (q, needed) in [(0.999, 3688), (0.99, 368), (0.9, 36), (0.5, 6), (0.01, 368)] {
            assert_eq!(ranks(needed - 1, q, 0.95), None, "{q}");
            assert!(ranks(needed, q, 0.95).is_some(), "{q}");
        }
    }

    #[test]
    fn ranks_of_published_tables() {
        // Conover, table A3 and Hahn and Meeker, table A.15: the median at 95 %.
        for (n, expected) in [(10, (2, 9)), (15, (4, 12)), (20, (6, 15)), (30, (10, 21))] {
            assert_eq!(ranks(n, 0.5, 0.95), Some(expected), "{n}");
        }
    }

    #[test]
    fn what_cannot_be_bounded_is_none() {
        let samples = [1.0; 100];
        assert_eq!(median_interval(&[], 0.95), None);
        for q in [0.0, 1.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(quantile_interval(&samples, q, 0.95), None);
            assert_eq!(median_interval(&samples, q), None);
        }
        let mut odd = samples;
        odd[7] = f64::NAN;
        assert_eq!(median_interval(&odd, 0.95), None);
    }

    #[test]
    fn widths_do_not_overflow() {
        let all = Interval { low: -f64::MAX, high: f64::MAX };
        assert_eq!(all.half_width(), f64::MAX);
        assert!(all.contains(0.0) && all.contains(f64::MAX) && !all.contains(f64::NAN));
        let some = Interval { low: 1.0, high: 4.0 };
        assert_eq!(some.half_width(), 1.5);
        assert!(some.contains(1.0) && !some.contains(0.999) && !some.contains(4.001));
    }

    #[test]
    fn covers_a_skewed_distribution_as_often_as_it_says() {
        const REPLICATIONS: u32 = 2000;
        for (n, q, confidence) in [(15, 0.5, 0.95), (100, 0.5, 0.9), (60, 0.9, 0.95)] {
            let truth = -(1.0f64 - q).ln();
            let mut random = Generator::new(1);
            let covered = (0..REPLICATIONS)
                .filter(|_| {
                    let samples: Vec<f64> = (0..n).map(|_| random.exponential()).collect();
                    quantile_interval(&samples, q, confidence).unwrap().contains(truth)
                })
                .count() as f64
                / f64::from(REPLICATIONS);
            let (lower, upper) = ranks(n, q, confidence).unwrap();
            let expected = probability(n, q, lower, upper);
            let deviation = (expected * (1.0 - expected) / f64::from(REPLICATIONS)).sqrt();
            assert!((covered - expected).abs() < 3.5 * deviation, "{n}: {covered} {expected}");
        }
    }

    proptest! {
        #[test]
        fn ranks_cover_and_no_inner_ranks_do(
            n in 1..400u64,
            q in 0.01..0.99f64,
            confidence in 0.5..0.999f64,
        ) {
            let tail = (1.0 - confidence) / 2.0;
            match ranks(n, q, confidence) {
                Some((lower, upper)) => {
                    prop_assert!(probability(n, q, lower, upper) >= confidence - 1e-9);
                    prop_assert!(probability(n, q, 0, lower) <= tail + 1e-9);
                    prop_assert!(probability(n, q, 0, lower + 1) > tail - 1e-9);
                    prop_assert!(probability(n, q, upper, n + 1) <= tail + 1e-9);
                    prop_assert!(probability(n, q, upper - 1, n + 1) > tail - 1e-9);
                }
                None => {
                    let edge = q.powf(n as f64).max((1.0 - q).powf(n as f64));
                    prop_assert!(edge > tail - 1e-9);
                }
            }
        }

        #[test]
        fn wider_with_confidence_and_around_the_median(
            samples in prop::collection::vec(-1e6..1e6f64, 10..80),
            a in 0.5..0.99f64,
            b in 0.5..0.99f64,
        ) {
            let inner = median_interval(&samples, a.min(b)).unwrap();
            let outer = median_interval(&samples, a.max(b)).unwrap();
            prop_assert!(outer.low <= inner.low && inner.high <= outer.high);
            prop_assert!(inner.contains(crate::stats::median(&samples).unwrap()));
        }

        #[test]
        fn no_panic_on_odd_input(
            samples in prop::collection::vec(any::<f64>(), 0..50),
            q in any::<f64>(),
            confidence in any::<f64>(),
        ) {
            let found = quantile_interval(&samples, q, confidence);
            prop_assert!(found.is_none_or(|interval| interval.low <= interval.high));
        }
    }
}
