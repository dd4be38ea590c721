//! Which allocators a suite asks, and what.

use super::{AllocationPlan, Allocator, Factor, Freed, Study};
use crate::device::{Chunk, DeviceAllocator};
use crate::experiment::Suite;
use crate::harness::Distribution;
use crate::policy::PolicyName;
use crate::record::{DeviceKind, MemoryKind};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

const PLAIN: Allocator = Allocator::Device(DeviceAllocator::CuMemAlloc);
const RUNTIME: Allocator = Allocator::Device(DeviceAllocator::CudaMalloc);
const KEEP: Allocator = Allocator::Device(DeviceAllocator::MemPoolKeep);
const RELEASE: Allocator = Allocator::Device(DeviceAllocator::MemPoolRelease);
const CACHING: Allocator = Allocator::Policy(PolicyName::Caching);

const fn chunks(at: usize) -> Allocator {
    Allocator::Device(DeviceAllocator::Vmm(Chunk::ALL[at]))
}

/// Chunks of 16 MiB are the longest that the lecture's blocks are multiples of.
const CLASSIC: &[Allocator] =
    &[PLAIN, RUNTIME, KEEP, RELEASE, chunks(3), CACHING, Allocator::Policy(PolicyName::FirstFit)];

/// Lengths of blocks that fill a window, whole pages of a driver and less.
const BLOCKS: &[u64] = &[
    64 * KIB,
    256 * KIB,
    512 * KIB,
    MIB,
    3 * MIB / 2,
    2 * MIB,
    3 * MIB,
    20 * MIB,
    64 * MIB,
    512 * MIB,
];

const WINDOW: Option<u64> = Some(4 * GIB);

/// Lengths whose calls are timed in every suite.
const REQUESTS_FEW: &[u64] = &[2 * MIB, 128 * MIB, GIB];

const REQUESTS: &[u64] = &[256, 64 * KIB, MIB, 2 * MIB, 16 * MIB, 128 * MIB, GIB, 16 * GIB];

/// Blocks of 2 MiB that live in the states of the published figures.
const HOLES: Factor = Factor::Holes { bytes: 2 * MIB, count: 10_000 };
const FEW_HOLES: Factor = Factor::Holes { bytes: 2 * MIB, count: 1_000 };
const LIVE: Factor = Factor::Live { blocks: 20_000 };

/// States one after the other, each with one thing that is not as in the base.
const FACTORS: &[Factor] = &[
    Factor::Live { blocks: 1_000 },
    Factor::Live { blocks: 10_000 },
    LIVE,
    Factor::Live { blocks: 60_000 },
    Factor::Holes { bytes: 64 * KIB, count: 10_000 },
    Factor::Holes { bytes: 2 * MIB, count: 100 },
    FEW_HOLES,
    HOLES,
    Factor::Holes { bytes: 64 * MIB, count: 800 },
    Factor::Tight { bytes: 2 * MIB, count: 10_000 },
    Factor::Joined { bytes: 2 * MIB, count: 10_000 },
    Factor::Fill,
    Factor::LargeFree,
    Factor::Rest,
    Factor::Busy { us: 200 },
    Factor::Busy { us: 2_000 },
    Factor::Threads { count: 2 },
    Factor::Threads { count: 8 },
];

/// Samples where the tail is asked for: the 99.9th percentile wants 3,688.
const MANY: u32 = 10_000;

/// Blocks that are filled with: as many as live in the other states.
const FILL: u32 = 20_000;

/// Samples of each call: as many as the suite has time for. Long blocks are mapped and scrubbed at
/// each call.
pub(in crate::experiment) fn samples(
    suite: Suite,
    allocator: Allocator,
    factor: Factor,
    request_bytes: u64,
) -> u32 {
    let is_fast = matches!(allocator, CACHING | KEEP);
    let is_quick = suite == Suite::Quick;
    let long = if is_quick { 60 } else { 100 };
    let has_tail = factor == Factor::Base && (is_fast || !is_quick);
    if request_bytes <= 2 * MIB && factor == Factor::Fill {
        FILL
    } else if request_bytes <= 2 * MIB && has_tail {
        MANY
    } else if request_bytes <= 16 * MIB {
        400
    } else if request_bytes <= GIB {
        long
    } else {
        40
    }
}

/// The cases of a suite on a kind of device.
pub(in crate::experiment) fn plans(suite: Suite, kind: &DeviceKind) -> Vec<AllocationPlan> {
    let simulated = PolicyName::OF_ANY_SIZE.iter().map(|&policy| AllocationPlan {
        study: Study::Classic,
        allocator: Allocator::Policy(policy),
        memory: MemoryKind::Simulated,
    });
    let on_device = match (kind, suite) {
        (DeviceKind::Host, _) => Vec::new(),
        (_, Suite::Quick) => quick(),
        (_, Suite::Standard) => standard(),
        (_, Suite::Full) => full(),
        (_, Suite::Exhaustive) => exhaustive(),
    };
    let on_device = on_device.into_iter().map(|(allocator, study)| AllocationPlan {
        study,
        allocator,
        memory: MemoryKind::Device,
    });
    simulated.chain(on_device).collect()
}

