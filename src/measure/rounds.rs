//! Rounds: every arm once, in random order.

use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::device::{Device, DeviceError, Interval, Launch};
use crate::layout::{below, draw};
use crate::record::Samples;
use crate::stats;

use super::clock::{Floors, Pauses};

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

/// How many rounds are taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quota {
    /// So many that are not slow.
    pub rounds: u32,
    /// So many at most in all.
    pub most: u32,
    /// The parts of the group, which share its pauses.
    pub parts: u32,
}

impl Quota {
    /// Slow rounds are taken again, at most as many as are wanted.
    pub fn of_part(rounds: u32, parts: u32) -> Quota {
        Quota { rounds, most: rounds.saturating_mul(2), parts }
    }
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
    floors: Floors,
    /// Whether the last round was slow.
    is_slow: bool,
    /// Those that are left.
    pauses: Pauses,
    /// The time that they took.
    pub paused: Duration,
    /// What lay within intervals, in nanoseconds, and how many these were.
    pub timed_ns: u64,
    pub intervals: u64,
    /// What the host took for them while the device did not keep it waiting, in nanoseconds: queueing
    /// what runs before an interval and in it, reading its time, reading NVML's reasons after a round.
    /// 0 where nothing is queued.
    pub host_ns: u64,
}

/// Rounds that were taken.
pub(super) struct Taken {
    pub samples: Vec<Samples>,
    pub throttle_reasons: Vec<Option<u64>>,
    pub void_samples: u32,
    /// All of them, those without samples included.
    pub rounds: u32,
    /// Whether each round that has samples was slow.
    are_slow: Vec<bool>,
}

/// Position, time and clock of an interval.
type Timed = (u32, u64, Option<u32>);

impl Taken {
    fn new(arms: usize) -> Taken {
        Taken {
            samples: vec![Samples::default(); arms],
            throttle_reasons: Vec::new(),
            void_samples: 0,
            rounds: 0,
            are_slow: Vec::new(),
        }
    }

    /// The ratio of times of each round that was not slow; of every round where those are too few
    /// for an interval.
    pub fn ratios(&self, ratio: Ratio) -> Vec<f64> {
        let good = self.ratios_of(ratio, |i| !self.are_slow[i]);
        match stats::median_interval(&good, stats::CONFIDENCE) {
            Some(_) => good,
            None => self.ratios_of(ratio, |_| true),
        }
    }

    fn ratios_of(&self, ratio: Ratio, counts: impl Fn(usize) -> bool) -> Vec<f64> {
        let time = |arm: usize, i: usize| {
            let samples = &self.samples[arm];
            samples.ns[i] as f64 / f64::from(samples.launches[i])
        };
        (0..self.samples[0].len())
            .filter(|i| counts(*i))
            .map(|i| time(ratio.numerator, i) / time(ratio.denominator, i))
            .filter(|value| value.is_finite())
            .collect()
    }

    fn push(&mut self, times: Vec<Option<Timed>>, launches: &[u32], is_slow: bool) {
        self.void_samples += times.iter().filter(|time| time.is_none()).count() as u32;
        // Arms are compared round by round: one that lacks an arm compares nothing.
        if let Some(times) = times.into_iter().collect::<Option<Vec<_>>>() {
            for (arm, (position, ns, sm_khz)) in times.into_iter().enumerate() {
                self.samples[arm].push(self.rounds, position, launches[arm], ns);
                self.samples[arm].sm_khz.push(sm_khz);
            }
            self.are_slow.push(is_slow);
        }
        self.rounds += 1;
    }
}

impl<'a> Rounds<'a> {
    pub fn new(
        device: &'a dyn Device,
        arms: &'a [Launch<'a>],
        evict: Option<Launch<'a>>,
        calm: Option<Launch<'a>>,
        order_key: u64,
        pauses: Pauses,
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
            floors: Floors::default(),
            is_slow: false,
            pauses,
            paused: Duration::ZERO,
            timed_ns: 0,
            intervals: 0,
            host_ns: 0,
        }
    }

    /// From now on a round is slow where a clock lies clearly below that of the same arm in these: in
    /// no samples, where nothing is known yet.
    pub fn expect_clocks_of(&mut self, arms: &[Samples]) {
        self.floors = Floors::under(arms);
        self.is_slow = false;
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
        let (begin, waited) = (Instant::now(), self.device.waited());
        self.launched[arm] += u64::from(self.launches[arm]);
        self.last_arm = arm;
        let (launch, launches) = (&self.arms[arm], self.launches[arm]);
        if let Some(calm) = self.calm.as_ref().filter(|_| !launch.writes()) {
            (0..CALMING_READS).try_for_each(|_| self.device.launch(calm))?;
        }
        let interval = match &self.evict {
            Some(evict) => self.device.time_cold(launch, evict, launches),
            None => self.device.time(launch, launches),
        }?;
        self.intervals += 1;
        let waited = waited.zip(self.device.waited()).map(|(before, after)| after - before);
        self.count_host(waited.map(|waited| begin.elapsed().saturating_sub(waited)));
        if let Interval::Ns { ns, .. } = interval {
            self.timed_ns = self.timed_ns.saturating_add(ns);
        }
        Ok(interval)
    }

    fn count_host(&mut self, spent: Option<Duration>) {
        let ns = spent.map_or(0, |spent| spent.as_nanos() as u64);
        self.host_ns = self.host_ns.saturating_add(ns);
    }

    /// Takes rounds until the quota is met; slow ones are kept and taken again. Whether that is done
    /// depends on clocks alone, never on times: when to stop must not depend on what is found.
    pub fn take(&mut self, quota: Quota) -> Result<Taken, DeviceError> {
        let mut taken = Taken::new(self.arms.len());
        let mut good = 0;
        while good < quota.rounds && taken.rounds < quota.most {
            if self.is_slow {
                self.pause()?;
            }
            let times = self.round()?;
            let begin = Instant::now();
            let reasons = self.device.throttle_reasons();
            self.count_host(self.device.waited().map(|_| begin.elapsed()));
            let clocks = times.iter().map(|time| time.and_then(|(_, _, sm_khz)| sm_khz));
            self.is_slow = self.floors.is_slow(clocks, reasons);
            good += u32::from(!self.is_slow);
            taken.throttle_reasons.push(reasons);
            taken.push(times, &self.launches, self.is_slow);
        }
        clear_unknown(&mut taken.throttle_reasons);
        for samples in &mut taken.samples {
            clear_unknown(&mut samples.sm_khz);
        }
        Ok(taken)
    }

    /// One interval of each arm; none where it is void.
    fn round(&mut self) -> Result<Vec<Option<Timed>>, DeviceError> {
        let mut times = vec![None; self.arms.len()];
        for (position, arm) in self.shuffled_arms().into_iter().enumerate() {
            if let Interval::Ns { ns, sm_khz } = self.time(arm)? {
                times[arm] = Some((position as u32, ns, sm_khz));
            }
        }
        Ok(times)
    }

    /// Launches nothing for a while, and then each arm once without looking, for a clock may sink
    /// while nothing runs. Does nothing where no pause is left.
    fn pause(&mut self) -> Result<(), DeviceError> {
        let Some(left) = self.pauses.most.checked_sub(1) else { return Ok(()) };
        self.pauses.most = left;
        let begin = Instant::now();
        let counted = (self.timed_ns, self.intervals, self.host_ns);
        sleep(self.pauses.length);
        for arm in 0..self.arms.len() {
            self.time(arm)?;
        }
        // They belong to the pause.
        (self.timed_ns, self.intervals, self.host_ns) = counted;
        self.paused += begin.elapsed();
        Ok(())
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
