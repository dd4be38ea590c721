//! Which cases a suite asks for, and each experiment's share of its time.

use clap::ValueEnum;

use super::Plan;
use crate::record::{DeviceKind, Experiment, KernelName, PatternName};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// The half-width that is aimed at: 0.5 % of the ratio.
const TARGET_PPM: u32 = 5_000;

/// A named choice of cases and time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Suite {
    /// Few sizes: within 45 s on a data-centre GPU.
    Quick,
    /// The published curves: some minutes.
    Standard,
}

impl Suite {
    /// The name on the command line and in journals.
    pub fn name(self) -> &'static str {
        match self {
            Suite::Quick => "quick",
            Suite::Standard => "standard",
        }
    }

    /// The suite of this name.
    pub fn named(name: &str) -> Option<Suite> {
        <Suite as ValueEnum>::from_str(name, false).ok()
    }
}

/// What cases of a curve have in common.
struct Curve {
    kernel: KernelName,
    pattern: PatternName,
    footprints: &'static [u64],
    fragments: &'static [u64],
}

const fn curve(
    kernel: KernelName,
    pattern: PatternName,
    footprints: &'static [u64],
    fragments: &'static [u64],
) -> Curve {
    Curve { kernel, pattern, footprints, fragments }
}

use KernelName::{GatherCopy, GatherRead};
use PatternName::{Random, Shuffled, Strided};

/// Footprints come from one ladder, 256 MiB, 2, 16, 64 and 120 GiB, so that runs of different
/// devices match. Larger ones first: smaller footprints are the beginning of the same arena.
const GPU_QUICK: &[Curve] = &[
    curve(GatherRead, Shuffled, &[120 * GIB, 64 * GIB, 2 * GIB], QUICK_SIZES),
    curve(GatherCopy, Shuffled, &[64 * GIB], QUICK_SIZES),
    curve(GatherRead, Random, &[64 * GIB], &[32, 128, 512]),
    curve(GatherRead, Strided, &[64 * GIB], &[32, 128, 512]),
];

const QUICK_SIZES: &[u64] = &[32, 64, 128, 256, 512, KIB, 2 * KIB, 4 * KIB, 64 * KIB, 2 * MIB];

const SIZES: &[u64] = &[
    16,
    32,
    64,
    128,
    256,
    512,
    KIB,
    2 * KIB,
    4 * KIB,
    16 * KIB,
    64 * KIB,
    256 * KIB,
    MIB,
    4 * MIB,
];

const GPU_STANDARD: &[Curve] = &[
    curve(GatherRead, Shuffled, &[120 * GIB, 64 * GIB, 16 * GIB, 2 * GIB, 256 * MIB], SIZES),
    curve(GatherCopy, Shuffled, &[120 * GIB, 64 * GIB, 16 * GIB, 2 * GIB], SIZES),
    curve(GatherRead, Random, &[120 * GIB, 64 * GIB, 2 * GIB], SIZES),
    curve(GatherRead, Strided, &[120 * GIB, 64 * GIB, 2 * GIB], SIZES),
];

const HOST_QUICK: &[Curve] = &[
    curve(GatherRead, Shuffled, &[2 * GIB], &[64, 256, KIB, 4 * KIB, 64 * KIB]),
    curve(GatherRead, Strided, &[2 * GIB], &[64]),
    curve(GatherRead, Random, &[2 * GIB], &[64]),
    curve(GatherRead, Shuffled, &[256 * MIB], &[64, 4 * KIB]),
    curve(GatherCopy, Shuffled, &[256 * MIB], &[64, 4 * KIB]),
];

const HOST_STANDARD: &[Curve] = &[
    curve(GatherRead, Shuffled, &[16 * GIB, 2 * GIB, 256 * MIB], SIZES),
    curve(GatherCopy, Shuffled, &[2 * GIB], SIZES),
    curve(GatherRead, Random, &[2 * GIB], SIZES),
    curve(GatherRead, Strided, &[2 * GIB], SIZES),
];

/// What a suite means on a kind of device.
struct Definition {
    curves: &'static [Curve],
    ceilings: &'static [u64],
    most_payload: u64,
    target_half_width_ppm: Option<u32>,
    rounds_ms: u64,
}

fn definition(suite: Suite, kind: &DeviceKind) -> Definition {
    let on_host = *kind == DeviceKind::Host;
    let (curves, ceilings, rounds_ms): (_, &[u64], _) = match (suite, on_host) {
        (Suite::Quick, false) => (GPU_QUICK, &[16 * GIB, 2 * GIB], 600),
        (Suite::Standard, false) => (GPU_STANDARD, &[16 * GIB, 2 * GIB], 1_500),
        (Suite::Quick, true) => (HOST_QUICK, &[256 * MIB], 1_000),
        (Suite::Standard, true) => (HOST_STANDARD, &[2 * GIB, 256 * MIB], 5_000),
    };
    Definition {
        curves,
        ceilings,
        most_payload: match (suite, on_host) {
            (_, false) => 2 * GIB,
            (Suite::Quick, true) => 64 * MIB,
            (Suite::Standard, true) => 256 * MIB,
        },
        // The host's figures wander with whatever else runs there: no precision is promised.
        target_half_width_ppm: (!on_host).then_some(TARGET_PPM),
        rounds_ms,
    }
}

/// The groups of a suite on a kind of device, in the order in which they are measured.
pub fn plans(suite: Suite, kind: &DeviceKind) -> Vec<Plan> {
    let definition = definition(suite, kind);
    let plan = |kernel: &KernelName,
                pattern: &PatternName,
                fragment_bytes,
                footprint_bytes,
                payload_bytes| Plan {
        experiment: Experiment::Bandwidth,
        kernel: kernel.clone(),
        pattern: pattern.clone(),
        fragment_bytes,
        footprint_bytes,
        payload_bytes,
        target_half_width_ppm: definition.target_half_width_ppm,
        rounds_ms: definition.rounds_ms,
    };
    let ceilings = definition.ceilings.iter().map(|footprint| {
        plan(&KernelName::Ceiling, &PatternName::Contiguous, None, *footprint, *footprint)
    });
    let mut scattered: Vec<Plan> = Vec::new();
    for curve in definition.curves {
        for footprint in curve.footprints {
            let payload = (*footprint).min(definition.most_payload);
            scattered.extend(curve.fragments.iter().map(|fragment| {
                plan(&curve.kernel, &curve.pattern, Some(*fragment), *footprint, payload)
            }));
        }
    }
    scattered.sort_by_key(|plan| std::cmp::Reverse(plan.footprint_bytes));
    ceilings.chain(scattered).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn case_ids_are_unique_and_every_layout_is_possible() {
        for suite in [Suite::Quick, Suite::Standard] {
            for kind in [DeviceKind::Cuda, DeviceKind::Host] {
                let plans = plans(suite, &kind);
                let ids: HashSet<String> = plans.iter().map(Plan::case).collect();
                assert_eq!(ids.len(), plans.len());
                for plan in &plans {
                    assert!(plan.layout(1).is_ok(), "{}", plan.case());
                }
            }
        }
    }

    #[test]
    fn quick_asks_at_most_12_groups_of_the_host() {
        let plans = plans(Suite::Quick, &DeviceKind::Host);
        assert!(plans.len() <= 12, "{}", plans.len());
        assert!(plans.iter().all(|plan| plan.payload_bytes <= 256 * MIB));
    }
}
