//! A map from addresses to numbers of nodes.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Which node begins at an address. It is never iterated, so nothing depends on its order.
pub(super) type AddressMap<V = u32> = HashMap<u64, V, BuildHasherDefault<AddressHasher>>;

/// Hashes one address by a multiplication whose two halves are folded: the low bits of aligned
/// addresses are all 0, and every bit of the result is to depend on the high ones.
#[derive(Clone, Copy, Default)]
pub(super) struct AddressHasher(u64);

/// 2^64 by the golden ratio (Knuth, TAOCP volume 3, section 6.4).
const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;

impl Hasher for AddressHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    fn write_u64(&mut self, address: u64) {
        let product = u128::from(self.0 ^ address) * u128::from(FACTOR);
        self.0 = product as u64 ^ (product >> 64) as u64;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::hash::BuildHasher;

    use super::*;

    #[test]
    fn aligned_addresses_spread_over_low_and_high_bits() {
        let hash = |address: u64| BuildHasherDefault::<AddressHasher>::default().hash_one(address);
        for shift in [8, 12, 16, 21, 30] {
            let hashes = || (0..4096u64).map(|i| hash((7 << 40) + (i << shift)));
            let low: HashSet<u64> = hashes().map(|hash| hash & 4095).collect();
            let high: HashSet<u64> = hashes().map(|hash| hash >> 57).collect();
            // Random hashes would reach 63 % of the 4096 places.
            assert!(low.len() > 2000, "2^{shift}: {} low parts", low.len());
            assert!(high.len() > 100, "2^{shift}: {} high parts", high.len());
        }
    }
}
