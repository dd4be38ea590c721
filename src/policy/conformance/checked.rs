//! An allocator beside a plain model of it.

use std::collections::BTreeMap;

use super::{Fit, Refusal, Tells, Traits};
use crate::layout::{Permutation, below, draw};
use crate::policy::{
    Block, Hole, HoleOrder, Policy, PolicyError, Region, Shared, SimulatedSource, Source, Usage,
};

/// An allocator, what should be live in it, and the memory below where that can be seen.
pub(super) struct Checked {
    pub(super) traits: Traits,
    pub(super) policy: Box<dyn Policy>,
    pub(super) source: Option<Shared<SimulatedSource>>,
    pub(super) live: BTreeMap<u64, Block>,
}

/// What a refused call must leave as it was: usage, holes in both orders, free bytes of the source.
pub(super) type State = (Usage, Vec<Hole>, Vec<Hole>, Option<u64>);

const UNCHANGED: &str = "a refusal changes nothing";

impl Checked {
    pub(super) fn new(
        policy: Box<dyn Policy>,
        source: Option<Shared<SimulatedSource>>,
        traits: Traits,
    ) -> Self {
        let checked = Self { traits, policy, source, live: BTreeMap::new() };
        assert!(checked.policy.alignment_bytes().is_power_of_two());
        checked.check();
        checked
    }

    fn check_lengths(&self, holes: &[Hole]) {
        let mut listed: Vec<u64> = holes.iter().map(|hole| hole.bytes).collect();
        let mut lengths = self.policy.hole_lengths();
        listed.sort_unstable();
        lengths.sort_unstable();
        assert_eq!(lengths, listed);
    }

    pub(super) fn state(&self) -> State {
        let [by_address, met] =
            [HoleOrder::Address, HoleOrder::FreeList].map(|order| self.policy.holes(order));
        self.check_lengths(&by_address);
        let free_bytes = self.source.as_ref().map(|source| source.free_bytes());
        (self.policy.usage(), by_address, met, free_bytes)
    }

    pub(super) fn allocate(&mut self, bytes: u64) -> Option<Block> {
        let before = self.state();
        match self.policy.allocate(bytes) {
            Ok(block) => {
                assert_eq!(block.requested_bytes, bytes.max(1));
                assert!(block.rounded_bytes >= block.requested_bytes);
                let alignment_bytes = self.policy.alignment_bytes();
                assert!(block.address.is_multiple_of(alignment_bytes), "{block:?} is not aligned");
                assert_eq!(self.live.insert(block.address, block), None, "handed out twice");
                Some(block)
            }
            Err(PolicyError::OutOfMemory { requested_bytes, hole_bytes }) => {
                self.is_as_before_refusal(&before);
                assert_eq!(requested_bytes, bytes.max(1));
                let (usage, holes, ..) = self.state();
                match self.traits.tells {
                    Tells::Holes => assert_eq!(hole_bytes, total(&holes)),
                    _ => assert!(hole_bytes <= usage.reserved_bytes - usage.rounded_bytes),
                }
                self.check_that_nothing_fits(bytes);
                None
            }
            Err(error) => panic!("{bytes} bytes: {error}"),
        }
    }

    /// Nothing has changed, but what some hold of their source.
    pub(super) fn is_as_before_refusal(&self, before: &State) {
        let (usage, reserved_bytes) = (self.policy.usage(), before.0.reserved_bytes);
        match self.traits.refusal {
            Refusal::ChangesNothing => assert_eq!(self.state(), *before, "{UNCHANGED}"),
            Refusal::GivesBack => assert!(usage.reserved_bytes <= reserved_bytes),
            Refusal::ChangesReserved => {}
        }
        assert_eq!(Usage { reserved_bytes, ..usage }, before.0, "{UNCHANGED}");
    }

    fn check_that_nothing_fits(&self, bytes: u64) {
        let alignment_bytes = self.policy.alignment_bytes();
        let needed_bytes = match self.traits.fit {
            Fit::Unknown => return,
            Fit::Aligned => bytes.max(1).next_multiple_of(alignment_bytes),
            Fit::PowerOfTwo => bytes.max(alignment_bytes).next_power_of_two(),
            Fit::OneSize => self.traits.block_bytes,
        };
        let holes = self.policy.holes(HoleOrder::FreeList);
        assert!(holes.iter().all(|hole| hole.bytes < needed_bytes), "{bytes} bytes would fit");
        let source = self.source.as_ref().expect("what serves for certain has a source");
        assert!(source.free_bytes() < needed_bytes, "the source has {bytes} bytes");
    }

    pub(super) fn free(&mut self, address: u64) {
        assert!(self.live.remove(&address).is_some());
        assert!(self.policy.is_live(address));
        assert_eq!(self.policy.free(address), Ok(()));
    }

