//! Random samples for the tests, the same in every run.

use super::random::SplitMix64;

/// The distributions that the tests draw from.
pub(super) struct Generator(SplitMix64);

impl Generator {
    pub(super) fn new(seed: u64) -> Self {
        Self(SplitMix64::new(seed))
    }

    /// Uniform between 0 and 1, both excluded.
    pub(super) fn uniform(&mut self) -> f64 {
        ((self.0.next() >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    /// Exponential with mean 1.
    pub(super) fn exponential(&mut self) -> f64 {
        -self.uniform().ln()
    }

    /// Standard normal (Box and Muller).
    pub(super) fn normal(&mut self) -> f64 {
        let radius = (2.0 * self.exponential()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }

    /// A stationary autoregressive series of order 1, standard normal at each place.
    pub(super) fn autoregressive(&mut self, n: usize, phi: f64) -> Vec<f64> {
        let innovation = (1.0 - phi * phi).sqrt();
        let first = self.normal();
        let step = |last: &f64| Some(phi * last + innovation * self.normal());
        std::iter::successors(Some(first), step).take(n).collect()
    }
}
