//! First fit: the hole of the lowest address that is long enough.

use super::Hole;
use super::coalescing::{Coalescing, Search};
use super::holes::{Found, Holes};

/// First fit in the order of addresses (Knuth, TAOCP volume 1, section 2.5, algorithm A; in the
/// order of addresses: Wilson et al., "Dynamic storage allocation: a survey and critical review",
/// IWMM 1995). The search does not walk over the holes before the fit.
pub type FirstFit<S> = Coalescing<S, ByAddress>;

/// The search in the order of addresses.
#[derive(Default)]
pub struct ByAddress;

impl Search for ByAddress {
    const NAME: &'static str = "first_fit";

    fn find(&mut self, holes: &Holes, bytes: u64) -> Option<Found> {
        holes.first(bytes)
    }

    fn in_order(&self, holes: &Holes) -> Vec<Hole> {
        holes.all()
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
