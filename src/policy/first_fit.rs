//! First fit: the hole of the lowest address that is long enough.

use super::Hole;
use super::blocks::Free;
use super::coalescing::{Coalescing, Search};
use super::tree::{Entry, Tree};

/// First fit in the order of addresses (Knuth, TAOCP volume 1, section 2.5, algorithm A; in the
/// order of addresses: Wilson et al., "Dynamic storage allocation: a survey and critical review",
/// IWMM 1995). The search does not walk over the holes before the fit.
pub type FirstFit<S> = Coalescing<S, ByAddress>;

/// Holes in the order of addresses.
#[derive(Default)]
pub struct ByAddress(Tree<u64>);

impl ByAddress {
    /// The first hole of at least `bytes` bytes at `address` or behind it.
    pub(super) fn find_from(&self, address: u64, bytes: u64) -> Option<Free> {
        self.0.first_from(address, bytes).map(Free::from)
    }
}

impl Search for ByAddress {
    const NAME: &'static str = "first_fit";

    fn add(&mut self, hole: Free) {
        self.0.insert(hole.into());
    }

    fn remove(&mut self, hole: Free) {
        self.0.remove(hole.address);
    }

    fn change(&mut self, from: Free, to: Free) {
        self.0.change(from.address, to.into());
    }

    fn find(&mut self, bytes: u64) -> Option<Free> {
        self.0.first(bytes).map(Free::from)
    }

    fn in_order(&self) -> Vec<Hole> {
        let holes = self.0.entries().into_iter();
        holes.map(|entry| Hole { address: entry.key, bytes: entry.bytes }).collect()
    }
}

impl From<Free> for Entry<u64> {
    fn from(Free { address, bytes, node }: Free) -> Self {
        Self { key: address, bytes, node }
    }
}

impl From<Entry<u64>> for Free {
    fn from(Entry { key, bytes, node }: Entry<u64>) -> Self {
        Self { address: key, bytes, node }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::tests::{addresses, arena, whole};
    use crate::policy::{HoleOrder, Policy};

    #[test]
    fn the_lowest_hole_that_fits_is_taken() {
        let mut policy = FirstFit::new(arena(), &whole()).unwrap();
        let blocks = [4, 1, 1, 1, 2, 1].map(|units| policy.allocate(256 * units).unwrap());
        let at = |n: usize| blocks[n].address;
        for n in [4, 2, 0] {
            policy.free(at(n)).unwrap();
        }
        let rest = at(5) + 256;
        let holes = [at(0), at(2), at(4), rest];
        assert_eq!(addresses(&policy.holes(HoleOrder::FreeList)), holes);
        for (units, expected) in [(3, at(0)), (2, at(4)), (2, rest), (1, at(0) + 768), (1, at(2))] {
            assert_eq!(policy.allocate(256 * units).unwrap().address, expected);
        }
    }
}
