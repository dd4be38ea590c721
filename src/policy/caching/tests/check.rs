//! What is true of the allocator's books at any time, worked out from its blocks alone.

use std::collections::{BTreeMap, BTreeSet};

use super::super::blocks::State;
use super::*;
use crate::policy::chain::NONE;

/// Panics where books disagree.
pub(super) fn check(allocator: &Caching<SimulatedSource>) {
    links(allocator);
    pools(allocator);
    numbers(allocator);
    snapshot(allocator);
}

/// Blocks divide their segments without gaps, and free neighbours are one.
fn links(allocator: &Caching<SimulatedSource>) {
    let blocks = &allocator.blocks;
    let mut ends: BTreeMap<u64, u64> = BTreeMap::new();
    let mut linked = 0;
    for (head, block) in blocks.iter().filter(|(_, block)| block.prev == NONE) {
        let region = allocator.segments.region(block.tag.segment);
        assert_eq!(block.address, region.address);
        let (mut id, mut before) = (head, NONE);
        let end = loop {
            let block = &blocks[id];
            linked += 1;
            assert_eq!(block.prev, before);
            assert!(block.bytes >= MIN_BLOCK_BYTES && block.bytes.is_multiple_of(MIN_BLOCK_BYTES));
            let first = &blocks[head];
            assert_eq!((block.tag.segment, block.tag.list), (first.tag.segment, first.tag.list));
            if before != NONE {
                assert_eq!(block.address, blocks[before].end());
                let same = block.tag.state == blocks[before].tag.state;
                assert!(!same || !matches!(block.tag.state, State::Free | State::Unmapped));
            }
            if block.next == NONE {
                break block.end();
            }
            (id, before) = (block.next, id);
        };
        assert!(end <= region.end());
        // Only what the source rounds up is no block's.
        assert!(region.end() - end < 2 * MIB);
        ends.insert(region.address, region.end());
    }
    assert_eq!(linked, blocks.iter().count());
    let firsts = ends.keys().skip(1);
    assert!(ends.values().zip(firsts).all(|(end, next)| end <= next), "segments overlap");
}

/// Pools hold the free and the unmapped blocks, in order.
fn pools(allocator: &Caching<SimulatedSource>) {
    let blocks = &allocator.blocks;
    let of_state = |state: State| {
        let these = blocks.iter().filter(move |(_, block)| block.tag.state == state);
        these.map(|(id, block)| {
            let list = &allocator.pools[block.tag.list];
            ((list.pool, list.stream, block.bytes, block.address), id)
        })
    };
    let mut free: Vec<_> = of_state(State::Free).collect();
    free.sort_unstable();
    let kept = (0..allocator.pools.len()).flat_map(|pool| allocator.pools.free(pool));
    assert!(kept.eq(free.iter().map(|(_, id)| *id)));
    let unmapped: BTreeMap<_, _> = of_state(State::Unmapped).collect();
    let lists = (0..allocator.pools.len()).flat_map(|pool| allocator.pools.lists(pool));
    let kept = lists.flat_map(|list| {
        let unmapped = list.unmapped.iter();
        unmapped.map(|(&address, &id)| ((list.pool, list.stream, blocks[id].bytes, address), id))
    });
    assert_eq!(kept.collect::<BTreeMap<_, _>>(), unmapped);
}

/// Sums are those of the blocks, and of the source.
fn numbers(allocator: &Caching<SimulatedSource>) {
    let all = || allocator.blocks.iter().map(|(_, block)| block);
    let of = |states: &'static [State]| {
        let these = || all().filter(move |block| states.contains(&block.tag.state));
        (these().count() as u64, these().map(|block| block.bytes).sum::<u64>())
    };
    let statistics = allocator.statistics;
    let level = |blocks: Level, bytes: Level| (blocks.current, bytes.current);
    assert_eq!(level(statistics.allocated_blocks, statistics.allocated_bytes), of(&[State::Live]));
    assert_eq!(
        level(statistics.active_blocks, statistics.active_bytes),
        of(&[State::Live, State::Pending])
    );
    let mapped = of(&[State::Live, State::Pending, State::Free]).1;
    assert_eq!(statistics.reserved_bytes.current, mapped);
    let requested = all().map(|block| block.tag.requested_bytes).sum::<u64>();
    assert_eq!(statistics.requested_bytes.current, requested);
    let split = || all().filter(|block| block.tag.state == State::Free && block.is_split());
    let whole = all().filter(|block| block.prev == NONE).count() as u64;
    let (inactive, segments) = match allocator.config.expandable_segments {
        true => ((0, 0), 0),
        false => ((split().count() as u64, split().map(|block| block.bytes).sum()), whole),
    };
    assert_eq!(level(statistics.inactive_split_blocks, statistics.inactive_split_bytes), inactive);
    assert_eq!(statistics.segments.current, segments);
    let source = &allocator.source;
    assert_eq!(source.capacity_bytes() - source.free_bytes(), reserved(allocator));
    let live: BTreeSet<_> = allocator.live.ids().collect();
    let blocks = allocator.blocks.iter().filter(|(_, block)| block.tag.state == State::Live);
    assert_eq!(live, blocks.map(|(id, _)| id).collect());
}

/// Segments tell the same.
fn snapshot(allocator: &Caching<SimulatedSource>) {
    let segments = allocator.segments();
    let sum = |of: fn(&SegmentInfo) -> u64| segments.iter().map(of).sum::<u64>();
    let statistics = allocator.statistics;
    assert_eq!(sum(|segment| segment.bytes), statistics.reserved_bytes.current);
    assert_eq!(sum(SegmentInfo::allocated_bytes), statistics.allocated_bytes.current);
    assert_eq!(sum(SegmentInfo::active_bytes), statistics.active_bytes.current);
    assert_eq!(sum(SegmentInfo::requested_bytes), statistics.requested_bytes.current);
    for segment in &segments {
        let mut end = segment.address;
        for block in &segment.blocks {
            assert_eq!(block.address, end);
            end += block.bytes;
        }
        assert_eq!(end, segment.address + segment.bytes);
    }
    let mut inactive: Vec<Hole> = allocator
        .blocks()
        .filter(|block| block.state == BlockState::Inactive)
        .map(|block| Hole { address: block.address, bytes: block.bytes })
        .collect();
    assert_eq!(allocator.holes(HoleOrder::Address), inactive);
    inactive.sort_unstable_by_key(|hole| (hole.bytes, hole.address));
    let mut holes = allocator.holes(HoleOrder::FreeList);
    holes.sort_unstable_by_key(|hole| (hole.bytes, hole.address));
    assert_eq!(holes, inactive);
}
