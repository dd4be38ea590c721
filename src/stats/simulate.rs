//! Random samples for the tests, the same in every run.

/// A SplitMix64 generator (Steele, Lea, Flood, OOPSLA 2014) with the distributions that the tests
/// draw from.
pub(super) struct Generator(u64);

impl Generator {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Uniform between 0 and 1, both excluded.
    pub(super) fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        x ^= x >> 31;
        ((x >> 11) as f64 + 0.5) / (1u64 << 53) as f64
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
}
