//! What the benches of a device share: the device, its cases, and the time that criterion is told.
//!
//! The default device, as `fragbench run` takes it; the variable `FRAGBENCH_DEVICE` names another one
//! (`cuda:1`, a UUID, `host`). Every case is verified before it is timed. Times are the device's own:
//! between two events behind a hold, as in `fragbench run`, but without its rounds. For ratios with
//! intervals use that.

// Each bench takes the part that it needs.
#![allow(dead_code)]

use std::cell::OnceCell;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, SamplingMode, Throughput};
use fragbench::device::{
    self, Buffer, Device, DeviceError, DeviceRequest, Interval, Movement, SUM_BYTES, Span,
};
use fragbench::kernel::{Access, GUARD_BYTES, Operands, Verifier, fill};
use fragbench::layout::{Layout, Pattern, Spec};
use fragbench::measure::limit::memory_limit;
use fragbench::record::{Order, size};

const SEED: u64 = 1;
const DATA_KEY: u64 = 0x6461_7461;
const POISON_KEY: u64 = 0x706f_6973;

/// Footprints that are tried, the largest first, each with a payload of an eighth.
const FOOTPRINTS: [u64; 4] = [16 << 30, 2 << 30, 256 << 20, 64 << 20];

/// Launches that wait behind one hold at most.
const MOST_LAUNCHES: u64 = 32;

/// How often in a row a hold may give up.
const MOST_VOID: u32 = 20;

/// What a case runs.
#[derive(Clone, Copy)]
pub enum Wanted {
    /// A kernel over one contiguous range; none for the driver's copy.
    Contiguous(Option<Movement>),
    /// A kernel over shuffled fragments, or over the same ones packed.
    Fragments(Movement, bool, u64),
}

impl Wanted {
    fn id(self, ground: &Ground) -> BenchmarkId {
        let footprint = size::exact(ground.footprint_bytes);
        match self {
            Wanted::Contiguous(movement) => BenchmarkId::new(
                movement.map_or("driver_copy", Movement::name),
                size::exact(ground.payload_bytes()),
            ),
            Wanted::Fragments(_, true, fragment) => {
                BenchmarkId::new("contiguous", size::exact(fragment))
            }
            Wanted::Fragments(_, false, fragment) => {
                BenchmarkId::new(format!("scattered in {footprint}"), size::exact(fragment))
            }
        }
    }
}

/// The fragments that a curve is drawn by, contiguous beside scattered.
pub fn curve(movement: Movement) -> Vec<Wanted> {
    let fragments = [32, 128, 512, 4 << 10, 64 << 10];
    let both = |fragment| [true, false].map(|packed| Wanted::Fragments(movement, packed, fragment));
    fragments.into_iter().flat_map(both).collect()
}

/// Runs the cases as one criterion group, whose name holds the device's.
pub fn bench(group: &str, cases: &[Wanted]) {
    restart_in_the_workers_environment();
    let ground = Ground::open().unwrap_or_else(|message| fail(&message));
    let mut criterion = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(2))
        .configure_from_args();
    let mut group = criterion.benchmark_group(format!("{group}/{}", ground.name()));
    group.sampling_mode(SamplingMode::Flat);
    for wanted in cases {
        let case = OnceCell::new();
        let moved = match wanted {
            Wanted::Contiguous(Some(Movement::Read | Movement::Write)) => 1,
            Wanted::Fragments(movement, ..) if movement.is_read() => 1,
            _ => 2,
        };
        group.throughput(Throughput::BytesDecimal(moved * ground.payload_bytes()));
        group.bench_function(wanted.id(&ground), |bencher| {
            let case = case.get_or_init(|| {
                Case::new(&ground, *wanted).unwrap_or_else(|error| fail(&error.to_string()))
            });
            bencher.iter_custom(|launches| {
                case.time(launches).unwrap_or_else(|error| fail(&error.to_string()))
            });
        });
    }
    group.finish();
    criterion.final_summary();
}

