//! The free blocks of one pool and stream, ordered by size and address.

use std::collections::BTreeMap;
use std::iter::successors;
use std::ops::Bound::{Excluded, Unbounded};

use super::blocks::Id;
use super::rounding::MIN_BLOCK_BYTES;

/// How a free block is found: its size, then its address.
pub(super) type Key = (u64, u64);

/// Each power of two of sizes has so many bins, as a power of two itself.
const BIN_BITS: u32 = 5;

const BINS_PER_OCTAVE: usize = 1 << BIN_BITS;

/// Sizes are below 2^64 bytes, so below 2^55 blocks of the least size.
const BINS: usize = (u64::BITS - MIN_BLOCK_BYTES.ilog2() - BIN_BITS + 1) as usize * BINS_PER_OCTAVE;

const WORDS: usize = BINS.div_ceil(64);

/// An ordered set: bins of sizes, each a sorted map, so that a search begins in a short one. A bit
/// for each bin, and one for each word of bits, say where the next block lies.
#[derive(Debug)]
pub(super) struct FreeSet {
    bins: Vec<BTreeMap<Key, Id>>,
    filled: [u64; WORDS],
    words: u64,
    blocks: usize,
}

impl Default for FreeSet {
    fn default() -> Self {
        Self { bins: vec![BTreeMap::new(); BINS], filled: [0; WORDS], words: 0, blocks: 0 }
    }
}

impl FreeSet {
    pub(super) fn insert(&mut self, key: Key, id: Id) {
        let bin = bin_of(key.0);
        let known = self.bins[bin].insert(key, id);
        debug_assert!(known.is_none(), "two free blocks at {:#x}", key.1);
        self.filled[bin / 64] |= 1 << (bin % 64);
        self.words |= 1 << (bin / 64);
        self.blocks += 1;
    }

    pub(super) fn remove(&mut self, key: Key) -> Option<Id> {
        let bin = bin_of(key.0);
        let id = self.bins[bin].remove(&key)?;
        if self.bins[bin].is_empty() {
            self.filled[bin / 64] &= !(1 << (bin % 64));
            if self.filled[bin / 64] == 0 {
                self.words &= !(1 << (bin / 64));
            }
        }
        self.blocks -= 1;
        Some(id)
    }

    /// The smallest block of at least `bytes` bytes, of those the one at the lowest address.
    pub(super) fn at_least(&self, bytes: u64) -> Option<Id> {
        let bin = bin_of(bytes);
        let here = self.bins[bin].range((bytes, 0)..).next();
        here.or_else(|| self.bins[self.filled_after(bin)?].first_key_value()).map(|(_, &id)| id)
    }

    /// The block behind the one with this key.
    pub(super) fn after(&self, key: Key) -> Option<Id> {
        let bin = bin_of(key.0);
        let here = self.bins[bin].range((Excluded(key), Unbounded)).next();
        here.or_else(|| self.bins[self.filled_after(bin)?].first_key_value()).map(|(_, &id)| id)
    }

    /// All blocks of at least `bytes` bytes in their order.
    pub(super) fn iter_from(&self, bytes: u64) -> impl Iterator<Item = Id> {
        let bins = successors(Some(bin_of(bytes)), |&bin| self.filled_after(bin));
        bins.flat_map(move |bin| self.bins[bin].range((bytes, 0)..).map(|(_, &id)| id))
    }

    pub(super) fn len(&self) -> usize {
        self.blocks
    }

    fn filled_after(&self, bin: usize) -> Option<usize> {
        let (word, bit) = (bin / 64, bin % 64);
        // Twice by less than 64: a shift by 64 is none.
        let rest = self.filled[word] >> bit >> 1;
        if rest != 0 {
            return Some(bin + 1 + rest.trailing_zeros() as usize);
        }
        let words = self.words >> word >> 1;
        let next = word + 1 + words.trailing_zeros() as usize;
        (words != 0).then(|| 64 * next + self.filled[next].trailing_zeros() as usize)
    }
}

/// Monotonic in `bytes`: exact below `2 * BINS_PER_OCTAVE` least blocks, then by the leading bits.
fn bin_of(bytes: u64) -> usize {
    let units = bytes / MIN_BLOCK_BYTES;
    let octave = (units | 1).ilog2().saturating_sub(BIN_BITS);
    octave as usize * BINS_PER_OCTAVE + (units >> octave) as usize
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn bins_rise_with_the_size() {
        let sizes = (0..4096u64).chain((12..55).flat_map(|e| [(1 << e) - 1, 1 << e, (1 << e) + 1]));
        let bins: Vec<usize> = sizes.map(|units| bin_of(units * MIN_BLOCK_BYTES)).collect();
        assert!(bins.is_sorted());
        assert_eq!(bin_of(u64::MAX), BINS - 1);
        assert!(WORDS <= 64);
    }

    #[test]
    fn small_sizes_have_a_bin_each() {
        let bins: BTreeSet<usize> = (1..64).map(|units| bin_of(512 * units)).collect();
        assert_eq!(bins.len(), 63);
    }

    proptest! {
        #[test]
        fn it_is_an_ordered_set(
            steps in prop::collection::vec((any::<bool>(), 1..60u32, 0..8u64, 0..5u64), 1..200),
        ) {
            let mut set = FreeSet::default();
            let mut model = BTreeSet::new();
            for (insert, shift, more, address) in steps {
                // Crowded around powers of two, where bins end.
                let key = ((1 << shift) / 512 * 512 + 512 * more, address);
                let id = (key.0 / 512 * 5 + address) as Id;
                if insert {
                    if model.insert((key, id)) {
                        set.insert(key, id);
                    }
                } else {
                    prop_assert_eq!(set.remove(key).is_some(), model.remove(&(key, id)));
                }
                let least = model.range(((key.0, 0), 0)..).next().map(|(_, id)| *id);
                prop_assert_eq!(set.at_least(key.0), least);
                let after = model.range((Excluded((key, Id::MAX)), Unbounded)).next();
                prop_assert_eq!(set.after(key), after.map(|(_, id)| *id));
                prop_assert!(set.iter_from(0).eq(model.iter().map(|(_, id)| *id)));
                let from = model.range(((key.0, 0), 0)..).map(|(_, id)| *id);
                prop_assert!(set.iter_from(key.0).eq(from));
                prop_assert_eq!(set.len(), model.len());
            }
        }
    }
}