type Asked = (Allocator, Study);

fn latency(suite: Suite, allocator: Allocator, factor: Factor, requests: &[u64]) -> Vec<Asked> {
    let of = |&request_bytes: &u64| {
        let samples = samples(suite, allocator, factor, request_bytes);
        (allocator, Study::Latency { factor, request_bytes, samples })
    };
    requests.iter().map(of).collect()
}

fn capacity(allocator: Allocator, freed: Freed, blocks: &[u64]) -> Vec<Asked> {
    let of = |&block_bytes: &u64| {
        (allocator, Study::Capacity { block_bytes, freed, window_bytes: WINDOW })
    };
    blocks.iter().map(of).collect()
}

fn classic(allocators: &[Allocator]) -> Vec<Asked> {
    allocators.iter().map(|&allocator| (allocator, Study::Classic)).collect()
}

fn quick() -> Vec<Asked> {
    let suite = Suite::Quick;
    [
        latency(suite, PLAIN, Factor::Base, &[128 * MIB]),
        latency(suite, PLAIN, FEW_HOLES, &[128 * MIB]),
        latency(suite, CACHING, Factor::Base, &[2 * MIB]),
        capacity(PLAIN, Freed::Alternate, &[MIB]),
    ]
    .concat()
}

fn standard() -> Vec<Asked> {
    let suite = Suite::Standard;
    let mut all = classic(&[PLAIN]);
    for allocator in [PLAIN, KEEP, RELEASE, CACHING] {
        all.extend(latency(suite, allocator, Factor::Base, REQUESTS_FEW));
    }
    for factor in [LIVE, HOLES] {
        all.extend(latency(suite, PLAIN, factor, REQUESTS_FEW));
    }
    all.push((PLAIN, Study::Granule));
    all.extend(capacity(PLAIN, Freed::Alternate, &[64 * KIB, MIB, 2 * MIB, 20 * MIB]));
    all
}

fn full() -> Vec<Asked> {
    let mut all = standard();
    let steps = Factor::Churn { sizes: Distribution::TrainingStep };
    for allocator in [PLAIN, CACHING] {
        all.extend(latency(Suite::Full, allocator, steps, &[2 * MIB]));
    }
    let busy = Factor::Busy { us: 2_000 };
    all.extend(latency(Suite::Full, PLAIN, busy, &[2 * MIB]));
    all.extend(latency(Suite::Full, PLAIN, Factor::Threads { count: 8 }, &[2 * MIB]));
    all
}

fn exhaustive() -> Vec<Asked> {
    let suite = Suite::Exhaustive;
    let mut all = classic(CLASSIC);
    all.extend(latency(suite, PLAIN, Factor::Base, REQUESTS));
    for allocator in [RUNTIME, KEEP, RELEASE, chunks(0), chunks(4)] {
        all.extend(latency(suite, allocator, Factor::Base, REQUESTS_FEW));
    }
    all.extend(latency(suite, chunks(0), Factor::Steps, &[2 * MIB, 128 * MIB]));
    all.extend(latency(suite, chunks(9), Factor::Steps, &[GIB]));
    for &policy in PolicyName::OF_ANY_SIZE {
        let policy = Allocator::Policy(policy);
        all.extend(latency(suite, policy, Factor::Base, &[64 * KIB, 2 * MIB]));
    }
    for &factor in FACTORS {
        all.extend(latency(suite, PLAIN, factor, &[2 * MIB, 128 * MIB]));
    }
    for factor in [LIVE, HOLES] {
        all.extend(latency(suite, PLAIN, factor, &[GIB]));
    }
    // Of a power law most blocks are short: millions of them, and minutes of a driver's calls.
    for sizes in Distribution::ALL.into_iter().filter(|of| *of != Distribution::PowerLaw) {
        let factor = Factor::Churn { sizes };
        all.extend(latency(suite, PLAIN, factor, &[2 * MIB]));
        all.extend(latency(suite, CACHING, factor, &[2 * MIB]));
    }
    for busy in [200, 2_000].map(|us| Factor::Busy { us }) {
        all.extend(latency(suite, KEEP, busy, &[2 * MIB]));
    }
    all.extend(latency(suite, KEEP, Factor::Threads { count: 8 }, &[2 * MIB]));
    for allocator in [PLAIN, RUNTIME, KEEP] {
        all.push((allocator, Study::Granule));
    }
    for freed in Freed::ALL {
        all.extend(capacity(PLAIN, freed, BLOCKS));
    }
    for block_bytes in [20 * MIB, 64 * MIB, 512 * MIB] {
        let freed = Freed::Alternate;
        all.push((PLAIN, Study::Capacity { block_bytes, freed, window_bytes: None }));
    }
    all
}
