//! What goes back to the source, and when memory is out.

use super::check::check;
use super::*;

fn out_of_memory(requested_bytes: u64, hole_bytes: u64) -> Result<Block, PolicyError> {
    Err(PolicyError::OutOfMemory { requested_bytes, hole_bytes })
}

#[test]
fn the_cache_is_released_before_memory_is_out() {
    let mut allocator = caching("", 100 * MIB);
    let blocks = fill(&mut allocator, 3, 30 * MIB);
    allocator.free(blocks[0]).unwrap();
    assert_eq!(allocator.statistics().alloc_retries, 0);
    // 30 MiB in the cache and 10 MiB in the source.
    assert_eq!(allocator.allocate(40 * MIB).map(|block| block.rounded_bytes), Ok(40 * MIB));
    let statistics = allocator.statistics();
    assert_eq!((statistics.alloc_retries, statistics.ooms), (1, 0));
    assert_eq!((statistics.device_allocations, statistics.device_frees), (4, 1));
    assert_eq!(reserved(&allocator), 100 * MIB);
    check(&allocator);
}

#[test]
fn memory_is_out_and_comes_back() {
    let mut allocator = caching("", 100 * MIB);
    let blocks = fill(&mut allocator, 2, 30 * MIB);
    let small = fill(&mut allocator, 1, 1000);
    let segments = allocator.segments();
    let holes = 2 * MIB - 1024;
    assert_eq!(allocator.allocate(40 * MIB), out_of_memory(40 * MIB, holes));
    assert_eq!(allocator.segments(), segments);
    let statistics = allocator.statistics();
    assert_eq!((statistics.alloc_retries, statistics.ooms), (1, 1));
    assert_eq!(statistics.synchronizations, 1);
    check(&allocator);
    allocator.free(blocks[1]).unwrap();
    assert!(allocator.allocate(40 * MIB).is_ok());
    free_all(&mut allocator, [vec![blocks[0]], small].concat());
    check(&allocator);
}

/// Three segments of 20 MiB are cached in a full source.
#[test]
fn a_cache_that_is_kept_serves_nothing_else() {
    let allocator = |releases_cache_on_failure| {
        let config = Config { releases_cache_on_failure, ..Config::default() };
        let source = SimulatedSource::new(60 * MIB, 2 * MIB, Placement::Contiguous).unwrap();
        let mut allocator = Caching::new(config, source).unwrap();
        let blocks = fill(&mut allocator, 6, 9 * MIB);
        free_all(&mut allocator, blocks);
        assert_eq!((holes(&allocator), reserved(&allocator)), (vec![20 * MIB; 3], 60 * MIB));
        allocator
    };
    let mut releases = allocator(true);
    assert_eq!(releases.allocate(30 * MIB).map(|block| block.rounded_bytes), Ok(30 * MIB));
    assert_eq!(reserved(&releases), 30 * MIB);
    check(&releases);

    let mut keeps = allocator(false);
    let segments = keeps.segments();
    assert_eq!(keeps.allocate(30 * MIB), out_of_memory(30 * MIB, 60 * MIB));
    assert_eq!(keeps.segments(), segments);
    let statistics = keeps.statistics();
    assert_eq!((statistics.ooms, statistics.alloc_retries), (1, 0));
    assert_eq!((statistics.synchronizations, statistics.device_frees), (0, 0));
    check(&keeps);
    // What fits the cache is served, and what is asked for goes back as ever.
    let block = keeps.allocate(20 * MIB).unwrap();
    keeps.free(block.address).unwrap();
    assert_eq!(keeps.release_unused(), Ok(60 * MIB));
    assert!(keeps.allocate(30 * MIB).is_ok());
    check(&keeps);
}

/// Blocks that are not split are not given up either.
#[test]
fn oversize_blocks_are_kept_with_the_cache() {
    let config: Config = "max_split_size_mb:32".parse().unwrap();
    let config = Config { releases_cache_on_failure: false, ..config };
    let source = SimulatedSource::new(100 * MIB, 2 * MIB, Placement::Contiguous).unwrap();
    let mut allocator = Caching::new(config, source).unwrap();
    let block = allocator.allocate(64 * MIB).unwrap();
    allocator.free(block.address).unwrap();
    assert_eq!(allocator.allocate(40 * MIB), out_of_memory(40 * MIB, 64 * MIB));
    assert_eq!(holes(&allocator), [64 * MIB]);
    check(&allocator);
}

