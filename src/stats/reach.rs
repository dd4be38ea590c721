//! How far a TLB reaches: the change point of a curve of bandwidth by footprint.

use super::random::SplitMix64;
use super::{Interval, median, quantile};

/// The bandwidth of uniformly random reads in one footprint.
#[derive(Clone, Debug)]
pub struct Footprint {
    /// The footprint, in bytes.
    pub bytes: f64,
    /// The bandwidth in each round, in any unit.
    pub rates: Vec<f64>,
}

/// What a curve says of the reach.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reach {
    /// Bytes that are mapped at a time: beyond them some reads miss.
    pub bytes: f64,
    /// Its 95 % interval.
    pub interval: Option<Interval>,
    /// The footprint from which on the bandwidth falls: until then misses are hidden behind what takes
    /// longer.
    pub knee_bytes: f64,
    /// Its 95 % interval.
    pub knee_interval: Option<Interval>,
    /// The bandwidth within reach.
    pub within: f64,
    /// The bandwidth if every read missed.
    pub missing: f64,
    /// Footprints within the knee, and beyond it.
    pub points: (usize, usize),
    /// The largest relative distance of a median from the model.
    pub largest_residual: f64,
}

/// Fewest footprints on either side of the knee.
const LEAST_WITHIN: usize = 2;
const LEAST_BEYOND: usize = 3;

/// A curve that falls by less than this has no knee.
const LEAST_FALL: f64 = 1.25;

/// Resamples of the rounds.
const RESAMPLES: usize = 400;

/// Fits `1 / bandwidth = max(1 / within, (1 - reach / footprint) / missing)`: of uniformly random reads
/// in a footprint beyond the reach a share of `1 - reach / footprint` misses, whatever is replaced, and
/// misses are served at a rate of their own. Which footprints lie beyond the knee is what leaves the
/// least squared relative error. None where the curve does not fall, or has fewer than two footprints
/// within or three beyond. Intervals resample the rounds of each footprint (percentile bootstrap): they
/// hold for the model, and how well that holds is told by the residual.
pub fn reach(footprints: &[Footprint]) -> Option<Reach> {
    let mut sorted: Vec<&Footprint> = footprints.iter().collect();
    sorted.sort_by(|a, b| a.bytes.total_cmp(&b.bytes));
    let times: Option<Vec<(f64, f64)>> = sorted
        .iter()
        .map(|one| Some((one.bytes, 1.0 / median(&one.rates).filter(|rate| *rate > 0.0)?)))
        .collect();
    let fit = fit(&times?)?;
    let mut random = SplitMix64::new(0x7265_6163_6800 + sorted.len() as u64);
    let mut found = (Vec::new(), Vec::new());
    for _ in 0..RESAMPLES {
        let resampled: Option<Vec<(f64, f64)>> = sorted
            .iter()
            .map(|one| {
                let count = one.rates.len();
                let rates: Vec<f64> = (0..count).map(|_| one.rates[random.below(count)]).collect();
                Some((one.bytes, 1.0 / median(&rates)?))
            })
            .collect();
        if let Some(again) = resampled.as_deref().and_then(self::fit) {
            found.0.push(again.bytes);
            found.1.push(again.knee_bytes);
        }
    }
    // Where most resamples have no knee, neither has the curve.
    let interval = |values: &[f64]| {
        (values.len() >= RESAMPLES * 9 / 10)
            .then(|| {
                Some(Interval { low: quantile(values, 0.025)?, high: quantile(values, 0.975)? })
            })
            .flatten()
    };
    Some(Reach { interval: interval(&found.0), knee_interval: interval(&found.1), ..fit })
}

/// The best model of times by footprint, in ascending order.
fn fit(times: &[(f64, f64)]) -> Option<Reach> {
    let last = times.len().checked_sub(LEAST_BEYOND)?;
    let candidates = (LEAST_WITHIN..=last).filter_map(|within| fit_from(times, within));
    let best = candidates.min_by(|(a, _), (b, _)| a.total_cmp(b))?;
    Some(best.1)
}

