//! How long calls of an allocator take in a state.

use std::sync::Barrier;
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use super::factor::{Factor, HEAP_BYTES, LIVE_BLOCK_BYTES};
use super::failure::Failure;
use crate::harness::{Distribution, Recipe, Scale, age};
use crate::layout::Permutation;
use crate::policy::{Policy, PolicyError};
use crate::record::{Calls, State, size};

/// What is allocated and freed before each allocation in one of the states.
const LARGE_BYTES: u64 = 1 << 30;

/// How long nothing is done before each call in another.
const REST: Duration = Duration::from_millis(20);

/// Pairs of calls before the first that counts: libraries are loaded and pools are made in them.
const FIRST_CALLS: usize = 3;

/// Readings of the clock that tell what reading it takes.
const READINGS: usize = 10_001;

/// What is done around each call, out of its time.
pub(super) trait Around {
    /// Before the clock is read.
    fn before(&mut self) -> Result<(), Failure>;
    /// After it was read again.
    fn after(&mut self) -> Result<(), Failure>;
}

/// Nothing.
pub(super) struct Idle;

impl Around for Idle {
    fn before(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    fn after(&mut self) -> Result<(), Failure> {
        Ok(())
    }
}

/// What two reads of the clock take without a call between them, in nanoseconds: the median.
pub(super) fn timer_ns() -> u64 {
    let mut readings: Vec<u64> = (0..READINGS).map(|_| timed(|| ()).1).collect();
    readings.sort_unstable();
    readings[READINGS / 2]
}

fn timed<T>(call: impl FnOnce() -> T) -> (T, u64) {
    let begin = Instant::now();
    let answer = call();
    let took = begin.elapsed();
    (answer, took.as_nanos() as u64)
}

/// Brings an allocator that holds nothing into a state. What was not reached is said. When all blocks
/// live, and none was freed yet, `when_full` is called.
pub(super) fn prepare(
    allocator: &mut dyn Policy,
    factor: Factor,
    seed: u64,
    when_full: &mut dyn FnMut() -> Result<(), Failure>,
) -> Result<(Vec<u64>, State), Failure> {
    let block_bytes = match factor {
        Factor::Holes { bytes, .. }
        | Factor::Tight { bytes, .. }
        | Factor::Joined { bytes, .. } => bytes,
        _ => LIVE_BLOCK_BYTES,
    };
    let wanted = factor.blocks();
    let mut live = Vec::with_capacity(wanted as usize);
    while (live.len() as u64) < wanted {
        match allocator.allocate(block_bytes) {
            Ok(block) => live.push(block.address),
            Err(error) => {
                let failure = Failure::from(error.clone());
                let Failure::Skipped(_) = failure else { return Err(failure) };
                let reached = live.len();
                live.into_iter().rev().try_for_each(|address| allocator.free(address))?;
                return Err(Failure::Skipped(format!(
                    "the state wants {wanted} blocks of {}, and after {reached} no more were to be had ({error})",
                    size::rounded(block_bytes)
                )));
            }
        }
    }
    when_full()?;
    let mut state = State::default();
    let is_joined = matches!(factor, Factor::Joined { .. });
    if is_joined || matches!(factor, Factor::Holes { .. } | Factor::Tight { .. }) {
        let order = Permutation::new(seed, wanted);
        let mut at = 0;
        let mut gone = Vec::new();
        live.retain(|&address| {
            let rank = if is_joined { at } else { order.apply(at) };
            let is_kept = rank >= wanted / 2;
            at += 1;
            if !is_kept {
                gone.push(address);
            }
            is_kept
        });
        (state.holes, state.hole_bytes) = (gone.len() as u64, gone.len() as u64 * block_bytes);
        gone.into_iter().try_for_each(|address| allocator.free(address))?;
    }
    (state.live_blocks, state.live_bytes) = (live.len() as u64, live.len() as u64 * block_bytes);
    Ok((live, state))
}

/// The fewest live blocks of a program that runs on an allocator, and the calls that it runs for: some
/// seconds of a driver's.
const CHURN_BLOCKS: u64 = 5_000;
const CHURN_CALLS: u64 = 120_000;

/// Has a program run on an allocator that holds nothing; its blocks live on.
pub(super) fn churn(
    allocator: &mut dyn Policy,
    sizes: Distribution,
    seed: u64,
) -> Result<State, Failure> {
    let recipe = Recipe {
        scale: Scale::Blocks(CHURN_BLOCKS),
        limit_operations: CHURN_CALLS,
        // Of no level, so that it ends with its calls or when holes fall no more.
        ..Recipe::new(sizes, HEAP_BYTES, 1, seed)
    };
    let (aged, ns) = timed(|| age(allocator, &recipe));
    let reached = *aged.map_err(|error| Failure::Skipped(error.to_string()))?.reached();
    Ok(State {
        live_blocks: reached.usage.live_blocks,
        live_bytes: reached.usage.requested_bytes,
        churn_calls: reached.operations,
        churn_ns: ns,
        ..State::default()
    })
}

/// Which calls are timed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timing {
    /// What is different from the base state.
    pub(super) factor: Factor,
    /// The length of blocks, in bytes.
    pub(super) request_bytes: u64,
    /// Samples of each call.
    pub(super) samples: usize,
    /// Whether an allocator that gives back what is free only when it is waited for is waited for
    /// after each free, out of its time: else it would be one that keeps.
    pub(super) releases: bool,
}

