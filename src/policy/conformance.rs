//! What every policy keeps, whichever source it stands on.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::layout::{Permutation, below, draw};

/// What most policies get; one that takes segments of up to 20 MiB gets room for some.
const CAPACITY: u64 = 4 << 20;
const CACHING_CAPACITY: u64 = 64 << 20;
const GRANULE: u64 = 4096;
const BLOCK: u64 = 8192;

const PLACEMENTS: [Placement; 2] = [Placement::Contiguous, Placement::Scattered { seed: 11 }];
const GROWTHS: [Growth; 2] = [Growth::Whole, Growth::Regions { bytes: 128 << 10 }];

/// A policy, its source, and what should be live.
struct Checked {
    name: PolicyName,
    policy: Box<dyn Policy>,
    source: Shared<SimulatedSource>,
    live: BTreeMap<u64, Block>,
}

/// What a refused call must leave as it was.
type State = (Usage, Vec<Hole>, Vec<Hole>, u64);

impl Checked {
    fn new(name: PolicyName, placement: Placement, growth: Growth, alignment_bytes: u64) -> Self {
        let source = SimulatedSource::new(capacity(name), GRANULE, placement).unwrap();
        let source = Shared::new(source);
        let params = Params { alignment_bytes, growth, block_bytes: BLOCK };
        let policy = name.build(source.clone(), &params).unwrap();
        // The caching allocator has an alignment of its own.
        let alignment_bytes = if name == PolicyName::Caching { 512 } else { alignment_bytes };
        assert_eq!((policy.name(), policy.alignment_bytes()), (name.name(), alignment_bytes));
        Self { name, policy, source, live: BTreeMap::new() }
    }

    /// Over every kind of source and growth.
    fn all(name: PolicyName) -> impl Iterator<Item = Self> {
        let kinds = PLACEMENTS.into_iter().flat_map(|placement| GROWTHS.map(|g| (placement, g)));
        kinds.map(move |(placement, growth)| Self::new(name, placement, growth, 256))
    }

    /// The longest request that it takes, here at most 512 KiB.
    fn most_bytes(&self) -> u64 {
        if self.name == PolicyName::Slab { BLOCK } else { 512 << 10 }
    }

    fn check_lengths(&self) {
        let holes = self.policy.holes(HoleOrder::Address);
        let mut listed: Vec<u64> = holes.iter().map(|hole| hole.bytes).collect();
        let mut lengths = self.policy.hole_lengths();
        listed.sort_unstable();
        lengths.sort_unstable();
        assert_eq!(lengths, listed);
    }

    fn state(&self) -> State {
        let holes = |order| self.policy.holes(order);
        self.check_lengths();
        let free_bytes = self.source.lock().free_bytes();
        (self.policy.usage(), holes(HoleOrder::Address), holes(HoleOrder::FreeList), free_bytes)
    }

    fn allocate(&mut self, bytes: u64) -> Option<Block> {
        let before = self.state();
        match self.policy.allocate(bytes) {
            Ok(block) => {
                assert_eq!(block.requested_bytes, bytes.max(1));
                assert!(block.rounded_bytes >= block.requested_bytes);
                assert!(block.address.is_multiple_of(self.policy.alignment_bytes()));
                assert_eq!(self.live.insert(block.address, block), None);
                Some(block)
            }
            Err(PolicyError::OutOfMemory { requested_bytes, hole_bytes }) => {
                self.is_as_before_refusal(&before);
                assert_eq!(requested_bytes, bytes.max(1));
                assert_eq!(hole_bytes, total(&self.policy.holes(HoleOrder::Address)));
                self.check_that_nothing_fits(bytes);
                None
            }
            Err(error) => panic!("{bytes} bytes: {error}"),
        }
    }

    /// Nothing has changed, but that the caching allocator gives up what it keeps before it refuses.
    fn is_as_before_refusal(&self, before: &State) {
        if self.name != PolicyName::Caching {
            assert_eq!(self.state(), *before);
            return;
        }
        let (usage, reserved_bytes) = (self.policy.usage(), before.0.reserved_bytes);
        assert!(usage.reserved_bytes <= reserved_bytes);
        assert_eq!(Usage { reserved_bytes, ..usage }, before.0);
    }

