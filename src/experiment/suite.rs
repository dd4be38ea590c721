//! Which cases a suite asks for, and each experiment's share of its time.

use clap::ValueEnum;

use super::heaps::{heaps, situations};
use super::plan::{Plan, Subject};
use super::scene::Scene;
use crate::device::Movement;
use crate::layout::{Pattern, Spec, UNIT_BYTES};
use crate::record::DeviceKind;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// The half-width that is aimed at: 0.5 % of the ratio.
const TARGET_PPM: u32 = 5_000;

/// A named choice of cases and time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Suite {
    /// Few sizes: within 45 s on a data-centre GPU.
    Quick,
    /// The published curves: some minutes.
    Standard,
    /// The curves, every pattern, and the kernels' competitors: within 8 minutes.
    Full,
    /// All of that, and every state of every allocator: as long as it takes.
    Exhaustive,
}

impl Suite {
    /// The name on the command line and in journals.
    pub fn name(self) -> &'static str {
        match self {
            Suite::Quick => "quick",
            Suite::Standard => "standard",
            Suite::Full => "full",
            Suite::Exhaustive => "exhaustive",
        }
    }

    /// The suite of this name.
    pub fn named(name: &str) -> Option<Suite> {
        <Suite as ValueEnum>::from_str(name, false).ok()
    }
}

/// What cases of a curve have in common: each footprint with each fragment.
struct Curve {
    subject: Subject,
    pattern: Pattern,
    offset_bytes: u64,
    footprints: &'static [u64],
    fragments: &'static [u64],
}

const fn curve(
    movement: Movement,
    pattern: Pattern,
    footprints: &'static [u64],
    fragments: &'static [u64],
) -> Curve {
    Curve { subject: Subject::Layout(movement), pattern, offset_bytes: 0, footprints, fragments }
}

const fn shifted(offset_bytes: u64, footprints: &'static [u64]) -> Curve {
    let fragments = &[128, 512, 4 * KIB];
    Curve { offset_bytes, ..curve(GatherRead, SHUFFLED, footprints, fragments) }
}

const fn by_stride(stride: u64, fragments: &'static [u64]) -> Curve {
    curve(StridedGather, Pattern::Strided { stride: Some(stride) }, &[16 * GIB], fragments)
}

const fn within(window_bytes: u64) -> Curve {
    let pattern = Pattern::Shuffled { window_bytes: Some(window_bytes) };
    curve(GatherRead, pattern, &[120 * GIB, 64 * GIB], &[32, 128, 512])
}

const fn holes(occupancy_percent: u32, movement: Movement) -> Curve {
    curve(movement, Pattern::Holes { occupancy_percent }, &[16 * GIB], FEW)
}

const fn variants(
    movement: Movement,
    pattern: Pattern,
    footprint: &'static [u64],
    fragments: &'static [u64],
) -> Curve {
    let subject = Subject::Variants(movement);
    Curve { subject, ..curve(movement, pattern, footprint, fragments) }
}

use Movement::{Copy, GatherCopy, GatherRead, Read, ScatterCopy, StridedGather, Write};
use Pattern::{Checkerboard, Contiguous, Random};

const SHUFFLED: Pattern = Pattern::SHUFFLED;
const STRIDED: Pattern = Pattern::STRIDED;

/// Footprints come from one ladder, so that runs of different devices match: 256 MiB, 2, 16, 64 and
/// 120 GiB, and between and beyond them where a TLB's reach may end.
const REACH: &[u64] = &[
    132 * GIB,
    128 * GIB,
    120 * GIB,
    112 * GIB,
    96 * GIB,
    80 * GIB,
    72 * GIB,
    68 * GIB,
    64 * GIB,
    32 * GIB,
    16 * GIB,
    8 * GIB,
    4 * GIB,
    2 * GIB,
];

const FEW: &[u64] = &[32, 128, 512, 4 * KIB, 64 * KIB];

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
    64 * MIB,
];