/// Times calls for blocks of one length in a state that is [prepared](prepare).
pub(super) fn time(
    allocator: &mut dyn Policy,
    timing: Timing,
    around: &mut dyn Around,
) -> Result<Vec<Calls>, Failure> {
    let Timing { factor, request_bytes, samples, releases: _ } = timing;
    for _ in 0..FIRST_CALLS {
        around.before()?;
        let block = allocator.allocate(request_bytes)?;
        around.after()?;
        allocator.free(block.address)?;
    }
    let (mut allocate_ns, mut free_ns) = (Vec::with_capacity(samples), Vec::with_capacity(samples));
    let mut live = Vec::with_capacity(samples);
    for _ in 0..samples {
        lead(allocator, factor)?;
        around.before()?;
        let (block, ns) = timed(|| allocator.allocate(request_bytes));
        around.after()?;
        match block {
            Ok(block) => live.push(block.address),
            // A device is full before all samples are taken.
            Err(PolicyError::OutOfMemory { .. }) if factor == Factor::Fill && !live.is_empty() => {
                break;
            }
            Err(error) => return Err(error.into()),
        }
        allocate_ns.push(ns);
        if factor != Factor::Fill {
            free_last(allocator, timing, &mut live, &mut free_ns, around)?;
        }
    }
    while !live.is_empty() {
        free_last(allocator, timing, &mut live, &mut free_ns, around)?;
    }
    Ok(calls(allocate_ns, free_ns))
}

fn calls(allocate_ns: Vec<u64>, free_ns: Vec<u64>) -> Vec<Calls> {
    let of = |call: &str, ns| Calls { call: call.to_owned(), ns };
    vec![of("allocate", allocate_ns), of("free", free_ns)]
}

/// What comes before an allocation.
fn lead(allocator: &mut dyn Policy, factor: Factor) -> Result<(), Failure> {
    match factor {
        Factor::LargeFree => {
            let block = allocator.allocate(LARGE_BYTES)?;
            allocator.free(block.address)?;
        }
        Factor::Rest => sleep(REST),
        _ => {}
    }
    Ok(())
}

fn free_last(
    allocator: &mut dyn Policy,
    timing: Timing,
    live: &mut Vec<u64>,
    free_ns: &mut Vec<u64>,
    around: &mut dyn Around,
) -> Result<(), Failure> {
    let Some(address) = live.pop() else { return Ok(()) };
    if timing.factor == Factor::Rest {
        sleep(REST);
    }
    around.before()?;
    let (freed, ns) = timed(|| allocator.free(address));
    around.after()?;
    freed?;
    free_ns.push(ns);
    if timing.releases {
        allocator.release_unused()?;
    }
    Ok(())
}

