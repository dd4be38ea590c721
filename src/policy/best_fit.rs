//! Best fit: the shortest hole that is long enough.

use std::collections::BTreeMap;

use super::by_size::{BySize, Key};
use super::chain::{Chain, Id, Link, NONE};
use super::{
    AddressIndex, Block, Growth, Hole, HoleOrder, Params, ParamsError, Policy, PolicyError, Region,
    Source, Usage,
};

/// Best fit (Knuth, TAOCP volume 1, section 2.5): the shortest hole that holds the request, of equal
/// ones that of the lowest address. A block is the front of its hole; freed, it merges with the
/// holes beside it at once, also across regions where these are neighbours in address.
pub struct BestFit<S> {
    source: S,
    growth: Growth,
    alignment_bytes: u64,
    /// What sizes are rounded up to: the alignment, unless a policy hands out pages.
    unit_bytes: u64,
    /// Lengths of regions.
    regions: BTreeMap<u64, u64>,
    /// Live blocks and holes, with what they were requested with: holes with 0.
    blocks: Chain<u64>,
    /// The first and the last of each row of neighbours, by its begin and by its end.
    firsts: BTreeMap<u64, Id>,
    lasts: BTreeMap<u64, Id>,
    live: AddressIndex,
    holes: BySize,
    usage: Usage,
}

impl<S: Source> BestFit<S> {
    /// A policy that holds nothing yet.
    ///
    /// # Errors
    ///
    /// [`ParamsError`] says which parameter cannot be.
    pub fn new(source: S, params: &Params) -> Result<Self, ParamsError> {
        Self::with_unit(source, params, params.alignment_bytes)
    }

    /// One that rounds sizes up to multiples of `unit_bytes`, a power of two.
    pub(super) fn with_unit(
        source: S,
        params: &Params,
        unit_bytes: u64,
    ) -> Result<Self, ParamsError> {
        params.check(&source)?;
        let Params { alignment_bytes, growth, .. } = *params;
        Ok(Self {
            source,
            growth,
            alignment_bytes,
            unit_bytes,
            regions: BTreeMap::new(),
            blocks: Chain::default(),
            firsts: BTreeMap::new(),
            lasts: BTreeMap::new(),
            live: AddressIndex::default(),
            holes: BySize::default(),
            usage: Usage::default(),
        })
    }

    /// Where it takes its memory from.
    pub fn source(&self) -> &S {
        &self.source
    }

    /// The hole for a request, which is none any more, after taking a region where none fits.
    fn hole_for(&mut self, bytes: u64) -> Result<Option<Id>, PolicyError> {
        if let Some(place) = self.holes.from(Key::at_least(bytes)) {
            return Ok(Some(self.holes.remove(place)));
        }
        let Some(region) = self.growth.grow(&mut self.source, bytes)? else { return Ok(None) };
        self.add(region);
        let place = self.holes.from(Key::at_least(bytes));
        Ok(place.map(|place| self.holes.remove(place)))
    }

    fn add(&mut self, region: Region) {
        self.regions.insert(region.address, region.bytes);
        self.usage.reserved_bytes += region.bytes;
        let id = self.blocks.add(region.address, region.bytes, 0);
        if let Some(before) = self.lasts.remove(&region.address) {
            self.blocks.link(before, id);
        }
        if let Some(after) = self.firsts.remove(&region.end()) {
            self.blocks.link(id, after);
        }
        self.give(id);
    }

    /// Makes a block that is neither live nor a hole a hole, merged with those beside it.
    fn give(&mut self, id: Id) {
        let Link { prev, next, .. } = self.blocks[id];
        if self.is_hole(prev) {
            self.take(prev);
            self.blocks.join_prev(id);
        }
        if self.is_hole(next) {
            self.take(next);
            self.blocks.join_next(id);
        }
        self.put(id);
    }

    fn is_hole(&self, id: Id) -> bool {
        self.blocks.get(id).is_some_and(|block| block.tag == 0)
    }

    fn take(&mut self, id: Id) {
        let removed = self.holes.remove_key(Key::of(&self.blocks[id]));
        debug_assert_eq!(removed, id);
    }

    fn put(&mut self, id: Id) {
        self.holes.insert(Key::of(&self.blocks[id]), id);
        self.note_ends(id);
    }