/// The order of devices and the loading of modules are set before a driver is loaded.
pub fn restart_in_the_workers_environment() {
    let missing = device::environment();
    if missing.is_empty() {
        return;
    }
    let program = std::env::current_exe().unwrap_or_else(|error| fail(&error.to_string()));
    let arguments = std::env::args_os().skip(1);
    let error = Command::new(program).args(arguments).envs(missing).exec();
    fail(&format!("this bench could not start itself again: {error}"));
}

pub fn fail(message: &str) -> ! {
    eprintln!("{message}");
    std::process::exit(1);
}

/// The device that is measured.
pub fn default_device() -> Result<Box<dyn Device>, String> {
    let asked = std::env::var("FRAGBENCH_DEVICE").unwrap_or_else(|_| "auto".to_owned());
    let request: DeviceRequest = asked.parse()?;
    let (devices, error) = device::list();
    let error = error.map(|error| error.to_string());
    let hint = device::nvidia_hint();
    let facts = device::choose(&request, &devices, error.as_deref(), hint.as_deref())?;
    device::open(&facts.id).map_err(|error| error.to_string())
}

/// A device as ids name it: one path component, the same from run to run.
pub fn name(device: &dyn Device) -> String {
    let facts = device.facts();
    let unit = facts.uuid.clone().unwrap_or_else(|| facts.id.clone());
    format!("{} ({unit})", facts.name).replace('/', "_")
}

/// The device, and the memory that gathers read from and scatters write to.
struct Ground {
    arena: OnceCell<Buffer>,
    device: Box<dyn Device>,
    footprint_bytes: u64,
}

impl Ground {
    fn open() -> Result<Ground, String> {
        let device = default_device()?;
        let facts = device.facts().clone();
        let limit = memory_limit(device.facts(), None);
        // Once as a test, or on a host, a small case will do.
        let most = if is_measured() && !facts.is_host() { u64::MAX } else { 256 << 20 };
        let fits = |bytes: &&u64| **bytes <= most && **bytes * 2 <= limit.bytes;
        let footprint_bytes = FOOTPRINTS.iter().find(fits).copied().ok_or_else(|| {
            format!("only {} may be taken: {}", size::rounded(limit.bytes), limit.reason)
        })?;
        Ok(Ground { arena: OnceCell::new(), device, footprint_bytes })
    }

    fn name(&self) -> String {
        name(&*self.device)
    }

    fn payload_bytes(&self) -> u64 {
        self.footprint_bytes / 8
    }

    fn arena(&self) -> Result<Span<'_>, DeviceError> {
        if self.arena.get().is_none() {
            let arena = self.device.allocate(self.footprint_bytes + GUARD_BYTES)?;
            let _ = self.arena.set(arena);
        }
        let arena = self.arena.get().map(Buffer::span);
        arena.ok_or_else(|| refused("the arena is missing"))
    }
}

/// Whether criterion measures: under `cargo bench`, and not with `--test`.
fn is_measured() -> bool {
    let has = |flag: &str| std::env::args().any(|argument| argument == flag);
    has("--bench") && !has("--test")
}

fn refused(what: &str) -> DeviceError {
    DeviceError::Refused { entry: "bench", what: what.to_owned() }
}

/// A verified case with its buffers.
struct Case<'g> {
    ground: &'g Ground,
    wanted: Wanted,
    layout: Option<(Layout, Order, Buffer)>,
    payload: Buffer,
    sums: Buffer,
}

