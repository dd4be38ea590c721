//! The worker's side: one case of an allocator.

use std::time::{Duration, Instant};

use super::allocator::{keeping, on_device, simulated};
use super::capacity::{World, after_holes, granules, settled};
use super::classic::{self, Patience, Trouble, blocks_bytes, every_set};
use super::failure::Failure;
use super::latency::{Around, Idle, Timing, churn, prepare, time, time_on_threads, timer_ns};
use super::steps::time_steps;
use super::window::Window;
use super::{AllocationPlan, Allocator, Factor, Study};
use crate::device::{Buffer, Chunk, Device, DeviceAllocator, Launch, SUM_BYTES, pinned};
use crate::experiment::Session;
use crate::kernel::{Access, fill};
use crate::measure::limit::not_ours;
use crate::policy::caching::Config;
use crate::policy::{Growth, Params, Policy};
use crate::record::{Allocation, MemoryKind, State, Status, Subsets, size};

/// How long memory of a driver rests before a refusal is believed: it scrubs what was freed before it
/// hands it out again.
const REST: Duration = Duration::from_millis(20);

/// How often a refused request of the classic experiment is repeated, each time after a rest.
const DRIVER: Patience = Patience { repeats: 50, rest: Duration::from_millis(1) };

/// What simulated windows grow by until all blocks fit: the shortest block.
const STEP_BYTES: u64 = 16 << 20;

/// What is left to the driver where a window is all of the device.
const RESERVE_BYTES: u64 = 256 << 20;

/// What an allocator may take when it is used for the first time.
const FIRST_BYTES: u64 = 64 << 20;

/// What the kernel reads that keeps the device at work.
const WORK_BYTES: u64 = 1 << 30;

impl Session {
    /// Measures one case of an allocator. Whatever goes wrong is in the record.
    pub fn perform_allocation(&mut self, plan: &AllocationPlan) -> Allocation {
        let mut record = plan.record(Status::Ok, None);
        let before = self.device.snapshot();
        let result = match plan.memory {
            MemoryKind::Device => self.on_device(plan, &mut record),
            _ => in_simulation(plan, &mut record),
        };
        if plan.is_on_device() {
            record.condition = before.condition_until(&self.device.snapshot());
        }
        if let Err(failure) = result {
            failure.end(&mut record);
        }
        record
    }

    fn on_device(&mut self, plan: &AllocationPlan, record: &mut Allocation) -> Result<(), Failure> {
        if let Some(why) = self.may_not_fill().filter(|_| plan.fills_device()) {
            return Err(Failure::Skipped(format!(
                "it would fill the device, and {why}: give --allow-fill to have it done all the same"
            )));
        }
        let begin = Instant::now();
        self.free_arena();
        self.use_once(plan)?;
        let free_before = settled(&|| self.device.free_bytes(), REST)?;
        record.phases.wait_ns = begin.elapsed().as_nanos() as u64;
        let begin = Instant::now();
        let result = self.study(plan, free_before, record);
        let took_ns = begin.elapsed().as_nanos() as u64;
        record.phases.measure_ns = took_ns.saturating_sub(record.phases.prepare_ns);
        let begin = Instant::now();
        let free_after = self.wait_for(free_before)?;
        record.phases.wait_ns += begin.elapsed().as_nanos() as u64;
        record.free_bytes = Some([free_before, free_after]);
        result?;
        if free_after < free_before {
            return Err(Failure::Failed(format!(
                "{} of the device's memory did not come back",
                size::rounded(free_before - free_after)
            )));
        }
        Ok(())
    }

    /// Makes as many allocators as will be there at a time, takes a block of each, and gives all of it
    /// back: what a library or the driver keeps from its first use on is none of what is measured.
    fn use_once(&self, plan: &AllocationPlan) -> Result<(), Failure> {
        let count = match plan.study {
            Study::Latency { factor: Factor::Threads { count }, .. } => count,
            Study::Latency { factor: Factor::Steps, request_bytes, .. } => {
                let chunk = chunk_of(plan.allocator)?;
                return time_steps(&*self.device, chunk, request_bytes, 1).map(drop);
            }
            _ => 1,
        };
        let growth = Params::default().growth;
        let make = || {
            let device = &*self.device;
            let mut one =
                on_device(plan.allocator, device, FIRST_BYTES, Config::default(), growth)?;
            one.allocate(1)?;
            Ok(one)
        };
        // Blocks are freed with them.
        (0..count).map(|_| make()).collect::<Result<Vec<_>, Failure>>().map(drop)
    }

