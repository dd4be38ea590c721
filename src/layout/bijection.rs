//! Keyed random choices: the same arithmetic as `cuda/index.h`, written a second time on purpose.
//! The device checks every index that this side makes.

/// The increment of SplitMix64.
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// The finalizer of SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number
/// generators", OOPSLA 2014; constants of Stafford's variant 13): a bijection of 64 bits.
#[inline]
pub const fn mix(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

/// The n-th output (from 0) of a SplitMix64 generator that was seeded with `key`.
#[inline]
pub const fn draw(key: u64, n: u64) -> u64 {
    mix(key.wrapping_add(n.wrapping_add(1).wrapping_mul(GOLDEN)))
}

/// A number below `bound` from 64 random bits: the high half of their product. Its bias is at most
/// `bound` / 2^64.
#[inline]
pub const fn below(random: u64, bound: u64) -> u64 {
    ((random as u128 * bound as u128) >> 64) as u64
}

/// A keyed bijection of `0..n`: four rounds of an affine step modulo a power of two and a right
/// shift by half its bits, each of which is invertible. Where `n` is no power of two, outputs that
/// are not below it are walked on to the next one that is (Black and Rogaway, "Ciphers with
/// arbitrary finite domains", CT-RSA 2002).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Permutation {
    n: u64,
    mask: u64,
    shift: u32,
    factors: [u64; 4],
    addends: [u64; 4],
}

impl Permutation {
    /// The bijection of `0..n` that belongs to this key.
    pub fn new(key: u64, n: u64) -> Permutation {
        let bits = n.max(1).next_power_of_two().trailing_zeros();
        Permutation {
            n,
            mask: (1 << bits) - 1,
            shift: bits / 2 + 1,
            factors: std::array::from_fn(|round| draw(key, 2 * round as u64) | 1),
            addends: std::array::from_fn(|round| draw(key, 2 * round as u64 + 1)),
        }
    }

    /// Where `i` goes. `i` has to be below `n`.
    #[inline]
    pub fn apply(&self, i: u64) -> u64 {
        let mut x = i;
        loop {
            for round in 0..4 {
                x = x.wrapping_mul(self.factors[round]).wrapping_add(self.addends[round])
                    & self.mask;
                x ^= x >> self.shift;
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
    fn splitmix_gives_its_published_outputs() {
        // The first outputs for seed 1234567, as in Vigna's splitmix64.c.
        let first: Vec<u64> = (0..3).map(|n| draw(1_234_567, n)).collect();
        let published =
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        assert_eq!(first, published);
    }

    proptest! {
        #[test]
        fn it_is_a_bijection(key: u64, n in 1u64..5_000) {
            let permutation = Permutation::new(key, n);
            let mut seen = vec![false; n as usize];
            for i in 0..n {
                let to = permutation.apply(i) as usize;
                prop_assert!(!seen[to]);
                seen[to] = true;
            }
        }
    }
}