const GPU_QUICK: &[Curve] = &[
    curve(GatherRead, SHUFFLED, &[120 * GIB, 64 * GIB, 2 * GIB], QUICK_SIZES),
    curve(GatherCopy, SHUFFLED, &[64 * GIB], FEW),
    curve(ScatterCopy, SHUFFLED, &[64 * GIB], FEW),
    curve(GatherRead, Random, &[64 * GIB], &[32, 128, 512]),
    curve(GatherRead, STRIDED, &[64 * GIB], &[32, 128, 512]),
];

const GPU_STANDARD: &[Curve] = &[
    curve(GatherRead, SHUFFLED, &[120 * GIB, 64 * GIB, 16 * GIB, 2 * GIB], SIZES),
    // L2 is evicted before each launch: five times as long for a sample.
    curve(GatherRead, SHUFFLED, &[256 * MIB], FEW),
    curve(GatherCopy, SHUFFLED, &[64 * GIB, 2 * GIB], SIZES),
    curve(GatherCopy, SHUFFLED, &[120 * GIB, 16 * GIB], FEW),
    curve(ScatterCopy, SHUFFLED, &[64 * GIB, 2 * GIB], SIZES),
    curve(ScatterCopy, SHUFFLED, &[120 * GIB, 16 * GIB], FEW),
    curve(GatherRead, SHUFFLED, &[64 * GIB], &[4, 8]),
    curve(GatherRead, Random, REACH, &[128]),
    curve(
        GatherRead,
        Random,
        &[120 * GIB, 64 * GIB, 2 * GIB],
        &[16, 32, 64, 256, 512, KIB, 4 * KIB],
    ),
    curve(GatherRead, STRIDED, &[120 * GIB, 64 * GIB, 2 * GIB], FEW),
    by_stride(1, &[8]),
    by_stride(2, &[8]),
    by_stride(4, &[8]),
    by_stride(8, &[8]),
    by_stride(16, &[8]),
    by_stride(32, &[8]),
    by_stride(64, &[8]),
    by_stride(128, &[8]),
];

/// What `full` asks beside the curves of `standard`.
const GPU_FULL: &[Curve] = &[
    curve(GatherCopy, SHUFFLED, &[64 * GIB], &[4, 8]),
    curve(ScatterCopy, SHUFFLED, &[64 * GIB], &[4, 8]),
    shifted(4, &[64 * GIB]),
    shifted(16, &[64 * GIB]),
    shifted(32, &[64 * GIB]),
    shifted(64, &[64 * GIB]),
    within(2 * MIB),
    within(64 * MIB),
    within(2 * GIB),
    curve(GatherRead, Checkerboard, &[2 * GIB], FEW),
    curve(GatherCopy, Checkerboard, &[2 * GIB], FEW),
    curve(ScatterCopy, Checkerboard, &[2 * GIB], FEW),
    curve(GatherRead, Pattern::Holes { occupancy_percent: 50 }, &[2 * GIB], FEW),
    holes(90, GatherRead),
    holes(90, ScatterCopy),
    by_stride(256, &[8]),
    by_stride(512, &[8]),
    by_stride(1, &[4, 16]),
    by_stride(2, &[4, 16]),
    by_stride(8, &[4, 16]),
    by_stride(32, &[4, 16]),
    by_stride(128, &[4, 16]),
    variants(Read, Contiguous, &[16 * GIB], &[UNIT_BYTES]),
    variants(Write, Contiguous, &[16 * GIB], &[UNIT_BYTES]),
    variants(Copy, Contiguous, &[16 * GIB], &[UNIT_BYTES]),
    variants(GatherRead, SHUFFLED, &[64 * GIB], &[32, 128, 4 * KIB]),
    variants(GatherCopy, SHUFFLED, &[64 * GIB], &[32, 128, 4 * KIB]),
    variants(ScatterCopy, SHUFFLED, &[64 * GIB], &[32, 128, 4 * KIB]),
    variants(StridedGather, Pattern::Strided { stride: Some(2) }, &[16 * GIB], &[8]),
    variants(StridedGather, Pattern::Strided { stride: Some(32) }, &[16 * GIB], &[8]),
];

