//! Every policy, over every kind of simulated source and growth.

use super::{Checked, Fit, Refill, Refusal, Tells, Traits};
use crate::policy::caching::LIMIT_BYTES;
use crate::policy::{Growth, Params, Placement, PolicyName, Shared, SimulatedSource};

/// What most policies get; one that takes segments of up to 20 MiB gets room for some.
const CAPACITY: u64 = 4 << 20;
const CACHING_CAPACITY: u64 = 64 << 20;
const GRANULE: u64 = 4096;
const BLOCK: u64 = 8192;

const PLACEMENTS: [Placement; 2] = [Placement::Contiguous, Placement::Scattered { seed: 11 }];
const GROWTHS: [Growth; 2] = [Growth::Whole, Growth::Regions { bytes: 128 << 10 }];

/// In what the policies differ.
fn traits(name: PolicyName, placement: Placement) -> Traits {
    let usual = Traits {
        capacity_bytes: CAPACITY,
        least_taken_bytes: CAPACITY / 2,
        most_bytes: 512 << 10,
        block_bytes: BLOCK,
        largest_bytes: u64::MAX,
        tells: Tells::Holes,
        fit: Fit::Unknown,
        refill: match placement {
            Placement::Contiguous => Refill::Mixed,
            Placement::Scattered { .. } => Refill::OneSize,
        },
        reuses_addresses: true,
        merges_neighbours: false,
        refusal: Refusal::ChangesNothing,
        releases_all: true,
        repeats: true,
        // For each kind of source and growth.
        runs: (8, 300),
    };
    match name {
        PolicyName::FirstFit | PolicyName::BestFit | PolicyName::NextFit => {
            Traits { fit: Fit::Aligned, merges_neighbours: true, ..usual }
        }
        PolicyName::Buddy => Traits { fit: Fit::PowerOfTwo, ..usual },
        // Pages of one class serve no other.
        PolicyName::SizeClasses => Traits { least_taken_bytes: CAPACITY / 16, ..usual },
        PolicyName::Slab => {
            Traits { most_bytes: BLOCK, largest_bytes: BLOCK, fit: Fit::OneSize, ..usual }
        }
        PolicyName::Caching => Traits {
            capacity_bytes: CACHING_CAPACITY,
            least_taken_bytes: CACHING_CAPACITY / 2,
            largest_bytes: LIMIT_BYTES - 1,
            refill: Refill::AfterRelease,
            refusal: Refusal::GivesBack,
            ..usual
        },
    }
}

fn make(name: PolicyName, placement: Placement, growth: Growth, alignment_bytes: u64) -> Checked {
    let traits = traits(name, placement);
    let source = SimulatedSource::new(traits.capacity_bytes, GRANULE, placement).unwrap();
    let source = Shared::new(source);
    let params = Params { alignment_bytes, growth, block_bytes: BLOCK };
    let policy = name.build(source.clone(), &params).unwrap();
    // The caching allocator has an alignment of its own.
    let alignment_bytes = if name == PolicyName::Caching { 512 } else { alignment_bytes };
    assert_eq!((policy.name(), policy.alignment_bytes()), (name.name(), alignment_bytes));
    Checked::new(policy, Some(source), traits)
}

/// One check of a policy, over each kind of source and growth, and with each alignment.
fn run(check: &str, name: PolicyName) {
    let (_, check) = super::CHECKS.iter().find(|(of, _)| *of == check).unwrap();
    for placement in PLACEMENTS {
        for growth in GROWTHS {
            check(&mut || make(name, placement, growth, 256));
        }
    }
}

#[test]
fn blocks_are_aligned_whatever_the_alignment() {
    for name in PolicyName::ALL {
        for alignment_bytes in [1, 64, 256, 4096] {
            let (placement, growth) = (Placement::Contiguous, Growth::Whole);
            super::checks::blocks_are_aligned(&mut || {
                make(*name, placement, growth, alignment_bytes)
            });
        }
    }
}

macro_rules! conform {
    ($($module:ident: $name:expr,)+) => {
        /// The policies, and the checks of each.
        const COVERED: &[(PolicyName, &[&str])] = &[$(($name, $module::RUN)),+];

        $(mod $module {
            use crate::policy::PolicyName;

            conform!(@tests $name,
                blocks_are_aligned
                a_freed_block_is_used_again
                it_recovers_from_exhaustion
                only_live_blocks_are_freed
                impossible_requests_are_refused
                unused_memory_goes_back
                books_are_kept_through_any_calls
            );
        })+
    };
    (@tests $name:expr, $($test:ident)+) => {
        pub(super) const RUN: &[&str] = &[$(stringify!($test)),+];

        $(#[test]
        fn $test() {
            super::run(stringify!($test), $name);
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
fn every_policy_and_check_is_covered() {
    assert!(COVERED.iter().map(|(name, _)| name).eq(PolicyName::ALL));
    let checks: Vec<&str> = super::CHECKS.iter().map(|(name, _)| *name).collect();
    assert!(COVERED.iter().all(|(_, run)| *run == checks));
}
