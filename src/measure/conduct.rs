//! How a group is measured: a device at rest, a pilot, fresh rounds, and a sentinel around them.

use std::time::{Duration, Instant};

use super::clock::Pauses;
use super::rounds::{Quota, Ratio, Rounds, Taken};
use super::sentinel::{Sentry, Watch, has_drifted};
use crate::device::{Device, DeviceError, Launch};
use crate::record::{Attempt, Group, Samples, Sentinel, StopReason};
use crate::stats;

/// Rounds of the pilot, which sets the number of rounds and is discarded.
const PILOT_ROUNDS: u32 = 15;

/// The fewest rounds of a part: enough for a median with an interval.
const FEWEST_OF_A_PART: u32 = 10;

/// How precise a group has to be, and how long it may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// The half-width of the ratio's interval that is aimed at, in parts per million of the ratio;
    /// none where the fewest rounds have to do.
    pub target_half_width_ppm: Option<u32>,
    /// The fewest rounds that are reported.
    pub fewest_rounds: u32,
    /// The time that the rounds may take.
    pub time: Duration,
}

/// How the device is brought into a state in which numbers count.
#[derive(Clone, Copy, Debug)]
pub enum Steady<'a> {
    /// It is kept busy for so long: the host, whose figures wander whatever is done.
    WarmUp(Duration),
    /// A sentinel settles it, and watches over the rounds.
    Watch(Watch<'a>),
}

/// How a group is measured beside what its plan says.
#[derive(Clone, Copy, Debug)]
pub struct Conduct<'a> {
    /// The state of the device.
    pub steady: Steady<'a>,
    /// A read that evicts the L2 cache, before each launch of an arm.
    pub evict: Option<Launch<'a>>,
    /// How many rounds.
    pub count: Count,
    /// Pauses of the whole group after slow rounds.
    pub pauses: Pauses,
}

/// How many rounds are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    /// As many as a pilot finds are needed, of which this is one part of so many.
    Found {
        /// The parts that they are divided into.
        parts: u32,
    },
    /// So many, without a pilot: a later part.
    Given(Quota),
}

impl Count {
    fn parts(self) -> u32 {
        match self {
            Count::Found { parts } | Count::Given(Quota { parts, .. }) => parts.max(1),
        }
    }
}

/// What the rounds gave.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// Samples of each arm, in the order of the arms.
    pub samples: Vec<Samples>,
    /// Launches of each arm since the first timed one: warm-up, calibration, pilots, those after
    /// pauses and rounds that were voided included.
    pub launches: Vec<u64>,
    /// The arm that was launched last.
    pub last_arm: usize,
    /// The rounds that were to be taken, for later parts of the group.
    pub quota: Quota,
    throttle_reasons: Vec<Option<u64>>,
    void_samples: u32,
    pilot_rounds: u32,
    stop: Option<StopReason>,
    sentinel: Option<Sentinel>,
    l2_evicted: bool,
    waited: Duration,
    timed_ns: u64,
    intervals: u64,
    host_ns: u64,
}

impl Measured {
    /// Puts what is not the arms' own into the group's record. The time that was waited is taken
    /// out of that of the measurement.
    pub fn note(&self, group: &mut Group) {
        group.round_throttle_reasons.clone_from(&self.throttle_reasons);
        group.void_samples = self.void_samples;
        group.pilot_rounds = self.pilot_rounds;
        group.stop.clone_from(&self.stop);
        group.sentinel.clone_from(&self.sentinel);
        group.l2_evicted = self.l2_evicted;
        let waited_ns = self.waited.as_nanos() as u64;
        group.phases.wait_ns += waited_ns;
        group.phases.measure_ns = group.phases.measure_ns.saturating_sub(waited_ns);
        group.phases.timed_ns += self.timed_ns;
        group.phases.intervals += self.intervals;
        group.phases.host_ns += self.host_ns;
    }

    /// Takes over what an attempt gave. Samples that the hold spoiled count in every attempt.
    fn take(&mut self, taken: Taken, pilot: Pilot) {
        self.samples = taken.samples;
        self.throttle_reasons = taken.throttle_reasons;
        self.quota = pilot.quota;
        self.void_samples += pilot.void_samples + taken.void_samples;
        self.pilot_rounds = pilot.rounds;
        self.stop = pilot.stop;
    }
}

/// What is measured, and how precisely.
struct Task {
    ratio: Ratio,
    budget: Budget,
    count: Count,
}

/// What a pilot found.
struct Pilot {
    quota: Quota,
    rounds: u32,
    void_samples: u32,
    /// None where there was no pilot, and another part knows.
    stop: Option<StopReason>,
}

