//! The cases of the experiment `scatter`: physical memory that lies in disorder under one range of
//! addresses.

use super::backing::{Backing, Chunked};
use super::plan::{Plan, Subject};
use super::scene::Scene;
use super::suite::{Suite, default_payload, plan};
use crate::device::Movement;
use crate::layout::{Pattern, Spec, UNIT_BYTES};
use crate::record::DeviceKind;

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// Chunks as short as drivers make them: no scatter is finer.
const CHUNK_BYTES: u64 = 2 * MIB;

/// Orders of chunks, each beside the one in which they were made.
const BACKINGS: &[Backing] = &[
    Backing::InOrder,
    Backing::Shuffled { turn: 1 },
    Backing::Shuffled { turn: 2 },
    Backing::Shuffled { turn: 3 },
    Backing::Reversed,
    Backing::Strided { chunks: 64 },
];

/// What `exhaustive` adds: up to which length of runs does disorder cost?
const RUNS: &[Backing] = &[
    Backing::Blocks { bytes: 4 * MIB },
    Backing::Blocks { bytes: 8 * MIB },
    Backing::Blocks { bytes: 16 * MIB },
    Backing::Blocks { bytes: 32 * MIB },
    Backing::Blocks { bytes: 64 * MIB },
    Backing::Blocks { bytes: 512 * MIB },
];

/// Where a TLB's reach may end, and around it: of 8 GiB of memory, too, some are left.
const FOOTPRINTS: &[u64] = &[
    132 * GIB,
    120 * GIB,
    104 * GIB,
    96 * GIB,
    88 * GIB,
    80 * GIB,
    76 * GIB,
    72 * GIB,
    70 * GIB,
    68 * GIB,
    66 * GIB,
    64 * GIB,
    60 * GIB,
    32 * GIB,
    16 * GIB,
    4 * GIB,
];

/// As few as tell a reach: `full` has a minute for all of this.
const FEW_FOOTPRINTS: &[u64] = &[120 * GIB, 80 * GIB, 72 * GIB, 64 * GIB, 32 * GIB];

const FRAGMENT: u64 = 128;

/// The orders of chunks that a suite compares.
pub(super) fn chunked(suite: Suite, chunk_bytes: u64) -> Chunked {
    let runs = if suite == Suite::Exhaustive { RUNS } else { &[] };
    Chunked { chunk_bytes, backings: [BACKINGS, runs].concat() }
}

/// The plan over chunks of this length, in the orders that a suite compares.
pub(super) fn over_chunks(plan: Plan, suite: Suite, chunk_bytes: u64) -> Plan {
    Plan { chunked: Some(chunked(suite, chunk_bytes)), ..plan }
}

/// The cases of a suite, those over plain memory first. Mapping a hundred GiB in chunks takes many
/// seconds, which `quick` has not.
pub(super) fn plans(suite: Suite, kind: &DeviceKind) -> Vec<Plan> {
    if *kind == DeviceKind::Host || suite < Suite::Full {
        return Vec::new();
    }
    let is_whole = suite == Suite::Exhaustive;
    let asked = |subject: Subject, pattern, fragments: &[u64], footprints: &[u64]| {
        let of = |fragment_bytes: u64, footprint_bytes: u64| {
            let spec = Spec {
                pattern,
                fragment_bytes,
                offset_bytes: 0,
                footprint_bytes,
                payload_bytes: 0,
            };
            let payload_bytes = default_payload(suite, kind, subject, spec);
            plan(suite, kind, subject, Scene::Uniform(Spec { payload_bytes, ..spec }), false)
        };
        let each = |&footprint: &u64| {
            fragments.iter().map(|&fragment| of(fragment, footprint)).collect::<Vec<Plan>>()
        };
        footprints.iter().flat_map(each).collect::<Vec<Plan>>()
    };
    let (gather, stream) =
        (Subject::Backings(Movement::GatherRead), Subject::Backings(Movement::Read));
    let blocked = Pattern::Shuffled { window_bytes: Some(2 * GIB) };
    const LONG: u64 = 120 * GIB;
    let (plain, chunks) = match is_whole {
        true => (
            [
                asked(
                    Subject::Mitigations,
                    Pattern::Random,
                    &[32, 64, FRAGMENT, 256, 512],
                    &[130 * GIB, LONG],
                ),
                asked(
                    Subject::Compaction,
                    Pattern::SHUFFLED,
                    &[32, 64, FRAGMENT, 256, 512, 4096, 65536],
                    &[LONG, 64 * GIB, 2 * GIB],
                ),
            ],
            [
                asked(gather, Pattern::Random, &[FRAGMENT], FOOTPRINTS),
                asked(gather, Pattern::Random, &[32, 64, 256, 512, 1024, 4096], &[LONG, 32 * GIB]),
                asked(gather, blocked, &[FRAGMENT], &[LONG]),
                asked(stream, Pattern::Contiguous, &[UNIT_BYTES], &[LONG, 16 * GIB]),
            ],
        ),
        false => (
            [
                asked(Subject::Mitigations, Pattern::Random, &[FRAGMENT], &[LONG]),
                asked(Subject::Compaction, Pattern::SHUFFLED, &[64, FRAGMENT, 512], &[LONG]),
            ],
            [
                asked(gather, Pattern::Random, &[FRAGMENT], FEW_FOOTPRINTS),
                asked(gather, Pattern::Random, &[512], &[LONG]),
                asked(gather, blocked, &[FRAGMENT], &[LONG]),
                asked(stream, Pattern::Contiguous, &[UNIT_BYTES], &[16 * GIB]),
            ],
        ),
    };
    let mut chunks: Vec<Plan> = chunks.into_iter().flatten().collect();
    // The longest makes the ranges that all others use.
    chunks.sort_by_key(|plan| std::cmp::Reverse(plan.scene.footprint_bytes()));
    let chunks = chunks.into_iter().map(|plan| over_chunks(plan, suite, CHUNK_BYTES));
    plain.into_iter().flatten().chain(chunks).collect()
}

#[cfg(test)]
mod tests;
