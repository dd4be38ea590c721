//! Random numbers that are functions of a key and a position: any thread, of the host or of the
//! device, works out any of them alone. `cuda/index.h` holds the same arithmetic.

const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

const ROUNDS: usize = 6;

/// The finalizer of SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number
/// generators", OOPSLA 2014; constants of Stafford's variant 13): a bijection of 64 bits.
pub const fn mix(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

/// The `n`-th output, from 0, of a SplitMix64 generator that was seeded with `key`.
pub const fn draw(key: u64, n: u64) -> u64 {
    mix(key.wrapping_add(n.wrapping_add(1).wrapping_mul(GOLDEN)))
}

/// A number below `bound` from a random one: the high half of their 128-bit product (Lemire, "Fast
/// random integer generation in an interval", ACM TOMACS 29, 2019; without the rejection, as the
/// bias is below `bound` / 2^64).
pub const fn below(random: u64, bound: u64) -> u64 {
    ((random as u128 * bound as u128) >> 64) as u64
}

/// A keyed bijection of `0..n`: a shuffle of which each position is worked out alone.
///
/// Each round is an affine step modulo a power of two and a right shift by more than half its bits,
/// both invertible. Results of `n` and above are permuted on until one is below (cycle walking:
/// Black and Rogaway, "Ciphers with arbitrary finite domains", CT-RSA 2002), less than twice on
/// average.
#[derive(Clone, Debug)]
pub struct Permutation {
    n: u64,
    mask: u64,
    half: u32,
    steps: [Step; ROUNDS],
}

#[derive(Clone, Copy, Debug)]
struct Step {
    factor: u64,
    summand: u64,
}

impl Permutation {
    /// The bijection of `0..n` that belongs to `key`.
    ///
    /// # Panics
    ///
    /// Where `n` is 0 or above 2^63.
    pub fn new(key: u64, n: u64) -> Self {
        assert!(0 < n && n <= 1 << 63, "a permutation of {n} positions");
        let bits = u64::BITS - (n - 1).leading_zeros();
        let step = |round: usize| {
            let first = 2 * round as u64;
            Step { factor: draw(key, first) | 1, summand: draw(key, first + 1) }
        };
        Self { n, mask: (1u64 << bits) - 1, half: bits / 2 + 1, steps: std::array::from_fn(step) }
    }

    /// Where position `i` goes. Defined for `i` below `n`.
    #[inline]
    pub fn apply(&self, i: u64) -> u64 {
        debug_assert!(i < self.n, "position {i} of {}", self.n);
        let mut x = i;
        loop {
            for step in &self.steps {
                x = x.wrapping_mul(step.factor).wrapping_add(step.summand) & self.mask;
                x ^= x >> self.half;
            }
            if x < self.n {
                return x;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn draws_are_those_of_splitmix64() {
        // The first outputs of the reference implementation (Vigna, splitmix64.c).
        let expected = [0xE220_A839_7B1D_CDAF, 0x6E78_9E6A_A1B9_65F4, 0x06C4_5D18_8009_454F];
        assert_eq!([0, 1, 2].map(|n| draw(0, n)), expected);
        assert_eq!(draw(1_234_567, 0), 6_457_827_717_110_365_317);
    }

    #[test]
    fn below_stays_below() {
        assert_eq!(below(u64::MAX, 7), 6);
        assert_eq!(below(0, 7), 0);
        assert_eq!(below(1 << 63, 7), 3);
        assert_eq!(below(u64::MAX, u64::MAX), u64::MAX - 1);
    }

    #[test]
    fn the_largest_domain_works() {
        let permutation = Permutation::new(3, 1 << 63);
        assert_ne!(permutation.apply(0), permutation.apply((1 << 63) - 1));
        assert_eq!(Permutation::new(3, 1).apply(0), 0);
    }

    #[test]
    #[should_panic(expected = "a permutation of 0 positions")]
    fn an_empty_domain_is_refused() {
        Permutation::new(1, 0);
    }

    proptest! {
        #[test]
        fn every_position_is_taken_once(key in any::<u64>(), n in 1..5000u64) {
            let permutation = Permutation::new(key, n);
            let mut images: Vec<u64> = (0..n).map(|i| permutation.apply(i)).collect();
            images.sort_unstable();
            prop_assert!(images.into_iter().eq(0..n));
        }
    }
}
