//! Which addresses are taken, and where the next region comes.

use super::Placement;
use crate::layout::{below, draw};
use crate::policy::holes::{Found, Holes};
use crate::policy::{Hole, Region};

/// Addresses begin here, so that none is 0. No granule is larger.
pub(super) const FIRST: u64 = 1 << 32;

/// The address behind the last. Devices have 2^47 to 2^57; with more there is room for every region,
/// however the others lie.
const END: u64 = 1 << 60;

/// Random places that are tried before the next free one is taken.
const TRIES: u64 = 32;

/// Free addresses.
#[derive(Debug)]
pub(super) struct Addresses {
    placement: Placement,
    granule_bytes: u64,
    free: Holes,
    draws: u64,
}

impl Addresses {
    pub(super) fn new(placement: Placement, granule_bytes: u64) -> Self {
        let mut free = Holes::default();
        free.give(Hole { address: FIRST, bytes: END - FIRST });
        Self { placement, granule_bytes, free, draws: 0 }
    }

    /// A free range of whole granules.
    pub(super) fn take(&mut self, bytes: u64) -> Option<u64> {
        match self.placement {
            Placement::Contiguous => {
                let found = self.free.first(bytes)?;
                let address = found.hole.address;
                self.free.take(found, bytes);
                Some(address)
            }
            Placement::Scattered { seed } => {
                let (around, address) = self.random(seed, bytes)?;
                self.free.cut(around, Hole { address, bytes });
                Some(address)
            }
        }
    }

    /// Takes a range back that was taken.
    pub(super) fn give(&mut self, Region { address, bytes }: Region) {
        self.free.give(Hole { address, bytes });
    }

    /// Whether all addresses are free, as one range.
    #[cfg(test)]
    pub(super) fn is_untouched(&self) -> bool {
        self.free.all() == [Hole { address: FIRST, bytes: END - FIRST }]
    }

    /// A random place with a free granule on both sides, or the next such place behind it, round the
    /// end; and what is free around it.
    fn random(&mut self, seed: u64, bytes: u64) -> Option<(Found, u64)> {
        let granule_bytes = self.granule_bytes;
        let padded_bytes = bytes.checked_add(2 * granule_bytes)?;
        let places = (END - FIRST).checked_sub(padded_bytes)? / granule_bytes;
        let mut place = FIRST;
        for _ in 0..TRIES {
            place = FIRST + below(draw(seed, self.draws), places) * granule_bytes;
            self.draws += 1;
            let around = self.free.around(place);
            let around = around.filter(|around| place + padded_bytes <= around.hole.end());
            if let Some(around) = around {
                return Some((around, place + granule_bytes));
            }
        }
        let next = self.free.first_from(place, padded_bytes);
        let next = next.or_else(|| self.free.first(padded_bytes))?;
        let address = next.hole.address + granule_bytes;
        Some((next, address))
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
            let free = addresses.free.all();
            let longest = free.iter().max_by_key(|hole| hole.bytes).unwrap();
            assert_eq!(addresses.take(longest.bytes - 4096), None);
            // It fits one place only, with a granule to both sides.
            let address = addresses.take(longest.bytes - 8192);
            assert_eq!(address, Some(longest.address + 4096));
        }
    }
}
