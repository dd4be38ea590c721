//! Search, splitting and merging, one rule at a time.

use super::check::check;
use super::*;

#[test]
fn larger_tensors_after_smaller_ones_need_new_segments() {
    let mut allocator = caching("", 8 * GIB);
    let small = fill(&mut allocator, 8, 16 * MIB);
    assert_eq!(reserved(&allocator), 128 * MIB);
    free_all(&mut allocator, small);
    // Eight segments of 16 MiB, which never become one of 32 MiB, though they are neighbours.
    fill(&mut allocator, 4, 32 * MIB);
    assert_eq!(reserved(&allocator), 256 * MIB);
    assert_eq!(holes(&allocator), [16 * MIB; 8]);
    check(&allocator);
}

#[test]
fn smaller_tensors_after_larger_ones_divide_their_segments() {
    let mut allocator = caching("", 8 * GIB);
    let large = fill(&mut allocator, 4, 32 * MIB);
    free_all(&mut allocator, large);
    fill(&mut allocator, 8, 16 * MIB);
    assert_eq!(reserved(&allocator), 128 * MIB);
    assert!(holes(&allocator).is_empty());
    check(&allocator);
}

#[test]
fn expandable_segments_join_what_was_freed() {
    let mut allocator = caching("expandable_segments:True", 8 * GIB);
    let small = fill(&mut allocator, 8, 16 * MIB);
    free_all(&mut allocator, small);
    fill(&mut allocator, 4, 32 * MIB);
    // Seven pages of 20 MiB.
    assert_eq!(reserved(&allocator), 140 * MIB);
    check(&allocator);
}

#[test]
fn divisions_round_tensors_up() {
    let mut allocator = caching("roundup_power2_divisions:[>:2]", 8 * GIB);
    let block = allocator.allocate(514 * MIB).unwrap();
    assert_eq!(block.requested_bytes, 514 * MIB);
    assert_eq!(block.rounded_bytes, 768 * MIB);
    assert_eq!(reserved(&allocator), 768 * MIB);
}

#[test]
fn the_front_of_the_smallest_block_that_fits_is_taken() {
    let mut allocator = caching("", 8 * GIB);
    let sizes = [30, 12, 24, 12].map(|mib| mib * MIB);
    let addresses = sizes.map(|bytes| allocator.allocate(bytes).unwrap().address);
    free_all(&mut allocator, addresses.to_vec());
    // Of two blocks of one size the one at the lower address.
    assert_eq!(allocator.allocate(12 * MIB).unwrap().address, addresses[1]);
    assert_eq!(allocator.allocate(11 * MIB).unwrap().address, addresses[3]);
    assert_eq!(allocator.allocate(13 * MIB).unwrap().address, addresses[2]);
    // The rest behind it.
    assert_eq!(allocator.allocate(11 * MIB).unwrap().address, addresses[2] + 13 * MIB);
    check(&allocator);
}

#[test]
fn a_large_block_keeps_a_rest_of_up_to_1_mib() {
    for (bytes, rounded_bytes) in [
        (12 * MIB, 14 * MIB - 2 * MIB),
        (13 * MIB, 14 * MIB),
        (13 * MIB - 512, 13 * MIB - 512),
        (13 * MIB + 512, 14 * MIB),
    ] {
        let mut allocator = caching("", 8 * GIB);
        let whole = fill(&mut allocator, 1, 14 * MIB);
        free_all(&mut allocator, whole);
        assert_eq!(allocator.allocate(bytes).unwrap().rounded_bytes, rounded_bytes, "{bytes}");
        check(&allocator);
    }
}

#[test]
fn a_small_block_keeps_no_rest() {
    let mut allocator = caching("", 8 * GIB);
    let block = allocator.allocate(MIB - 100).unwrap();
    assert_eq!(block.rounded_bytes, MIB);
    assert_eq!(holes(&allocator), [MIB]);
    assert_eq!(allocator.allocate(MIB - 512).unwrap().rounded_bytes, MIB - 512);
    assert_eq!(holes(&allocator), [512]);
    assert_eq!(allocator.allocate(0).unwrap().rounded_bytes, 512);
    assert_eq!(reserved(&allocator), 2 * MIB);
    check(&allocator);
}

#[test]
fn pools_share_no_segment() {
    let mut allocator = caching("", 8 * GIB);
    allocator.allocate(MIB).unwrap();
    // One MiB is free in the small pool; a request above it goes to the large one.
    allocator.allocate(MIB + 1).unwrap();
    assert_eq!(reserved(&allocator), 22 * MIB);
    let graph = allocator.add_pools();
    assert_eq!(graph.number(), 1);
    allocator.allocate_in(graph, Stream(0), MIB).unwrap();
    assert_eq!(reserved(&allocator), 24 * MIB);
    let kinds: Vec<_> = allocator.segments().iter().map(|info| (info.pools, info.kind)).collect();
    let default = PoolId::DEFAULT;
    assert_eq!(
        kinds,
        [(default, PoolKind::Small), (default, PoolKind::Large), (graph, PoolKind::Small)]
    );
    // Pool by pool.
    assert_eq!(holes(&allocator), [MIB, 19 * MIB - 512, MIB]);
    check(&allocator);
}

