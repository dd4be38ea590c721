//! What every allocator keeps, by example.

use super::{Make, Refill, Tells};
use crate::layout::{below, draw};
use crate::policy::{HoleOrder, PolicyError};

/// Blocks of every size begin at a multiple of the alignment, whatever that is.
pub(super) fn blocks_are_aligned(make: Make) {
    let mut checked = make();
    for n in 0..40 {
        checked.allocate(checked.size(n) / 8);
        checked.check();
    }
    checked.finish();
}

/// With everything taken, what was freed is room for one more request of its size.
pub(super) fn a_freed_block_is_used_again(make: Make) {
    let mut checked = make();
    let bytes = checked.traits.block_bytes;
    let blocks = checked.fill(std::iter::repeat(bytes)).len() as u64;
    assert!(blocks > checked.traits.capacity_bytes / bytes / 5, "{blocks}");
    for n in 0..50 {
        let live: Vec<u64> = checked.live.keys().copied().collect();
        let address = live[below(draw(3, n), live.len() as u64) as usize];
        checked.free(address);
        let block = checked.allocate(bytes).expect("a block of that size was freed");
        assert!(block.address == address || !checked.traits.reuses_addresses);
        assert_eq!(checked.allocate(bytes), None);
    }
    checked.finish();
}

/// After out of memory and freeing all, the same requests are served again.
pub(super) fn it_recovers_from_exhaustion(make: Make) {
    let mut checked = make();
    let sizes: Vec<u64> = match checked.traits.refill {
        Refill::Mixed | Refill::AfterRelease => (0..10_000).map(|n| checked.size(n)).collect(),
        Refill::OneSize => vec![checked.traits.block_bytes * 5 / 8; 20_000],
    };
    let served = checked.fill(sizes.iter().copied());
    assert!(served.len() > 10 && served.len() < sizes.len());
    let taken_bytes = checked.policy.usage().rounded_bytes;
    assert!(
        taken_bytes >= checked.traits.least_taken_bytes,
        "out of memory at {taken_bytes} bytes"
    );
    checked.check();
    checked.free_all_shuffled();
    if checked.traits.refill == Refill::AfterRelease {
        checked.policy.release_unused().unwrap();
    }
    assert_eq!(checked.fill(served.iter().copied()), served);
    checked.finish();
}

/// What is not live is not freed: never handed out, inside a block, freed before.
pub(super) fn only_live_blocks_are_freed(make: Make) {
    let mut checked = make();
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
    checked.finish();
}

/// Requests that no memory holds are refused, and leave no trace.
pub(super) fn impossible_requests_are_refused(make: Make) {
    let mut checked = make();
    let capacity_bytes = checked.traits.capacity_bytes;
    checked.allocate(100).unwrap();
    let sizes = [capacity_bytes + 1, 1 << 40, 1 << 63, (1 << 63) + 1, u64::MAX - 1, u64::MAX];
    for bytes in sizes.into_iter().filter(|&bytes| bytes > capacity_bytes) {
        let before = checked.state();
        let error = checked.policy.allocate(bytes).unwrap_err();
        let as_expected = match error {
            PolicyError::OutOfMemory { requested_bytes, .. } => requested_bytes == bytes,
            PolicyError::Size { requested_bytes, .. } => {
                bytes > checked.traits.largest_bytes && requested_bytes == bytes
            }
            _ => false,
        };
        assert!(as_expected, "{error:?}");
        checked.is_as_before_refusal(&before);
    }
    let block = checked.allocate(0).unwrap();
    assert_eq!(block.requested_bytes, 1);
    checked.check();
    checked.finish();
}

/// Only memory without live blocks goes back, and all of it does.
pub(super) fn unused_memory_goes_back(make: Make) {
    let mut checked = make();
    assert_eq!(checked.policy.release_unused(), Ok(0));
    let spread_bytes = checked.traits.block_bytes * 5 / 8;
    checked.fill((0..30_000).map(|n| 200 + below(draw(9, n), spread_bytes)));
    let live: Vec<u64> = checked.live.keys().copied().collect();
    let (kept, freed) = live.split_at(3);
    for &address in freed {
        checked.free(address);
    }
    let before = checked.policy.usage();
    let released_bytes = checked.policy.release_unused().unwrap();
    let after = checked.policy.usage();
    if checked.traits.tells != Tells::Nothing {
        assert_eq!(after.reserved_bytes + released_bytes, before.reserved_bytes);
    }
    checked.check();
    for &address in kept {
        checked.free(address);
    }
    if checked.traits.releases_all && checked.traits.tells != Tells::Nothing {
        assert_eq!(checked.policy.release_unused(), Ok(after.reserved_bytes));
        assert_eq!(checked.policy.holes(HoleOrder::FreeList), []);
    }
    checked.check();
    // It serves again after all went back.
    checked.allocate(checked.traits.block_bytes).unwrap();
    checked.check();
    checked.finish();
}
