//! An interval between processes.

use statrs::distribution::{ContinuousCDF, StudentsT};

use super::Interval;
use super::quantile::ordered;
use super::random::SplitMix64;
use super::rounds::CONFIDENCE;

/// Resampled means; an end of the interval is the 50th of them from its side.
const RESAMPLES: usize = 2_000;
/// The same samples always have the same interval.
const SEED: u64 = 1;
/// With fewer processes, the spread of two would have to stand for that of all.
const FEWEST: usize = 3;
/// The 97.5 % quantile of the normal distribution.
const NORMAL: f64 = 1.959_963_984_540_054;

/// The mean of what processes (or placements of buffers) found, and its 95 % interval: where a
/// further one, measured likewise, would draw the mean of all.
///
/// Rounds of one process are no independent samples of what another process would find: each has its
/// own pages, addresses and clocks. So the process is the unit.
///
/// - **Resampling**: the hierarchical bootstrap in the form that Davison and Hinkley ("Bootstrap
///   Methods and their Application", 1997, section 3.8) advise for nested samples: processes are drawn
///   with replacement, and each keeps its rounds, by their median. Drawing rounds anew as well would
///   count their variation twice, since the medians of the processes hold it already.
/// - **Ends**: the 2.5 % and 97.5 % quantiles of 2,000 resampled means, moved away from the mean
///   by what few processes hide: `t / z sqrt(n / (n - 1))`, with Student's `t` of `n - 1` degrees of
///   freedom. Of normal medians this is Student's interval. Values that are none of them
///   negative have no negative end.
///
/// Simulated coverage stands in the statistical selftest. `None` for fewer than 3 values, or where one
/// is not finite.
///
/// ```
/// use fragbench::stats::between_interval;
///
/// let (mean, interval) = between_interval(&[0.98, 1.0, 1.02, 0.99, 1.01]).unwrap();
/// assert!((mean - 1.0).abs() < 1e-12 && interval.low < 0.985 && 1.015 < interval.high);
/// ```
pub fn between_interval(medians: &[f64]) -> Option<(f64, Interval)> {
    let n = medians.len();
    if n < FEWEST || medians.iter().any(|median| !median.is_finite()) {
        return None;
    }
    let mean = |sum: f64| sum / n as f64;
    let center = mean(medians.iter().sum());
    let mut random = SplitMix64::new(SEED);
    let mut one = || mean((0..n).map(|_| medians[random.below(n)]).sum());
    let means: Vec<f64> = (0..RESAMPLES).map(|_| one()).collect();
    let means = ordered(&means)?;
    let tail = (1.0 - CONFIDENCE) / 2.0;
    let from_end = (tail * RESAMPLES as f64).floor() as usize - 1;
    let freedom = (n - 1) as f64;
    let t = StudentsT::new(0.0, 1.0, freedom).ok()?.inverse_cdf(1.0 - tail);
    let stretch = t / NORMAL * (n as f64 / freedom).sqrt();
    let least = if medians.iter().all(|median| *median >= 0.0) { 0.0 } else { f64::NEG_INFINITY };
    let moved = |end: f64| (center + (end - center) * stretch).max(least);
    let interval =
        Interval { low: moved(means[from_end]), high: moved(means[RESAMPLES - 1 - from_end]) };
    Some((center, interval))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::stats::simulate::Generator;

    #[test]
    fn it_covers_whatever_share_of_the_spread_is_between_processes() {
        const CASES: u32 = 2000;
        for processes in [3, 5, 10] {
            let mut random = Generator::new(1997);
            let mut covered = 0;
            for _ in 0..CASES {
                let medians: Vec<f64> = (0..processes).map(|_| random.normal()).collect();
                covered += u32::from(between_interval(&medians).unwrap().1.contains(0.0));
            }
            let share = f64::from(covered) / f64::from(CASES);
            println!("{processes}: {share}");
            assert!((0.92..0.985).contains(&share), "{processes} processes: {share}");
        }
    }

    #[test]
    fn of_many_normal_medians_it_is_students() {
        let mut random = Generator::new(3);
        let medians: Vec<f64> = (0..200).map(|_| 5.0 + random.normal()).collect();
        let (mean, interval) = between_interval(&medians).unwrap();
        let variance = medians.iter().map(|m| (m - mean).powi(2)).sum::<f64>() / 199.0;
        let expected = 1.972 * (variance / 200.0).sqrt();
        assert!((interval.half_width() / expected - 1.0).abs() < 0.05);
    }

    #[test]
    fn two_processes_have_no_interval() {
        assert_eq!(between_interval(&[1.0, 2.0]), None);
        assert_eq!(between_interval(&[1.0, 2.0, f64::NAN]), None);
        let (mean, interval) = between_interval(&[2.0; 3]).unwrap();
        assert_eq!((mean, interval), (2.0, Interval { low: 2.0, high: 2.0 }));
        let (_, wide) = between_interval(&[1.0, 1.0, 10.0]).unwrap();
        assert!(wide.low == 0.0 && wide.high > 10.0);
        assert!(between_interval(&[-1.0, -1.0, -10.0]).unwrap().1.low < -10.0);
    }

    proptest! {
        #[test]
        fn the_mean_lies_within(medians in prop::collection::vec(0.5..2.0f64, 3..20)) {
            let (mean, interval) = between_interval(&medians).unwrap();
            prop_assert!(interval.low <= mean && mean <= interval.high);
        }
    }
}
