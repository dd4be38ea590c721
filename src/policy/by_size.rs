//! Free blocks ordered by size and address.

use std::hint::select_unpredictable;

use super::chain::{Id, Link, NONE};

/// Blocks of a leaf.
const LEAF: usize = 32;

/// Bins to a doubling of sizes, as a power of two.
const STEPS_LOG2: u32 = 5;

/// Bins of all 64-bit sizes.
const BINS: usize = (65 - STEPS_LOG2 as usize) << STEPS_LOG2;

/// What orders a free block: its size, then its address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key(u128);

impl Key {
    pub(super) fn new(bytes: u64, address: u64) -> Self {
        Self(u128::from(bytes) << 64 | u128::from(address))
    }

    pub(super) fn of<T>(block: &Link<T>) -> Self {
        Self::new(block.bytes, block.address)
    }

    /// Of all blocks of at least `bytes` bytes the first.
    pub(super) fn at_least(bytes: u64) -> Self {
        Self::new(bytes, 0)
    }

    fn bytes(self) -> u64 {
        (self.0 >> 64) as u64
    }

    /// The bin of its size: 32 of equal width to a doubling, single sizes below.
    fn bin(self) -> usize {
        let bytes = self.bytes();
        match bytes.checked_ilog2().and_then(|doubling| doubling.checked_sub(STEPS_LOG2)) {
            None => bytes as usize,
            Some(shift) => ((shift as usize) << STEPS_LOG2) + (bytes >> shift) as usize,
        }
    }
}

/// Where a block stands, as long as the set does not change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    bin: usize,
    /// Which leaf of the bin.
    leaf: usize,
    slot: usize,
}

/// An ordered set: bins by size, which a formula gives, and in each leaves of keys. As a rule a bin has
/// one leaf, in no order: few keys are looked through sooner than they are kept sorted. From two on
/// the leaves of a bin are sorted, so that many blocks of one size stay fast.
#[derive(Debug)]
pub(super) struct BySize {
    /// A bit for each bin that is not empty.
    taken: [u64; BINS.div_ceil(64)],
    bins: Vec<Bin>,
    leaves: Vec<Leaf>,
    vacant: Vec<u32>,
}

/// Numbers of leaves, in order.
type Bin = Vec<u32>;

#[derive(Debug)]
struct Leaf {
    len: usize,
    keys: [Key; LEAF],
    ids: [Id; LEAF],
}

impl Default for BySize {
    fn default() -> Self {
        Self { taken: [0; _], bins: vec![Bin::new(); BINS], leaves: Vec::new(), vacant: Vec::new() }
    }
}

impl BySize {
    pub(super) fn insert(&mut self, key: Key, id: Id) {
        let bin = key.bin();
        match self.bins[bin][..] {
            [] => {
                self.taken[bin / 64] |= 1 << (bin % 64);
                self.add_leaf(bin, 0).push(key, id);
            }
            [leaf] if self.leaves[leaf as usize].len < LEAF => {
                self.leaves[leaf as usize].push(key, id);
            }
            [leaf] => {
                self.leaves[leaf as usize].sort();
                self.insert_sorted(bin, key, id);
            }
            _ => self.insert_sorted(bin, key, id),
        }
    }

    fn insert_sorted(&mut self, bin: usize, key: Key, id: Id) {
        let mut index = self.leaf_for(bin, key);
        let leaf = self.leaf_mut(bin, index);
        if leaf.len == LEAF {
            let half = leaf.split();
            let least = half.keys[0];
            *self.add_leaf(bin, index + 1) = half;
            index += usize::from(least <= key);
        }
        let leaf = self.leaf_mut(bin, index);
        leaf.insert(leaf.slot_for(key), key, id);
    }

    /// The block with this key, or the one that follows where it would stand.
    pub(super) fn from(&self, key: Key) -> Option<Place> {
        let bin = key.bin();
        match self.bins[bin][..] {
            [] => self.first_behind(bin),
            [leaf] => match self.leaves[leaf as usize].least_from(key) {
                Some(slot) => Some(Place { bin, leaf: 0, slot }),
                None => self.first_behind(bin),
            },
            _ => {
                let leaf = self.leaf_for(bin, key);
                self.valid(Place { bin, leaf, slot: self.leaf(bin, leaf).slot_for(key) })
            }
        }
    }

