//! The books of an allocator: which blocks are live. No CUDA.

use std::hash::{BuildHasherDefault, Hasher};

use hashbrown::HashMap;

use crate::policy::{Block, Usage};

/// Live blocks by address, each with what its allocator needs to give it back. An entry costs some
/// ten nanoseconds, which vanish beside a call of the driver.
pub(super) struct Books<T> {
    live: HashMap<u64, (Block, T), BuildHasherDefault<AddressHasher>>,
    usage: Usage,
}

impl<T> Books<T> {
    pub fn new() -> Self {
        Self { live: HashMap::default(), usage: Usage::default() }
    }

    pub fn is_live(&self, address: u64) -> bool {
        self.live.contains_key(&address)
    }

    pub fn usage(&self) -> Usage {
        self.usage
    }

    /// Adds a block where none begins.
    pub fn add(&mut self, block: Block, held: T) {
        let before = self.live.insert(block.address, (block, held));
        debug_assert!(before.is_none(), "two blocks begin at {:#x}", block.address);
        self.usage.live_blocks += 1;
        self.usage.requested_bytes += block.requested_bytes;
        self.usage.rounded_bytes += block.rounded_bytes;
        self.usage.reserved_bytes += block.rounded_bytes;
    }

    /// Takes the block out that begins there; none where none does.
    pub fn remove(&mut self, address: u64) -> Option<(Block, T)> {
        let (block, held) = self.live.remove(&address)?;
        self.usage.live_blocks -= 1;
        self.usage.requested_bytes -= block.requested_bytes;
        self.usage.rounded_bytes -= block.rounded_bytes;
        self.usage.reserved_bytes -= block.rounded_bytes;
        Some((block, held))
    }

    /// Takes all of them out, in no order.
    pub fn clear(&mut self) -> impl Iterator<Item = (Block, T)> {
        self.usage = Usage::default();
        self.live.drain().map(|(_, entry)| entry)
    }
}

/// A request in whole units, 0 bytes taken for 1; none where there is no such number.
pub(super) fn whole(bytes: u64, unit_bytes: u64) -> Option<u64> {
    bytes.max(1).checked_next_multiple_of(unit_bytes)
}

/// A hasher of addresses: a product with 2^64 over the golden ratio, its halves folded into one since
/// the low bits of an aligned address's product are 0.
#[derive(Default)]
pub(super) struct AddressHasher(u64);

impl Hasher for AddressHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write_u64(&mut self, address: u64) {
        const MULTIPLIER: u64 = 0x9E37_79B9_7F4A_7C15;
        let product = u128::from(address) * u128::from(MULTIPLIER);
        let folded = product as u64 ^ (product >> 64) as u64;
        self.0 = (folded ^ folded >> 32).wrapping_mul(MULTIPLIER);
    }

    fn write(&mut self, _bytes: &[u8]) {
        unreachable!("only addresses are hashed, which are u64");
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn block(address: u64, requested_bytes: u64) -> Block {
        Block { address, requested_bytes, rounded_bytes: whole(requested_bytes, 256).unwrap() }
    }

    #[test]
    fn they_tell_what_is_live_and_how_much() {
        let mut books = Books::new();
        books.add(block(4096, 1), 'a');
        books.add(block(8192, 300), 'b');
        let both =
            Usage { live_blocks: 2, requested_bytes: 301, rounded_bytes: 768, reserved_bytes: 768 };
        assert_eq!(books.usage(), both);
        assert!(books.is_live(4096) && !books.is_live(4352));
        assert_eq!(books.remove(4352), None);
        assert_eq!(books.remove(4096), Some((block(4096, 1), 'a')));
        assert_eq!(books.remove(4096), None);
        let one =
            Usage { live_blocks: 1, requested_bytes: 300, rounded_bytes: 512, reserved_bytes: 512 };
        assert_eq!(books.usage(), one);
        assert_eq!(books.clear().collect::<Vec<_>>(), [(block(8192, 300), 'b')]);
        assert_eq!(books.usage(), Usage::default());
        assert!(!books.is_live(8192));
    }

    #[test]
    fn requests_are_rounded_to_whole_units() {
        let cases = [(0, 256), (1, 256), (256, 256), (257, 512), (u64::MAX - 255, u64::MAX - 255)];
        for (bytes, rounded) in cases {
            assert_eq!(whole(bytes, 256), Some(rounded), "{bytes}");
        }
        assert_eq!(whole(u64::MAX, 256), None);
    }

    #[test]
    fn addresses_are_spread() {
        let hash = |address: u64| {
            let mut hasher = AddressHasher::default();
            hasher.write_u64(address);
            hasher.finish()
        };
        for shift in [8, 9, 12, 21, 27, 30] {
            let hashes: Vec<u64> = (0..40_000).map(|n| hash((7 << 40) + (n << shift))).collect();
            let slots: HashSet<u64> = hashes.iter().map(|hash| hash & 0xFFFF).collect();
            let tags: HashSet<u64> = hashes.iter().map(|hash| hash >> 57).collect();
            // At random 65,536 (1 - exp(-40,000 / 65,536)) slots, which is 29,940, are taken.
            assert!(slots.len() > 29_500 && tags.len() == 128, "2^{shift}: {} slots", slots.len());
        }
    }
}