    fn study(
        &self,
        plan: &AllocationPlan,
        free: u64,
        record: &mut Allocation,
    ) -> Result<(), Failure> {
        let device = &*self.device;
        let allocator = |capacity_bytes| {
            let growth = Params::default().growth;
            on_device(plan.allocator, device, capacity_bytes, Config::default(), growth)
        };
        match plan.study {
            Study::Classic => record.subsets = Some(classic_on(device, plan.allocator)?),
            Study::Capacity { block_bytes, freed, window_bytes } => {
                let window_bytes = window_bytes.unwrap_or(free.saturating_sub(RESERVE_BYTES));
                let mut allocator = allocator(window_bytes)?;
                let _window = Window::open(device, window_bytes)?;
                let free_bytes = || device.free_bytes();
                let mut world =
                    World { allocator: &mut *allocator, free_bytes: &free_bytes, rest: REST };
                record.quantities = after_holes(&mut world, block_bytes, freed, self.seed)?;
            }
            Study::Granule => {
                let mut allocator = allocator(free)?;
                let free_bytes = || device.free_bytes();
                let mut world =
                    World { allocator: &mut *allocator, free_bytes: &free_bytes, rest: REST };
                record.quantities = granules(&mut world)?;
            }
            Study::Latency { factor: Factor::Steps, request_bytes, samples } => {
                let chunk = chunk_of(plan.allocator)?;
                record.calls = pinned(|| {
                    record.state = Some(State { timer_ns: timer_ns(), ..State::default() });
                    time_steps(device, chunk, request_bytes, samples as usize)
                })?;
            }
            Study::Latency { factor, request_bytes, samples } => {
                let make = || allocator(free);
                let releases = plan.allocator == Allocator::Device(DeviceAllocator::MemPoolRelease);
                let samples = samples as usize;
                let timing = Timing { factor, request_bytes, samples, releases };
                latency_on(device, &make, timing, self.seed, record)?;
            }
        }
        Ok(())
    }

    /// Why the device may not be filled; none where it is provably this run's alone, or that was
    /// allowed.
    fn may_not_fill(&self) -> Option<String> {
        if self.allow_fill {
            return None;
        }
        let others = self.device.snapshot().other_processes;
        let come = |count| format!("{count} other processes have come to it since the run began");
        not_ours(self.device.facts()).or_else(|| match others {
            Some(0) => None,
            Some(count) => Some(come(count)),
            None => Some("NVML no longer lists its processes".to_owned()),
        })
    }
}

/// How long the chunks are that an allocator of virtual memory makes its blocks of.
fn chunk_of(allocator: Allocator) -> Result<Chunk, Failure> {
    match allocator {
        Allocator::Device(DeviceAllocator::Vmm(chunk)) => Ok(chunk),
        other => Err(Failure::Skipped(format!("{other} makes a block in one call"))),
    }
}

fn classic_on(device: &dyn Device, allocator: Allocator) -> Result<Subsets, Failure> {
    let window_bytes = blocks_bytes();
    let mut make = || on_device(allocator, device, window_bytes, keeping(), Growth::Whole);
    let mut window = Window::open(device, window_bytes)?;
    loop {
        let mut allocator = make()?;
        match classic::set_up(&mut *allocator, DRIVER) {
            Ok(_) => {
                // With the blocks in place, what is left is none of the window.
                window.close()?;
                break;
            }
            Err(trouble @ Trouble::SetUp { .. }) => {
                drop(allocator);
                if window.widen().is_err() {
                    return Err(trouble.into());
                }
            }
            Err(trouble) => return Err(trouble.into()),
        }
    }
    Ok(every_set(&mut make, window_bytes, DRIVER)?)
}

/// An allocator that holds nothing yet.
type Make<'a> = dyn Fn() -> Result<Box<dyn Policy>, Failure> + 'a;

