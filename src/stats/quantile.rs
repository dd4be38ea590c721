//! Quantiles of a sample.

/// The median, or `None` where there is no sample or one that is not finite.
///
/// ```
/// assert_eq!(fragbench::stats::median(&[3.0, 1.0, 2.0, 10.0]), Some(2.5));
/// ```
pub fn median(samples: &[f64]) -> Option<f64> {
    quantile(samples, 0.5)
}

/// The `q`-quantile by definition 7 of Hyndman and Fan, "Sample quantiles in statistical packages"
/// (The American Statistician 50, 1996), which is the default of R and NumPy: linear between the
/// order statistics around position `(n - 1) q`, counted from 0.
///
/// `None` where there is no sample, where one is not finite, or where `q` is outside `[0, 1]`.
pub fn quantile(samples: &[f64], q: f64) -> Option<f64> {
    if !(0.0..=1.0).contains(&q) {
        return None;
    }
    let ordered = ordered(samples)?;
    let position = (ordered.len() - 1) as f64 * q;
    let low = ordered[position.floor() as usize];
    let high = ordered[position.ceil() as usize];
    let weight = position.fract();
    // Not `low + weight * (high - low)`: that difference can overflow. The clamp takes back what
    // rounding may add.
    Some((low * (1.0 - weight) + high * weight).clamp(low, high))
}

/// The samples in ascending order, or `None` where there are none or one is not finite.
pub(super) fn ordered(samples: &[f64]) -> Option<Vec<f64>> {
    if samples.is_empty() || !samples.iter().all(|sample| sample.is_finite()) {
        return None;
    }
    let mut ordered = samples.to_vec();
    ordered.sort_unstable_by(f64::total_cmp);
    Some(ordered)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn quantiles_are_those_of_r() {
        // R 4: quantile(c(15, 20, 35, 40, 50), c(0.05, 0.3, 0.4, 0.95), type = 7)
        let samples = [35.0, 15.0, 50.0, 40.0, 20.0];
        for (q, expected) in [(0.0, 15.0), (0.05, 16.0), (0.3, 23.0), (0.4, 29.0), (0.95, 48.0)] {
            let found = quantile(&samples, q).unwrap();
            assert!((found - expected).abs() < 1e-12, "{q}: {found}");
        }
        assert_eq!(quantile(&samples, 1.0), Some(50.0));
        assert_eq!(median(&samples), Some(35.0));
    }

    #[test]
    fn no_answer_is_none() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[1.0, f64::NAN]), None);
        assert_eq!(median(&[1.0, f64::INFINITY]), None);
        assert_eq!(quantile(&[1.0], 1.0 + f64::EPSILON), None);
        assert_eq!(quantile(&[1.0], f64::NAN), None);
        assert_eq!(quantile(&[1.0], -0.1), None);
    }

    #[test]
    fn extremes_do_not_overflow() {
        assert_eq!(median(&[f64::MAX, -f64::MAX]), Some(0.0));
        assert_eq!(median(&[f64::MAX, f64::MAX]), Some(f64::MAX));
    }

    proptest! {
        #[test]
        fn never_a_nan(samples in prop::collection::vec(any::<f64>(), 0..20), q in any::<f64>()) {
            prop_assert!(quantile(&samples, q).is_none_or(f64::is_finite));
        }

        #[test]
        fn grows_with_q(
            samples in prop::collection::vec(-1e300..1e300f64, 1..30),
            a in 0.0..=1.0f64,
            b in 0.0..=1.0f64,
        ) {
            let (low, high) = (quantile(&samples, a.min(b)), quantile(&samples, a.max(b)));
            prop_assert!(low.unwrap() <= high.unwrap());
        }

        #[test]
        fn halves_the_sample(samples in prop::collection::vec(-1e3..1e3f64, 1..40)) {
            let middle = median(&samples).unwrap();
            let below = samples.iter().filter(|&&sample| sample < middle).count();
            let above = samples.iter().filter(|&&sample| sample > middle).count();
            prop_assert!(2 * below <= samples.len() && 2 * above <= samples.len());
        }
    }
}