/// Times calls on several threads at a time, with an allocator each; the samples of all threads.
pub(super) fn time_on_threads(
    allocators: Vec<Box<dyn Policy>>,
    timing: Timing,
) -> Result<Vec<Calls>, Failure> {
    let barrier = Barrier::new(allocators.len());
    let samples = timing.samples.div_ceil(allocators.len());
    let timing = Timing { samples, ..timing };
    let found: Vec<Result<Vec<Calls>, Failure>> = thread::scope(|scope| {
        let begun: Vec<_> = allocators
            .into_iter()
            .map(|mut allocator| {
                let barrier = &barrier;
                scope.spawn(move || {
                    barrier.wait();
                    time(&mut *allocator, timing, &mut Idle)
                })
            })
            .collect();
        let lost = || Failure::Failed("a thread that called the allocator panicked".to_owned());
        begun.into_iter().map(|thread| thread.join().unwrap_or_else(|_| Err(lost()))).collect()
    });
    let mut all: Vec<Calls> = calls(Vec::new(), Vec::new());
    for of_thread in found {
        for (all, one) in all.iter_mut().zip(of_thread?) {
            all.ns.extend(one.ns);
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{
        Block, FirstFit, Growth, Hole, HoleOrder, Params, Placement, SimulatedSource, Usage,
    };

    fn timing(factor: Factor, request_bytes: u64, samples: usize) -> Timing {
        Timing { factor, request_bytes, samples, releases: false }
    }

    fn first_fit(bytes: u64) -> impl Policy {
        let source = SimulatedSource::new(bytes, 2 << 20, Placement::Contiguous).unwrap();
        FirstFit::new(source, &Params::default().with_growth(Growth::Whole)).unwrap()
    }

    #[test]
    fn holes_lie_between_live_blocks_and_everything_can_be_given_back() {
        let mut policy = first_fit(1 << 30);
        let factor = Factor::Holes { bytes: 1 << 20, count: 100 };
        let (live, state) = prepare(&mut policy, factor, 1, &mut || Ok(())).unwrap();
        assert_eq!((state.live_blocks, state.holes), (100, 100));
        assert_eq!((state.live_bytes, state.hole_bytes), (100 << 20, 100 << 20));
        let holes = policy.holes(HoleOrder::Address);
        assert!(holes.len() > 30, "{}", holes.len());
        live.into_iter().for_each(|address| policy.free(address).unwrap());
        assert_eq!(policy.usage().live_blocks, 0);
        let factor = Factor::Joined { bytes: 1 << 20, count: 100 };
        let (live, state) = prepare(&mut policy, factor, 1, &mut || Ok(())).unwrap();
        assert_eq!((live.len(), state.holes), (100, 100));
        let holes = policy.holes(HoleOrder::Address);
        assert!(holes.iter().any(|hole| hole.bytes == 100 << 20), "{holes:?}");
    }

    #[test]
    fn a_program_leaves_its_blocks() {
        let mut policy = first_fit(HEAP_BYTES);
        let state = churn(&mut policy, Distribution::TrainingStep, 1).unwrap();
        assert_eq!(state.live_blocks, policy.usage().live_blocks);
        assert!(state.live_blocks > 1_000 && state.churn_calls > 2 * state.live_blocks);
        assert!(state.churn_ns > 0);
    }

    #[test]
    fn a_state_that_is_not_reached_says_how_far_it_came_and_leaves_nothing() {
        let mut policy = first_fit(64 << 20);
        let factor = Factor::Live { blocks: 100 };
        let failure = prepare(&mut policy, factor, 1, &mut || Ok(())).unwrap_err();
        let Failure::Skipped(why) = failure else { panic!("{failure:?}") };
        assert!(why.contains("100 blocks of 2 MiB") && why.contains("after 32"), "{why}");
        assert_eq!(policy.usage().live_blocks, 0);
    }

    #[test]
    fn every_factor_times_as_many_calls_and_frees_all() {
        for text in ["base", "fill", "large_free", "rest"] {
            let mut policy = first_fit(2 << 30);
            let factor: Factor = text.parse().unwrap();
            let found = time(&mut policy, timing(factor, 4096, 5), &mut Idle).unwrap();
            assert!(found.iter().all(|calls| calls.ns.len() == 5), "{text}: {found:?}");
            assert_eq!(policy.usage().live_blocks, 0, "{text}");
        }
        // Full before the last sample.
        let full = timing(Factor::Fill, 4 << 20, 9);
        let found = time(&mut first_fit(16 << 20), full, &mut Idle).unwrap();
        assert!(found.iter().all(|calls| calls.ns.len() == 4));
        let threads = (0..3).map(|_| Box::new(first_fit(16 << 20)) as Box<dyn Policy>).collect();
        let found = time_on_threads(threads, timing(Factor::Base, 4096, 30)).unwrap();
        assert!(found.iter().all(|calls| calls.ns.len() == 30));
    }

    /// An allocator whose calls take as long as they are told to.
    struct Slow;

    impl Policy for Slow {
        fn name(&self) -> &'static str {
            "slow"
        }

        fn alignment_bytes(&self) -> u64 {
            1
        }

        fn allocate(&mut self, bytes: u64) -> Result<Block, PolicyError> {
            sleep(Duration::from_millis(2));
            Ok(Block { address: 1, requested_bytes: bytes, rounded_bytes: bytes })
        }

        fn free(&mut self, _: u64) -> Result<(), PolicyError> {
            sleep(Duration::from_millis(4));
            Ok(())
        }

        fn is_live(&self, _: u64) -> bool {
            false
        }

        fn usage(&self) -> Usage {
            Usage::default()
        }

        fn holes(&self, _: HoleOrder) -> Vec<Hole> {
            Vec::new()
        }

        fn release_unused(&mut self) -> Result<u64, PolicyError> {
            Ok(0)
        }
    }

    #[test]
    fn a_sample_is_the_call_and_nothing_around_it() {
        struct Around10;
        impl Around for Around10 {
            fn before(&mut self) -> Result<(), Failure> {
                sleep(Duration::from_millis(10));
                Ok(())
            }

            fn after(&mut self) -> Result<(), Failure> {
                self.before()
            }
        }
        let found = time(&mut Slow, timing(Factor::Base, 1, 5), &mut Around10).unwrap();
        let least = |at: usize| *found[at].ns.iter().min().unwrap();
        // A sleep is never shorter than asked for; the shortest of some is hardly longer.
        assert!((2_000_000..9_000_000).contains(&least(0)), "{found:?}");
        assert!((4_000_000..9_000_000).contains(&least(1)), "{found:?}");
    }
}
