//! Best fit: the shortest hole that is long enough.

use super::Hole;
use super::blocks::Free;
use super::coalescing::{Coalescing, Search};
use super::tree::{Entry, Tree};

/// Best fit (Knuth, TAOCP volume 1, section 2.5): the shortest hole that holds the request, of equal
/// ones that of the lowest address.
pub type BestFit<S> = Coalescing<S, ByLength>;

/// Holes in the order of their lengths, equal ones by address.
#[derive(Default)]
pub struct ByLength(Tree<u128>);

impl Search for ByLength {
    const NAME: &'static str = "best_fit";

    fn add(&mut self, hole: Free) {
        let Free { address, bytes, node } = hole;
        self.0.insert(Entry { key: key(bytes, address), bytes, node });
    }

    fn remove(&mut self, hole: Free) {
        self.0.remove(key(hole.bytes, hole.address));
    }

    fn change(&mut self, from: Free, to: Free) {
        self.remove(from);
        self.add(to);
    }

    fn find(&mut self, bytes: u64) -> Option<Free> {
        self.0.first_from(key(bytes, 0), bytes).map(free)
    }

    fn in_order(&self) -> Vec<Hole> {
        let holes = self.0.entries().into_iter().map(free);
        holes.map(|Free { address, bytes, .. }| Hole { address, bytes }).collect()
    }
}

fn key(bytes: u64, address: u64) -> u128 {
    u128::from(bytes) << 64 | u128::from(address)
}

fn free(Entry { key, bytes, node }: Entry<u128>) -> Free {
    Free { address: key as u64, bytes, node }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::tests::{addresses, arena, whole};
    use crate::policy::{HoleOrder, Policy};

    #[test]
    fn the_shortest_hole_that_fits_is_taken_and_of_equals_the_lowest() {
        let mut policy = BestFit::new(arena(), &whole()).unwrap();
        let blocks = [4, 1, 3, 1, 2, 1, 3, 1].map(|units| policy.allocate(256 * units).unwrap());
        let at = |n: usize| blocks[n].address;
        for n in [0, 6, 4, 2] {
            policy.free(at(n)).unwrap();
        }
        let holes = addresses(&policy.holes(HoleOrder::FreeList));
        assert_eq!(holes[..4], [at(4), at(2), at(6), at(0)]);
        for (units, expected) in [(3, at(2)), (1, at(4)), (1, at(4) + 256), (3, at(6)), (2, at(0))]
        {
            assert_eq!(policy.allocate(256 * units).unwrap().address, expected);
        }
    }
}
