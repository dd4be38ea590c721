//! Next fit: the next hole that is long enough, from where the last search ended.

use super::Hole;
use super::coalescing::{Coalescing, Search};
use super::holes::{Found, Holes};

/// Next fit (first fit with a roving pointer: Knuth, TAOCP volume 1, section 2.5, exercise 6), in the
/// order of addresses: the search goes on behind the block that was allocated last, and round the
/// end.
pub type NextFit<S> = Coalescing<S, Roving>;

/// The search in the order of addresses from the rover on.
#[derive(Default)]
pub struct Roving {
    rover: u64,
}

impl Search for Roving {
    const NAME: &'static str = "next_fit";

    fn find(&mut self, holes: &Holes, bytes: u64) -> Option<Found> {
        let found = holes.first_from(self.rover, bytes).or_else(|| holes.first(bytes))?;
        self.rover = found.hole.address + bytes;
        Some(found)
    }

    fn in_order(&self, holes: &Holes) -> Vec<Hole> {
        let mut holes = holes.all();
        let before = holes.partition_point(|hole| hole.address < self.rover);
        holes.rotate_left(before);
        holes
    }

    /// A rover inside a new hole moves to its begin: the hole is the next that is met.
    fn add(&mut self, hole: Hole) {
        if (hole.address..hole.end()).contains(&self.rover) {
            self.rover = hole.address;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::tests::{addresses, arena, whole};
    use crate::policy::{HoleOrder, Policy};

    #[test]
    fn the_search_goes_on_where_it_ended_and_round_the_end() {
        let mut policy = NextFit::new(arena(), &whole()).unwrap();
        let blocks = [1; 8].map(|units| policy.allocate(256 * units).unwrap());
        let at = |n: usize| blocks[n].address;
        for n in [1, 3, 5] {
            policy.free(at(n)).unwrap();
        }
        let rest = at(7) + 256;
        let met = |policy: &NextFit<_>| addresses(&policy.holes(HoleOrder::FreeList));
        assert_eq!(met(&policy), [rest, at(1), at(3), at(5)]);
        let all = policy.holes(HoleOrder::Address)[3].bytes;
        for (bytes, expected) in [(all, rest), (256, at(1)), (256, at(3))] {
            assert_eq!(policy.allocate(bytes).unwrap().address, expected);
        }
        assert_eq!(met(&policy), [at(5)]);
        // The rover stands behind block 3. A hole that grows over it is the next that is met.
        policy.free(at(3)).unwrap();
        policy.free(at(7)).unwrap();
        assert_eq!(met(&policy), [at(5), at(7), at(3)]);
        policy.free(at(4)).unwrap();
        assert_eq!(met(&policy), [at(3), at(7)]);
        assert_eq!(policy.allocate(256).unwrap().address, at(3));
    }
}