const HOST_QUICK: &[Curve] = &[
    curve(GatherRead, SHUFFLED, &[2 * GIB], &[64, 256, KIB, 4 * KIB, 64 * KIB]),
    curve(GatherRead, STRIDED, &[2 * GIB], &[64]),
    curve(GatherRead, Random, &[2 * GIB], &[64]),
    curve(GatherRead, SHUFFLED, &[256 * MIB], &[64, 4 * KIB]),
    curve(GatherCopy, SHUFFLED, &[256 * MIB], &[64]),
    curve(ScatterCopy, SHUFFLED, &[256 * MIB], &[64]),
];

const HOST_STANDARD: &[Curve] = &[
    curve(GatherRead, SHUFFLED, &[16 * GIB, 2 * GIB, 256 * MIB], SIZES),
    curve(GatherCopy, SHUFFLED, &[2 * GIB], SIZES),
    curve(ScatterCopy, SHUFFLED, &[2 * GIB], SIZES),
    curve(GatherRead, Random, &[2 * GIB], SIZES),
    curve(GatherRead, STRIDED, &[2 * GIB], SIZES),
];

const HOST_FULL: &[Curve] = &[
    curve(GatherRead, SHUFFLED, &[2 * GIB], &[4, 8]),
    curve(GatherRead, Checkerboard, &[256 * MIB], FEW),
    curve(GatherRead, Pattern::Holes { occupancy_percent: 90 }, &[2 * GIB], FEW),
    shifted(4, &[2 * GIB]),
    shifted(64, &[2 * GIB]),
];

/// What a suite means on a kind of device.
struct Definition {
    curves: &'static [&'static [Curve]],
    ceilings: &'static [u64],
    target_half_width_ppm: Option<u32>,
    fewest_rounds: u32,
    rounds_ms: u64,
}

fn definition(suite: Suite, kind: &DeviceKind) -> Definition {
    let on_host = *kind == DeviceKind::Host;
    let (curves, ceilings, rounds_ms): (&'static [&'static [Curve]], &[u64], _) =
        match (suite, on_host) {
            (Suite::Quick, false) => (&[GPU_QUICK], &[16 * GIB, 2 * GIB], 600),
            (Suite::Standard, false) => (&[GPU_STANDARD], &[16 * GIB, 2 * GIB], 1_500),
            (Suite::Full | Suite::Exhaustive, false) => {
                (&[GPU_STANDARD, GPU_FULL], &[16 * GIB, 2 * GIB], 1_500)
            }
            (Suite::Quick, true) => (&[HOST_QUICK], &[256 * MIB], 1_000),
            (Suite::Standard, true) => (&[HOST_STANDARD], &[2 * GIB, 256 * MIB], 5_000),
            (Suite::Full | Suite::Exhaustive, true) => {
                (&[HOST_STANDARD, HOST_FULL], &[2 * GIB, 256 * MIB], 5_000)
            }
        };
    Definition {
        curves,
        ceilings,
        // The host's figures wander with whatever else runs there: no precision is promised.
        target_half_width_ppm: (!on_host).then_some(TARGET_PPM),
        // On a GPU most cases need no more than the fewest: where there is time, more are taken, for
        // an interval well under the target and for a wall time that is spent on measuring.
        fewest_rounds: match (on_host, suite) {
            (true, _) => 30,
            (false, Suite::Quick) => 40,
            (false, _) => 60,
        },
        rounds_ms,
    }
}

/// The payload of a case that names none: what the pattern says itself, else at most 2 GiB on a GPU
/// (1 GiB of fragments up to 16 B, for the index of shorter ones is as long as they are), and less
/// on the host.
pub(super) fn default_payload(
    suite: Suite,
    kind: &DeviceKind,
    subject: Subject,
    spec: Spec,
) -> u64 {
    if !subject.has_layout() {
        return spec.footprint_bytes;
    }
    let most = match (*kind == DeviceKind::Host, suite) {
        (true, Suite::Quick) => 64 * MIB,
        (true, _) => 256 * MIB,
        (false, _) if spec.fragment_bytes <= 16 => GIB,
        (false, _) => 2 * GIB,
    };
    let held = spec.pattern.capacity(spec.slots()) * spec.fragment_bytes;
    let asked = match spec.pattern {
        Pattern::Strided { stride: Some(_) } => held,
        pattern if pattern.fills_its_capacity() => held,
        _ => held.min(most),
    };
    asked - asked % spec.fragment_bytes.max(UNIT_BYTES)
}

