//! Whether the device is at rest, and stays what it was: a plain read as a sentinel.

use std::time::{Duration, Instant};

use crate::device::{Device, DeviceError, Interval, Launch};
use crate::record::{Attempt, Reading};
use crate::stats;

use super::rounds::{INTERVAL_NS, MOST_LAUNCHES, launches_for};

/// The most bytes that one launch of the sentinel reads: a quarter of a millisecond on a
/// data-centre GPU of 2024, and far more than any L2.
pub const SENTINEL_BYTES: u64 = 1 << 30;

/// Intervals of a reading, of which the middle one counts.
const INTERVALS: usize = 5;

/// The last readings, which have to agree. With readings of 5 to 10 ms they span some 40 ms.
const WINDOW: usize = 5;

/// How far they may lie apart, relative to their median.
const AGREEMENT: f64 = 0.005;

/// The same for the SM clocks, which move in steps of 15 MHz (seen on an H200): one step of 1980 MHz
/// is more than the readings themselves may differ.
const CLOCK_AGREEMENT: f64 = 0.01;

/// The fewest readings of a settling that begins from an unknown state, some 0.2 s: while clocks
/// rise, they stay on some steps for longer than the window.
const FEWEST_READINGS: usize = 30;

/// The most readings of a settling, so that what is recorded has an end.
const MOST_READINGS: usize = 500;

/// How long a settling may take.
const PATIENCE: Duration = Duration::from_secs(3);

/// The same on a device that did not come to rest before: it would cost as much in every group.
const LITTLE_PATIENCE: Duration = Duration::from_millis(100);

/// After so long without a sample the device has to settle again.
const IDLE: Duration = Duration::from_secs(1);

/// A shift of the sentinel by more than this share voids a group once.
const DRIFT: f64 = 0.02;

/// The state in which the last settling left the device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rest {
    /// The middle one of its last readings; none where the hold gave up in all of them.
    pub reading: Option<Reading>,
    /// Whether the readings agreed in time.
    pub settled: bool,
}

/// A sentinel that watches over a group.
#[derive(Clone, Copy, Debug)]
pub struct Watch<'a> {
    /// The read.
    pub launch: Launch<'a>,
    /// Bytes that one launch reads.
    pub bytes: u64,
    /// Where the device was left at rest; none where nothing is known of it.
    pub rest: Option<Rest>,
    /// Whether something happened since that it has to settle from.
    pub disturbed: bool,
    /// When the last sample was taken.
    pub last_busy: Option<Instant>,
}

impl Watch<'_> {
    /// Whether the device has to settle (again) before the first sample.
    pub(super) fn must_settle(&self) -> bool {
        let is_idle = self.last_busy.is_none_or(|busy| busy.elapsed() > IDLE);
        self.disturbed || is_idle || self.rest.is_none()
    }
}

/// A sentinel at work on a device.
pub(super) struct Sentry<'a> {
    device: &'a dyn Device,
    launch: Launch<'a>,
    launches: u32,
    pub rest: Option<Rest>,
}

impl<'a> Sentry<'a> {
    /// Runs the read once, and finds out how many of it make an interval.
    pub fn new(device: &'a dyn Device, watch: &Watch<'a>) -> Result<Sentry<'a>, DeviceError> {
        let mut sentry = Sentry { device, launch: watch.launch, launches: 1, rest: watch.rest };
        device.launch(&sentry.launch)?;
        device.synchronize()?;
        if let Interval::Ns { ns, .. } = device.time(&sentry.launch, 1)?
            && ns < INTERVAL_NS
        {
            sentry.launches = launches_for(1, ns).min(MOST_LAUNCHES) as u32;
        }
        Ok(sentry)
    }

    /// One reading; none where the hold gave up in every interval.
    pub fn read(&self) -> Result<Option<Reading>, DeviceError> {
        let mut intervals = Vec::with_capacity(INTERVALS);
        for _ in 0..INTERVALS {
            if let Interval::Ns { ns, sm_khz } = self.device.time(&self.launch, self.launches)? {
                intervals.push(Reading { launches: self.launches, ns, sm_khz });
            }
        }
        Ok(middle(&intervals))
    }

    /// Reads until the last readings agree, and returns all of them. Where the device was at rest
    /// before and the window says the same again, that is enough.
    pub fn settle(&mut self) -> Result<Vec<Reading>, DeviceError> {
        let begin = Instant::now();
        let failed_before = self.rest.is_some_and(|rest| !rest.settled);
        let patience = if failed_before { LITTLE_PATIENCE } else { PATIENCE };
        let earlier = self.rest.filter(|rest| rest.settled).and_then(|rest| rest.reading);
        let mut readings = Vec::new();
        let mut settled = false;
        for _ in 0..MOST_READINGS {
            readings.extend(self.read()?);
            let window = last(&readings);
            let is_known = middle(window)
                .zip(earlier)
                .is_some_and(|(now, then)| shift(now.launch_ns(), then.launch_ns()) <= AGREEMENT);
            settled = agrees(window) && (is_known || readings.len() >= FEWEST_READINGS);
            if settled || begin.elapsed() > patience {
                break;
            }
        }
        self.rest = Some(Rest { reading: middle(last(&readings)), settled });
        Ok(readings)
    }
}

fn last(readings: &[Reading]) -> &[Reading] {
    &readings[readings.len().saturating_sub(WINDOW)..]
}

/// The middle one by the time of a launch.
fn middle(readings: &[Reading]) -> Option<Reading> {
    let mut ordered = readings.to_vec();
    ordered.sort_by(|a, b| a.launch_ns().total_cmp(&b.launch_ns()));
    ordered.get(ordered.len() / 2).copied()
}

/// Whether a whole window of readings agrees, in its times and in what is known of its clocks.
fn agrees(window: &[Reading]) -> bool {
    let is_narrow = |values: &[f64], agreement: f64| {
        let range = values
            .iter()
            .fold((f64::MAX, f64::MIN), |(low, high), value| (low.min(*value), high.max(*value)));
        stats::median(values).is_some_and(|median| range.1 - range.0 <= agreement * median)
    };
    let times: Vec<f64> = window.iter().map(Reading::launch_ns).collect();
    let clocks: Vec<f64> = window.iter().filter_map(|r| r.sm_khz).map(f64::from).collect();
    window.len() == WINDOW
        && is_narrow(&times, AGREEMENT)
        && (clocks.is_empty() || is_narrow(&clocks, CLOCK_AGREEMENT))
}

/// How far `now` lies from `then`, relative to `then`.
fn shift(now: f64, then: f64) -> f64 {
    if then > 0.0 { (now - then).abs() / then } else { f64::INFINITY }
}

/// Whether the sentinel's readings around an attempt say that the device changed meanwhile, or that
/// it was not what it had settled at. Readings that are missing say nothing.
pub fn has_drifted(attempt: &Attempt) -> bool {
    let is_far = |now: Option<Reading>, then: Option<Reading>| {
        now.zip(then).is_some_and(|(now, then)| shift(now.launch_ns(), then.launch_ns()) > DRIFT)
    };
    is_far(attempt.before, attempt.settled) || is_far(attempt.after, attempt.before)
}
