//! Which addresses are taken, and where the next region comes.

use std::collections::BTreeMap;

use super::Placement;
use crate::layout::{below, draw};
use crate::policy::Region;
use crate::policy::tree::{Entry, Tree};

/// Addresses begin here, so that none is 0. No granule is larger.
pub(super) const FIRST: u64 = 1 << 32;

/// The address behind the last. Devices have 2^47 to 2^57; with more there is room for every region,
/// however the others lie.
const END: u64 = 1 << 60;

/// Random places that are tried before the next free one is taken.
const TRIES: u64 = 32;

/// Free and taken ranges of addresses.
pub(super) struct Addresses {
    placement: Placement,
    granule_bytes: u64,
    /// Taken ranges, with the address behind each.
    taken: BTreeMap<u64, u64>,
    /// What is free between them.
    free: Tree<u64>,
    draws: u64,
}

impl std::fmt::Debug for Addresses {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Addresses").field("taken", &self.taken).finish_non_exhaustive()
    }
}

impl Addresses {
    pub(super) fn new(placement: Placement, granule_bytes: u64) -> Self {
        let mut free = Tree::default();
        free.insert(Entry { key: FIRST, bytes: END - FIRST, node: 0 });
        Self { placement, granule_bytes, taken: BTreeMap::new(), free, draws: 0 }
    }

    /// A free range of whole granules.
    pub(super) fn take(&mut self, bytes: u64) -> Option<u64> {
        let address = match self.placement {
            Placement::Contiguous => self.free.first(bytes)?.key,
            Placement::Scattered { seed } => self.random(seed, bytes)?,
        };
        let region = Region { address, bytes };
        let free = self.free_around(address);
        self.free.remove(free.address);
        self.add_free(free.address, address);
        self.add_free(region.end(), free.end());
        self.taken.insert(address, region.end());
        Some(address)
    }

    /// Takes a range back that was taken.
    pub(super) fn give(&mut self, region: Region) {
        self.taken.remove(&region.address);
        let free = self.free_around(region.address);
        if free.address < region.address {
            self.free.remove(free.address);
        }
        if region.end() < free.end() {
            self.free.remove(region.end());
        }
        self.add_free(free.address, free.end());
    }

    /// Whether all addresses are free, as one range.
    #[cfg(test)]
    pub(super) fn is_untouched(&self) -> bool {
        self.taken.is_empty() && self.free.entries().len() == 1
    }

    /// What is free from the taken range before an address to the one behind it.
    fn free_around(&self, address: u64) -> Region {
        let before = self.taken.range(..=address).next_back();
        let first = before.map_or(FIRST, |(_, &end)| end);
        let end = self.taken.range(address..).next().map_or(END, |(&address, _)| address);
        Region { address: first, bytes: end.saturating_sub(first) }
    }

    fn add_free(&mut self, address: u64, end: u64) {
        if address < end {
            self.free.insert(Entry { key: address, bytes: end - address, node: 0 });
        }
    }

    /// A random place with a free granule on both sides, or the next such place behind it, round the
    /// end.
    fn random(&mut self, seed: u64, bytes: u64) -> Option<u64> {
        let granule_bytes = self.granule_bytes;
        let padded_bytes = bytes.checked_add(2 * granule_bytes)?;
        let places = (END - FIRST).checked_sub(padded_bytes)? / granule_bytes;
        let mut place = FIRST;
        for _ in 0..TRIES {
            place = FIRST + below(draw(seed, self.draws), places) * granule_bytes;
            self.draws += 1;
            let free = self.free_around(place);
            if free.address <= place && place + padded_bytes <= free.end() {
                return Some(place + granule_bytes);
            }
        }
        let next = self.free.first_from(place, padded_bytes);
        let next = next.or_else(|| self.free.first(padded_bytes))?;
        Some(next.key + granule_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_no_random_place_fits_the_next_that_does_is_taken() {
        for seed in 0..20 {
            let mut addresses = Addresses::new(Placement::Scattered { seed }, 4096);
            for _ in 0..7 {
                addresses.take(4096).unwrap();
            }
            let free = addresses.free.entries();
            let longest = free.iter().max_by_key(|entry| entry.bytes).unwrap();
            assert_eq!(addresses.take(longest.bytes - 4096), None);
            // It fits one place only, with a granule to both sides.
            let address = addresses.take(longest.bytes - 8192);
            assert_eq!(address, Some(longest.key + 4096));
        }
    }
}