impl<'g> Case<'g> {
    fn new(ground: &'g Ground, wanted: Wanted) -> Result<Case<'g>, DeviceError> {
        let device = &*ground.device;
        let layout = match wanted {
            Wanted::Contiguous(_) => None,
            Wanted::Fragments(_, packed, fragment_bytes) => {
                let spec = Spec {
                    pattern: Pattern::SHUFFLED,
                    fragment_bytes,
                    offset_bytes: 0,
                    footprint_bytes: ground.footprint_bytes,
                    payload_bytes: ground.payload_bytes(),
                };
                let said = |error: fragbench::layout::LayoutError| refused(&error.to_string());
                let layout = Layout::new(spec, SEED).map_err(said)?;
                let order = if packed { Order::Packed } else { Order::Scattered };
                let on_host = layout.index(&order).map_err(said)?;
                let index = device.allocate(on_host.as_bytes().len() as u64)?;
                device.upload(index.span(), on_host.as_bytes())?;
                Some((layout, order, index))
            }
        };
        let case = Case {
            ground,
            wanted,
            layout,
            payload: device.allocate(ground.payload_bytes() + GUARD_BYTES)?,
            sums: device.allocate(SUM_BYTES)?,
        };
        case.verify()?;
        Ok(case)
    }

    fn access(&self) -> Result<Access<'_>, DeviceError> {
        let outside = || refused("a buffer is too short");
        let bytes = self.ground.payload_bytes();
        let (arena, sums) = (self.ground.arena()?, self.sums.span());
        let packed = arena.slice(0, bytes).ok_or_else(outside)?;
        let payload = self.payload.slice(0, bytes).ok_or_else(outside)?;
        match (self.wanted, &self.layout) {
            (Wanted::Fragments(movement, ..), Some((layout, order, index))) => {
                let footprint = arena.slice(0, self.ground.footprint_bytes).ok_or_else(outside)?;
                let operands = Operands {
                    index: Some(index.span()),
                    payload: Some(payload),
                    sums: Some(sums),
                };
                Access::of_layout(movement, layout, order, footprint, operands, DATA_KEY)
            }
            (Wanted::Contiguous(None), _) => Ok(Access::driver_copy(packed, payload, DATA_KEY)),
            (Wanted::Contiguous(Some(Movement::Write)), _) => Ok(Access::write(payload, DATA_KEY)),
            (Wanted::Contiguous(Some(Movement::Copy)), _) => {
                Ok(Access::copy(packed, payload, DATA_KEY))
            }
            _ => Ok(Access::read(packed, sums, DATA_KEY)),
        }
    }

    /// Runs it once, and compares what it did with what it should have done.
    fn verify(&self) -> Result<(), DeviceError> {
        let device = &*self.ground.device;
        let access = self.access()?;
        let launch = access.launch()?;
        let verifier = Verifier::new(device)?;
        let scatters = access.movement() == Some(Movement::ScatterCopy);
        let (source, destination) = match scatters {
            true => (self.payload.span(), self.ground.arena()?),
            false => (self.ground.arena()?, self.payload.span()),
        };
        fill(device, source, DATA_KEY)?;
        if access.movement().is_some_and(Movement::follows_index) {
            sound(verifier.check_index(&access)?.mismatches)?;
        }
        if access.is_read() {
            let expected = verifier.expected_checksum(&access)?;
            return sound(verifier.check_read(&access, Some(&launch), expected)?.mismatches);
        }
        let (written, untouched) =
            verifier.check_writes(&access, Some(&launch), destination, POISON_KEY)?;
        sound(written.mismatches + untouched.mismatches)
    }

    /// The device's time of so many launches.
    fn time(&self, launches: u64) -> Result<Duration, DeviceError> {
        let launch = self.access()?.launch()?;
        let (mut left, mut ns, mut void) = (launches, 0, 0);
        while left > 0 {
            let queued = left.min(MOST_LAUNCHES);
            match self.ground.device.time(&launch, queued as u32)? {
                Interval::Ns { ns: taken, .. } => (left, ns, void) = (left - queued, ns + taken, 0),
                Interval::Void if void < MOST_VOID => void += 1,
                Interval::Void => return Err(refused("the hold gave up again and again")),
            }
        }
        Ok(Duration::from_nanos(ns))
    }
}

fn sound(mismatches: u64) -> Result<(), DeviceError> {
    match mismatches {
        0 => Ok(()),
        count => Err(refused(&format!("verification failed: {count} items differ"))),
    }
}
