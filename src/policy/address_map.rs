//! A map from addresses.

use super::hash;

/// Values by address, in one table with linear probing (Knuth, TAOCP volume 3, section 6.4,
/// algorithms L and R), so that finding one takes one line of the cache as a rule.
#[derive(Debug)]
pub(super) struct AddressMap<V> {
    /// A power of two of slots, at most four fifths of them taken: what a smaller table saves in
    /// misses of the cache is more than longer probes cost.
    slots: Vec<Slot<V>>,
    /// How far a hash is shifted to give a slot.
    shift: u32,
    len: usize,
}

#[derive(Clone, Copy, Debug)]
struct Slot<V> {
    /// [`VACANT`] where there is none.
    address: u64,
    value: V,
}

/// No block begins at the last address.
const VACANT: u64 = u64::MAX;

impl<V: Copy + Default> Default for AddressMap<V> {
    fn default() -> Self {
        Self { slots: vacant_slots(64), shift: 32 - 6, len: 0 }
    }
}

impl<V: Copy + Default> AddressMap<V> {
    pub(super) fn get(&self, address: u64) -> Option<V> {
        self.find(address).map(|slot| self.slots[slot].value)
    }

    /// Adds a value under an address that has none.
    pub(super) fn insert(&mut self, address: u64, value: V) {
        if 5 * (self.len + 1) > 4 * self.slots.len() {
            let larger = vacant_slots(2 * self.slots.len());
            self.shift -= 1;
            let slots = std::mem::replace(&mut self.slots, larger);
            slots.into_iter().filter(|slot| slot.address != VACANT).for_each(|slot| self.put(slot));
        }
        self.put(Slot { address, value });
        self.len += 1;
    }

    pub(super) fn remove(&mut self, address: u64) -> Option<V> {
        let mut gap = self.find(address)?;
        let value = self.slots[gap].value;
        self.len -= 1;
        // What was put off by the removed entry moves up.
        let mut slot = gap;
        loop {
            slot = self.next(slot);
            let other = self.slots[slot].address;
            if other == VACANT {
                break;
            }
            let is_put_off_by = |place: usize| slot.wrapping_sub(place) & (self.slots.len() - 1);
            if is_put_off_by(self.home(other)) >= is_put_off_by(gap) {
                self.slots[gap] = self.slots[slot];
                gap = slot;
            }
        }
        self.slots[gap].address = VACANT;
        Some(value)
    }

    fn find(&self, address: u64) -> Option<usize> {
        let mut slot = self.home(address);
        loop {
            match self.slots[slot].address {
                VACANT => return None,
                other if other == address => return Some(slot),
                _ => slot = self.next(slot),
            }
        }
    }

    fn put(&mut self, entry: Slot<V>) {
        let mut slot = self.home(entry.address);
        while self.slots[slot].address != VACANT {
            slot = self.next(slot);
        }
        self.slots[slot] = entry;
    }

    /// The slot that an address is put in where that is vacant.
    fn home(&self, address: u64) -> usize {
        (hash(address) >> self.shift) as usize
    }

    fn next(&self, slot: usize) -> usize {
        (slot + 1) & (self.slots.len() - 1)
    }
}

fn vacant_slots<V: Copy + Default>(slots: usize) -> Vec<Slot<V>> {
    vec![Slot { address: VACANT, value: V::default() }; slots]
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_is_a_map(
            shift in 0..40u32,
            steps in prop::collection::vec((any::<bool>(), 0..300u64), 1..2000),
        ) {
            let mut map = AddressMap::default();
            let mut model = HashMap::new();
            for (n, (inserts, number)) in steps.into_iter().enumerate() {
                let address = number << shift;
                prop_assert_eq!(map.get(address), model.get(&address).copied());
                if inserts && !model.contains_key(&address) {
                    model.insert(address, n);
                    map.insert(address, n);
                } else {
                    prop_assert_eq!(map.remove(address), model.remove(&address));
                }
                prop_assert_eq!(map.len, model.len());
            }
            for number in 0..300 {
                let address = number << shift;
                prop_assert_eq!(map.get(address), model.get(&address).copied());
            }
        }
    }

    #[test]
    fn aligned_addresses_are_spread() {
        for shift in [0, 8, 12, 16, 21, 30] {
            let mut map = AddressMap::default();
            for number in 0..40_000u64 {
                map.insert((7 << 40) + (number << shift), ());
            }
            let put_off = |(slot, entry): (usize, &Slot<()>)| {
                slot.wrapping_sub(map.home(entry.address)) & (map.slots.len() - 1)
            };
            let slots = map.slots.iter().enumerate();
            let taken = slots.filter(|(_, entry)| entry.address != VACANT);
            let total: usize = taken.map(put_off).sum();
            // Knuth's mean for random hashes at this load, 0.61, is 0.8 an entry.
            assert!(total < 40_000, "2^{shift}: {total}");
        }
    }
}