/// The model whose knee lies behind the first `within` footprints, and its squared relative error.
fn fit_from(times: &[(f64, f64)], within: usize) -> Option<(f64, Reach)> {
    let (near, far) = times.split_at(within);
    let flat = median(&near.iter().map(|(_, time)| *time).collect::<Vec<f64>>())?;
    if far.iter().any(|(_, time)| *time <= flat) || far.last()?.1 < LEAST_FALL * flat {
        return None;
    }
    // Least squares of time = all * (1 - reach / footprint), each point by its own time.
    let [mut ww, mut wx, mut wxx, mut wy, mut wxy] = [0.0; 5];
    for (bytes, time) in far {
        let (weight, x) = (1.0 / (time * time), 1.0 / bytes);
        ww += weight;
        wx += weight * x;
        wxx += weight * x * x;
        wy += weight * time;
        wxy += weight * x * time;
    }
    let determinant = ww * wxx - wx * wx;
    let all = (wxx * wy - wx * wxy) / determinant;
    let slope = (ww * wxy - wx * wy) / determinant;
    let reach = -slope / all;
    let knee = reach / (1.0 - flat / all);
    let is_sane = [all, reach, knee].iter().all(|value| value.is_finite() && *value > 0.0);
    if !is_sane || all <= flat || reach >= far[0].0 || knee < near[0].0 {
        return None;
    }
    let residual =
        |(bytes, time): &(f64, f64)| (flat.max(all * (1.0 - reach / bytes)) - time).abs() / time;
    let error = times.iter().map(|one| residual(one).powi(2)).sum();
    let found = Reach {
        bytes: reach,
        interval: None,
        knee_bytes: knee,
        knee_interval: None,
        within: 1.0 / flat,
        missing: 1.0 / all,
        points: (near.len(), far.len()),
        largest_residual: times.iter().map(residual).fold(0.0, f64::max),
    };
    Some((error, found))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const GIB: f64 = (1u64 << 30) as f64;

    /// A curve of this reach, its rounds within a share `noise` of the model.
    fn curve(reach: f64, within: f64, missing: f64, noise: f64, gib: &[f64]) -> Vec<Footprint> {
        let mut random = SplitMix64::new(3);
        let of = |gib: &f64| {
            let time = (1.0 / within).max((1.0 - reach / (gib * GIB)) / missing);
            let mut round = || 1.0 + noise * (random.below(2_001) as f64 / 1_000.0 - 1.0);
            Footprint { bytes: gib * GIB, rates: (0..60).map(|_| round() / time).collect() }
        };
        gib.iter().map(of).collect()
    }

    const FOOTPRINTS: &[f64] = &[4.0, 16.0, 32.0, 60.0, 64.0, 68.0, 72.0, 76.0, 80.0, 96.0, 120.0];

    #[test]
    fn a_cliff_at_70_hides_a_reach_of_64() {
        let found = reach(&curve(64.0 * GIB, 4100.0, 410.0, 0.004, FOOTPRINTS)).unwrap();
        let interval = found.interval.unwrap();
        assert!(interval.contains(64.0 * GIB) && interval.half_width() < 0.2 * GIB, "{found:?}");
        assert!((found.knee_bytes / GIB - 71.1).abs() < 0.2, "{found:?}");
        assert!((found.missing - 410.0).abs() < 3.0 && (found.within - 4100.0).abs() < 20.0);
        assert_eq!(found.points, (6, 5));
        assert!(found.largest_residual < 0.01);
    }

    #[test]
    fn published_medians_give_the_same_reach_for_both_orders() {
        // FACTS of an H200, GB/s by GiB, chunks in order.
        let medians = [(32.0, 4090.0), (64.0, 4080.0), (72.0, 3604.0), (80.0, 2032.0)];
        let more = [(96.0, 1224.0), (112.0, 955.0), (128.0, 819.0)];
        let of = |(gib, rate): (f64, f64)| Footprint { bytes: gib * GIB, rates: vec![rate; 5] };
        let found = reach(&medians.into_iter().chain(more).map(of).collect::<Vec<_>>()).unwrap();
        assert!((found.bytes / GIB - 63.8).abs() < 0.2, "{found:?}");
        assert!((found.missing - 410.0).abs() < 3.0, "{found:?}");
    }

    #[test]
    fn without_a_fall_there_is_no_reach() {
        assert_eq!(reach(&curve(1e15, 4100.0, 410.0, 0.004, FOOTPRINTS)), None);
        let short = curve(64.0 * GIB, 4100.0, 410.0, 0.0, &[32.0, 64.0, 80.0, 96.0]);
        assert_eq!(reach(&short), None);
        assert_eq!(reach(&[]), None);
        let empty = vec![Footprint { bytes: 1.0, rates: Vec::new() }; 9];
        assert_eq!(reach(&empty), None);
    }

    #[test]
    fn what_is_no_such_curve_shows_in_its_residual() {
        let of = |(gib, rate): (f64, f64)| Footprint { bytes: gib * GIB, rates: vec![rate; 9] };
        let steps = [(1.0, 4000.0), (2.0, 4000.0), (4.0, 2500.0), (8.0, 2400.0), (16.0, 700.0)];
        let found = reach(&steps.map(of));
        assert!(found.is_none_or(|found| found.largest_residual > 0.05), "{found:?}");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn any_reach_between_footprints_is_found(
            reach_gib in 20.0..66.0f64, missing in 100.0..600.0f64
        ) {
            let found = reach(&curve(reach_gib * GIB, 4000.0, missing, 0.002, FOOTPRINTS)).unwrap();
            prop_assert!((found.bytes / GIB - reach_gib).abs() < 0.02 * reach_gib, "{:?}", found);
            prop_assert!((found.missing / missing - 1.0).abs() < 0.02);
        }
    }
}
