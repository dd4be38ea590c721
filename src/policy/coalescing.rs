//! What first fit and next fit have in common: all but the search.

use std::collections::BTreeMap;

use super::holes::{Found, Holes};
use super::{
    AddressMap, Block, Growth, Hole, HoleOrder, Params, ParamsError, Policy, PolicyError, Region,
    Source, Usage,
};

/// Which hole a request gets.
pub trait Search: Default + Send {
    /// Name of the policy that searches so.
    const NAME: &'static str;

    /// The hole for a request of `bytes` bytes, which gets its first bytes. What is left of it is
    /// [added](Search::add) again.
    fn find(&mut self, holes: &Holes, bytes: u64) -> Option<Found>;

    /// Every hole, in the order in which the search would meet them.
    fn in_order(&self, holes: &Holes) -> Vec<Hole>;

    /// There is a new hole.
    fn add(&mut self, _hole: Hole) {}
}

/// A policy that takes a block from the front of a hole, and merges a freed block with the holes
/// beside it at once, also across regions where these are neighbours in address.
pub struct Coalescing<S, F> {
    source: S,
    growth: Growth,
    alignment_bytes: u64,
    /// Lengths of regions.
    regions: BTreeMap<u64, u64>,
    /// What live blocks were requested with.
    live: AddressMap<u64>,
    holes: Holes,
    search: F,
    usage: Usage,
}

impl<S: Source, F: Search> Coalescing<S, F> {
    /// A policy that holds nothing yet.
    ///
    /// # Errors
    ///
    /// [`ParamsError`] says which parameter cannot be.
    pub fn new(source: S, params: &Params) -> Result<Self, ParamsError> {
        params.check(&source)?;
        let Params { alignment_bytes, growth, .. } = *params;
        Ok(Self {
            source,
            growth,
            alignment_bytes,
            regions: BTreeMap::new(),
            live: AddressMap::default(),
            holes: Holes::default(),
            search: F::default(),
            usage: Usage::default(),
        })
    }

    /// Where it takes its memory from.
    pub fn source(&self) -> &S {
        &self.source
    }

    /// The hole for a request, after taking a region where none fits.
    fn hole_for(&mut self, bytes: u64) -> Result<Option<Found>, PolicyError> {
        if let Some(found) = self.search.find(&self.holes, bytes) {
            return Ok(Some(found));
        }
        let region = self.growth.grow(&mut self.source, bytes)?;
        let Some(Region { address, bytes: region_bytes }) = region else { return Ok(None) };
        self.regions.insert(address, region_bytes);
        self.usage.reserved_bytes += region_bytes;
        self.give(Hole { address, bytes: region_bytes });
        Ok(self.search.find(&self.holes, bytes))
    }

    fn give(&mut self, range: Hole) {
        let hole = self.holes.give(range);
        self.search.add(hole);
    }

    /// The first region at an address or behind it that lies wholly in a hole.
    fn unused_from(&self, address: u64) -> Option<(Found, Region)> {
        self.regions.range(address..).find_map(|(&address, &bytes)| {
            let region = Region { address, bytes };
            let around = self.holes.around(address)?;
            (region.end() <= around.hole.end()).then_some((around, region))
        })
    }
}

impl<S: Source + Send, F: Search> Policy for Coalescing<S, F> {
    fn name(&self) -> &'static str {
        F::NAME
    }

    fn alignment_bytes(&self) -> u64 {
        self.alignment_bytes
    }

    fn allocate(&mut self, bytes: u64) -> Result<Block, PolicyError> {
        let requested_bytes = bytes.max(1);
        let out_of_memory = self.usage.out_of_memory(requested_bytes);
        let Some(rounded_bytes) = requested_bytes.checked_next_multiple_of(self.alignment_bytes)
        else {
            return Err(out_of_memory);
        };
        let found = self.hole_for(rounded_bytes)?.ok_or(out_of_memory)?;
        let hole = found.hole;
        if let Some(rest) = self.holes.take(found, rounded_bytes) {
            self.search.add(rest);
        }
        self.live.insert(hole.address, requested_bytes);
        self.usage.add(requested_bytes, rounded_bytes);
        Ok(Block { address: hole.address, requested_bytes, rounded_bytes })
    }

    fn free(&mut self, address: u64) -> Result<(), PolicyError> {
        let requested_bytes = self.live.remove(address).ok_or(PolicyError::NotLive { address })?;
        let bytes = requested_bytes.next_multiple_of(self.alignment_bytes);
        self.usage.remove(requested_bytes, bytes);
        self.give(Hole { address, bytes });
        Ok(())
    }

    fn is_live(&self, address: u64) -> bool {
        self.live.get(address).is_some()
    }

    fn usage(&self) -> Usage {
        self.usage
    }

    fn holes(&self, order: HoleOrder) -> Vec<Hole> {
        match order {
            HoleOrder::Address => self.holes.all(),
            HoleOrder::FreeList => self.search.in_order(&self.holes),
        }
    }

    fn hole_lengths(&self) -> Vec<u64> {
        self.holes.lengths()
    }

    fn release_unused(&mut self) -> Result<u64, PolicyError> {
        let (mut released_bytes, mut from) = (0, 0);
        while let Some((around, region)) = self.unused_from(from) {
            self.source.release(region).map_err(PolicyError::Source)?;
            let Region { address, bytes } = region;
            self.regions.remove(&address);
            self.usage.reserved_bytes -= bytes;
            let (before, after) = self.holes.cut(around, Hole { address, bytes });
            before.into_iter().chain(after).for_each(|hole| self.search.add(hole));
            released_bytes += bytes;
            from = region.end();
        }
        Ok(released_bytes)
    }
}

#[cfg(test)]
mod tests {
    use crate::policy::tests::arena;
    use crate::policy::{FirstFit, Growth, HoleOrder, Params, Policy};

    #[test]
    fn blocks_and_holes_cross_neighbouring_regions() {
        let params = Params::default().with_growth(Growth::Regions { bytes: 4096 });
        let mut policy = FirstFit::new(arena(), &params).unwrap();
        let blocks = [(); 3].map(|()| policy.allocate(4096).unwrap().address);
        policy.free(blocks[0]).unwrap();
        policy.free(blocks[1]).unwrap();
        let across = policy.allocate(6000).unwrap();
        assert_eq!((across.address, policy.holes(HoleOrder::Address).len()), (blocks[0], 1));
        // The second region is live in part.
        assert_eq!(policy.release_unused(), Ok(0));
        policy.free(across.address).unwrap();
        assert_eq!(policy.release_unused(), Ok(8192));
        // A longer region comes at the same addresses, and goes back as one or not at all.
        let long = policy.allocate(8192).unwrap();
        assert_eq!(long.address, blocks[0]);
        policy.free(long.address).unwrap();
        let kept = policy.allocate(1).unwrap();
        assert_eq!((kept.address, policy.release_unused()), (blocks[0], Ok(0)));
        policy.free(kept.address).unwrap();
        policy.free(blocks[2]).unwrap();
        assert_eq!(policy.release_unused(), Ok(12288));
        assert_eq!(policy.source().calls().release, 4);
    }
}
