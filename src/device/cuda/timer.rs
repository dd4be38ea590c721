//! Timing on a stream: hold, stamp, events around what is timed, stamp, release, wait.

use std::cell::Cell;
use std::time::{Duration, Instant};

use super::hold::{Holder, TIMEOUT_NS, TRIAL_TIMEOUT_NS};
use super::stamp::{Stamps, Ticks};
use super::stream::{Event, Stream};
use super::{ControlKernels, DeviceError};
use crate::device::Interval;

/// Launches that may wait behind one hold; a longer queue could fill the driver's.
const MOST_QUEUED: u32 = 32;

/// Launches of a cold interval that wait behind one hold: each queues an eviction, two events and
/// itself, and two stamps stand around them all.
const MOST_COLD: u32 = (MOST_QUEUED - 2) / 4;

/// Queues something on the stream.
type Queue<'a> = &'a dyn Fn() -> Result<(), DeviceError>;

/// What times intervals, made before the first so that nothing is created while the stream is held.
pub(super) struct Timer {
    holder: Holder,
    stamps: Stamps,
    /// A start and a stop event for each launch of a cold interval.
    events: Vec<[Event; 2]>,
    held: Cell<bool>,
    waited: Cell<Duration>,
}

/// What one hold gave.
struct Batch {
    /// Nanoseconds of each event pair, summed.
    ns: u64,
    /// From the first stamp to the last.
    ticks: Option<Ticks>,
}

impl Timer {
    pub fn create(kernels: ControlKernels) -> Result<Timer, DeviceError> {
        let pair = || Ok([Event::create()?, Event::create()?]);
        Ok(Timer {
            holder: Holder::create(kernels.hold)?,
            stamps: Stamps::create(kernels.stamp)?,
            events: (0..MOST_COLD).map(|_| pair()).collect::<Result<_, DeviceError>>()?,
            held: Cell::new(false),
            waited: Cell::new(Duration::ZERO),
        })
    }

    /// Whether launches are queued behind a hold.
    pub fn is_held(&self) -> bool {
        self.held.get()
    }

    /// How long the host has waited for intervals to end.
    pub fn waited(&self) -> Duration {
        self.waited.get()
    }

    /// Finds out whether a launch that is queued behind a hold returns before the hold ends. It does
    /// not under CUDA_LAUNCH_BLOCKING, sanitizers, profilers that serialize, and WDDM.
    pub fn try_hold(&self, stream: &Stream, launch: Queue<'_>) -> Result<(), DeviceError> {
        // Once unheld, so that nothing is loaded behind the hold.
        self.holder.release();
        self.holder.queue(stream, TRIAL_TIMEOUT_NS)?;
        self.batch(stream, None, 1, &|| Ok(()), launch)?;
        let tried = self.batch(stream, Some(TRIAL_TIMEOUT_NS), 1, &|| Ok(()), launch)?;
        self.held.set(tried.is_some());
        Ok(())
    }

    /// One interval around `launches` launches, back to back.
    pub fn time(
        &self,
        stream: &Stream,
        launches: u32,
        launch: Queue<'_>,
    ) -> Result<Interval, DeviceError> {
        let launches = launches.clamp(1, MOST_QUEUED);
        let all = || (0..launches).try_for_each(|_| launch());
        let batch = self.batch(stream, self.timeout(), 1, &|| Ok(()), &all)?;
        Ok(batch.map_or(Interval::Void, |batch| interval(batch.ns, batch.ticks)))
    }

    /// The sum of one interval for each launch, with `evict` before each and outside of it.
    pub fn time_cold(
        &self,
        stream: &Stream,
        launches: u32,
        evict: Queue<'_>,
        launch: Queue<'_>,
    ) -> Result<Interval, DeviceError> {
        let (mut ns, mut ticks) = (0, Some(Ticks::default()));
        for launches in cold_batches(launches) {
            let batch = self.batch(stream, self.timeout(), launches as usize, evict, launch)?;
            let Some(batch) = batch else { return Ok(Interval::Void) };
            ns += batch.ns;
            ticks = ticks.zip(batch.ticks).map(|(all, own)| all.and(own));
        }
        Ok(interval(ns, ticks))
    }

    fn timeout(&self) -> Option<u64> {
        self.held.get().then_some(TIMEOUT_NS)
    }

    /// Behind one hold, where a time limit for it is given: `pairs` times `before` and then, between
    /// two events, `timed`. `None` where the hold gave up.
    fn batch(
        &self,
        stream: &Stream,
        hold_ns: Option<u64>,
        pairs: usize,
        before: Queue<'_>,
        timed: Queue<'_>,
    ) -> Result<Option<Batch>, DeviceError> {
        self.stamps.clear();
        let events = &self.events[..pairs.min(self.events.len())];
        let hold = hold_ns.map(|ns| self.holder.engage(stream, ns)).transpose()?;
        self.stamps.queue_begin(stream)?;
        for [start, stop] in events {
            before()?;
            start.record(stream)?;
            timed()?;
            stop.record(stream)?;
        }
        self.stamps.queue_end(stream)?;
        let was_held = hold.is_some();
        drop(hold);
        let queued = Instant::now();
        stream.synchronize()?;
        self.waited.set(self.waited.get() + queued.elapsed());
        if was_held && self.holder.gave_up() {
            return Ok(None);
        }
        let ns =
            events.iter().try_fold(0, |sum, [start, stop]| Ok(sum + start.elapsed_ns(stop)?))?;
        Ok(Some(Batch { ns, ticks: self.stamps.ticks() }))
    }
}

/// Launches behind each hold of a cold interval.
fn cold_batches(launches: u32) -> impl Iterator<Item = u32> {
    let launches = launches.clamp(1, MOST_QUEUED);
    (0..launches).step_by(MOST_COLD as usize).map(move |done| MOST_COLD.min(launches - done))
}

fn interval(ns: u64, ticks: Option<Ticks>) -> Interval {
    Interval::Ns { ns, sm_khz: ticks.and_then(Ticks::khz) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cold_interval_never_queues_more_than_32_behind_one_hold() {
        for launches in 0..40 {
            let batches: Vec<u32> = cold_batches(launches).collect();
            assert_eq!(batches.iter().sum::<u32>(), launches.clamp(1, 32));
            assert!(batches.iter().all(|batch| (1..=7).contains(batch)), "{batches:?}");
        }
        const { assert!(2 + 4 * MOST_COLD <= MOST_QUEUED) };
    }
}