    /// Notes a block where it is the first or the last of its row.
    fn note_ends(&mut self, id: Id) {
        let block = &self.blocks[id];
        if block.prev == NONE {
            self.firsts.insert(block.address, id);
        }
        if block.next == NONE {
            self.lasts.insert(block.end(), id);
        }
    }

    /// The regions that lie wholly in holes, by address, and in which.
    fn unused(&self) -> Vec<(Region, Id)> {
        let mut holes: Vec<Id> = self.holes.iter_from(Key::at_least(0)).collect();
        holes.sort_unstable_by_key(|&id| self.blocks[id].address);
        let regions = self.regions.iter().map(|(&address, &bytes)| Region { address, bytes });
        regions
            .filter_map(|region| {
                let to = holes.partition_point(|&id| self.blocks[id].address <= region.address);
                let id = holes[to.checked_sub(1)?];
                (region.end() <= self.blocks[id].end()).then_some((region, id))
            })
            .collect()
    }

    /// Takes a region out of the hole that it lies in: what is left behind it.
    fn cut(&mut self, mut id: Id, region: Region) -> Option<Id> {
        self.take(id);
        let Link { address, prev, next, .. } = self.blocks[id];
        let end = self.blocks[id].end();
        if prev == NONE {
            self.firsts.remove(&address);
        }
        if next == NONE {
            self.lasts.remove(&end);
        }
        let before = (address < region.address).then_some(id);
        if before.is_some() {
            id = self.blocks.split(id, region.address - address);
        }
        let after = (region.end() < end).then(|| self.blocks.split(id, region.bytes));
        self.blocks.remove(id);
        before.into_iter().chain(after).for_each(|id| self.put(id));
        for neighbour in [prev, next].into_iter().filter(|&id| id != NONE) {
            self.note_ends(neighbour);
        }
        self.regions.remove(&region.address);
        self.usage.reserved_bytes -= region.bytes;
        after
    }
}

