//! Rounds: every arm once, in random order.

use std::time::{Duration, Instant};

use crate::device::{Device, DeviceError, Interval, Launch};
use crate::layout::{below, draw};
use crate::record::Samples;

/// The shortest interval that is timed. It is 2,000 ticks of the 0.5 us that CUDA events resolve
/// (CUDA driver API, cuEventElapsedTime).
pub(super) const INTERVAL_NS: u64 = 1_000_000;

/// The most launches that are queued for one interval.
pub(super) const MOST_LAUNCHES: u64 = 32;

/// Reads of the sentinel's range after which nothing is left of an earlier write: 2 to 3 ms on a
/// data-centre GPU of 2024. One alone took a quarter of the effect away on an H200.
const CALMING_READS: u32 = 10;

/// The two arms whose paired ratio of times sets the number of rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ratio {
    /// The arm in the numerator.
    pub numerator: usize,
    /// The arm in the denominator.
    pub denominator: usize,
}

/// The arms that take turns.
pub(super) struct Rounds<'a> {
    device: &'a dyn Device,
    arms: &'a [Launch<'a>],
    /// What runs before each launch, outside of its interval.
    evict: Option<Launch<'a>>,
    /// A read that runs [so often](CALMING_READS) before each interval of an arm that only reads, where
    /// others write: for some milliseconds after a write, reads are slower.
    calm: Option<Launch<'a>>,
    /// Launches of an interval, for each arm.
    launches: Vec<u32>,
    /// Launches of each arm so far.
    pub launched: Vec<u64>,
    /// The arm that was launched last.
    pub last_arm: usize,
    order_key: u64,
    drawn: u64,
}

/// Rounds that were taken.
pub(super) struct Taken {
    pub samples: Vec<Samples>,
    pub throttle_reasons: Vec<Option<u64>>,
    pub void_samples: u32,
}

impl Taken {
    /// The ratio of times of each round.
    pub fn ratios(&self, ratio: Ratio) -> Vec<f64> {
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
    pub fn new(
        device: &'a dyn Device,
        arms: &'a [Launch<'a>],
        evict: Option<Launch<'a>>,
        calm: Option<Launch<'a>>,
        order_key: u64,
    ) -> Rounds<'a> {
        Rounds {
            device,
            arms,
            evict,
            calm: calm.filter(|_| arms.iter().any(Launch::writes)),
            launches: vec![1; arms.len()],
            launched: vec![0; arms.len()],
            last_arm: 0,
            order_key,
            drawn: 0,
        }
    }

    /// Keeps the device busy, so that its clocks rise before anything counts.
    pub fn warm_up(&mut self, time: Duration) -> Result<(), DeviceError> {
        let begin = Instant::now();
        while begin.elapsed() < time {
            self.time(0)?;
        }
        Ok(())
    }

    /// Finds how many launches an interval of each arm needs, by raising them until it is long
    /// enough.
    pub fn calibrate(&mut self) -> Result<(), DeviceError> {
        for arm in 0..self.arms.len() {
            // Twice, for the first one may find the device asleep.
            self.time(arm)?;
            loop {
                let launches = u64::from(self.launches[arm]);
                let ns = match self.time(arm)? {
                    Interval::Ns { ns, .. } => ns,
                    Interval::Void => break,
                };
                if ns >= INTERVAL_NS || launches >= MOST_LAUNCHES {
                    break;
                }
                let needed = launches_for(launches, ns);
                self.launches[arm] = needed.clamp(launches + 1, MOST_LAUNCHES) as u32;
            }
        }
        Ok(())
    }

    fn time(&mut self, arm: usize) -> Result<Interval, DeviceError> {
        self.launched[arm] += u64::from(self.launches[arm]);
        self.last_arm = arm;
        let (launch, launches) = (&self.arms[arm], self.launches[arm]);
        if let Some(calm) = self.calm.as_ref().filter(|_| !launch.writes()) {
            (0..CALMING_READS).try_for_each(|_| self.device.launch(calm))?;
        }
        match &self.evict {
            Some(evict) => self.device.time_cold(launch, evict, launches),
            None => self.device.time(launch, launches),
        }
    }

    pub fn take(&mut self, rounds: u32) -> Result<Taken, DeviceError> {
        let mut taken = Taken {
            samples: vec![Samples::default(); self.arms.len()],
            throttle_reasons: Vec::new(),
            void_samples: 0,
        };
        for round in 0..rounds {
            let order = self.shuffled_arms();
            let mut times = vec![None; self.arms.len()];
            for (position, arm) in order.iter().enumerate() {
                match self.time(*arm)? {
                    Interval::Ns { ns, sm_khz } => {
                        times[*arm] = Some((position as u32, ns, sm_khz));
                    }
                    Interval::Void => taken.void_samples += 1,
                }
            }
            // Arms are compared round by round: one that lacks an arm compares nothing.
            if let Some(times) = times.into_iter().collect::<Option<Vec<_>>>() {
                for (arm, (position, ns, sm_khz)) in times.into_iter().enumerate() {
                    taken.samples[arm].push(round, position, self.launches[arm], ns);
                    taken.samples[arm].sm_khz.push(sm_khz);
                }
            }
            taken.throttle_reasons.push(self.device.throttle_reasons());
        }
        clear_unknown(&mut taken.throttle_reasons);
        for samples in &mut taken.samples {
            clear_unknown(&mut samples.sm_khz);
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

/// The launches that make an interval long enough, where `launches` take `ns`: a tenth more than
/// the estimate, so that ordinary jitter stays above the minimum.
pub(super) fn launches_for(launches: u64, ns: u64) -> u64 {
    (INTERVAL_NS * launches * 11).div_ceil(ns.max(1) * 10)
}

/// A column of which nothing is known is left out.
fn clear_unknown<T>(column: &mut Vec<Option<T>>) {
    if column.iter().all(Option::is_none) {
        column.clear();
    }
}
