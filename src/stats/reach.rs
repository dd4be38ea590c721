//! How far a TLB reaches: the change point of a curve of bandwidth by footprint.

use NoReach::{Flat, Unclear};

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

/// Why a curve tells no reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoReach {
    /// In no footprint is it slower by a quarter than in the fastest.
    Flat,
    /// It falls, but fewer than two footprints lie within or three beyond, or they lie on no curve of
    /// this kind.
    Unclear,
}

/// Fewest footprints on either side of the knee.
const LEAST_WITHIN: usize = 2;
const LEAST_BEYOND: usize = 3;

/// A curve that falls by less than this has no knee.
const LEAST_FALL: f64 = 1.25;

/// Resamples of the rounds.
const RESAMPLES: usize = 400;

/// Fewer rounds in any footprint have no interval, as their median has none.
const LEAST_ROUNDS: usize = 6;

/// Fits `1 / bandwidth = max(1 / within, (1 - reach / footprint) / missing)`: of uniformly random reads
/// in a footprint beyond the reach a share of `1 - reach / footprint` misses, whatever is replaced, and
/// misses are served at a rate of their own. Which footprints lie beyond the knee is what leaves the
/// least squared relative error. Rounds of the same footprint are taken together; a footprint without
/// rounds is none. Intervals resample the rounds of each footprint (percentile bootstrap): they hold for
/// the model and for rounds that are independent, and how well the model holds is told by the residual.
///
/// # Errors
///
/// [`NoReach`] where the curve does not fall, or has fewer than two footprints within or three beyond.
///
/// # Examples
///
/// ```
/// use fragbench::stats::{Footprint, NoReach, reach};
///
/// // 64 long, 8 bytes a second within, 1 if all missed.
/// let curve = [8.0, 16.0, 32.0, 128.0, 256.0, 512.0].map(|bytes: f64| {
///     let missed = (1.0 - 64.0 / bytes).max(1.0 / 8.0);
///     Footprint { bytes, rates: vec![1.0 / missed; 20] }
/// });
/// let found = reach(&curve).unwrap();
/// assert!((found.bytes - 64.0).abs() < 1e-9 && (found.missing - 1.0).abs() < 1e-9);
/// assert_eq!(found.points, (3, 3));
/// assert_eq!(reach(&curve[..3]), Err(NoReach::Flat));
/// assert_eq!(reach(&curve[..5]), Err(NoReach::Unclear));
/// ```
pub fn reach(footprints: &[Footprint]) -> Result<Reach, NoReach> {
    let curve = merged(footprints);
    let median_time = |one: &Footprint| Some((one.bytes, time(&one.rates)?));
    let times: Vec<(f64, f64)> = curve.iter().filter_map(median_time).collect();
    let fit = fit(&times).ok_or_else(|| if is_flat(&times) { Flat } else { Unclear })?;
    let (bytes, knee_bytes) = resampled(&curve);
    // Where most resamples have no knee, neither has the curve.
    let interval = |values: &[f64]| {
        let has_rounds = curve.iter().all(|one| one.rates.len() >= LEAST_ROUNDS);
        let ends = Some(Interval { low: quantile(values, 0.025)?, high: quantile(values, 0.975)? });
        ends.filter(|_| has_rounds && values.len() >= RESAMPLES * 9 / 10)
    };
    Ok(Reach { interval: interval(&bytes), knee_interval: interval(&knee_bytes), ..fit })
}

/// The footprints in ascending order, each once, without those that have no usable rounds.
fn merged(footprints: &[Footprint]) -> Vec<Footprint> {
    let mut sorted: Vec<&Footprint> =
        footprints.iter().filter(|one| time(&one.rates).is_some()).collect();
    sorted.sort_by(|a, b| a.bytes.total_cmp(&b.bytes));
    let alike = sorted.chunk_by(|a, b| a.bytes == b.bytes);
    let one = |alike: &[&Footprint]| Footprint {
        bytes: alike[0].bytes,
        rates: alike.iter().flat_map(|one| one.rates.iter().copied()).collect(),
    };
    alike.map(one).collect()
}

/// The time of a byte at the median rate, where that is one.
fn time(rates: &[f64]) -> Option<f64> {
    Some(1.0 / median(rates).filter(|rate| *rate > 0.0)?)
}

/// Reaches and knees of curves whose rounds are drawn anew, of those that have one.
fn resampled(curve: &[Footprint]) -> (Vec<f64>, Vec<f64>) {
    let mut random = SplitMix64::new(0x7265_6163_6800 + curve.len() as u64);
    let mut drawn = |one: &Footprint| {
        let count = one.rates.len();
        let rates: Vec<f64> = (0..count).map(|_| one.rates[random.below(count)]).collect();
        Some((one.bytes, time(&rates)?))
    };
    let mut again = || fit(&curve.iter().map(&mut drawn).collect::<Option<Vec<_>>>()?);
    let found: Vec<Reach> = (0..RESAMPLES).filter_map(|_| again()).collect();
    found.iter().map(|one| (one.bytes, one.knee_bytes)).unzip()
}