    /// The next block.
    pub(super) fn after(&self, place: Place) -> Option<Place> {
        match self.is_sorted(place.bin) {
            true => self.valid(Place { slot: place.slot + 1, ..place }),
            false => self.from(Key(self.key(place).0 + 1)),
        }
    }

    pub(super) fn id(&self, place: Place) -> Id {
        self.leaf(place.bin, place.leaf).ids[place.slot]
    }

    pub(super) fn remove(&mut self, place: Place) -> Id {
        let Place { bin, leaf: index, slot } = place;
        let is_sorted = self.is_sorted(bin);
        let leaf = self.leaf_mut(bin, index);
        let id = if is_sorted { leaf.remove(slot) } else { leaf.swap_remove(slot) };
        if leaf.len == 0 {
            self.vacant.push(self.bins[bin].remove(index));
            if self.bins[bin].is_empty() {
                self.taken[bin / 64] &= !(1 << (bin % 64));
            }
        }
        id
    }

    /// Removes the block with this key.
    pub(super) fn remove_key(&mut self, key: Key) -> Id {
        let place = self.from(key);
        debug_assert!(place.is_some_and(|place| self.key(place) == key));
        place.map_or(NONE, |place| self.remove(place))
    }

    /// All blocks from this key on, in their order.
    pub(super) fn iter_from(&self, key: Key) -> impl Iterator<Item = Id> {
        let places = std::iter::successors(self.from(key), |&place| self.after(place));
        places.map(|place| self.id(place))
    }

    /// The sizes of all blocks, in no order.
    pub(super) fn lengths(&self) -> impl Iterator<Item = u64> {
        self.leaves.iter().flat_map(|leaf| leaf.keys[..leaf.len].iter().map(|key| key.bytes()))
    }

    fn key(&self, place: Place) -> Key {
        self.leaf(place.bin, place.leaf).keys[place.slot]
    }

    fn is_sorted(&self, bin: usize) -> bool {
        self.bins[bin].len() > 1
    }

    /// Which leaf of a sorted bin holds the key, if any does.
    fn leaf_for(&self, bin: usize, key: Key) -> usize {
        let is_reached = |&leaf: &u32| self.leaves[leaf as usize].keys[0] <= key;
        self.bins[bin].partition_point(is_reached).saturating_sub(1)
    }

    /// The place in a sorted bin, or where it is behind the last of its leaf the first of the next.
    fn valid(&self, place: Place) -> Option<Place> {
        let Place { bin, leaf, slot } = place;
        if slot < self.leaf(bin, leaf).len {
            return Some(place);
        }
        if leaf + 1 < self.bins[bin].len() {
            return Some(Place { bin, leaf: leaf + 1, slot: 0 });
        }
        self.first_behind(bin)
    }

    /// The first block of the bins behind one.
    fn first_behind(&self, bin: usize) -> Option<Place> {
        let from = bin + 1;
        let mut bits = self.taken.get(from / 64)? & (u64::MAX << (from % 64));
        let mut word = from / 64;
        while bits == 0 {
            word += 1;
            bits = *self.taken.get(word)?;
        }
        let bin = 64 * word + bits.trailing_zeros() as usize;
        let is_sorted = self.is_sorted(bin);
        let slot = if is_sorted { 0 } else { self.leaf(bin, 0).least_from(Key(0))? };
        Some(Place { bin, leaf: 0, slot })
    }

    fn leaf(&self, bin: usize, index: usize) -> &Leaf {
        &self.leaves[self.bins[bin][index] as usize]
    }

    fn leaf_mut(&mut self, bin: usize, index: usize) -> &mut Leaf {
        &mut self.leaves[self.bins[bin][index] as usize]
    }

    /// A new leaf, empty.
    fn add_leaf(&mut self, bin: usize, index: usize) -> &mut Leaf {
        let number = self.vacant.pop().unwrap_or_else(|| {
            self.leaves.push(Leaf::default());
            (self.leaves.len() - 1) as u32
        });
        self.bins[bin].insert(index, number);
        &mut self.leaves[number as usize]
    }
}

impl Default for Leaf {
    fn default() -> Self {
        Self { len: 0, keys: [Key(0); LEAF], ids: [NONE; LEAF] }
    }
}

