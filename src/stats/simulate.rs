//! Random samples of known distributions, the same in every run.

use super::random::SplitMix64;

/// The distributions that intervals are tested on.
pub(crate) struct Generator(SplitMix64);

impl Generator {
    pub(crate) fn new(seed: u64) -> Self {
        Self(SplitMix64::new(seed))
    }

    /// Uniform between 0 and 1, both excluded.
    pub(crate) fn uniform(&mut self) -> f64 {
        ((self.0.next() >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    /// Exponential with mean 1.
    pub(crate) fn exponential(&mut self) -> f64 {
        -self.uniform().ln()
    }

    /// Standard normal (Box and Muller).
    pub(crate) fn normal(&mut self) -> f64 {
        let radius = (2.0 * self.exponential()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }

    /// The value after `last` of a stationary autoregressive series of order 1, standard normal at each
    /// place; the first where there is none.
    pub(crate) fn autoregress(&mut self, last: Option<f64>, phi: f64) -> f64 {
        let fresh = self.normal();
        last.map_or(fresh, |last| phi * last + (1.0 - phi * phi).sqrt() * fresh)
    }

    /// Such a series.
    #[cfg(test)]
    pub(crate) fn autoregressive(&mut self, n: usize, phi: f64) -> Vec<f64> {
        let first = self.autoregress(None, phi);
        let step = |last: &f64| Some(self.autoregress(Some(*last), phi));
        std::iter::successors(Some(first), step).take(n).collect()
    }
}
