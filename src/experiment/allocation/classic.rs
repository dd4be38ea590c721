//! A lecture's example, in full: ten blocks fill a window, some are freed, 512 MiB are asked for.
//!
//! Every set of freed blocks is tried, not a sample of them, so what comes out is a count and no
//! estimate.

use std::thread::sleep;
use std::time::Duration;

use super::failure::Failure;
use crate::policy::{Policy, PolicyError};
use crate::record::Subsets;

const MIB: u64 = 1 << 20;

/// The lecture's blocks, in its order.
pub(super) const BLOCKS_BYTES: [u64; 10] = [
    256 * MIB,
    128 * MIB,
    512 * MIB,
    64 * MIB,
    1024 * MIB,
    32 * MIB,
    768 * MIB,
    16 * MIB,
    384 * MIB,
    192 * MIB,
];

/// The lecture's request.
pub(super) const REQUEST_BYTES: u64 = 512 * MIB;

/// Sets of blocks.
const SETS: u32 = 1 << BLOCKS_BYTES.len();

/// Bytes of all blocks.
pub(super) fn blocks_bytes() -> u64 {
    BLOCKS_BYTES.iter().sum()
}

/// How a refusal comes to be believed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Patience {
    /// How often a refused request is repeated.
    pub(super) repeats: u32,
    /// How long memory rests before that: a driver may still be scrubbing what was freed.
    pub(super) rest: Duration,
}

/// Why there is no answer.
#[derive(Debug)]
pub(super) enum Trouble {
    /// The blocks do not fit into the window together.
    SetUp {
        /// The block that was refused.
        block: usize,
        /// What was said.
        error: PolicyError,
    },
    /// Something else.
    Other(Failure),
}

impl From<PolicyError> for Trouble {
    fn from(error: PolicyError) -> Self {
        Trouble::Other(error.into())
    }
}

/// A fresh allocator over the window.
pub(super) type Make<'a> = dyn FnMut() -> Result<Box<dyn Policy>, Failure> + 'a;

/// Tries every set.
pub(super) fn every_set(
    make: &mut Make<'_>,
    window_bytes: u64,
    patience: Patience,
) -> Result<Subsets, Trouble> {
    let mut found = Subsets {
        blocks_bytes: BLOCKS_BYTES.to_vec(),
        request_bytes: REQUEST_BYTES,
        window_bytes,
        ..Subsets::default()
    };
    for set in 0..SETS {
        let mut allocator = make().map_err(Trouble::Other)?;
        let allocator = &mut *allocator;
        let blocks = set_up(allocator, patience)?;
        found.rounded_bytes = allocator.usage().rounded_bytes;
        for (_, &address) in (0..).zip(&blocks).filter(|(bit, _)| set >> bit & 1 == 1) {
            allocator.free(address)?;
        }
        // What cannot be had for want of bytes is not waited for.
        let patience = match found.freed_bytes(set) >= REQUEST_BYTES {
            true => patience,
            false => Patience::default(),
        };
        if !can_have(allocator, REQUEST_BYTES, patience)? {
            found.failed.push(set);
            allocator.release_unused()?;
            if !can_have(allocator, REQUEST_BYTES, patience)? {
                found.failed_again.push(set);
            }
        }
        found.tried += 1;
    }
    Ok(found)
}

/// Fills the window with the blocks; their addresses.
pub(super) fn set_up(allocator: &mut dyn Policy, patience: Patience) -> Result<Vec<u64>, Trouble> {
    let mut blocks = Vec::new();
    for (block, &bytes) in BLOCKS_BYTES.iter().enumerate() {
        match with_patience(allocator, bytes, patience) {
            Ok(address) => blocks.push(address),
            Err(error @ PolicyError::OutOfMemory { .. }) => {
                for &address in blocks.iter().rev() {
                    allocator.free(address)?;
                }
                return Err(Trouble::SetUp { block, error });
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(blocks)
}

/// Whether a request succeeds; what it gets is given back.
fn can_have(allocator: &mut dyn Policy, bytes: u64, patience: Patience) -> Result<bool, Trouble> {
    match with_patience(allocator, bytes, patience) {
        Ok(address) => Ok(allocator.free(address).map(|()| true)?),
        Err(PolicyError::OutOfMemory { .. }) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn with_patience(
    allocator: &mut dyn Policy,
    bytes: u64,
    patience: Patience,
) -> Result<u64, PolicyError> {
    let mut repeats = 0;
    loop {
        match allocator.allocate(bytes) {
            Err(PolicyError::OutOfMemory { .. }) if repeats < patience.repeats => {
                sleep(patience.rest);
                repeats += 1;
            }
            answer => return answer.map(|block| block.address),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::allocator::simulated;
    use super::*;
    use crate::policy::PolicyName;

    fn all_of(policy: PolicyName, window_bytes: u64) -> Result<Subsets, Trouble> {
        let mut make = || simulated(policy, window_bytes).map_err(Failure::Failed);
        every_set(&mut make, window_bytes, Patience::default())
    }

    /// By lengths alone: a contiguous window serves the request where freed neighbours are long
    /// enough together.
    fn fails(set: u32) -> bool {
        let is_free = |bit: usize| set >> bit & 1 == 1;
        let mut run_bytes = 0;
        !(0..BLOCKS_BYTES.len()).any(|bit| {
            run_bytes = if is_free(bit) { run_bytes + BLOCKS_BYTES[bit] } else { 0 };
            run_bytes >= REQUEST_BYTES
        })
    }

    #[test]
    fn a_contiguous_window_fails_in_96_sets_of_which_36_have_enough_bytes_free() {
        let expected: Vec<u32> = (0..SETS).filter(|&set| fails(set)).collect();
        for policy in [PolicyName::FirstFit, PolicyName::BestFit, PolicyName::NextFit] {
            let found = all_of(policy, blocks_bytes()).unwrap();
            assert_eq!((found.tried, found.rounded_bytes), (1024, blocks_bytes()));
            assert_eq!(found.failed, expected);
            assert_eq!(found.failed_again, expected);
            let short = |set: &&u32| found.freed_bytes(**set) < REQUEST_BYTES;
            let short = found.failed.iter().filter(short).count();
            assert_eq!((found.failed.len(), short), (96, 60));
        }
    }

    #[test]
    fn a_cache_of_segments_serves_more_sets_once_it_has_returned_them() {
        let found = all_of(PolicyName::Caching, blocks_bytes()).unwrap();
        let first_fit = all_of(PolicyName::FirstFit, blocks_bytes()).unwrap();
        // Segments are never merged, so only a block of 512 MiB or more serves the request.
        let long = |set: u32| {
            (0..)
                .zip(BLOCKS_BYTES)
                .any(|(bit, bytes)| set >> bit & 1 == 1 && bytes >= REQUEST_BYTES)
        };
        let expected: Vec<u32> = (0..SETS).filter(|&set| !long(set)).collect();
        assert_eq!(found.failed, expected);
        // Returned, they are a hole of the window again.
        assert_eq!(found.failed_again, first_fit.failed);
    }

    #[test]
    fn a_window_that_is_too_short_is_told_by_its_block() {
        let trouble = all_of(PolicyName::FirstFit, blocks_bytes() - MIB * 16).unwrap_err();
        assert!(matches!(trouble, Trouble::SetUp { block: 9, .. }), "{trouble:?}");
    }
}
