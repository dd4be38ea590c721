//! Blocks by address.

use super::chain::{Chain, Id};
use super::hash;

/// A slot that holds no block.
const EMPTY: u64 = u64::MAX;

/// A hash table with linear probing whose slots hold half of a hash and a block's index: the block,
/// which is needed anyway, holds the address. So a look-up reads one line of memory besides.
#[derive(Debug)]
pub(super) struct AddressIndex {
    slots: Vec<u64>,
    /// How far a hash is shifted to give a slot.
    shift: u32,
    len: usize,
}

impl Default for AddressIndex {
    fn default() -> Self {
        Self { slots: vec![EMPTY; 16], shift: 32 - 4, len: 0 }
    }
}

impl AddressIndex {
    /// The block that begins at an address.
    pub(super) fn get<T>(&self, blocks: &Chain<T>, address: u64) -> Option<Id> {
        self.find(blocks, address).map(|(_, id)| id)
    }

    /// Adds a block; no other begins where it does.
    pub(super) fn insert(&mut self, address: u64, id: Id) {
        if 5 * (self.len + 1) > 4 * self.slots.len() {
            self.grow();
        }
        self.place(u64::from(hash(address)) << 32 | u64::from(id));
        self.len += 1;
    }

    /// Removes the block that begins at an address.
    pub(super) fn remove<T>(&mut self, blocks: &Chain<T>, address: u64) -> Option<Id> {
        let (mut hole, id) = self.find(blocks, address)?;
        self.len -= 1;
        // What stands behind its own place moves up (Knuth, TAOCP volume 3, 6.4, algorithm R).
        let mut next = self.after(hole);
        while self.slots[next] != EMPTY {
            let home = self.home(self.slots[next]);
            let mask = self.slots.len() - 1;
            if next.wrapping_sub(home) & mask >= next.wrapping_sub(hole) & mask {
                self.slots[hole] = self.slots[next];
                hole = next;
            }
            next = self.after(next);
        }
        self.slots[hole] = EMPTY;
        Some(id)
    }

    /// All of them, in no order.
    #[cfg(test)]
    pub(super) fn ids(&self) -> impl Iterator<Item = Id> {
        self.slots.iter().filter(|&&slot| slot != EMPTY).map(|&slot| slot as Id)
    }

    fn find<T>(&self, blocks: &Chain<T>, address: u64) -> Option<(usize, Id)> {
        let hash = hash(address);
        let mut index = (hash >> self.shift) as usize;
        while self.slots[index] != EMPTY {
            let slot = self.slots[index];
            if (slot >> 32) as u32 == hash && blocks[slot as Id].address == address {
                return Some((index, slot as Id));
            }
            index = self.after(index);
        }
        None
    }

    fn home(&self, slot: u64) -> usize {
        ((slot >> 32) as u32 >> self.shift) as usize
    }

    fn after(&self, index: usize) -> usize {
        (index + 1) & (self.slots.len() - 1)
    }

    fn place(&mut self, slot: u64) {
        let mut index = self.home(slot);
        while self.slots[index] != EMPTY {
            index = self.after(index);
        }
        self.slots[index] = slot;
    }

    fn grow(&mut self) {
        let slots = vec![EMPTY; 2 * self.slots.len()];
        self.shift -= 1;
        let slots = std::mem::replace(&mut self.slots, slots);
        slots.into_iter().filter(|&slot| slot != EMPTY).for_each(|slot| self.place(slot));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::super::chain::Chain;
    use super::*;

    proptest! {
        #[test]
        fn it_is_a_map(
            shift in 9..40u32,
            steps in prop::collection::vec((0..60u64, 0..3u8), 1..300),
        ) {
            let mut blocks = Chain::default();
            let mut live = AddressIndex::default();
            let mut model = BTreeMap::new();
            for (place, step) in steps {
                let address = (7 << 40) + (place << shift);
                if step == 0 {
                    let id = model.remove(&address);
                    prop_assert_eq!(live.remove(&blocks, address), id);
                    id.into_iter().for_each(|id| blocks.remove(id));
                } else {
                    model.entry(address).or_insert_with(|| {
                        let id = blocks.add(address, 512, ());
                        live.insert(address, id);
                        id
                    });
                }
                for place in 0..60 {
                    let address = (7 << 40) + (place << shift);
                    prop_assert_eq!(live.get(&blocks, address), model.get(&address).copied());
                }
                prop_assert_eq!(live.ids().count(), model.len());
            }
        }
    }

    #[test]
    fn probes_are_short_whatever_the_alignment() {
        for shift in [9, 12, 16, 20, 21, 24, 30] {
            let mut live = AddressIndex::default();
            (0..40_000).for_each(|id| live.insert((1 << 32) + (u64::from(id) << shift), id));
            let mask = live.slots.len() - 1;
            let slots = live.slots.iter().enumerate().filter(|(_, slot)| **slot != EMPTY);
            let probes: usize =
                slots.map(|(index, &slot)| index.wrapping_sub(live.home(slot)) & mask).sum();
            // At random, with three slots of five taken, it would be some 32,000.
            assert!(probes < 50_000, "2^{shift}: {probes} steps");
        }
    }
}
