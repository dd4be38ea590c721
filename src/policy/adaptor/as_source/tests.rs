//! Policies on policies.

use proptest::prelude::*;

use super::*;
use crate::policy::caching::{Caching, Config};
use crate::policy::tests::{arena, whole};
use crate::policy::{
    BestFit, Block, Buddy, Counted, FirstFit, Growth, Limited, Params, Placement, PolicyName,
    Shared, SimulatedSource, Usage,
};

const MIB: u64 = 1 << 20;

/// First fit over one window, at one range of addresses.
fn window(capacity_bytes: u64) -> AsSource<FirstFit<SimulatedSource>> {
    let memory = SimulatedSource::new(capacity_bytes, 2 * MIB, Placement::Contiguous).unwrap();
    let below = FirstFit::new(memory, &whole()).unwrap();
    AsSource::with_capacity(below, 2 * MIB, capacity_bytes).unwrap()
}

#[test]
fn regions_are_whole_granules_and_go_back() {
    let mut source = window(64 * MIB);
    assert_eq!((source.granule_bytes(), source.free_bytes()), (2 * MIB, 64 * MIB));
    let regions = [1, 3 * MIB].map(|bytes| source.allocate(bytes).unwrap());
    assert_eq!(regions.map(|region| region.bytes), [2 * MIB, 4 * MIB]);
    assert!(regions.iter().all(|region| region.address.is_multiple_of(2 * MIB)));
    assert_eq!(source.free_bytes(), 58 * MIB);
    for requested_bytes in [59 * MIB, 1 << 63, u64::MAX] {
        let out = SourceError::OutOfMemory { requested_bytes, free_bytes: 58 * MIB };
        assert_eq!(source.allocate(requested_bytes), Err(out));
    }
    source.release(regions[0]).unwrap();
    let foreign = [
        regions[0],
        Region { bytes: 2 * MIB, ..regions[1] },
        Region { address: regions[1].address + 2 * MIB, bytes: 2 * MIB },
    ];
    for region in foreign {
        assert!(matches!(source.release(region), Err(SourceError::Unknown { .. })));
    }
    assert_eq!(source.free_bytes(), 60 * MIB);
    source.release(regions[1]).unwrap();
    assert_eq!(source.into_inner().usage().live_blocks, 0);
}

#[test]
fn addresses_without_memory_are_unsupported() {
    let mut source = window(64 * MIB);
    let region = source.reserve_addresses(2 * MIB);
    assert!(matches!(region, Err(SourceError::Unsupported { .. })));
}

/// 40 of 60 MiB are free, in two pieces: segments fragment a window as they would not pages.
#[test]
fn segments_fragment_a_contiguous_window() {
    fn last_request(source: impl Source + Send) -> (Result<Block, PolicyError>, Usage) {
        let mut caching = Caching::new(Config::default(), source).unwrap();
        let blocks = [20 * MIB; 3].map(|bytes| caching.allocate(bytes).unwrap().address);
        caching.free(blocks[0]).unwrap();
        caching.free(blocks[2]).unwrap();
        (caching.allocate(30 * MIB), caching.usage())
    }
    let (refused, usage) = last_request(window(60 * MIB));
    let out_of_memory = PolicyError::OutOfMemory { requested_bytes: 30 * MIB, hole_bytes: 0 };
    assert_eq!((refused, usage.reserved_bytes), (Err(out_of_memory), 20 * MIB));
    let placement = Placement::Scattered { seed: 3 };
    let pages = SimulatedSource::new(60 * MIB, 2 * MIB, placement).unwrap();
    let (served, usage) = last_request(pages);
    assert_eq!((served.unwrap().rounded_bytes, usage.reserved_bytes), (30 * MIB, 50 * MIB));
}

#[test]
fn a_block_off_the_granule_is_given_back_and_refused() {
    let mut below = BestFit::new(arena(), &whole()).unwrap();
    let address = below.allocate(256).unwrap().address + 256;
    let mut source = AsSource::with_capacity(Counted::new(below), 4096, MIB).unwrap();
    let refused = SourceError::Misaligned { address, granule_bytes: 4096 };
    let said = format!("a block at {address:#x} begins at no multiple of the granule of 4096 B");
    assert_eq!(refused.to_string(), said);
    assert_eq!(source.allocate(5000), Err(refused));
    let counts = source.inner().counts();
    assert_eq!((counts.allocations, counts.frees), (1, 1));
    assert_eq!(source.free_bytes(), MIB - 256);
}

#[test]
fn a_granule_is_a_power_of_two() {
    for granule_bytes in [0, 768, u64::MAX] {
        let below = BestFit::new(arena(), &whole()).unwrap();
        let error = AsSource::with_capacity(below, granule_bytes, MIB).map(|_| ()).unwrap_err();
        assert_eq!(error, GranuleError { granule_bytes });
    }
}

/// The figure of a device stands for what others took, too.
#[test]
fn free_bytes_are_told_by_whoever_knows() {
    let below = BestFit::new(arena(), &whole()).unwrap();
    let free_bytes = |below: &BestFit<_>| 1000 - below.usage().live_blocks;
    let mut source = AsSource::new(below, 4096, free_bytes).unwrap();
    source.allocate(1).unwrap();
    assert_eq!(source.free_bytes(), 999);
}

#[test]
fn other_refusals_are_told_with_their_reason() {
    let below = PolicyName::Slab.build(arena(), &Params::default()).unwrap();
    let mut source = AsSource::with_capacity(below, 4096, MIB).unwrap();
    let error = source.allocate(100 << 10).unwrap_err();
    assert!(matches!(error, SourceError::Allocator(_)), "{error:?}");
    assert!(error.to_string().contains("a block of 102400 bytes is none"), "{error}");

    let unsupported = SourceError::Unsupported { what: "fly" };
    assert_eq!(refusal(PolicyError::Source(unsupported.clone())), unsupported);
}

proptest! {
    /// Over a window with a limit, a policy keeps its books and those below it, and leaves nothing.
    #[test]
    fn books_agree_on_every_floor(
        name in prop::sample::select(PolicyName::ALL),
        limit_bytes in (32 * MIB)..(64 * MIB),
        requests in prop::collection::vec((0..(3 * MIB), any::<prop::sample::Index>()), 1..80),
    ) {
        let memory = SimulatedSource::new(64 * MIB, 2 * MIB, Placement::Contiguous).unwrap();
        let below = Limited::new(Buddy::new(memory, &whole()).unwrap(), limit_bytes);
        let source = Shared::new(AsSource::with_capacity(below, 4096, limit_bytes).unwrap());
        let growth = Growth::Regions { bytes: MIB };
        let params = Params { block_bytes: 3 * MIB, ..Params::default().with_growth(growth) };
        let mut policy = name.build(source.clone(), &params).unwrap();
        let mut live = Vec::new();
        for (bytes, index) in requests {
            match policy.allocate(bytes) {
                Ok(block) => live.push(block.address),
                Err(PolicyError::OutOfMemory { .. }) => {
                    let address = live.swap_remove(index.index(live.len()));
                    policy.free(address).unwrap();
                }
                Err(error) => prop_assert!(false, "{error}"),
            }
            let held = source.lock().inner().usage();
            prop_assert_eq!(held.requested_bytes, policy.usage().reserved_bytes);
            prop_assert_eq!(source.free_bytes(), limit_bytes - held.rounded_bytes);
        }
        live.into_iter().for_each(|address| policy.free(address).unwrap());
        policy.release_unused().unwrap();
        prop_assert_eq!(source.lock().inner().usage().live_blocks, 0);
        prop_assert_eq!(policy.usage(), Usage::default());
    }
}