impl<S: Source + Send> Policy for BestFit<S> {
    fn name(&self) -> &'static str {
        "best_fit"
    }

    fn alignment_bytes(&self) -> u64 {
        self.alignment_bytes
    }

    fn allocate(&mut self, bytes: u64) -> Result<Block, PolicyError> {
        let requested_bytes = bytes.max(1);
        let out_of_memory = self.usage.out_of_memory(requested_bytes);
        let Some(rounded_bytes) = requested_bytes.checked_next_multiple_of(self.unit_bytes) else {
            return Err(out_of_memory);
        };
        let id = self.hole_for(rounded_bytes)?.ok_or(out_of_memory)?;
        if self.blocks[id].bytes > rounded_bytes {
            let rest = self.blocks.split(id, rounded_bytes);
            self.put(rest);
        }
        let block = &mut self.blocks[id];
        block.tag = requested_bytes;
        let address = block.address;
        self.live.insert(&self.blocks, id);
        self.usage.add(requested_bytes, rounded_bytes);
        Ok(Block { address, requested_bytes, rounded_bytes })
    }

    fn free(&mut self, address: u64) -> Result<(), PolicyError> {
        let id = self.live.remove(&self.blocks, address).ok_or(PolicyError::NotLive { address })?;
        let block = &mut self.blocks[id];
        let requested_bytes = std::mem::take(&mut block.tag);
        self.usage.remove(requested_bytes, block.bytes);
        self.give(id);
        Ok(())
    }

    fn is_live(&self, address: u64) -> bool {
        self.live.get(&self.blocks, address).is_some()
    }

    fn usage(&self) -> Usage {
        self.usage
    }

    fn holes(&self, order: HoleOrder) -> Vec<Hole> {
        let holes = self.holes.iter_from(Key::at_least(0)).map(|id| &self.blocks[id]);
        let mut holes: Vec<Hole> =
            holes.map(|&Link { address, bytes, .. }| Hole { address, bytes }).collect();
        if order == HoleOrder::Address {
            holes.sort_unstable_by_key(|hole| hole.address);
        }
        holes
    }

    fn hole_lengths(&self) -> Vec<u64> {
        self.holes.lengths().collect()
    }

    fn release_unused(&mut self) -> Result<u64, PolicyError> {
        let mut released_bytes = 0;
        // What is left behind a region is a hole of its own, in which the next one may lie.
        let mut rest: Option<(Id, Id)> = None;
        for (region, hole) in self.unused() {
            self.source.release(region).map_err(PolicyError::Source)?;
            let id = rest.filter(|&(of, _)| of == hole).map_or(hole, |(_, rest)| rest);
            rest = self.cut(id, region).map(|after| (hole, after));
            released_bytes += region.bytes;
        }
        Ok(released_bytes)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::policy::tests::{addresses, arena, whole};
    use crate::policy::{Placement, SimulatedSource};

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

    #[test]
    fn holes_cross_regions_and_are_cut_where_one_goes_back() {
        let params = Params::default().with_growth(Growth::Regions { bytes: 4096 });
        let mut policy = BestFit::new(arena(), &params).unwrap();
        let blocks = [2048, 2048, 4096, 2048, 2048].map(|bytes| policy.allocate(bytes).unwrap());
        let base = blocks[0].address;
        for block in &blocks[1..4] {
            policy.free(block.address).unwrap();
        }
        // Of three regions the middle one lies wholly in the hole: parts before and behind it stay.
        assert_eq!(policy.holes(HoleOrder::Address), [Hole { address: base + 2048, bytes: 8192 }]);
        assert_eq!(policy.release_unused(), Ok(4096));
        let parts = [base + 2048, base + 8192].map(|address| Hole { address, bytes: 2048 });
        assert_eq!(policy.holes(HoleOrder::Address), parts);
        // It comes back between its neighbours, and all is one hole again.
        assert_eq!(policy.allocate(4096).unwrap().address, base + 2048);
        policy.free(base + 2048).unwrap();
        assert_eq!(policy.holes(HoleOrder::Address).len(), 1);
        [0, 4].into_iter().for_each(|n| policy.free(blocks[n].address).unwrap());
        assert_eq!(policy.release_unused(), Ok(12288));
        assert_eq!((policy.usage(), policy.firsts.len(), policy.lasts.len()), Default::default());
    }

    proptest! {
        #[test]
        fn it_takes_what_a_look_at_every_hole_would_take(
            scatter in proptest::option::of(0..u64::MAX),
            steps in prop::collection::vec((0..20u8, 0..u64::MAX), 1..400),
        ) {
            let placement = scatter.map_or(Placement::Contiguous, |seed| Placement::Scattered { seed });
            let source = SimulatedSource::new(1 << 18, 4096, placement).unwrap();
            let params = Params::default().with_growth(Growth::Regions { bytes: 4096 });
            let mut policy = BestFit::new(source, &params).unwrap();
            let mut live: BTreeMap<u64, u64> = BTreeMap::new();
            for (step, random) in steps {
                let holes = policy.holes(HoleOrder::Address);
                match step {
                    0 => {
                        policy.release_unused().unwrap();
                    }
                    1..10 if !live.is_empty() => {
                        let nth = live.keys().nth(random as usize % live.len());
                        let address = *nth.unwrap();
                        live.remove(&address);
                        policy.free(address).unwrap();
                    }
                    _ => {
                        let bytes = 256 * (1 + random % 20);
                        let fits = holes.iter().filter(|hole| hole.bytes >= bytes);
                        let best = fits.min_by_key(|hole| (hole.bytes, hole.address));
                        let Ok(block) = policy.allocate(bytes) else { continue };
                        let expected = best.map_or(block.address, |hole| hole.address);
                        prop_assert_eq!(block.address, expected);
                        live.insert(block.address, bytes);
                    }
                }
                let holes = policy.holes(HoleOrder::Address);
                prop_assert!(holes.windows(2).all(|pair| pair[0].end() < pair[1].address));
                let held = holes.iter().map(|hole| hole.bytes).chain(live.values().copied());
                prop_assert_eq!(held.sum::<u64>(), policy.usage().reserved_bytes);
                let is_live = |address: &u64, bytes: &u64| {
                    holes.iter().all(|hole| hole.end() <= *address || address + bytes <= hole.address)
                };
                prop_assert!(live.iter().all(|(address, bytes)| is_live(address, bytes)));
            }
        }
    }
}