/// Parts of a segment in use are fragmentation: they cannot go back.
#[test]
fn a_segment_in_use_stays_whole() {
    let mut allocator = caching("", 64 * MIB);
    let whole = fill(&mut allocator, 1, 60 * MIB);
    free_all(&mut allocator, whole);
    let kept = fill(&mut allocator, 1, 2 * MIB);
    assert_eq!(allocator.release_unused(), Ok(0));
    let hole = 58 * MIB;
    assert_eq!(allocator.allocate(59 * MIB), out_of_memory(59 * MIB, hole));
    assert_eq!(allocator.statistics().inactive_split_bytes.current, hole);
    free_all(&mut allocator, kept);
    assert_eq!(allocator.release_unused(), Ok(60 * MIB));
    assert_eq!(allocator.source().free_bytes(), 64 * MIB);
    assert_eq!(allocator.segments(), []);
    check(&allocator);
}

#[test]
fn waiting_blocks_are_waited_for_before_memory_is_out() {
    let mut allocator = caching("", 64 * MIB);
    let address = fill(&mut allocator, 1, 60 * MIB)[0];
    allocator.record_stream(address, Stream(1)).unwrap();
    allocator.free(address).unwrap();
    assert!(allocator.allocate(64 * MIB).is_ok());
    assert_eq!(allocator.outstanding_events(), 0);
    check(&allocator);
}

/// Released, the waiting block's part joins a segment in use, and only a new segment is asked for
/// then, though the part would do: PyTorch searches its pools once.
#[test]
fn pools_are_not_searched_again_after_a_release() {
    let mut allocator = caching("", 64 * MIB);
    let whole = fill(&mut allocator, 1, 60 * MIB);
    free_all(&mut allocator, whole);
    let parts = fill(&mut allocator, 2, 30 * MIB);
    allocator.record_stream(parts[1], Stream(1)).unwrap();
    allocator.free(parts[1]).unwrap();
    assert_eq!(allocator.allocate(30 * MIB), out_of_memory(30 * MIB, 30 * MIB));
    assert_eq!(allocator.allocate(30 * MIB).map(|block| block.address), Ok(parts[1]));
}

#[test]
fn oversize_blocks_go_back_first() {
    let mut allocator = caching("max_split_size_mb:32", 200 * MIB);
    let blocks = [40, 64, 48, 20].map(|mib| allocator.allocate(mib * MIB).unwrap().address);
    free_all(&mut allocator, blocks.to_vec());
    // 28 MiB are left. No block holds 90 MiB: the largest go back until their sum does.
    assert!(allocator.allocate(90 * MIB).is_ok());
    assert_eq!(holes(&allocator), [20, 40].map(|mib| mib * MIB));
    assert_eq!(allocator.statistics().alloc_retries, 0);
    check(&allocator);
    // 50 MiB are left. For a smaller request the smallest oversize block goes back.
    allocator.allocate(30 * MIB).unwrap();
    allocator.allocate(30 * MIB).unwrap();
    assert_eq!(holes(&allocator), [20 * MIB]);
    assert_eq!(allocator.statistics().alloc_retries, 0);
    check(&allocator);
    // No oversize block is left: all goes back.
    allocator.allocate(40 * MIB).unwrap();
    assert!(holes(&allocator).is_empty());
    assert_eq!(allocator.statistics().alloc_retries, 1);
    check(&allocator);
}

#[test]
fn oversize_blocks_that_do_not_suffice_are_not_kept_either() {
    let mut allocator = caching("max_split_size_mb:32", 200 * MIB);
    let blocks = [40, 48].map(|mib| allocator.allocate(mib * MIB).unwrap().address);
    free_all(&mut allocator, blocks.to_vec());
    let other = allocator.allocate_on(Stream(1), 64 * MIB).unwrap().address;
    allocator.free(other).unwrap();
    // Those of another stream go back only with the whole cache.
    assert!(allocator.allocate(180 * MIB).is_ok());
    assert_eq!(allocator.statistics().alloc_retries, 1);
    assert_eq!(allocator.statistics().device_frees, 3);
    check(&allocator);
}

