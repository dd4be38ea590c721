//! Expandable segments: pages, and where they come.

use super::check::check;
use super::*;

const EXPANDABLE: &str = "expandable_segments:True";

/// Address and length of each mapped range.
fn ranges(allocator: &Caching<SimulatedSource>) -> Vec<(u64, u64)> {
    allocator.segments().iter().map(|info| (info.address, info.bytes)).collect()
}

#[test]
fn segments_grow_by_pages() {
    let mut allocator = caching(EXPANDABLE, 8 * GIB);
    let first = allocator.allocate(1000).unwrap().address;
    let large = allocator.allocate(3 * MIB).unwrap().address;
    assert_eq!(ranges(&allocator), [(first, 2 * MIB), (large, 20 * MIB)]);
    assert!(allocator.segments().iter().all(|info| info.expandable));
    // 17 MiB are free in the page, of 18 MiB one is missing.
    assert_eq!(allocator.allocate(18 * MIB).unwrap().address, large + 3 * MIB);
    assert_eq!(ranges(&allocator), [(first, 2 * MIB), (large, 40 * MIB)]);
    // A block keeps no rest of 512 B or more.
    let block = allocator.allocate(19 * MIB - 512).unwrap();
    assert_eq!((block.address, block.rounded_bytes), (large + 21 * MIB, 19 * MIB - 512));
    let mut small = fill(&mut allocator, 3, MIB);
    small.sort_unstable();
    assert_eq!(small, [1024, MIB + 1024, 2 * MIB + 1024].map(|offset| first + offset));
    assert_eq!(ranges(&allocator), [(first, 4 * MIB), (large, 40 * MIB)]);
    let statistics = allocator.statistics();
    assert_eq!((statistics.device_allocations, statistics.segments.peak), (4, 0));
    assert_eq!(statistics.inactive_split_blocks.peak, 0);
    check(&allocator);
}

#[test]
fn each_stream_and_pool_reserves_nine_eighths_of_the_memory() {
    let mut allocator = caching(EXPANDABLE, 800 * MIB);
    let small = allocator.allocate(1).unwrap().address;
    let large = allocator.allocate(2 * MIB).unwrap().address;
    let other = allocator.allocate_on(Stream(1), 1).unwrap().address;
    let calls = allocator.source().calls();
    assert_eq!((calls.reserve_addresses, calls.map, calls.allocate), (3, 3, 0));
    // 900 MiB, in pages of 2 and of 20 MiB.
    assert_eq!([large - small, other - large], [900 * MIB; 2]);
    check(&allocator);
}

#[test]
fn a_smaller_reserve_is_room_for_smaller_requests() {
    let settings = "expandable_segments:True,expandable_segments_reserve:0.25";
    let mut allocator = caching(settings, 800 * MIB);
    let first = allocator.allocate(150 * MIB).unwrap().address;
    // 200 MiB are reserved: 50 MiB of room are too little, so another segment begins.
    let second = allocator.allocate(60 * MIB).unwrap().address;
    assert_eq!(second - first, 200 * MIB);
    assert_eq!(allocator.allocate(50 * MIB).unwrap().address, first + 150 * MIB);
    let refused = allocator.allocate(200 * MIB + 1).unwrap_err();
    assert!(matches!(refused, PolicyError::OutOfMemory { .. }));
    assert_eq!(allocator.source().calls().reserve_addresses, 2);
    check(&allocator);
    // The reserve is never more than 9/8 of the memory.
    let settings = "expandable_segments:True,expandable_segments_reserve:40G";
    let mut allocator = caching(settings, 800 * MIB);
    let [first, second] =
        [0, 1].map(|stream| allocator.allocate_on(Stream(stream), 1).unwrap().address);
    assert_eq!(second - first, 900 * MIB);
}

#[test]
fn whole_pages_inside_free_blocks_go_back() {
    let mut allocator = caching(EXPANDABLE, 8 * GIB);
    // Pages end at 20, 40, ..., 160 MiB; blocks at 30, 60, ..., 150 MiB.
    let blocks = fill(&mut allocator, 5, 30 * MIB);
    assert_eq!(reserved(&allocator), 160 * MIB);
    let first = blocks[0];
    for index in [1, 2, 3] {
        allocator.free(blocks[index]).unwrap();
    }
    // From 30 to 120 MiB are free: the pages from 40 to 120 MiB. Behind 150 MiB no page is whole.
    assert_eq!(allocator.release_unused(), Ok(80 * MIB));
    assert_eq!(ranges(&allocator), [(first, 40 * MIB), (first + 120 * MIB, 40 * MIB)]);
    assert_eq!(holes(&allocator), [10, 10].map(|mib| mib * MIB));
    check(&allocator);
    assert_eq!(allocator.release_unused(), Ok(0));
    check(&allocator);

    // The free 10 MiB before the gap and 10 MiB of it, in one page.
    assert_eq!(allocator.allocate(20 * MIB).unwrap().address, first + 30 * MIB);
    assert_eq!(reserved(&allocator), 100 * MIB);
    // 10 MiB are free before the rest of the gap, which has room for 60 MiB more.
    assert_eq!(allocator.allocate(70 * MIB).unwrap().address, first + 50 * MIB);
    assert_eq!(reserved(&allocator), 160 * MIB);
    assert_eq!(ranges(&allocator), [(first, 160 * MIB)]);
    check(&allocator);
}