impl Leaf {
    fn push(&mut self, key: Key, id: Id) {
        self.put(self.len, key, id);
        self.len += 1;
    }

    fn put(&mut self, slot: usize, key: Key, id: Id) {
        self.keys[slot] = key;
        self.ids[slot] = id;
    }

    fn sort(&mut self) {
        let mut blocks: [(Key, Id); LEAF] =
            std::array::from_fn(|slot| (self.keys[slot], self.ids[slot]));
        blocks[..self.len].sort_unstable_by_key(|(key, _)| *key);
        blocks.iter().enumerate().for_each(|(slot, &(key, id))| self.put(slot, key, id));
    }

    /// Takes the upper half of a full leaf away, into another.
    fn split(&mut self) -> Self {
        let mut half = Self { len: LEAF - LEAF / 2, ..Self::default() };
        half.keys[..half.len].copy_from_slice(&self.keys[LEAF / 2..]);
        half.ids[..half.len].copy_from_slice(&self.ids[LEAF / 2..]);
        self.len = LEAF / 2;
        half
    }

    /// Where the least key from this one on stands, in whatever order.
    fn least_from(&self, key: Key) -> Option<usize> {
        let (mut least, mut at) = (Key(u128::MAX), LEAF);
        for (slot, &other) in self.keys[..self.len].iter().enumerate() {
            let is_nearer = (key <= other) & (other <= least);
            least = select_unpredictable(is_nearer, other, least);
            at = select_unpredictable(is_nearer, slot, at);
        }
        (at < LEAF).then_some(at)
    }

    fn slot_for(&self, key: Key) -> usize {
        self.keys[..self.len].partition_point(|&other| other < key)
    }

    fn insert(&mut self, slot: usize, key: Key, id: Id) {
        debug_assert!(slot == self.len || self.keys[slot] != key, "two blocks with one key");
        self.keys.copy_within(slot..self.len, slot + 1);
        self.ids.copy_within(slot..self.len, slot + 1);
        self.keys[slot] = key;
        self.ids[slot] = id;
        self.len += 1;
    }

    fn swap_remove(&mut self, slot: usize) -> Id {
        let id = self.ids[slot];
        self.len -= 1;
        self.put(slot, self.keys[self.len], self.ids[self.len]);
        id
    }

    fn remove(&mut self, slot: usize) -> Id {
        let id = self.ids[slot];
        self.keys.copy_within(slot + 1..self.len, slot);
        self.ids.copy_within(slot + 1..self.len, slot);
        self.len -= 1;
        id
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_is_an_ordered_set(
            // Few bins, so that some have many leaves: of one size, or of sizes that share a bin.
            base in prop_oneof![Just(0), Just(1 << 20)],
            steps in prop::collection::vec((0..4u8, 0..6u64, 0..200u64), 1..1500),
        ) {
            let mut set = BySize::default();
            let mut model = BTreeMap::new();
            for (index, (step, bytes, address)) in steps.into_iter().enumerate() {
                let bytes = base + bytes;
                let (key, id) = (Key::new(bytes, address), index as Id);
                // Long runs grow the set over several leaves, others empty it.
                match model.contains_key(&key) {
                    false if step > 0 || index % 1000 < 500 => {
                        set.insert(key, id);
                        model.insert(key, id);
                    }
                    true if step > 0 => {
                        prop_assert_eq!(Some(set.remove_key(key)), model.remove(&key));
                    }
                    _ => {}
                }
                let first = set.from(Key::at_least(bytes));
                let expected = model.range(Key::at_least(bytes)..).map(|(_, id)| *id);
                prop_assert_eq!(first.map(|place| set.id(place)), expected.clone().next());
                let second = first.and_then(|place| set.after(place));
                prop_assert_eq!(second.map(|place| set.id(place)), expected.clone().nth(1));
                if index % 100 == 0 {
                    prop_assert!(set.iter_from(Key::at_least(bytes)).eq(expected));
                }
            }
            while let Some(first) = set.from(Key::at_least(0)) {
                prop_assert_eq!(Some(set.remove(first)), model.pop_first().map(|(_, id)| id));
            }
            prop_assert!(model.is_empty());
            prop_assert_eq!(set.vacant.len(), set.leaves.len());
        }
    }
}
