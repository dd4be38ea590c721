//! Runs with a known shape, for the tests of summaries and reports.

mod shape;

use crate::experiment::{Case, Suite, parse_case};
use crate::record::{
    Allocation, Clocks, DeviceFacts, DeviceKind, Group, HostFacts, KernelName, Mapping,
    PatternName, Placement, Run, SCHEMA, Selection, Status, StopReason, Subsets,
};
pub use shape::Shape;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// The record of a case before anything was measured.
pub fn allocation(case: &str) -> Allocation {
    match parse_case(case, Suite::Quick, &DeviceKind::Cuda) {
        Ok(Case::Allocation(plan)) => plan.record(Status::Ok, None),
        other => panic!("{case}: {other:?}"),
    }
}

/// Two blocks, of which any may be freed; without both, a request fails, and with one of them at
/// first.
pub fn classic(allocator: &str) -> Allocation {
    let subsets = Subsets {
        blocks_bytes: vec![256 * MIB, 512 * MIB],
        request_bytes: 512 * MIB,
        window_bytes: 768 * MIB,
        rounded_bytes: 768 * MIB,
        tried: 1024,
        failed: vec![0, 1, 2],
        failed_again: vec![0, 1],
    };
    let case = format!("classic/allocator={allocator}/memory=simulated");
    Allocation { subsets: Some(subsets), ..allocation(&case) }
}

/// A run on a GPU with 60 MiB of L2 and a peak of 4814 GB/s.
pub fn gpu_run() -> Run {
    let text = |text: &str| Some(text.to_owned());
    Run {
        schema: SCHEMA,
        tool: "0.1.0".into(),
        source_sha256: "5f".repeat(32),
        modules: [("gather".to_owned(), "a1".repeat(32)), ("verify".to_owned(), "b2".repeat(32))]
            .into(),
        arguments: ["run", "--suite", "quick", "--filter", "*/pattern=shuffled/*"]
            .map(str::to_owned)
            .into(),
        selection: Selection {
            suite: "quick".into(),
            only: Vec::new(),
            cases: Vec::new(),
            filters: vec!["*/pattern=shuffled/*".into()],
            device: "auto".into(),
            seed: "42".into(),
            memory_limit_bytes: None,
            time_limit_s: None,
            processes: 1,
            allow_fill: false,
        },
        memory_limit_bytes: 130 * GIB,
        memory_limit_reason: "nobody else uses the device".into(),
        started: "2026-12-02T10:15:00Z".into(),
        host: HostFacts {
            os: "Linux 6.8.0".into(),
            architecture: "x86_64".into(),
            processor: text("Example 9000 64-Core"),
            logical_processors: 16,
            memory_bytes: Some(128 * GIB),
            extra: Default::default(),
        },
        device: DeviceFacts {
            kind: DeviceKind::Cuda,
            id: "cuda:0".into(),
            name: "NVIDIA Example".into(),
            uuid: text("GPU-01234567-89ab-cdef-0123-456789abcdef"),
            memory_bytes: 140 * GIB,
            free_bytes: Some(139 * GIB),
            l2_bytes: Some(60 * MIB),
            multiprocessors: Some(132),
            compute_capability: text("9.0"),
            memory_clock_khz: Some(3_201_000),
            bus_width_bits: Some(6016),
            sm_clock_khz: Some(1_980_000),
            ecc: Some(true),
            driver: text("580.159.04"),
            cuda_driver: text("13.0"),
            pci_bus_id: text("0000:01:00.0"),
            integrated: Some(false),
            nvml: true,
            other_processes: Some(0),
            display: Some(false),
            l2_fetch_granularity_bytes: Some(64),
            ..DeviceFacts::new(DeviceKind::Cuda)
        },
        extra: Default::default(),
    }
}

/// A run on a host that knows no peak.
pub fn host_run() -> Run {
    let mut run = gpu_run();
    run.modules.clear();
    run.arguments = ["run", "--device", "host"].map(str::to_owned).into();
    run.selection.device = "host".into();
    run.selection.filters.clear();
    run.device = DeviceFacts {
        kind: DeviceKind::Host,
        id: "host".into(),
        name: "Example 9000 64-Core".into(),
        uuid: None,
        memory_bytes: 128 * GIB,
        l2_bytes: Some(256 * MIB),
        multiprocessors: None,
        compute_capability: None,
        memory_clock_khz: None,
        bus_width_bits: None,
        sm_clock_khz: None,
        ecc: None,
        driver: None,
        cuda_driver: None,
        pci_bus_id: None,
        integrated: None,
        nvml: false,
        other_processes: None,
        display: None,
        l2_fetch_granularity_bytes: None,
        page_bytes: Some(4096),
        numa_node: Some(0),
        threads: Some(16),
        ..run.device
    };
    run
}