#[test]
fn a_run_of_free_and_unmapped_blocks_becomes_one() {
    let mut allocator = caching(EXPANDABLE, 8 * GIB);
    let blocks = fill(&mut allocator, 8, 20 * MIB);
    let first = blocks[0];
    for index in [1, 3, 5] {
        allocator.free(blocks[index]).unwrap();
    }
    allocator.release_unused().unwrap();
    for index in [2, 4] {
        allocator.free(blocks[index]).unwrap();
    }
    // Gaps at 20, 60 and 100 MiB with free blocks between them.
    let gaps = [(0, 20), (40, 20), (80, 20), (120, 40)];
    let at = |(offset, mib): (u64, u64)| (first + offset * MIB, mib * MIB);
    assert_eq!(ranges(&allocator), gaps.map(at));
    let before = allocator.source().calls().map;
    assert_eq!(allocator.allocate(90 * MIB).unwrap().address, first + 20 * MIB);
    assert_eq!(allocator.source().calls().map - before, 3);
    assert_eq!(ranges(&allocator), [at((0, 160))]);
    assert_eq!(holes(&allocator), [10 * MIB]);
    check(&allocator);
}

#[test]
fn a_segment_without_pages_gives_its_addresses_back() {
    let mut allocator = caching(EXPANDABLE, 8 * GIB);
    let blocks = [fill(&mut allocator, 3, MIB), fill(&mut allocator, 3, 15 * MIB)].concat();
    free_all(&mut allocator, blocks);
    assert_eq!(allocator.release_unused(), Ok(64 * MIB));
    assert_eq!(allocator.source().calls().release_addresses, 2);
    assert_eq!(allocator.source().free_bytes(), 8 * GIB);
    assert_eq!(allocator.blocks.iter().count(), 0);
    check(&allocator);
    allocator.allocate(1).unwrap();
    check(&allocator);
}

/// A block in front of unmapped addresses counts with the room behind it, so the larger block that
/// cannot grow is taken.
#[test]
fn a_block_that_cannot_grow_is_the_better_fit() {
    let mut allocator = caching(EXPANDABLE, 8 * GIB);
    let blocks = fill(&mut allocator, 3, 17 * MIB);
    // 9 MiB are free at the end of the third page, 17 MiB between two blocks.
    allocator.free(blocks[1]).unwrap();
    assert_eq!(holes(&allocator), [9, 17].map(|mib| mib * MIB));
    assert_eq!(allocator.allocate(8 * MIB).unwrap().address, blocks[1]);
    assert_eq!(holes(&allocator), [9, 9].map(|mib| mib * MIB));
    check(&allocator);
}

#[test]
fn memory_is_out_and_comes_back() {
    let mut allocator = caching(EXPANDABLE, 100 * MIB);
    let blocks = fill(&mut allocator, 4, 20 * MIB);
    let other = allocator.allocate_on(Stream(1), 15 * MIB).unwrap().address;
    let refused = allocator.allocate(30 * MIB).unwrap_err();
    assert_eq!(
        refused,
        PolicyError::OutOfMemory { requested_bytes: 30 * MIB, hole_bytes: 5 * MIB }
    );
    let statistics = allocator.statistics();
    assert_eq!((statistics.alloc_retries, statistics.ooms), (1, 1));
    check(&allocator);
    // Pages of a stream serve another when they have gone back.
    free_all(&mut allocator, vec![blocks[0], blocks[2]]);
    assert!(allocator.allocate_on(Stream(1), 40 * MIB).is_ok());
    assert_eq!(allocator.statistics().alloc_retries, 2);
    assert_eq!(allocator.source().free_bytes(), 0);
    allocator.free(other).unwrap();
    check(&allocator);
}

#[test]
fn the_allowed_share_counts_segments_not_pages() {
    let settings = "expandable_segments:True,per_process_memory_fraction:0.5";
    let mut allocator = caching(settings, 100 * MIB);
    allocator.allocate(35 * MIB).unwrap();
    // 12 MiB need one page more than the 40 MiB, but are compared as a segment of 12 MiB.
    assert!(allocator.allocate(6 * MIB).is_err());
    assert!(allocator.allocate(10 * MIB).is_ok());
    assert_eq!(reserved(&allocator), 60 * MIB);
    check(&allocator);
}