    fn check_that_nothing_fits(&self, bytes: u64) {
        let needed_bytes = match self.name {
            PolicyName::FirstFit | PolicyName::BestFit | PolicyName::NextFit => {
                bytes.max(1).next_multiple_of(self.policy.alignment_bytes())
            }
            PolicyName::Buddy => bytes.max(self.policy.alignment_bytes()).next_power_of_two(),
            PolicyName::Slab => BLOCK,
            PolicyName::SizeClasses | PolicyName::Caching => return,
        };
        let holes = self.policy.holes(HoleOrder::FreeList);
        assert!(holes.iter().all(|hole| hole.bytes < needed_bytes), "{bytes} bytes would fit");
        assert!(self.source.lock().free_bytes() < needed_bytes, "the source has {bytes} bytes");
    }

    fn free(&mut self, address: u64) {
        assert!(self.live.remove(&address).is_some());
        assert!(self.policy.is_live(address));
        assert_eq!(self.policy.free(address), Ok(()));
    }

    fn free_all_shuffled(&mut self) {
        let live: Vec<u64> = self.live.keys().copied().collect();
        let order = Permutation::new(5, live.len().max(1) as u64);
        for n in 0..live.len() as u64 {
            self.free(live[order.apply(n) as usize]);
        }
    }

    fn refuses_to_free(&mut self, address: u64) {
        let before = self.state();
        assert!(!self.policy.is_live(address));
        assert_eq!(self.policy.free(address), Err(PolicyError::NotLive { address }));
        assert_eq!(self.state(), before);
    }

    /// Sizes spread over all powers of two up to the longest.
    fn size(&self, random: u64) -> u64 {
        let doubling = below(draw(random, 0), u64::from(self.most_bytes().ilog2()));
        (1 << doubling) + below(draw(random, 1), 1 << doubling)
    }

    fn fill(&mut self, sizes: impl IntoIterator<Item = u64>) -> Vec<u64> {
        let served = sizes.into_iter().take_while(|&bytes| self.allocate(bytes).is_some());
        served.collect()
    }

    fn check(&self) {
        let (usage, holes, met, free_bytes) = self.state();
        let sum = |of: fn(&Block) -> u64| self.live.values().map(of).sum::<u64>();
        assert_eq!(usage.live_blocks, self.live.len() as u64);
        assert_eq!(usage.requested_bytes, sum(|block| block.requested_bytes));
        assert_eq!(usage.rounded_bytes, sum(|block| block.rounded_bytes));
        assert_eq!(usage.rounded_bytes + total(&holes), usage.reserved_bytes);
        assert_eq!(usage.reserved_bytes + free_bytes, capacity(self.name));

        let mut sorted = met;
        sorted.sort_unstable_by_key(|hole| hole.address);
        assert_eq!(sorted, holes, "the orders hold the same holes");

        let live = self.live.values();
        let live = live.map(|block| Region { address: block.address, bytes: block.rounded_bytes });
        let free = holes.iter().map(|hole| Region { address: hole.address, bytes: hole.bytes });
        let mut ranges: Vec<Region> = live.chain(free).collect();
        ranges.sort_unstable_by_key(|range| range.address);
        assert!(ranges.windows(2).all(|pair| pair[0].end() <= pair[1].address), "{ranges:?}");
        assert!(ranges.iter().all(|range| range.bytes > 0));
        assert!(self.live.keys().all(|&address| self.policy.is_live(address)));
        assert!(!holes.iter().any(|hole| self.policy.is_live(hole.address)));
        let source = self.source.lock();
        let mut spans = ranges.chunk_by(|range, next| range.end() == next.address);
        assert!(spans.all(|span| {
            let address = span[0].address;
            source.is_held(Region { address, bytes: span[span.len() - 1].end() - address })
        }));

        let merges = [PolicyName::FirstFit, PolicyName::BestFit, PolicyName::NextFit];
        if merges.contains(&self.name) {
            let apart = |pair: &[Hole]| pair[0].address + pair[0].bytes < pair[1].address;
            assert!(holes.windows(2).all(apart), "neighbours are merged: {holes:?}");
        }
    }
}