fn latency_on(
    device: &dyn Device,
    make: &Make<'_>,
    timing: Timing,
    seed: u64,
    record: &mut Allocation,
) -> Result<(), Failure> {
    let begin = Instant::now();
    let factor = timing.factor;
    if let Factor::Threads { count } = factor {
        let allocators = (0..count).map(|_| make()).collect::<Result<Vec<_>, Failure>>()?;
        record.state = Some(State { timer_ns: timer_ns(), ..State::default() });
        record.calls = time_on_threads(allocators, timing)?;
        return Ok(());
    }
    let mut allocator = make()?;
    let (_window, live, mut state) = match factor {
        // Its blocks are freed with the allocator.
        Factor::Churn { sizes } => (None, Vec::new(), churn(&mut *allocator, sizes, seed)?),
        _ if factor.is_tight() => tight(device, &mut *allocator, factor, seed)?,
        _ => {
            let (live, state) = prepare(&mut *allocator, factor, seed, &mut || Ok(()))?;
            (None, live, state)
        }
    };
    state.free_bytes = Some(device.free_bytes()?);
    let work = match factor {
        Factor::Busy { us } => Some(Work::new(device, us)?),
        _ => None,
    };
    record.phases.prepare_ns = begin.elapsed().as_nanos() as u64;
    record.calls = pinned(|| {
        state.timer_ns = timer_ns();
        let mut busy = work.as_ref().map(|work| Busy { device, work });
        let around: &mut dyn Around = match &mut busy {
            Some(busy) => busy,
            None => &mut Idle,
        };
        time(&mut *allocator, timing, around)
    })?;
    record.state = Some(state);
    for address in live.into_iter().rev() {
        allocator.free(address)?;
    }
    Ok(())
}

/// Brings an allocator into a state of holes beyond which nothing is left: the window that sees to it,
/// the live blocks, and the state.
fn tight<'a>(
    device: &'a dyn Device,
    allocator: &mut dyn Policy,
    factor: Factor,
    seed: u64,
) -> Result<(Option<Window<'a>>, Vec<u64>, State), Failure> {
    let mut window = Window::open(device, factor.bytes())?;
    loop {
        let found = prepare(allocator, factor, seed, &mut || Ok(window.close()?));
        match found {
            Ok((live, state)) => return Ok((Some(window), live, state)),
            // Some of what was free is not to be had for blocks.
            Err(Failure::Skipped(why)) => {
                allocator.release_unused()?;
                window.widen().map_err(|_| Failure::Skipped(why))?;
            }
            Err(failure) => return Err(failure),
        }
    }
}

/// Launches that take a device about so long.
struct Work {
    source: Buffer,
    sums: Buffer,
    launches: u32,
}

impl Work {
    fn new(device: &dyn Device, us: u32) -> Result<Work, Failure> {
        let (source, sums) = (device.allocate(WORK_BYTES)?, device.allocate(SUM_BYTES)?);
        fill(device, source.span(), 0)?;
        let mut work = Work { source, sums, launches: 1 };
        let mut took = Duration::ZERO;
        // The first of them wakes the device.
        for _ in 0..3 {
            device.synchronize()?;
            let begin = Instant::now();
            work.queue(device)?;
            device.synchronize()?;
            took = begin.elapsed();
        }
        let wanted = Duration::from_micros(u64::from(us)).as_nanos();
        work.launches = wanted.div_ceil(took.as_nanos().max(1)).clamp(1, 1000) as u32;
        Ok(work)
    }

    fn launch(&self) -> Result<Launch<'_>, Failure> {
        Ok(Access::read(self.source.span(), self.sums.span(), 0).launch()?)
    }

    fn queue(&self, device: &dyn Device) -> Result<(), Failure> {
        let launch = self.launch()?;
        (0..self.launches).try_for_each(|_| Ok(device.launch(&launch)?))
    }
}

/// A device that is at work when a call is made.
struct Busy<'a> {
    device: &'a dyn Device,
    work: &'a Work,
}

impl Around for Busy<'_> {
    fn before(&mut self) -> Result<(), Failure> {
        self.work.queue(self.device)
    }

    fn after(&mut self) -> Result<(), Failure> {
        Ok(self.device.synchronize()?)
    }
}

fn in_simulation(plan: &AllocationPlan, record: &mut Allocation) -> Result<(), Failure> {
    let (Allocator::Policy(name), Study::Classic) = (plan.allocator, &plan.study) else {
        return Err(Failure::Skipped("there is no simulation of it".to_owned()));
    };
    let begin = Instant::now();
    let windows = (blocks_bytes()..=2 * blocks_bytes()).step_by(STEP_BYTES as usize);
    let mut answer = Err(Failure::Skipped("there is no window for it".to_owned()));
    for window_bytes in windows {
        let mut make = || simulated(name, window_bytes).map_err(Failure::Failed);
        let found = every_set(&mut make, window_bytes, Patience::default());
        let is_too_short = matches!(found, Err(Trouble::SetUp { .. }));
        answer = found.map_err(Failure::from).map(|found| record.subsets = Some(found));
        if !is_too_short {
            break;
        }
    }
    record.phases.measure_ns = begin.elapsed().as_nanos() as u64;
    answer
}

#[cfg(test)]
mod tests;