/// Whether no footprint is slower by a quarter than the fastest.
fn is_flat(times: &[(f64, f64)]) -> bool {
    let all = || times.iter().map(|(_, time)| *time);
    let ends = all().reduce(f64::min).zip(all().reduce(f64::max));
    ends.is_some_and(|(fastest, slowest)| slowest < LEAST_FALL * fastest)
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
    use crate::stats::simulate::Generator;

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
        assert_eq!(reach(&curve(1e15, 4100.0, 410.0, 0.004, FOOTPRINTS)), Err(Flat));
        assert_eq!(reach(&[]), Err(Unclear));
        let empty = vec![Footprint { bytes: 1.0, rates: Vec::new() }; 9];
        assert_eq!(reach(&empty), Err(Unclear));
    }

    #[test]
    fn a_fall_with_too_few_footprints_is_not_called_flat() {
        let of = |gib: &[f64]| reach(&curve(64.0 * GIB, 4100.0, 410.0, 0.0, gib));
        assert_eq!(of(&[4.0, 16.0, 32.0, 64.0, 80.0, 96.0]), Err(Unclear));
        // One within: what is taken for a second one is no such curve.
        let short = of(&[64.0, 80.0, 96.0, 112.0, 120.0]);
        assert!(short.is_ok_and(|found| found.largest_residual > 0.05), "{short:?}");
        // Each twice is no more of them.
        assert_eq!(of(&[32.0, 64.0, 80.0, 80.0, 96.0, 96.0]), Err(Unclear));
        assert!(of(&[32.0, 64.0, 80.0, 96.0, 112.0]).is_ok());
    }

    #[test]
    fn a_footprint_without_rounds_takes_nothing_from_the_others() {
        let mut footprints = curve(64.0 * GIB, 4100.0, 410.0, 0.004, FOOTPRINTS);
        let whole = reach(&footprints);
        footprints.push(Footprint { bytes: 112.0 * GIB, rates: Vec::new() });
        footprints.push(Footprint { bytes: 113.0 * GIB, rates: vec![0.0; 9] });
        assert_eq!(reach(&footprints), whole);
    }

    #[test]
    fn few_rounds_have_a_reach_and_no_interval() {
        let mut footprints = curve(64.0 * GIB, 4100.0, 410.0, 0.004, FOOTPRINTS);
        footprints[3].rates.truncate(5);
        let found = reach(&footprints).unwrap();
        assert_eq!((found.interval, found.knee_interval), (None, None));
        assert!((found.bytes / GIB - 64.0).abs() < 0.2);
    }

    #[test]
    fn intervals_cover_a_known_reach_and_knee() {
        const CASES: u32 = 60;
        let (true_reach, within, missing) = (64.0 * GIB, 4000.0, 400.0);
        let true_knee = true_reach / (1.0 - missing / within);
        let mut random = Generator::new(64);
        let (mut reaches, mut knees) = (0, 0);
        for _ in 0..CASES {
            let of = |gib: &f64| {
                let bytes = gib * GIB;
                let time = (1.0 / within).max((1.0 - true_reach / bytes) / missing);
                let rates = (0..24).map(|_| (1.0 + 0.01 * random.normal()) / time).collect();
                Footprint { bytes, rates }
            };
            let footprints: Vec<Footprint> =
                [8.0, 32.0, 64.0, 80.0, 96.0, 120.0].iter().map(of).collect();
            let found = reach(&footprints).unwrap();
            reaches += u32::from(found.interval.unwrap().contains(true_reach));
            knees += u32::from(found.knee_interval.unwrap().contains(true_knee));
        }
        let share = |count: u32| f64::from(count) / f64::from(CASES);
        println!("covered: reach {}, knee {}", share(reaches), share(knees));
        assert!(share(reaches) >= 0.87 && share(knees) >= 0.87);
    }

    #[test]
    fn what_is_no_such_curve_shows_in_its_residual() {
        let of = |(gib, rate): (f64, f64)| Footprint { bytes: gib * GIB, rates: vec![rate; 9] };
        let steps = [(1.0, 4000.0), (2.0, 4000.0), (4.0, 2500.0), (8.0, 2400.0), (16.0, 700.0)];
        let found = reach(&steps.map(of));
        assert!(found.is_ok_and(|found| found.largest_residual > 0.05), "{found:?}");
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
            prop_assert!(found.bytes < found.knee_bytes);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(8))]
        #[test]
        fn neither_order_nor_units_matter(
            reach_gib in 20.0..66.0f64, order in Just((0..11).collect::<Vec<usize>>()).prop_shuffle()
        ) {
            let footprints = curve(reach_gib * GIB, 4000.0, 400.0, 0.01, FOOTPRINTS);
            let found = reach(&footprints);
            let shuffled: Vec<Footprint> =
                order.into_iter().map(|at| footprints[at].clone()).collect();
            prop_assert_eq!(reach(&shuffled), found);
            // A power of two leaves every digit.
            let slower = |one: &Footprint| Footprint {
                bytes: one.bytes,
                rates: one.rates.iter().map(|rate| rate / 8.0).collect(),
            };
            let slower = reach(&footprints.iter().map(slower).collect::<Vec<_>>()).unwrap();
            let found = found.unwrap();
            prop_assert_eq!(slower.bytes, found.bytes);
            prop_assert_eq!(slower.interval, found.interval);
            prop_assert_eq!(slower.missing, found.missing / 8.0);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn whatever_the_curve_figures_are_finite(
            points in prop::collection::vec((1.0..1e12f64, 1.0..1e4f64), 0..12)
        ) {
            let of = |&(bytes, rate): &(f64, f64)| Footprint { bytes, rates: vec![rate; 6] };
            if let Ok(found) = reach(&points.iter().map(of).collect::<Vec<_>>()) {
                let figures = [found.bytes, found.knee_bytes, found.within, found.missing];
                prop_assert!(figures.iter().all(|figure| figure.is_finite() && *figure > 0.0));
                prop_assert!(found.missing < found.within && found.bytes < found.knee_bytes);
                prop_assert!(found.largest_residual.is_finite());
            }
        }
    }
}
