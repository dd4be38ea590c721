//! What begins at an address.

use hashbrown::HashTable;

use super::chain::{Chain, Id};

/// Values by address. Two blocks never begin at one.
#[derive(Debug)]
pub(super) struct AddressMap<V>(HashTable<(u64, V)>);

impl<V> Default for AddressMap<V> {
    fn default() -> Self {
        Self(HashTable::new())
    }
}

impl<V: Copy> AddressMap<V> {
    pub(super) fn get(&self, address: u64) -> Option<V> {
        let entry = self.0.find(hash(address), |entry| entry.0 == address);
        entry.map(|&(_, value)| value)
    }

    /// Adds a value under an address that has none.
    pub(super) fn insert(&mut self, address: u64, value: V) {
        self.0.insert_unique(hash(address), (address, value), |entry| hash(entry.0));
    }

    pub(super) fn remove(&mut self, address: u64) -> Option<V> {
        let entry = self.0.find_entry(hash(address), |entry| entry.0 == address).ok()?;
        let ((_, value), _) = entry.remove();
        Some(value)
    }
}

/// Blocks of a chain by address. It holds their indexes alone: the block, which is needed anyway,
/// has the address.
#[derive(Debug, Default)]
pub(super) struct AddressIndex(HashTable<Id>);

impl AddressIndex {
    /// The block that begins at an address.
    pub(super) fn get<T>(&self, blocks: &Chain<T>, address: u64) -> Option<Id> {
        self.0.find(hash(address), |&id| blocks[id].address == address).copied()
    }

    /// Adds a block; no other begins where it does.
    pub(super) fn insert<T>(&mut self, blocks: &Chain<T>, id: Id) {
        self.0.insert_unique(hash(blocks[id].address), id, |&id| hash(blocks[id].address));
    }

    /// Removes the block that begins at an address.
    pub(super) fn remove<T>(&mut self, blocks: &Chain<T>, address: u64) -> Option<Id> {
        let is_it = |&id: &Id| blocks[id].address == address;
        let (id, _) = self.0.find_entry(hash(address), is_it).ok()?.remove();
        Some(id)
    }

    /// All of them, in no order.
    #[cfg(test)]
    pub(super) fn ids(&self) -> impl Iterator<Item = Id> {
        self.0.iter().copied()
    }
}

/// 2^64 over the golden ratio (Knuth, TAOCP volume 3, section 6.4).
const MULTIPLIER: u64 = 0x9E37_79B9_7F4A_7C15;

/// A hash of an address of which all bits are as good as random ones: the table takes a slot from the
/// low bits and a tag from the high ones. The low bits of an aligned address's product are 0: its
/// high half makes up for them.
fn hash(address: u64) -> u64 {
    let product = u128::from(address) * u128::from(MULTIPLIER);
    let folded = product as u64 ^ (product >> 64) as u64;
    (folded ^ folded >> 32).wrapping_mul(MULTIPLIER)
}

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, HashSet};

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn they_are_maps(
            shift in 0..40u32,
            steps in prop::collection::vec((any::<bool>(), 0..300u64), 1..2000),
        ) {
            let mut map = AddressMap::default();
            let (mut blocks, mut index) = (Chain::default(), AddressIndex::default());
            let mut model = HashMap::new();
            for (inserts, number) in steps {
                let address = number << shift;
                prop_assert_eq!(map.get(address), model.get(&address).copied());
                if inserts && !model.contains_key(&address) {
                    let id = blocks.add(address, 1, ());
                    model.insert(address, id);
                    map.insert(address, id);
                    index.insert(&blocks, id);
                } else {
                    let id = model.remove(&address);
                    prop_assert_eq!(index.remove(&blocks, address), id);
                    prop_assert_eq!(map.remove(address), id);
                    id.into_iter().for_each(|id| blocks.remove(id));
                }
                prop_assert_eq!(index.ids().count(), model.len());
            }
            for number in 0..300 {
                let address = number << shift;
                let id = model.get(&address).copied();
                prop_assert_eq!((map.get(address), index.get(&blocks, address)), (id, id));
            }
        }
    }

    #[test]
    fn aligned_addresses_are_spread() {
        const COUNT: u64 = 40_000;
        for shift in [0, 8, 9, 12, 16, 20, 21, 24, 30] {
            let hashes = (0..COUNT).map(|number| hash((7 << 40) + (number << shift)));
            // What 2^16 slots and 7 bits of tag see of them.
            let slots: HashSet<u64> = hashes.clone().map(|hash| hash & 0xFFFF).collect();
            let tags: HashSet<u64> = hashes.map(|hash| hash >> 57).collect();
            // At random 65,536 (1 - exp(-40,000 / 65,536)) slots, which is 29,940, are taken.
            assert!(slots.len() > 29_500, "2^{shift}: {} slots", slots.len());
            assert_eq!(tags.len(), 128, "2^{shift}");
        }
    }
}