#[test]
fn freed_blocks_join_both_neighbours_but_no_other_segment() {
    let mut allocator = caching("", 8 * GIB);
    let blocks = fill(&mut allocator, 8, MIB / 2);
    assert_eq!(reserved(&allocator), 4 * MIB);
    for (freed, holes_then) in [
        (0, vec![MIB / 2]),
        (2, vec![MIB / 2; 2]),
        (1, vec![3 * MIB / 2]),
        (4, vec![MIB / 2, 3 * MIB / 2]),
        (3, vec![MIB / 2, 2 * MIB]),
    ] {
        allocator.free(blocks[freed]).unwrap();
        assert_eq!(holes(&allocator), holes_then, "after block {freed}");
        check(&allocator);
    }
    let split = allocator.statistics().inactive_split_bytes;
    assert_eq!((split.current, split.peak), (MIB / 2, 2 * MIB));
}

#[test]
fn blocks_from_max_split_size_on_are_not_split_and_not_for_smaller_requests() {
    let mut allocator = caching("max_split_size_mb:32", 8 * GIB);
    let oversize = fill(&mut allocator, 1, 64 * MIB);
    let below = fill(&mut allocator, 1, 30 * MIB);
    free_all(&mut allocator, [oversize.clone(), below.clone()].concat());
    // 64 MiB would fit, but are kept for requests of 32 MiB on; 30 MiB are split.
    assert_eq!(allocator.allocate(20 * MIB).unwrap().address, below[0]);
    assert_eq!(holes(&allocator), [10 * MIB, 64 * MIB]);
    allocator.allocate(20 * MIB).unwrap();
    assert_eq!(reserved(&allocator), 114 * MIB);
    // Up to 20 MiB may be wasted: 45 MiB take the block whole, 44 MiB do not.
    let block = allocator.allocate(44 * MIB).unwrap();
    assert_ne!(block.address, oversize[0]);
    let block = allocator.allocate(44 * MIB + 512).unwrap();
    assert_eq!((block.address, block.rounded_bytes), (oversize[0], 64 * MIB));
    check(&allocator);
}

#[test]
fn more_rounding_takes_larger_blocks_whole() {
    let settings = "max_split_size_mb:32,max_non_split_rounding_mb:31";
    let mut allocator = caching(settings, 8 * GIB);
    let oversize = fill(&mut allocator, 1, 64 * MIB);
    free_all(&mut allocator, oversize.clone());
    assert_eq!(allocator.allocate(34 * MIB).unwrap().address, oversize[0]);
}

#[test]
fn what_is_freed_twice_is_refused() {
    let mut allocator = caching("", 8 * GIB);
    let blocks = fill(&mut allocator, 2, 1000);
    allocator.free(blocks[0]).unwrap();
    for address in [blocks[0], blocks[1] + 512, 0] {
        assert_eq!(allocator.free(address), Err(PolicyError::NotLive { address }));
        let recorded = allocator.record_stream(address, Stream(1));
        assert_eq!(recorded, Err(PolicyError::NotLive { address }));
    }
    check(&allocator);
}

#[test]
fn usage_tells_live_blocks_and_what_the_source_gave() {
    let mut allocator = caching("large_segment_size_mb:15", 8 * GIB);
    allocator.allocate(2 * MIB - 1).unwrap();
    allocator.allocate(1).unwrap();
    let usage = Usage {
        live_blocks: 2,
        requested_bytes: 2 * MIB,
        rounded_bytes: 2 * MIB + 512,
        // The source rounds 15 MiB up to whole pages of 2 MiB, which PyTorch does not see.
        reserved_bytes: 18 * MIB,
    };
    assert_eq!(allocator.usage(), usage);
    assert_eq!(allocator.statistics().reserved_bytes.current, 17 * MIB);
    assert_eq!((allocator.name(), allocator.alignment_bytes()), ("caching", 512));
    check(&allocator);
}

#[test]
fn sizes_beyond_an_exbibyte_are_refused() {
    let mut allocator = caching("roundup_power2_divisions:2", 8 * GIB);
    for requested_bytes in [LIMIT_BYTES, u64::MAX] {
        let refused = allocator.allocate(requested_bytes).unwrap_err();
        let takes = "less than 1 EiB".to_owned();
        assert_eq!(refused, PolicyError::Size { requested_bytes, takes });
    }
    for settings in ["roundup_power2_divisions:2", "expandable_segments:True"] {
        let refused = caching(settings, 8 * GIB).allocate(LIMIT_BYTES - 1).unwrap_err();
        assert!(matches!(refused, PolicyError::OutOfMemory { .. }), "{refused}");
    }
}

#[test]
fn sources_that_cannot_serve_are_refused() {
    let with = |settings: &str, granule_bytes| {
        let source = SimulatedSource::new(GIB, granule_bytes, Placement::Contiguous).unwrap();
        Caching::new(settings.parse().unwrap(), source).map(drop).map_err(|error| error.to_string())
    };
    let granule = "the caching allocator needs memory in units of at least 512 B, and the source \
                   gives units of 256 B";
    assert_eq!(with("", 256), Err(granule.to_owned()));
    assert_eq!(with("", 512), Ok(()));
    let page = "`expandable_segments:True` cannot be: pages of 15MiB are no multiple of the 2MiB \
                that the device maps at least; take another large_segment_size_mb, or \
                expandable_segments:False";
    let settings = "expandable_segments:True,large_segment_size_mb:15";
    assert_eq!(with(settings, 2 * MIB), Err(page.to_owned()));
    assert_eq!(with(settings, MIB), Ok(()));
    assert_eq!(with("large_segment_size_mb:15", 2 * MIB), Ok(()));
}
