//! The cases of the experiment `scatter`: physical memory that lies in disorder under one range of
//! addresses.

use super::backing::{Backing, Chunked};
use super::plan::{Plan, Subject};
use super::scene::Scene;
use super::suite::{Suite, default_payload, plan};
use crate::device::Movement;
use crate::layout::{Pattern, Spec, UNIT_BYTES};
use crate::record::{DeviceKind, Experiment};

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

/// One kernel over the same chunks in several orders.
pub(super) fn backings(
    suite: Suite,
    kind: &DeviceKind,
    movement: Movement,
    (spec, chunk_bytes): (Spec, u64),
    names_payload: bool,
) -> Plan {
    let subject = Subject::Backings(movement);
    Plan {
        experiment: Experiment::Scatter,
        chunked: Some(chunked(suite, chunk_bytes)),
        ..plan(suite, kind, subject, Scene::Uniform(spec), names_payload)
    }
}

/// What is done against misses of the TLB, beside each other.
pub(super) fn mitigations(
    suite: Suite,
    kind: &DeviceKind,
    spec: Spec,
    names_payload: bool,
) -> Plan {
    Plan {
        experiment: Experiment::Scatter,
        ..plan(suite, kind, Subject::Mitigations, Scene::Uniform(spec), names_payload)
    }
}

/// A defragmenting copy, and what it gains.
pub(super) fn compaction(suite: Suite, kind: &DeviceKind, spec: Spec, names_payload: bool) -> Plan {
    Plan {
        experiment: Experiment::Scatter,
        ..plan(suite, kind, Subject::Compaction, Scene::Uniform(spec), names_payload)
    }
}

/// The cases of a suite. Mapping a hundred GiB in chunks takes many seconds, which `quick` has not.
pub(super) fn plans(suite: Suite, kind: &DeviceKind) -> Vec<Plan> {
    if *kind == DeviceKind::Host || suite < Suite::Full {
        return Vec::new();
    }
    let of = |movement: Movement, pattern, fragment_bytes, footprint_bytes| {
        let spec =
            Spec { pattern, fragment_bytes, offset_bytes: 0, footprint_bytes, payload_bytes: 0 };
        let subject = Subject::Backings(movement);
        let payload_bytes = default_payload(suite, kind, subject, spec);
        backings(suite, kind, movement, (Spec { payload_bytes, ..spec }, CHUNK_BYTES), false)
    };
    let random = |fragment: u64, footprint: u64| {
        of(Movement::GatherRead, Pattern::Random, fragment, footprint)
    };
    let footprints = if suite == Suite::Exhaustive { FOOTPRINTS } else { FEW_FOOTPRINTS };
    let mut all: Vec<Plan> = footprints.iter().map(|&bytes| random(FRAGMENT, bytes)).collect();
    for footprint in [120 * GIB, 32 * GIB] {
        let fragments: &[u64] = match suite {
            Suite::Exhaustive => &[32, 64, 256, 512, 1024, 4096],
            _ if footprint > 64 * GIB => &[512],
            _ => &[],
        };
        all.extend(fragments.iter().map(|&fragment| random(fragment, footprint)));
    }
    let blocked = Pattern::Shuffled { window_bytes: Some(2 * GIB) };
    all.push(of(Movement::GatherRead, blocked, FRAGMENT, 120 * GIB));
    all.push(of(Movement::Read, Pattern::Contiguous, UNIT_BYTES, 16 * GIB));
    if suite == Suite::Exhaustive {
        all.push(of(Movement::Read, Pattern::Contiguous, UNIT_BYTES, 120 * GIB));
    }
    all.sort_by_key(|plan| std::cmp::Reverse(plan.scene.footprint_bytes()));
    // Before the chunks: a plain arena goes on as it is.
    let mut first: Vec<Plan> = Vec::new();
    let footprints: &[u64] = match suite {
        Suite::Exhaustive => &[130 * GIB, 120 * GIB],
        _ => &[120 * GIB],
    };
    for &footprint in footprints {
        let fragments: &[u64] =
            if suite == Suite::Exhaustive { &[32, 64, 128, 256, 512] } else { &[FRAGMENT] };
        for &fragment_bytes in fragments {
            let subject = Subject::Mitigations;
            let spec = Spec {
                pattern: Pattern::Random,
                fragment_bytes,
                offset_bytes: 0,
                footprint_bytes: footprint,
                payload_bytes: 0,
            };
            let payload_bytes = default_payload(suite, kind, subject, spec);
            first.push(mitigations(suite, kind, Spec { payload_bytes, ..spec }, false));
        }
    }
    let fragments: &[u64] = match suite {
        Suite::Exhaustive => &[32, 64, 128, 256, 512, 4096, 65536],
        _ => &[64, 128, 512],
    };
    let footprints: &[u64] = match suite {
        Suite::Exhaustive => &[120 * GIB, 64 * GIB, 2 * GIB],
        _ => &[120 * GIB],
    };
    for &footprint_bytes in footprints {
        for &fragment_bytes in fragments {
            let pattern = Pattern::SHUFFLED;
            let spec = Spec {
                pattern,
                fragment_bytes,
                offset_bytes: 0,
                footprint_bytes,
                payload_bytes: 0,
            };
            let payload_bytes = default_payload(suite, kind, Subject::Compaction, spec);
            first.push(compaction(suite, kind, Spec { payload_bytes, ..spec }, false));
        }
    }
    first.extend(all);
    first
}

#[cfg(test)]
mod tests;