/// A plan of a suite's precision and time.
pub(super) fn plan(
    suite: Suite,
    kind: &DeviceKind,
    subject: Subject,
    scene: Scene,
    names_payload: bool,
) -> Plan {
    let definition = definition(suite, kind);
    let Definition { target_half_width_ppm, fewest_rounds, rounds_ms, .. } = definition;
    Plan {
        experiment: subject.experiment(),
        subject,
        scene,
        chunked: None,
        names_payload,
        target_half_width_ppm,
        fewest_rounds,
        rounds_ms,
        repetition: 0,
    }
}

/// The groups of a suite on a kind of device, in the order in which they are measured: larger
/// footprints first, as smaller ones are the beginning of the same arena, and what writes to the
/// arena after what reads from it.
pub fn plans(suite: Suite, kind: &DeviceKind) -> Vec<Plan> {
    let definition = definition(suite, kind);
    let with_payload = |subject: Subject, spec: Spec| {
        let payload_bytes = default_payload(suite, kind, subject, spec);
        plan(suite, kind, subject, Scene::Uniform(Spec { payload_bytes, ..spec }), false)
    };
    let spec = |pattern, fragment_bytes, offset_bytes, footprint_bytes| Spec {
        pattern,
        fragment_bytes,
        offset_bytes,
        footprint_bytes,
        payload_bytes: 0,
    };
    let ceilings = definition.ceilings.iter().map(|footprint| {
        with_payload(Subject::Ceiling, spec(Contiguous, UNIT_BYTES, 0, *footprint))
    });
    let mut scattered: Vec<Plan> = Vec::new();
    for curve in definition.curves.iter().copied().flatten() {
        for footprint in curve.footprints {
            scattered.extend(curve.fragments.iter().map(|fragment| {
                let spec = spec(curve.pattern, *fragment, curve.offset_bytes, *footprint);
                with_payload(curve.subject, spec)
            }));
        }
    }
    let scenes = heaps(suite, kind).into_iter().map(Scene::Aged);
    let scenes = scenes.chain(situations(suite).iter().cloned().map(Scene::Preset));
    scattered
        .extend(scenes.map(|scene| plan(suite, kind, Subject::Layout(GatherRead), scene, false)));
    scattered.sort_by_key(|plan| {
        let scatters = plan.subject.movement() == Some(ScatterCopy);
        (std::cmp::Reverse(plan.scene.footprint_bytes()), scatters)
    });
    ceilings.chain(scattered).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::experiment::{cases, parse_case};

    #[test]
    fn case_ids_are_unique_and_every_layout_is_possible() {
        for suite in [Suite::Quick, Suite::Standard, Suite::Full, Suite::Exhaustive] {
            for kind in [DeviceKind::Cuda, DeviceKind::Host] {
                let plans = plans(suite, &kind);
                let ids: HashSet<String> = plans.iter().map(Plan::case).collect();
                assert_eq!(ids.len(), plans.len());
                for plan in &plans {
                    let layout = plan.scene.layout(1);
                    assert!(!matches!(layout, Some(Err(_))), "{}: {layout:?}", plan.case());
                }
            }
        }
    }

    #[test]
    fn every_case_can_be_asked_for_by_its_id() {
        for kind in [DeviceKind::Cuda, DeviceKind::Host] {
            for case in cases(Suite::Exhaustive, &kind) {
                let parsed = parse_case(&case.id(), Suite::Exhaustive, &kind);
                assert_eq!(parsed, Ok(case));
            }
        }
    }

    #[test]
    fn quick_asks_at_most_12_groups_of_the_host() {
        let plans = plans(Suite::Quick, &DeviceKind::Host);
        assert!(plans.len() <= 12, "{}", plans.len());
        assert!(plans.iter().all(|plan| plan.scene.payload_bytes() <= 256 * MIB));
    }
}