fn capacity(name: PolicyName) -> u64 {
    if name == PolicyName::Caching { CACHING_CAPACITY } else { CAPACITY }
}

fn total(holes: &[Hole]) -> u64 {
    holes.iter().map(|hole| hole.bytes).sum()
}

/// Blocks of every size begin at a multiple of the alignment, whatever that is.
fn blocks_are_aligned(name: PolicyName) {
    for alignment_bytes in [1, 64, 256, 4096] {
        let mut checked = Checked::new(name, Placement::Contiguous, Growth::Whole, alignment_bytes);
        for n in 0..40 {
            checked.allocate(checked.size(n) / 8);
            checked.check();
        }
    }
}

/// With everything taken, what was freed is what the next request of its size gets.
fn a_freed_block_is_used_again(name: PolicyName) {
    for mut checked in Checked::all(name) {
        let bytes = BLOCK;
        let blocks = checked.fill(std::iter::repeat(bytes)).len();
        assert!(blocks > 100, "{blocks}");
        for n in 0..50 {
            let live: Vec<u64> = checked.live.keys().copied().collect();
            let address = live[below(draw(3, n), live.len() as u64) as usize];
            checked.free(address);
            assert_eq!(checked.allocate(bytes).map(|block| block.address), Some(address));
            assert_eq!(checked.allocate(bytes), None);
        }
        checked.check();
    }
}

/// After out of memory and freeing all, the same requests are served again.
fn it_recovers_from_exhaustion(name: PolicyName) {
    for mut checked in Checked::all(name) {
        let sizes: Vec<u64> = match checked.source.lock().placement() {
            Placement::Contiguous => (0..10_000).map(|n| checked.size(n)).collect(),
            // Regions that lie apart keep the lengths that they had.
            Placement::Scattered { .. } => vec![5000; 20_000],
        };
        let served = checked.fill(sizes.iter().copied());
        assert!(served.len() > 10 && served.len() < sizes.len());
        checked.check();
        checked.free_all_shuffled();
        checked.check();
        if name == PolicyName::Caching {
            // Else segments keep the lengths that they had.
            checked.policy.release_unused().unwrap();
        }
        assert_eq!(checked.fill(served.iter().copied()), served);
    }
}

/// What is not live is not freed: never handed out, inside a block, freed before.
fn only_live_blocks_are_freed(name: PolicyName) {
    for mut checked in Checked::all(name) {
        checked.refuses_to_free(0);
        let blocks = [3000, 1, 5000].map(|bytes| checked.allocate(bytes).unwrap());
        for block in blocks {
            checked.refuses_to_free(block.address + 1);
            checked.refuses_to_free(block.address + block.rounded_bytes / 2);
        }
        for hole in checked.policy.holes(HoleOrder::Address) {
            checked.refuses_to_free(hole.address);
        }
        for block in blocks {
            checked.free(block.address);
            checked.refuses_to_free(block.address);
        }
        checked.check();
    }
}

/// Requests that no memory holds are refused, and leave no trace.
fn impossible_requests_are_refused(name: PolicyName) {
    for mut checked in Checked::all(name) {
        checked.allocate(100).unwrap();
        for bytes in [capacity(name) + 1, 1 << 40, 1 << 63, (1 << 63) + 1, u64::MAX - 1, u64::MAX] {
            let before = checked.state();
            let error = checked.policy.allocate(bytes).unwrap_err();
            let as_expected = match error {
                PolicyError::OutOfMemory { requested_bytes, .. } => requested_bytes == bytes,
                PolicyError::Size { requested_bytes, .. } => {
                    let beyond_any = name == PolicyName::Caching && bytes > 1 << 62;
                    (name == PolicyName::Slab || beyond_any) && requested_bytes == bytes
                }
                _ => false,
            };
            assert!(as_expected, "{error:?}");
            checked.is_as_before_refusal(&before);
        }
        let block = checked.allocate(0).unwrap();
        assert_eq!(block.requested_bytes, 1);
        checked.check();
    }
}

