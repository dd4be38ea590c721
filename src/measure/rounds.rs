//! Pilot and fresh rounds: every arm once a round, in random order.

use std::time::{Duration, Instant};

use crate::device::{Device, DeviceError, Interval, Launch};
use crate::layout::{below, draw};
use crate::record::{Samples, StopReason};
use crate::stats;

/// The shortest interval that is timed. It is 2,000 ticks of the 0.5 us that CUDA events resolve
/// (CUDA driver API, cuEventElapsedTime).
const INTERVAL_NS: u64 = 1_000_000;

/// The most launches that are queued for one interval.
const MOST_LAUNCHES: u64 = 32;

/// Rounds of the pilot, which sets the number of rounds and is discarded.
const PILOT_ROUNDS: u32 = 15;

/// The fewest rounds that are reported.
const FEWEST_ROUNDS: u32 = 30;

/// How precise a group has to be, and how long it may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// The half-width of the ratio's interval that is aimed at, in parts per million of the ratio;
    /// none where 30 rounds have to do.
    pub target_half_width_ppm: Option<u32>,
    /// The time that the rounds may take.
    pub time: Duration,
}

/// The two arms whose paired ratio of times sets the number of rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ratio {
    /// The arm in the numerator.
    pub numerator: usize,
    /// The arm in the denominator.
    pub denominator: usize,
}

/// What the rounds gave.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// Samples of each arm, in the order of the arms.
    pub samples: Vec<Samples>,
    /// Launches of each arm since the first timed one, the pilot's included.
    pub launches: Vec<u64>,
    /// The arm that was launched last.
    pub last_arm: usize,
    /// Samples that the hold spoiled. Their rounds are dropped whole.
    pub void_samples: u32,
    /// Rounds of the pilot.
    pub pilot_rounds: u32,
    /// Why no more rounds were taken.
    pub stop: Option<StopReason>,
}

/// Measures the arms in rounds: a pilot to find how many are needed, then that many fresh ones.
/// Every arm has to have run once before. First the device is kept busy for `warm_up`.
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
    warm_up: Duration,
) -> Result<Measured, DeviceError> {
    let mut rounds = Rounds::new(device, arms, order_key);
    rounds.warm_up(warm_up)?;
    rounds.calibrate()?;
    let (wanted, pilot_rounds, pilot_void, stop) = match budget.target_half_width_ppm {
        None => (FEWEST_ROUNDS, 0, 0, StopReason::NoTarget),
        Some(ppm) => {
            let begin = Instant::now();
            let pilot = rounds.take(PILOT_ROUNDS)?;
            let affordable = affordable(budget.time, begin.elapsed() / PILOT_ROUNDS);
            let target = f64::from(ppm) / 1e6;
            let ratios = pilot.ratios(ratio);
            let wanted = stats::rounds_for(&ratios, target, FEWEST_ROUNDS, u32::MAX);
            let stop = if wanted > affordable { StopReason::TimeCap } else { StopReason::Target };
            (wanted.min(affordable), PILOT_ROUNDS, pilot.void_samples, stop)
        }
    };
    let taken = rounds.take(wanted)?;
    Ok(Measured {
        samples: taken.samples,
        launches: rounds.launched,
        last_arm: rounds.last_arm,
        void_samples: pilot_void + taken.void_samples,
        pilot_rounds,
        stop: Some(stop),
    })
}

/// Rounds that fit into the time; never fewer than the fewest that are reported.
fn affordable(time: Duration, round: Duration) -> u32 {
    let rounds = time.as_nanos() / round.as_nanos().max(1);
    u32::try_from(rounds).unwrap_or(u32::MAX).max(FEWEST_ROUNDS)
}

struct Rounds<'a> {
    device: &'a dyn Device,
    arms: &'a [Launch<'a>],
    /// Launches of an interval, for each arm.
    launches: Vec<u32>,
    launched: Vec<u64>,
    last_arm: usize,
    order_key: u64,
    drawn: u64,
}

/// Rounds that were taken.
struct Taken {
    samples: Vec<Samples>,
    void_samples: u32,
}

impl Taken {
    /// The ratio of times of each round.
    fn ratios(&self, ratio: Ratio) -> Vec<f64> {
        let time = |arm: usize, i: usize| {
            let samples = &self.samples[arm];
            samples.ns[i] as f64 / f64::from(samples.launches[i])
        };
        (0..self.samples[0].len())
            .map(|i| time(ratio.numerator, i) / time(ratio.denominator, i))
            .filter(|value| value.is_finite())
            .collect()
    }
}

impl<'a> Rounds<'a> {
    fn new(device: &'a dyn Device, arms: &'a [Launch<'a>], order_key: u64) -> Rounds<'a> {
        Rounds {
            device,
            arms,
            launches: vec![1; arms.len()],
            launched: vec![0; arms.len()],
            last_arm: 0,
            order_key,
            drawn: 0,
        }
    }

    /// Keeps the device busy, so that its clocks rise before anything counts.
    fn warm_up(&mut self, time: Duration) -> Result<(), DeviceError> {
        let begin = Instant::now();
        while begin.elapsed() < time {
            self.time(0)?;
        }
        Ok(())
    }

    /// Finds how many launches an interval of each arm needs, by doubling until it is long enough.
    fn calibrate(&mut self) -> Result<(), DeviceError> {
        for arm in 0..self.arms.len() {
            // Twice, for the first one may find the device asleep.
            self.time(arm)?;
            loop {
                let launches = u64::from(self.launches[arm]);
                let ns = match self.time(arm)? {
                    Interval::Ns(ns) => ns.max(1),
                    Interval::Void => break,
                };
                if ns >= INTERVAL_NS || launches >= MOST_LAUNCHES {
                    break;
                }
                // A tenth more than the estimate, so that ordinary jitter stays above the minimum.
                let needed = (INTERVAL_NS * launches * 11).div_ceil(ns * 10);
                self.launches[arm] = needed.clamp(launches + 1, MOST_LAUNCHES) as u32;
            }
        }
        Ok(())
    }

    fn time(&mut self, arm: usize) -> Result<Interval, DeviceError> {
        self.launched[arm] += u64::from(self.launches[arm]);
        self.last_arm = arm;
        self.device.time(&self.arms[arm], self.launches[arm])
    }

    fn take(&mut self, rounds: u32) -> Result<Taken, DeviceError> {
        let mut taken =
            Taken { samples: vec![Samples::default(); self.arms.len()], void_samples: 0 };
        for round in 0..rounds {
            let order = self.shuffled_arms();
            let mut times = vec![None; self.arms.len()];
            for (position, arm) in order.iter().enumerate() {
                match self.time(*arm)? {
                    Interval::Ns(ns) => times[*arm] = Some((position as u32, ns)),
                    Interval::Void => taken.void_samples += 1,
                }
            }
            // Arms are compared round by round: one that lacks an arm compares nothing.
            if let Some(times) = times.into_iter().collect::<Option<Vec<_>>>() {
                for (arm, (position, ns)) in times.into_iter().enumerate() {
                    taken.samples[arm].push(round, position, self.launches[arm], ns);
                }
            }
        }
        Ok(taken)
    }

    /// Fisher and Yates' shuffle of the arms.
    fn shuffled_arms(&mut self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.arms.len()).collect();
        for last in (1..order.len()).rev() {
            let random = draw(self.order_key, self.drawn);
            self.drawn += 1;
            order.swap(last, below(random, last as u64 + 1) as usize);
        }
        order
    }
}
