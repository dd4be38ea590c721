//! One replication: what a run does, on simulated times.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::{Duration, Instant};

use serde_json::Map;

use super::noise::Times;
use crate::device::scripted::{Scripted, Timed};
use crate::device::{Buffer, Device, Interval, Launch, SUM_BYTES};
use crate::experiment::{Suite, parse_plan};
use crate::kernel::Access;
use crate::layout::draw;
use crate::measure::{
    Budget, Conduct, Count, Measured, Pauses, Ratio, Rest, SENTINEL_BYTES, Steady, Watch, measure,
};
use crate::record::{
    Arm, Check, CheckKind, DeviceFacts, DeviceKind, Group, HostFacts, KernelName, Noise, Order,
    PatternName, Reading, Run, SCHEMA, Selection, Status, When,
};
use crate::stats::simulate::Generator;
use crate::stats::{self, Interval as Ends};
use crate::summary::{Flag, Metric, Row, rows};

/// The arms, by the bytes that one launch of each reads: so the simulation tells them apart.
const ARMS: [(&str, u64); 2] = [("packed", 512 << 20), ("scattered", 256 << 20)];

/// How fast all of them are, in bytes a nanosecond.
const RATE: f64 = 4_000.0;

/// What a half-width is to be at most, as in the suites.
const TARGET_PPM: u32 = 5_000;

/// The processes of a between-process interval.
const PROCESSES: u32 = 5;

/// The relative deviation of what a process adds: as large as that of its rounds, so much larger than
/// that of their median.
const BETWEEN: f64 = 0.006;

/// What the procedure found, and what is true.
pub(super) struct Outcome {
    pub truth: f64,
    pub interval: Option<Ends>,
    pub samples: u64,
    pub autocorrelated: bool,
    pub imprecise: bool,
    pub drift: bool,
}

/// The bandwidth of an arm and the ratio of both, as a run with this noise finds them.
pub(super) fn within(noise: &Noise, seed: u64) -> [Outcome; 2] {
    let (group, times) = group(noise, seed, 0.0);
    let rounds = group.arms[1].samples.len();
    let [packed, scattered] = [1, 2].map(|arm| times.borrow().truth(arm, rounds));
    let rows = rows("", &run(), &[group]);
    let bandwidth = outcome(&rows, Metric::EffectiveBandwidth, RATE * (-scattered).exp());
    let ratio = outcome(&rows, Metric::RelativeBandwidth, (packed - scattered).exp());
    [bandwidth, ratio]
}

/// The ratio between processes, of which each has an offset of its own.
pub(super) fn between(seed: u64) -> Outcome {
    let mut random = Generator::new(draw(seed, u64::from(PROCESSES)));
    let groups: Vec<Group> = (0..PROCESSES)
        .map(|process| {
            let offset = BETWEEN * random.normal();
            let own = draw(seed, u64::from(process));
            Group { process, ..group(&Noise::Normal, own, offset).0 }
        })
        .collect();
    // The mean over all processes of what one finds, whose logarithm is normal.
    let truth = (BETWEEN * BETWEEN / 2.0).exp();
    outcome(&rows("", &run(), &groups), Metric::RelativeBandwidth, truth)
}

/// The block bootstrap of a series, without the test that decides for it.
pub(super) fn block_bootstrap(noise: &Noise, count: usize, seed: u64) -> Outcome {
    let mut times = Times::new(noise.clone(), 1, seed);
    let series: Vec<f64> = (0..count).map(|_| times.next(0)).collect();
    Outcome {
        truth: times.truth(0, count),
        interval: stats::block_median_interval(&series),
        samples: count as u64,
        autocorrelated: stats::is_autocorrelated(&series) == Some(true),
        imprecise: false,
        drift: false,
    }
}

fn outcome(rows: &[Row], metric: Metric, truth: f64) -> Outcome {
    let is_it = |row: &&Row| row.metric == metric && row.arm() == Some("scattered");
    let row = rows.iter().find(is_it).expect("a group that is whole has it");
    let has = |flag| row.flags.contains(&flag);
    Outcome {
        truth,
        interval: row.figure.ci(),
        samples: row.figure.samples.unwrap_or(0),
        autocorrelated: has(Flag::Autocorrelated),
        imprecise: has(Flag::Imprecise),
        drift: has(Flag::Drift),
    }
}