    pub(super) fn free_all_shuffled(&mut self) {
        let live: Vec<u64> = self.live.keys().copied().collect();
        let order = Permutation::new(5, live.len().max(1) as u64);
        for n in 0..live.len() as u64 {
            self.free(live[order.apply(n) as usize]);
        }
        self.check();
    }

    pub(super) fn refuses_to_free(&mut self, address: u64) {
        let before = self.state();
        assert!(!self.policy.is_live(address));
        assert_eq!(self.policy.free(address), Err(PolicyError::NotLive { address }));
        assert_eq!(self.state(), before, "{UNCHANGED}");
    }

    /// Sizes spread over all powers of two up to the longest.
    pub(super) fn size(&self, random: u64) -> u64 {
        let doubling = below(draw(random, 0), u64::from(self.traits.most_bytes.ilog2()));
        (1 << doubling) + below(draw(random, 1), 1 << doubling)
    }

    /// The requests that were served, up to the first that was not.
    pub(super) fn fill(&mut self, sizes: impl IntoIterator<Item = u64>) -> Vec<u64> {
        let served = sizes.into_iter().take_while(|&bytes| self.allocate(bytes).is_some());
        served.collect()
    }

    /// Frees all, gives back all, and there is nothing left.
    pub(super) fn finish(mut self) {
        self.free_all_shuffled();
        let before = self.policy.usage();
        let released_bytes = self.policy.release_unused().unwrap();
        let reserved_bytes = self.policy.usage().reserved_bytes;
        assert_eq!(self.policy.usage(), Usage { reserved_bytes, ..Usage::default() });
        if self.traits.tells != Tells::Nothing {
            assert_eq!(reserved_bytes + released_bytes, before.reserved_bytes);
        }
        if self.traits.releases_all {
            assert_eq!(reserved_bytes, 0, "all goes back");
        }
        self.check();
    }

    /// The books of the allocator are those of the model, and of the memory below.
    pub(super) fn check(&self) {
        let (usage, holes, met, _) = self.state();
        let sum = |of: fn(&Block) -> u64| self.live.values().map(of).sum::<u64>();
        assert_eq!(usage.live_blocks, self.live.len() as u64);
        assert_eq!(usage.requested_bytes, sum(|block| block.requested_bytes));
        assert_eq!(usage.rounded_bytes, sum(|block| block.rounded_bytes));
        match self.traits.tells {
            Tells::Nothing => assert_eq!(usage.reserved_bytes, usage.rounded_bytes),
            Tells::Reserved => assert!(usage.reserved_bytes >= usage.rounded_bytes),
            Tells::Holes => assert_eq!(usage.rounded_bytes + total(&holes), usage.reserved_bytes),
        }
        assert!(self.traits.tells == Tells::Holes || holes.is_empty());

        let mut sorted = met;
        sorted.sort_unstable_by_key(|hole| hole.address);
        assert_eq!(sorted, holes, "the orders hold the same holes");
        assert!(self.live.keys().all(|&address| self.policy.is_live(address)));
        assert!(!holes.iter().any(|hole| self.policy.is_live(hole.address)));
        self.check_ranges(&holes);
        if self.traits.merges_neighbours {
            let apart = |pair: &[Hole]| pair[0].end() < pair[1].address;
            assert!(holes.windows(2).all(apart), "neighbours are merged: {holes:?}");
        }
    }

    /// Live blocks and holes lie apart, and in memory that is the allocator's.
    fn check_ranges(&self, holes: &[Hole]) {
        let live = self.live.values();
        let live = live.map(|block| Region { address: block.address, bytes: block.rounded_bytes });
        let free = holes.iter().map(|hole| Region { address: hole.address, bytes: hole.bytes });
        let mut ranges: Vec<Region> = live.chain(free).collect();
        ranges.sort_unstable_by_key(|range| range.address);
        let apart = |pair: &[Region]| pair[0].end() <= pair[1].address;
        assert!(ranges.windows(2).all(apart), "ranges overlap: {ranges:?}");
        assert!(ranges.iter().all(|range| range.bytes > 0));
        let Some(source) = &self.source else { return };
        let source = source.lock();
        let reserved_bytes = self.policy.usage().reserved_bytes;
        assert_eq!(reserved_bytes + source.free_bytes(), self.traits.capacity_bytes);
        let mut spans = ranges.chunk_by(|range, next| range.end() == next.address);
        assert!(spans.all(|span| {
            let address = span[0].address;
            source.is_held(Region { address, bytes: span[span.len() - 1].end() - address })
        }));
    }
}

fn total(holes: &[Hole]) -> u64 {
    holes.iter().map(|hole| hole.bytes).sum()
}