/// Only regions without live blocks go back, and all of them do.
fn unused_regions_go_back(name: PolicyName) {
    for mut checked in Checked::all(name) {
        assert_eq!(checked.policy.release_unused(), Ok(0));
        checked.fill((0..30_000).map(|n| 200 + n % 5000));
        let live: Vec<u64> = checked.live.keys().copied().collect();
        let (kept, freed) = live.split_at(3);
        for &address in freed {
            checked.free(address);
        }
        let before = checked.policy.usage();
        let released_bytes = checked.policy.release_unused().unwrap();
        let after = checked.policy.usage();
        assert_eq!(after.reserved_bytes + released_bytes, before.reserved_bytes);
        checked.check();
        for &address in kept {
            checked.free(address);
        }
        assert_eq!(checked.policy.release_unused(), Ok(after.reserved_bytes));
        assert_eq!(checked.policy.usage(), Usage::default());
        assert_eq!(checked.policy.holes(HoleOrder::FreeList), []);
        assert_eq!(checked.source.lock().free_bytes(), capacity(name));
        checked.allocate(BLOCK).unwrap();
        checked.check();
    }
}

/// Any sequence of calls keeps the books of a plain model, and gives the same blocks each time.
fn books_are_kept_through_any_calls(name: PolicyName) {
    let step = (0..20u8, any::<u64>(), any::<prop::sample::Index>());
    let steps = prop::collection::vec(step, 1..300);
    let kind = (prop::sample::select(&PLACEMENTS[..]), prop::sample::select(&GROWTHS[..]));
    proptest!(ProptestConfig::with_cases(24), |((placement, growth) in kind, steps in steps)| {
        let mut checked = Checked::new(name, placement, growth, 256);
        let mut twin = Checked::new(name, placement, growth, 256);
        let mut freed = 0;
        for (kind, random, index) in steps {
            let live: Vec<u64> = checked.live.keys().copied().collect();
            match kind {
                0..11 => {
                    let bytes = checked.size(random);
                    prop_assert_eq!(checked.allocate(bytes), twin.policy.allocate(bytes).ok());
                }
                11..18 if !live.is_empty() => {
                    freed = live[index.index(live.len())];
                    checked.free(freed);
                    prop_assert_eq!(twin.policy.free(freed), Ok(()));
                }
                18 => {
                    let before = checked.policy.usage().reserved_bytes;
                    let released_bytes = checked.policy.release_unused().unwrap();
                    let after = checked.policy.usage().reserved_bytes;
                    prop_assert_eq!(released_bytes, before - after);
                    prop_assert_eq!(twin.policy.release_unused(), Ok(released_bytes));
                }
                _ if !live.contains(&freed) => checked.refuses_to_free(freed),
                _ => checked.refuses_to_free(random),
            }
            checked.check();
        }
        prop_assert_eq!(checked.state(), twin.state());
        checked.free_all_shuffled();
        checked.check();
        let reserved_bytes = checked.policy.usage().reserved_bytes;
        prop_assert_eq!(checked.policy.release_unused(), Ok(reserved_bytes));
    });
}

macro_rules! conform {
    ($($module:ident: $name:expr,)+) => {
        const COVERED: &[PolicyName] = &[$($name),+];

        $(mod $module {
            use crate::policy::PolicyName;

            conform!(@tests $name,
                blocks_are_aligned
                a_freed_block_is_used_again
                it_recovers_from_exhaustion
                only_live_blocks_are_freed
                impossible_requests_are_refused
                unused_regions_go_back
                books_are_kept_through_any_calls
            );
        })+
    };
    (@tests $name:expr, $($test:ident)+) => {
        $(#[test]
        fn $test() {
            super::$test($name);
        })+
    };
}

conform! {
    first_fit: PolicyName::FirstFit,
    best_fit: PolicyName::BestFit,
    next_fit: PolicyName::NextFit,
    buddy: PolicyName::Buddy,
    size_classes: PolicyName::SizeClasses,
    slab: PolicyName::Slab,
    caching: PolicyName::Caching,
}

#[test]
fn every_policy_is_covered() {
    assert_eq!(COVERED, PolicyName::ALL);
}
