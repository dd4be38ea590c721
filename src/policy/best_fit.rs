//! Best fit: the shortest hole that is long enough.

use super::Hole;
use super::coalescing::{Coalescing, Search};
use super::holes::{Found, Holes};
use super::tree::{Entry, Tree};

/// Best fit (Knuth, TAOCP volume 1, section 2.5): the shortest hole that holds the request, of equal
/// ones that of the lowest address.
pub type BestFit<S> = Coalescing<S, ByLength>;

/// The search in the order of lengths, equal ones by address.
#[derive(Default)]
pub struct ByLength(Tree<(u64, u64)>);

impl Search for ByLength {
    const NAME: &'static str = "best_fit";

    fn find(&mut self, holes: &Holes, bytes: u64) -> Option<Found> {
        let place = self.0.first_from((bytes, 0), bytes)?;
        let (_, address) = self.0.entry(&place).key;
        self.0.remove(&place);
        holes.around(address)
    }

    fn in_order(&self, _: &Holes) -> Vec<Hole> {
        let holes = self.0.entries().into_iter();
        holes.map(|Entry { key: (bytes, address), .. }| Hole { address, bytes }).collect()
    }

    fn add(&mut self, Hole { address, bytes }: Hole) {
        self.0.insert(Entry { key: (bytes, address), bytes });
    }

    fn remove(&mut self, Hole { address, bytes }: Hole) {
        if let Some(place) = self.0.last_to((bytes, address)) {
            self.0.remove(&place);
        }
    }
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
