//! The free blocks of one pool and stream, ordered by size and address.

use super::blocks::{Block, Id, NONE};

/// Blocks of a leaf.
const LEAF: usize = 64;

/// What orders a free block: its size, then its address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key(u128);

impl Key {
    pub(super) fn new(bytes: u64, address: u64) -> Self {
        Self(u128::from(bytes) << 64 | u128::from(address))
    }

    pub(super) fn of(block: &Block) -> Self {
        Self::new(block.bytes, block.address)
    }

    /// Of all blocks of at least `bytes` bytes the first.
    pub(super) fn at_least(bytes: u64) -> Self {
        Self::new(bytes, 0)
    }
}

/// Where a block stands, as long as the set does not change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    leaf: usize,
    slot: usize,
}

/// An ordered set in leaves of sorted keys: a search halves the leaves, then the keys of one, and
/// memory is asked for only when a leaf is full.
#[derive(Debug, Default)]
pub(super) struct FreeSet {
    /// A key for each leaf, in order: no key of the leaf is below it, but in the first leaf.
    least: Vec<Key>,
    /// Which leaf it is.
    order: Vec<u32>,
    leaves: Vec<Leaf>,
    gone: Vec<u32>,
}

#[derive(Debug)]
struct Leaf {
    len: usize,
    keys: [Key; LEAF],
    ids: [Id; LEAF],
}

impl FreeSet {
    pub(super) fn insert(&mut self, key: Key, id: Id) {
        if self.order.is_empty() {
            self.add_leaf(0, key, Leaf::new(&[], &[]));
        }
        let mut index = self.leaf_for(key);
        let leaf = self.leaf_mut(index);
        if leaf.len == LEAF {
            let half = Leaf::new(&leaf.keys[LEAF / 2..], &leaf.ids[LEAF / 2..]);
            leaf.len = LEAF / 2;
            let least = half.keys[0];
            self.add_leaf(index + 1, least, half);
            index += usize::from(least <= key);
        }
        let leaf = self.leaf_mut(index);
        leaf.insert(leaf.slot_for(key), key, id);
    }

    /// The block with this key, or the one that follows where it would stand.
    pub(super) fn from(&self, key: Key) -> Option<Place> {
        if self.order.is_empty() {
            return None;
        }
        let leaf = self.leaf_for(key);
        self.valid(Place { leaf, slot: self.leaf(leaf).slot_for(key) })
    }

    /// The next block.
    pub(super) fn after(&self, place: Place) -> Option<Place> {
        self.valid(Place { slot: place.slot + 1, ..place })
    }

    pub(super) fn id(&self, place: Place) -> Id {
        self.leaf(place.leaf).ids[place.slot]
    }

    pub(super) fn remove(&mut self, place: Place) -> Id {
        let leaf = self.leaf_mut(place.leaf);
        let id = leaf.remove(place.slot);
        if leaf.len == 0 {
            self.least.remove(place.leaf);
            self.gone.push(self.order.remove(place.leaf));
        }
        id
    }

    /// Removes the block with this key.
    pub(super) fn remove_key(&mut self, key: Key) -> Id {
        let place = self.from(key);
        debug_assert!(place.is_some_and(|place| self.leaf(place.leaf).keys[place.slot] == key));
        place.map_or(NONE, |place| self.remove(place))
    }

    /// All blocks from this key on, in their order.
    pub(super) fn iter_from(&self, key: Key) -> impl Iterator<Item = Id> {
        let places = std::iter::successors(self.from(key), |&place| self.after(place));
        places.map(|place| self.id(place))
    }

    /// Index of the leaf that holds the key, if any does.
    fn leaf_for(&self, key: Key) -> usize {
        self.least.partition_point(|&least| least <= key).saturating_sub(1)
    }

    /// The place, or the first of the next leaf where it is behind the last of one.
    fn valid(&self, place: Place) -> Option<Place> {
        if place.slot < self.leaf(place.leaf).len {
            return Some(place);
        }
        let next = place.leaf + 1;
        (next < self.order.len()).then_some(Place { leaf: next, slot: 0 })
    }

    fn leaf(&self, index: usize) -> &Leaf {
        &self.leaves[self.order[index] as usize]
    }

    fn leaf_mut(&mut self, index: usize) -> &mut Leaf {
        &mut self.leaves[self.order[index] as usize]
    }

    fn add_leaf(&mut self, index: usize, least: Key, leaf: Leaf) {
        let number = match self.gone.pop() {
            Some(number) => {
                self.leaves[number as usize] = leaf;
                number
            }
            None => {
                self.leaves.push(leaf);
                (self.leaves.len() - 1) as u32
            }
        };
        self.least.insert(index, least);
        self.order.insert(index, number);
    }
}

impl Leaf {
    fn new(keys: &[Key], ids: &[Id]) -> Self {
        let mut leaf = Self { len: keys.len(), keys: [Key::default(); LEAF], ids: [NONE; LEAF] };
        leaf.keys[..keys.len()].copy_from_slice(keys);
        leaf.ids[..ids.len()].copy_from_slice(ids);
        leaf
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
            steps in prop::collection::vec((0..3u8, 0..40u64, 0..40u64), 1..1500),
        ) {
            let mut set = FreeSet::default();
            let mut model = BTreeMap::new();
            for (index, (step, bytes, address)) in steps.into_iter().enumerate() {
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
            prop_assert_eq!(set.gone.len(), set.leaves.len());
        }
    }
}
