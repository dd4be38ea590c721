//! Simulated times whose truth is known.

use crate::record::Noise;
use crate::stats::simulate::Generator;

/// The relative deviation of normal noise: such that about as many rounds are taken as on a GPU.
const DEVIATION: f64 = 0.006;

/// By how much an interval is slower than the one before it, where arms drift.
const DRIFT: f64 = 5e-5;

/// Where 0.7 of a normal distribution below lies half of the whole: its 0.5 / 0.7 quantile.
const BIMODAL_MEDIAN: f64 = 0.565_948_8;

/// The noise of a few arms: the logarithm of time over what it would be without.
pub(super) struct Times {
    noise: Noise,
    random: Generator,
    /// Of each arm the last value, where the next depends on it.
    last: Vec<Option<f64>>,
    /// Of each arm the drift of each of its intervals.
    drifts: Vec<Vec<f64>>,
    intervals: u64,
}

impl Times {
    pub fn new(noise: Noise, arms: usize, seed: u64) -> Times {
        let drifts = vec![Vec::new(); arms];
        Times { noise, random: Generator::new(seed), last: vec![None; arms], drifts, intervals: 0 }
    }

    /// The logarithm of the next time of an arm.
    pub fn next(&mut self, arm: usize) -> f64 {
        let drift = match self.noise {
            Noise::CommonDrift => DRIFT * self.intervals as f64,
            Noise::Drifting if arm + 1 == self.last.len() => DRIFT * self.intervals as f64,
            _ => 0.0,
        };
        self.intervals += 1;
        self.drifts[arm].push(drift);
        drift + self.deviation(arm)
    }

    fn deviation(&mut self, arm: usize) -> f64 {
        let random = &mut self.random;
        match self.noise {
            Noise::LogNormal => DEVIATION * (0.75 * random.normal()).exp(),
            Noise::Bimodal => {
                let mode = if random.uniform() < 0.3 { 0.01 } else { 0.0 };
                mode + 0.002 * random.normal()
            }
            // Far out it is cut: a time is not negative, and one of hours is nobody's.
            Noise::HeavyTailed => {
                let angle = std::f64::consts::PI * (random.uniform() - 0.5);
                (0.002 * angle.tan()).clamp(-2.0, 2.0)
            }
            Noise::WeaklyAutocorrelated => self.autoregressive(arm, 0.3),
            Noise::Autocorrelated => self.autoregressive(arm, 0.5),
            _ => DEVIATION * random.normal(),
        }
    }

    fn autoregressive(&mut self, arm: usize, coefficient: f64) -> f64 {
        let value = self.random.autoregress(self.last[arm], coefficient);
        self.last[arm] = Some(value);
        DEVIATION * value
    }

    /// The median of the logarithm of an arm's last `count` times: the truth. Of a drift, which has
    /// no one median, the middle.
    pub fn truth(&self, arm: usize, count: usize) -> f64 {
        let drifts = &self.drifts[arm];
        let last = &drifts[drifts.len().saturating_sub(count)..];
        let drift = last.iter().sum::<f64>() / last.len().max(1) as f64;
        drift + median(&self.noise)
    }
}

fn median(noise: &Noise) -> f64 {
    match noise {
        Noise::LogNormal => DEVIATION,
        Noise::Bimodal => 0.002 * BIMODAL_MEDIAN,
        _ => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::selftest::statistics::PROCEDURE;
    use crate::stats;

    #[test]
    fn medians_are_what_is_taken_for_the_truth() {
        for (noise, _) in PROCEDURE {
            let mut times = Times::new(noise.clone(), 2, 7);
            let values: Vec<[f64; 2]> =
                (0..40_000).map(|_| [times.next(0), times.next(1)]).collect();
            for arm in 0..2 {
                let own: Vec<f64> = values.iter().map(|pair| pair[arm]).collect();
                let (found, truth) = (stats::median(&own).unwrap(), times.truth(arm, own.len()));
                // The deviation of the median of so many is 0.6 % of theirs, and of a drift's 0.002.
                let drifts = *times.drifts[arm].last().unwrap() > 0.0;
                let tolerance = if drifts { 0.01 } else { 2e-4 };
                assert!((found - truth).abs() < tolerance, "{noise} {arm}: {found} {truth}");
            }
        }
    }
}
