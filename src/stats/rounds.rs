//! How many rounds an interval of a wanted width takes.

use super::{median, median_interval};

/// The confidence of every interval that a run plans for.
pub const CONFIDENCE: f64 = 0.95;

/// How many times more rounds are taken than the pilot's interval alone would ask for.
///
/// Both the pilot's interval and the final one vary by chance. With 15 pilot rounds and no factor,
/// the target is met in 60 % of the cases only; with this one in at least 95 %, for normal,
/// log-normal, uniform and Laplace ratios and with 5 % of far outliers (see the test
/// `the_target_is_met_in_95_of_100_cases`). The price is about five times the rounds that the true
/// distribution, if it were known, would ask for: that much the ignorance of 15 values costs.
const SAFETY: f64 = 3.75;

/// The rounds that give the order-statistic interval of the median ratio a relative half-width of
/// at most `target_relative_half_width`, in at least 95 of 100 cases.
///
/// The width of such an interval shrinks with the square root of the number of rounds (the median
/// is asymptotically normal: David and Nagaraja, "Order Statistics", 3rd edition, section 10.2), so
/// the pilot's own interval, of relative half-width `h` from `n` rounds, foretells
///
/// `N = 3.75 n (h / target)^2`
///
/// It uses the middle of the pilot only: up to 3 wild values of 15 on each side do not matter, and
/// two modes are seen where they matter, around the median.
///
/// The result lies between `minimum` and `maximum`; `maximum` wins where they cross. A pilot that
/// foretells nothing (fewer than 6 values, one that is not finite, a median of zero) and a target
/// that cannot be met (zero, negative, not a number) give `maximum`.
pub fn rounds_for(
    pilot_ratios: &[f64],
    target_relative_half_width: f64,
    minimum: u32,
    maximum: u32,
) -> u32 {
    let rounds = needed(pilot_ratios, target_relative_half_width).unwrap_or(f64::INFINITY);
    // A float-to-integer `as` saturates: infinity becomes the largest count.
    (rounds.ceil() as u32).max(minimum).min(maximum)
}

fn needed(pilot_ratios: &[f64], target: f64) -> Option<f64> {
    let center = median(pilot_ratios)?.abs();
    let half_width = median_interval(pilot_ratios, CONFIDENCE)?.half_width();
    let excess = half_width / center / target;
    let rounds = SAFETY * pilot_ratios.len() as f64 * excess * excess;
    (center > 0.0 && target > 0.0 && !rounds.is_nan()).then_some(rounds)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::stats::simulate::Generator;

    const TARGET: f64 = 0.005;

    type Deviate = fn(&mut Generator) -> f64;

    /// The share of cases that meet the target, and the rounds of a case on average.
    fn attainment(mut ratio: impl FnMut(&mut Generator) -> f64) -> (f64, f64) {
        const CASES: u32 = 1000;
        let mut random = Generator::new(2024);
        let (mut met, mut rounds) = (0u32, 0u64);
        for _ in 0..CASES {
            let pilot: Vec<f64> = (0..15).map(|_| ratio(&mut random)).collect();
            let n = rounds_for(&pilot, TARGET, 30, 10_000);
            let fresh: Vec<f64> = (0..n).map(|_| ratio(&mut random)).collect();
            let interval = median_interval(&fresh, CONFIDENCE).unwrap();
            met += u32::from(interval.half_width() / median(&fresh).unwrap() <= TARGET);
            rounds += u64::from(n);
        }
        (f64::from(met) / f64::from(CASES), rounds as f64 / f64::from(CASES))
    }

    #[test]
    fn the_target_is_met_in_95_of_100_cases() {
        for scale in [0.012, 0.02] {
            let cases: [(&str, Deviate); 5] = [
                ("normal", Generator::normal),
                ("log-normal", |random| (0.5 * random.normal()).exp() / 0.5),
                ("5 % outliers", |random| {
                    let deviate = random.normal();
                    if random.uniform() < 0.05 { 8.0 * deviate.abs() } else { deviate }
                }),
                ("uniform", |random| 12f64.sqrt() * (random.uniform() - 0.5)),
                ("Laplace", |random| {
                    let size = random.exponential() / 2f64.sqrt();
                    if random.uniform() < 0.5 { size } else { -size }
                }),
            ];
            for (name, deviate) in cases {
                let (met, rounds) = attainment(|random| 1.0 + scale * deviate(random));
                println!("{name}, {scale}: met in {met}, {rounds} rounds");
                assert!(met >= 0.95, "{name}, {scale}: met in {met} of the cases");
                assert!(rounds < 1000.0, "{name}, {scale}: {rounds} rounds on average");
            }
        }
    }

    #[test]
    fn bounds_are_kept() {
        let quiet = [2.0; 15];
        assert_eq!(rounds_for(&quiet, TARGET, 30, 500), 30);
        assert_eq!(rounds_for(&quiet, TARGET, 30, 20), 20);
        let loud: Vec<f64> = (1..=15).map(f64::from).collect();
        assert_eq!(rounds_for(&loud, TARGET, 30, 500), 500);
    }

    #[test]
    fn the_formula() {
        // Ranks 4 and 12 of 15: half-width 4 around 1024, so h = 1 / 256.
        let pilot: Vec<f64> = (0..15).map(|i| f64::from(1017 + i)).collect();
        assert_eq!(rounds_for(&pilot, 1.0 / 1024.0, 30, 10_000), 900);
        assert_eq!(rounds_for(&pilot, 1.0 / 512.0, 30, 10_000), 225);
    }

    #[test]
    fn ignorance_takes_all_there_is() {
        let quiet = [1.0; 15];
        assert_eq!(rounds_for(&[], TARGET, 30, 500), 500);
        assert_eq!(rounds_for(&quiet[..5], TARGET, 30, 500), 500);
        assert_eq!(rounds_for(&[0.0; 15], TARGET, 30, 500), 500);
        for target in [0.0, -0.005, f64::NAN] {
            assert_eq!(rounds_for(&quiet, target, 30, 500), 500);
        }
        let mut odd = quiet;
        odd[0] = f64::NAN;
        assert_eq!(rounds_for(&odd, TARGET, 30, 500), 500);
    }

    proptest! {
        #[test]
        fn stays_within_bounds(
            pilot in prop::collection::vec(any::<f64>(), 0..30),
            target in any::<f64>(),
            minimum in 0..100u32,
            more in 0..1000u32,
        ) {
            let rounds = rounds_for(&pilot, target, minimum, minimum + more);
            prop_assert!((minimum..=minimum + more).contains(&rounds));
        }

        #[test]
        fn a_tighter_target_takes_no_fewer(
            pilot in prop::collection::vec(0.5..2.0f64, 15),
            a in 1e-4..0.1f64,
            b in 1e-4..0.1f64,
        ) {
            let tight = rounds_for(&pilot, a.min(b), 30, u32::MAX);
            prop_assert!(tight >= rounds_for(&pilot, a.max(b), 30, u32::MAX));
        }
    }
}
