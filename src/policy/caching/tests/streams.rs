//! Streams: blocks of their own, and blocks that others use.

use super::check::check;
use super::*;

#[test]
fn streams_share_no_block() {
    let mut allocator = caching("", 8 * GIB);
    let block = allocator.allocate_on(Stream(1), 12 * MIB).unwrap();
    allocator.free(block.address).unwrap();
    allocator.allocate_on(Stream(0), 12 * MIB).unwrap();
    allocator.allocate_on(Stream(2), 12 * MIB).unwrap();
    assert_eq!(reserved(&allocator), 36 * MIB);
    assert_eq!(allocator.allocate_on(Stream(1), 11 * MIB).unwrap().address, block.address);
    assert_eq!(reserved(&allocator), 36 * MIB);
    let streams: Vec<Stream> = allocator.segments().iter().map(|info| info.stream).collect();
    assert_eq!(streams, [1, 0, 2].map(Stream));
    check(&allocator);
}

#[test]
fn holes_are_told_stream_by_stream() {
    let mut allocator = caching("", 8 * GIB);
    for (stream, mib) in [(7, 12), (3, 14), (7, 10), (3, 16)] {
        let block = allocator.allocate_on(Stream(stream), mib * MIB).unwrap();
        allocator.record_stream(block.address, Stream(stream)).unwrap();
        allocator.free(block.address).unwrap();
    }
    // 12 MiB serve 10 MiB, the rest of 2 MiB joins them again.
    assert_eq!(holes(&allocator), [14, 16, 12].map(|mib| mib * MIB));
    check(&allocator);
}

#[test]
fn a_block_that_others_use_waits_for_all_of_them() {
    let mut allocator = caching("", 8 * GIB);
    let address = allocator.allocate(12 * MIB).unwrap().address;
    for stream in [1, 2, 0, 2] {
        allocator.record_stream(address, Stream(stream)).unwrap();
    }
    allocator.free(address).unwrap();
    check(&allocator);
    assert_eq!(allocator.outstanding_events(), 2);
    assert_eq!(allocator.free(address), Err(PolicyError::NotLive { address }));
    // Neither live nor a hole, but active.
    assert_eq!(allocator.usage().live_blocks, 0);
    assert!(holes(&allocator).is_empty());
    assert_eq!(allocator.statistics().active_blocks.current, 1);
    let states: Vec<&str> = allocator.blocks().map(|block| block.state.name()).collect();
    assert_eq!(states, ["active_pending_free"]);

    let other = allocator.allocate(12 * MIB).unwrap().address;
    assert_ne!(other, address);
    allocator.complete_events(Stream(1));
    allocator.process_events();
    assert_eq!(allocator.outstanding_events(), 1);
    assert!(holes(&allocator).is_empty());
    allocator.complete_events(Stream(2));
    // Seen when it is looked for.
    assert!(holes(&allocator).is_empty());
    assert_eq!(allocator.allocate(12 * MIB).unwrap().address, address);
    assert_eq!(allocator.outstanding_events(), 0);
    check(&allocator);
}

#[test]
fn events_complete_up_to_where_the_stream_is() {
    let mut allocator = caching("", 8 * GIB);
    let blocks = fill(&mut allocator, 2, 12 * MIB);
    for &address in &blocks {
        allocator.record_stream(address, Stream(1)).unwrap();
    }
    allocator.free(blocks[1]).unwrap();
    allocator.complete_events(Stream(1));
    allocator.free(blocks[0]).unwrap();
    allocator.process_events();
    let holes = allocator.holes(HoleOrder::Address);
    assert_eq!(holes, [Hole { address: blocks[1], bytes: 12 * MIB }]);
    allocator.complete_all_events();
    allocator.process_events();
    assert_eq!(allocator.holes(HoleOrder::Address).len(), 2);
    check(&allocator);
}

#[test]
fn what_waits_does_not_merge() {
    let mut allocator = caching("", 8 * GIB);
    let blocks = fill(&mut allocator, 4, MIB / 2);
    allocator.record_stream(blocks[1], Stream(1)).unwrap();
    free_all(&mut allocator, blocks);
    assert_eq!(holes(&allocator), [MIB / 2, MIB]);
    check(&allocator);
    allocator.complete_events(Stream(1));
    allocator.process_events();
    assert_eq!(holes(&allocator), [2 * MIB]);
    check(&allocator);
}