/// A group whose scattered arm takes longer by the exponential of `offset`.
fn group(noise: &Noise, seed: u64, offset: f64) -> (Group, Rc<RefCell<Times>>) {
    // The sentinel comes before the arms, so that the one that drifts alone is the last.
    let times = Rc::new(RefCell::new(Times::new(noise.clone(), ARMS.len() + 1, seed)));
    let script = {
        let times = times.clone();
        move |timed: Timed| {
            let arm = ARMS.iter().position(|(_, bytes)| *bytes == timed.bytes);
            let slower = if arm == Some(1) { offset } else { 0.0 };
            let log = times.borrow_mut().next(arm.map_or(0, |arm| arm + 1)) + slower;
            let ns = timed.bytes as f64 * f64::from(timed.launches) / RATE * log.exp();
            Interval::Ns { ns: ns.round() as u64, sm_khz: None }
        }
    };
    let device = Scripted::new(8 << 30, script);
    let measured = measured(&device, seed);
    (recorded(measured), times)
}

fn measured(device: &Scripted, seed: u64) -> Measured {
    let source = device.allocate(SENTINEL_BYTES).expect("there is room");
    let sums = device.allocate(SUM_BYTES).expect("there is room");
    let read = |bytes: u64| read(&source, &sums, bytes);
    let arms = ARMS.map(|(_, bytes)| read(bytes));
    let at_rest = Reading { launches: 1, ns: (SENTINEL_BYTES as f64 / RATE) as u64, sm_khz: None };
    let watch = Watch {
        launch: read(SENTINEL_BYTES),
        bytes: SENTINEL_BYTES,
        rest: Some(Rest { reading: Some(at_rest), settled: true }),
        disturbed: false,
        last_busy: Some(Instant::now()),
    };
    let conduct = Conduct {
        steady: Steady::Watch(watch),
        evict: None,
        count: Count::Found { parts: 1 },
        pauses: Pauses { length: Duration::ZERO, most: 0 },
    };
    let budget = Budget {
        target_half_width_ppm: Some(TARGET_PPM),
        fewest_rounds: 30,
        // Simulated times take none: what they are must not depend on how fast this machine is.
        time: Duration::from_secs(86_400),
    };
    let ratio = Ratio { numerator: 1, denominator: 0 };
    measure(device, &arms, ratio, budget, seed, &conduct).expect("a simulation does not fail")
}

fn read<'a>(source: &'a Buffer, sums: &'a Buffer, bytes: u64) -> Launch<'a> {
    let span = source.slice(0, bytes).expect("it is as long as the longest");
    Access::read(span, sums.span(), 1).launch().expect("it is whole units")
}

/// The group's line, as if its kernels had been verified: what a simulation returns is right.
fn recorded(measured: Measured) -> Group {
    let case = "bandwidth/kernel=gather_read/pattern=shuffled/fragment=128B/footprint=2GiB";
    let plan = parse_plan(case, Suite::Quick, &DeviceKind::Cuda).expect("it is in the suites");
    let mut group = plan.record(Status::Ok, None);
    group.held = Some(true);
    group.target_half_width_ppm = Some(TARGET_PPM);
    measured.note(&mut group);
    for ((name, bytes), samples) in ARMS.into_iter().zip(measured.samples) {
        group.arms.push(Arm {
            name: name.to_owned(),
            kernel: KernelName::GatherRead.into(),
            pattern: PatternName::Shuffled.into(),
            order: Some(if name == "packed" { Order::Packed } else { Order::Scattered }),
            backing: None,
            read_bytes: bytes,
            written_bytes: 0,
            index_bytes: 0,
            touched_bytes: 2 << 30,
            samples,
            extra: Map::new(),
        });
        for when in [When::Before, When::After] {
            let (kind, arm) = (CheckKind::Checksum, name.to_owned());
            group.checks.push(Check { arm, kind, when, compared: 1, mismatches: 0 });
        }
    }
    group
}

fn run() -> Run {
    Run {
        schema: SCHEMA,
        tool: String::new(),
        source_sha256: String::new(),
        modules: BTreeMap::new(),
        arguments: Vec::new(),
        selection: Selection {
            suite: Suite::Quick.name().to_owned(),
            only: Vec::new(),
            cases: Vec::new(),
            filters: Vec::new(),
            device: String::new(),
            seed: String::new(),
            memory_limit_bytes: None,
            time_limit_s: None,
            processes: 1,
            allow_fill: false,
        },
        memory_limit_bytes: 0,
        memory_limit_reason: String::new(),
        started: String::new(),
        host: HostFacts::default(),
        device: DeviceFacts::new(DeviceKind::Cuda),
        extra: Map::new(),
    }
}