/// Groups of [`gpu_run`]: clear cases, an ambiguous one, a weak baseline, a cache case, a skipped
/// case and a failed one whose samples exist.
pub fn gpu_groups() -> Vec<Group> {
    let shape = Shape::default;
    let curve = [
        Shape { fragment: 32, packed: 4050.0, sorted: 3100.0, scattered: 1210.0, ..shape() },
        shape(),
        Shape {
            fragment: 256,
            packed: 4520.0,
            sorted: 4400.0,
            scattered: 4294.0,
            spread: 0.02,
            ..shape()
        },
        Shape { fragment: 4 * KIB, packed: 4550.0, sorted: 4545.0, scattered: 4500.0, ..shape() },
        Shape {
            footprint: 256 * MIB,
            payload: 64 * MIB,
            stream: 5100.0,
            packed: 5000.0,
            sorted: 4900.0,
            scattered: 4300.0,
            ..shape()
        },
        Shape {
            kernel: KernelName::GatherCopy,
            fragment: KIB,
            stream: 4270.0,
            packed: 3600.0,
            sorted: 3800.0,
            scattered: 3700.0,
            ..shape()
        },
    ];
    let ceiling = Shape { payload: 4 * GIB, ..shape() }.ceiling([4621.0, 4262.0, 4290.0]);
    let mut groups = vec![placed(ceiling, 4)];
    groups.extend(curve.iter().map(Shape::group));
    groups.push(skipped(
        Shape { footprint: 120 * GIB, ..shape() },
        "needs 122 GiB | the limit is 119 GiB",
    ));
    let mut failed = Shape { kernel: KernelName::GatherCopy, ..shape() }.group();
    failed.status = Status::Failed;
    failed.reason = Some("destination of scattered: 3 of 2147483648 bytes differ".into());
    failed.checks[7].mismatches = 3;
    groups.push(failed);
    groups.iter_mut().filter(|group| !group.arms.is_empty()).for_each(spend_a_second);
    groups
}

/// Groups of [`gpu_run`] over chunks in three orders, around a TLB that maps 64 GiB: beyond it, chunks
/// that do not lie in order are read half as fast.
pub fn scatter_groups() -> Vec<Group> {
    let rate = |footprint: u64, missing: f64| {
        let missed = 1.0 - 64.0 * GIB as f64 / footprint as f64;
        1.0 / (1.0 / 4000.0_f64).max(missed / missing)
    };
    let of = |gib: u64| {
        let footprint = gib * GIB;
        let shape = Shape { footprint, pattern: PatternName::Random, ..Shape::default() };
        let orders = [("in_order", 400.0), ("shuffled.1", 200.0), ("reversed", 200.0)];
        shape.backings(&orders.map(|(backing, missing)| (backing, rate(footprint, missing))))
    };
    let mut groups: Vec<Group> = [128, 112, 96, 80, 72, 64, 32, 16].map(of).into();
    let mapping = |backing: &str, create_ns: u64| Mapping {
        backing: backing.to_owned(),
        chunk_bytes: 2 * MIB,
        chunks: 65_536,
        reserve_ns: 40_000,
        create_ns: 65_536 * create_ns,
        map_ns: 65_536 * 2_000,
        open_ns: 65_536 * 30_000,
    };
    groups[0].mappings = vec![mapping("in_order", 20_000), mapping("shuffled.1", 0)];
    let stream = Shape {
        kernel: KernelName::Read,
        pattern: PatternName::Contiguous,
        footprint: 16 * GIB,
        payload: 16 * GIB,
        ..Shape::default()
    };
    groups.push(stream.streams(&["in_order", "shuffled.1", "reversed"].map(|name| (name, 4600.0))));
    groups.iter_mut().for_each(spend_a_second);
    groups
}

/// Gives the group a second of wall time.
fn spend_a_second(group: &mut Group) {
    group.phases.prepare_ns = 310_000_000;
    group.phases.verify_ns = 90_000_000;
    group.phases.measure_ns = 600_000_000;
    group.phases.timed_ns = 560_000_000;
    group.phases.intervals = 400;
    group.phases.host_ns = 12_000_000;
}

/// The group with its rounds spread evenly over so many placements of its buffers.
pub fn placed(mut group: Group, placements: u32) -> Group {
    let at = |placement| u64::from(placement) * (5 << 30) + (1 << 40);
    group.placements = (0..placements).map(|n| Placement::at(at(n), at(n) + (4 << 30))).collect();
    for arm in &mut group.arms {
        let samples = &mut arm.samples;
        let rounds = samples.len() as u32;
        samples.placement = samples.round.iter().map(|n| n * placements / rounds).collect();
    }
    group
}

/// A group that was skipped for this reason.
pub fn skipped(shape: Shape, reason: &str) -> Group {
    let mut group = shape.group();
    group.status = Status::Skipped;
    group.reason = Some(reason.to_owned());
    (group.held, group.stop, group.layout) = (None, None, None);
    group.arms.clear();
    group.checks.clear();
    group
}

/// Groups of [`host_run`]: few samples, no target.
pub fn host_groups() -> Vec<Group> {
    let shape = || Shape {
        footprint: 256 * MIB,
        payload: 64 * MIB,
        stream: 21.0,
        packed: 20.0,
        sorted: 17.0,
        scattered: 8.0,
        spread: 0.02,
        rounds: 12,
        ..Shape::default()
    };
    let curve = [
        Shape { fragment: 64, ..shape() },
        Shape { fragment: 4 * KIB, sorted: 19.9, scattered: 19.8, ..shape() },
    ];
    let mut groups = vec![shape().ceiling([21.0, 18.0, 19.0])];
    groups.extend(curve.iter().map(Shape::group));
    for group in &mut groups {
        group.target_half_width_ppm = None;
        group.held = None;
        group.stop = Some(StopReason::NoTarget);
        group.clocks = Clocks::default();
    }
    groups
}