#[test]
fn no_more_than_the_allowed_share_is_reserved() {
    let mut allocator = caching("per_process_memory_fraction:0.5", 200 * MIB);
    let blocks = fill(&mut allocator, 2, 50 * MIB);
    assert_eq!(allocator.allocate(1), out_of_memory(1, 0));
    allocator.free(blocks[0]).unwrap();
    assert!(allocator.allocate(1).is_ok());
    // The cached 50 MiB are there, split; a new segment is not allowed before they go back.
    assert_eq!(reserved(&allocator), 52 * MIB);
    assert_eq!(allocator.statistics().alloc_retries, 2);
    check(&allocator);
    let source = SimulatedSource::new(200 * MIB, 2 * MIB, Placement::Contiguous).unwrap();
    let config = "per_process_memory_fraction:0.5".parse().unwrap();
    let mut allocator = Caching::with_total(config, source, 100 * MIB).unwrap();
    assert_eq!(allocator.allocate(52 * MIB), out_of_memory(52 * MIB, 0));
}

const COLLECTING: &str = "garbage_collection_threshold:0.5,per_process_memory_fraction:0.8";

/// Of 1,000 MiB 800 are allowed, and from 400 on garbage is collected.
#[test]
fn garbage_goes_back_oldest_first() {
    let mut allocator = caching(COLLECTING, 1000 * MIB);
    let blocks = [100, 110, 120, 130].map(|mib| allocator.allocate(mib * MIB).unwrap().address);
    // 460 MiB are reserved. Each block is older than the next by three searches.
    for address in blocks {
        allocator.free(address).unwrap();
        for _ in 0..3 {
            let block = allocator.allocate(140 * MIB).unwrap();
            allocator.free(block.address).unwrap();
        }
    }
    // The first request of 140 MiB found no block: 60 MiB too much were reserved, and only the
    // block of 100 MiB was free.
    assert_eq!(holes(&allocator), [110, 120, 130, 140].map(|mib| mib * MIB));
    assert_eq!(allocator.statistics().device_frees, 1);
    assert_eq!(reserved(&allocator), 500 * MIB);
    // 100 MiB too much: ages 12, 9, 6 or so and 1, of which the first two are above the average.
    allocator.allocate(150 * MIB).unwrap();
    assert_eq!(holes(&allocator), [130, 140].map(|mib| mib * MIB));
    assert_eq!(allocator.statistics().alloc_retries, 0);
    check(&allocator);
}

#[test]
fn garbage_is_collected_until_it_is_enough() {
    let mut allocator = caching(COLLECTING, 1000 * MIB);
    let kept = [fill(&mut allocator, 1, 300 * MIB), fill(&mut allocator, 1, 1)].concat();
    let blocks = [100, 110, 120].map(|mib| allocator.allocate(mib * MIB).unwrap().address);
    allocator.free(blocks[0]).unwrap();
    // Used from, so not whole.
    allocator.allocate(50 * MIB).unwrap();
    for address in [blocks[1], blocks[2]] {
        allocator.free(address).unwrap();
        let block = allocator.allocate(90 * MIB).unwrap();
        allocator.free(block.address).unwrap();
    }
    // 632 MiB are reserved, 232 too much: both whole blocks go, one pass after the other.
    assert_eq!(reserved(&allocator), 632 * MIB);
    allocator.allocate(130 * MIB).unwrap();
    assert_eq!(reserved(&allocator), (632 - 230 + 130) * MIB);
    free_all(&mut allocator, kept);
    check(&allocator);
}

#[test]
fn without_a_fraction_no_garbage_is_collected() {
    let mut allocator = caching("garbage_collection_threshold:0.1", 1000 * MIB);
    let blocks = fill(&mut allocator, 3, 100 * MIB);
    free_all(&mut allocator, blocks);
    allocator.allocate(200 * MIB).unwrap();
    assert_eq!(reserved(&allocator), 500 * MIB);
}

#[test]
fn pools_of_their_own_go_back_when_they_are_retired() {
    let mut allocator = caching("", 100 * MIB);
    let graph = allocator.add_pools();
    let blocks = [1000, 30 * MIB]
        .map(|bytes| allocator.allocate_in(graph, Stream(0), bytes).unwrap().address);
    free_all(&mut allocator, blocks.to_vec());
    assert_eq!(allocator.release_unused(), Ok(0));
    assert_eq!(allocator.allocate(80 * MIB), out_of_memory(80 * MIB, 32 * MIB));
    allocator.retire_pools(graph);
    assert!(allocator.allocate(80 * MIB).is_ok());
    assert_eq!(reserved(&allocator), 80 * MIB);
    check(&allocator);
}