/// Measures the arms in rounds: a pilot to find how many are needed, then that many fresh ones.
/// Every arm has to have run once before.
///
/// # Errors
///
/// Whatever the device says.
pub fn measure(
    device: &dyn Device,
    arms: &[Launch<'_>],
    ratio: Ratio,
    budget: Budget,
    order_key: u64,
    conduct: &Conduct<'_>,
) -> Result<Measured, DeviceError> {
    let task = Task { ratio, budget, count: conduct.count };
    let calm = match &conduct.steady {
        Steady::Watch(watch) => Some(watch.launch),
        Steady::WarmUp(_) => None,
    };
    let most = conduct.pauses.most / conduct.count.parts();
    let pauses = Pauses { most, ..conduct.pauses };
    let mut rounds = Rounds::new(device, arms, conduct.evict, calm, order_key, pauses);
    let mut measured = Measured { l2_evicted: conduct.evict.is_some(), ..Measured::default() };
    if let Some(evict) = &conduct.evict {
        // What runs behind a hold has to have run before.
        device.launch(evict)?;
        device.synchronize()?;
    }
    match &conduct.steady {
        Steady::WarmUp(time) => {
            rounds.warm_up(*time)?;
            rounds.calibrate()?;
            let (taken, pilot) = task.attempt(&mut rounds)?;
            measured.take(taken, pilot);
        }
        Steady::Watch(watch) => task.watched(device, &mut rounds, watch, &mut measured)?,
    }
    measured.waited += rounds.paused;
    (measured.timed_ns, measured.intervals) = (rounds.timed_ns, rounds.intervals);
    measured.host_ns = rounds.host_ns;
    measured.launches = rounds.launched;
    measured.last_arm = rounds.last_arm;
    Ok(measured)
}

impl Task {
    /// A pilot and fresh rounds.
    fn attempt(&self, rounds: &mut Rounds<'_>) -> Result<(Taken, Pilot), DeviceError> {
        let pilot = self.pilot(rounds)?;
        Ok((rounds.take(pilot.quota)?, pilot))
    }

    fn pilot(&self, rounds: &mut Rounds<'_>) -> Result<Pilot, DeviceError> {
        let without = |quota, stop| Pilot { quota, rounds: 0, void_samples: 0, stop };
        if let Count::Given(quota) = self.count {
            return Ok(without(quota, None));
        }
        let (fewest, parts) = (self.budget.fewest_rounds, self.count.parts());
        let part = |rounds: u32| match parts {
            1 => rounds,
            _ => rounds.div_ceil(parts).max(FEWEST_OF_A_PART),
        };
        let Some(ppm) = self.budget.target_half_width_ppm else {
            let quota = Quota::of_part(part(fewest), parts);
            return Ok(without(quota, Some(StopReason::NoTarget)));
        };
        rounds.expect_clocks_of(&[]);
        let (begin, paused) = (Instant::now(), rounds.paused);
        let taken = rounds.take(Quota::of_part(PILOT_ROUNDS, parts))?;
        rounds.expect_clocks_of(&taken.samples);
        let spent = begin.elapsed().saturating_sub(rounds.paused - paused);
        let affordable = affordable(self.budget.time, spent / taken.rounds.max(1)).max(fewest);
        let target = f64::from(ppm) / 1e6;
        let wanted = stats::rounds_for(&taken.ratios(self.ratio), target, fewest, u32::MAX);
        let mut quota = Quota::of_part(part(wanted.min(affordable)), parts);
        quota.most = quota.most.min(part(affordable));
        Ok(Pilot {
            quota,
            rounds: taken.rounds,
            void_samples: taken.void_samples,
            stop: Some(match wanted > affordable {
                true => StopReason::TimeCap,
                false => StopReason::Target,
            }),
        })
    }

    /// Attempts between two readings of the sentinel: where these are too far apart, the first
    /// attempt is void. The second one stands, and its readings tell.
    fn watched(
        &self,
        device: &dyn Device,
        rounds: &mut Rounds<'_>,
        watch: &Watch<'_>,
        measured: &mut Measured,
    ) -> Result<(), DeviceError> {
        let waited = &mut measured.waited;
        let mut attempts = Vec::new();
        let mut sentry = timed(waited, || Sentry::new(device, watch))?;
        let mut must_settle = watch.must_settle();
        let mut sentinel = Sentinel {
            bytes: watch.bytes,
            settled: must_settle || watch.rest.is_some_and(|rest| rest.settled),
            settling: Vec::new(),
            attempts: Vec::new(),
        };
        for is_last in [false, true] {
            if must_settle {
                sentinel.settling.extend(timed(waited, || sentry.settle())?);
                sentinel.settled &= sentry.rest.is_some_and(|rest| rest.settled);
            }
            if sentinel.attempts.is_empty() {
                rounds.calibrate()?;
            }
            let before = timed(waited, || sentry.read())?;
            attempts.push(self.attempt(rounds)?);
            let after = timed(waited, || sentry.read())?;
            let settled = sentry.rest.and_then(|rest| rest.reading);
            let mut attempt = Attempt { settled, before, after, voided: false };
            attempt.voided = !is_last && has_drifted(&attempt);
            must_settle = attempt.voided;
            sentinel.attempts.push(attempt);
            if !must_settle {
                break;
            }
        }
        attempts.into_iter().for_each(|(taken, pilot)| measured.take(taken, pilot));
        measured.sentinel = Some(sentinel);
        Ok(())
    }
}

/// Does something, and adds the time that it took.
fn timed<T>(sum: &mut Duration, work: impl FnOnce() -> T) -> T {
    let begin = Instant::now();
    let done = work();
    *sum += begin.elapsed();
    done
}

/// Rounds that fit into the time.
fn affordable(time: Duration, round: Duration) -> u32 {
    let rounds = time.as_nanos() / round.as_nanos().max(1);
    u32::try_from(rounds).unwrap_or(u32::MAX)
}
