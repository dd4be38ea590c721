//! Whether intervals hold the truth as often as they say, where the truth is known.
//!
//! The whole procedure runs as it does on a GPU: a pilot that sets the number of rounds, fresh rounds
//! under a sentinel, the record, the summary with its tests and flags. Only the times come from a
//! simulation. Both arms are equally fast, so that every interval of their ratio that does not hold 1
//! is also a false alarm: a difference that is none.

mod noise;
mod procedure;

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use serde_json::Map;

use crate::layout::draw;
use crate::record::{Coverage, IntervalKind, Noise};
use procedure::{Outcome, between, block_bootstrap, within};

/// Replications of each procedure unless asked otherwise.
pub const REPLICATIONS: u64 = 5_000;

/// The share of intervals that has to hold the truth, in parts of a thousand, where assumptions hold:
/// of order statistics, which are at least as wide as they have to be, and of all others.
const ORDER_STATISTICS: (u64, u64) = (940, 1000);
const OTHERS: (u64, u64) = (930, 970);

/// The most that may lie wholly on one side of the truth, likewise: half of what may miss it, and what
/// 5,000 replications leave open.
const ON_ONE_SIDE: u64 = 35;

/// The most that may be called autocorrelated of what is independent, likewise: the test's 1 %, and
/// what 5,000 replications leave open.
const FALSELY_AUTOCORRELATED: u64 = 15;

/// Noise that the whole procedure meets within a process, and of which intervals its assumptions hold.
const PROCEDURE: [(Noise, &[IntervalKind]); 8] = [
    (Noise::Normal, &[IntervalKind::Bandwidth, IntervalKind::Paired]),
    (Noise::LogNormal, &[IntervalKind::Bandwidth, IntervalKind::Paired]),
    (Noise::Bimodal, &[IntervalKind::Bandwidth, IntervalKind::Paired]),
    (Noise::HeavyTailed, &[IntervalKind::Bandwidth, IntervalKind::Paired]),
    // What both arms have in common is not in their ratio.
    (Noise::CommonDrift, &[IntervalKind::Paired]),
    (Noise::Drifting, &[]),
    (Noise::WeaklyAutocorrelated, &[]),
    (Noise::Autocorrelated, &[]),
];

/// A procedure, and the noise that it is run on.
#[derive(Clone, Debug, PartialEq)]
pub enum Trial {
    /// A group within one process.
    Within(Noise),
    /// A group in each of five processes.
    Between,
    /// The block bootstrap of so many values with such noise.
    BlockBootstrap(Noise, usize),
}

impl Trial {
    /// All of them.
    pub fn all() -> Vec<Trial> {
        let within = PROCEDURE.iter().map(|(noise, _)| Trial::Within(noise.clone()));
        let weak = Trial::BlockBootstrap(Noise::WeaklyAutocorrelated, 200);
        let strong = Trial::BlockBootstrap(Noise::Autocorrelated, 60);
        within.chain([Trial::Between, weak, strong]).collect()
    }

    /// What is shown while it runs.
    pub fn name(&self) -> String {
        match self {
            Trial::Within(noise) => noise.to_string(),
            Trial::Between => Noise::Processes.to_string(),
            Trial::BlockBootstrap(noise, count) => format!("block_bootstrap of {count}, {noise}"),
        }
    }

    /// Runs it so often, with seeds that are counted from the given one, on all processors. None
    /// where it was interrupted.
    pub fn run(
        &self,
        replications: u64,
        seed: u64,
        interrupted: &AtomicBool,
    ) -> Option<Vec<Coverage>> {
        let threads = thread::available_parallelism().map_or(1, |count| count.get() as u64);
        let share = |thread: u64| {
            let mut tallies = self.tallies();
            for n in (thread..replications).step_by(threads as usize) {
                if interrupted.load(Ordering::Relaxed) {
                    return None;
                }
                let outcomes = self.once(draw(seed, n));
                tallies.iter_mut().zip(outcomes).for_each(|(tally, one)| count(tally, &one));
            }
            Some(tallies)
        };
        let shares: Vec<Option<Vec<Coverage>>> = thread::scope(|scope| {
            let share = &share;
            let running: Vec<_> =
                (0..threads).map(|thread| scope.spawn(move || share(thread))).collect();
            running.into_iter().map(|thread| thread.join().expect("it does not panic")).collect()
        });
        let mut sum = self.tallies();
        for share in shares {
            sum.iter_mut().zip(share?).for_each(|(sum, part)| add(sum, &part));
        }
        Some(sum)
    }

    fn once(&self, seed: u64) -> Vec<Outcome> {
        match self {
            Trial::Within(noise) => within(noise, seed).into(),
            Trial::Between => vec![between(seed)],
            Trial::BlockBootstrap(noise, count) => vec![block_bootstrap(noise, *count, seed)],
        }
    }

    /// What its outcomes are counted in, in their order.
    fn tallies(&self) -> Vec<Coverage> {
        let tally = |noise: &Noise, interval: IntervalKind, assumptions_hold| Coverage {
            noise: noise.clone(),
            interval,
            assumptions_hold,
            replications: 0,
            covered: 0,
            above: 0,
            below: 0,
            without: 0,
            samples: 0,
            autocorrelated: 0,
            imprecise: 0,
            drift: 0,
            extra: Map::new(),
        };
        match self {
            Trial::Within(noise) => {
                let known = PROCEDURE.iter().find(|(own, _)| own == noise);
                let holding = known.map_or(&[][..], |(_, holding)| holding);
                [IntervalKind::Bandwidth, IntervalKind::Paired]
                    .map(|kind| tally(noise, kind.clone(), holding.contains(&kind)))
                    .into()
            }
            Trial::Between => vec![tally(&Noise::Processes, IntervalKind::Between, true)],
            Trial::BlockBootstrap(noise, _) => {
                let holds = *noise == Noise::WeaklyAutocorrelated;
                vec![tally(noise, IntervalKind::BlockBootstrap, holds)]
            }
        }
    }
}

fn count(tally: &mut Coverage, outcome: &Outcome) {
    tally.replications += 1;
    match outcome.interval {
        Some(interval) => {
            tally.covered += u64::from(interval.contains(outcome.truth));
            tally.above += u64::from(outcome.truth < interval.low);
            tally.below += u64::from(interval.high < outcome.truth);
        }
        None => tally.without += 1,
    }
    tally.samples += outcome.samples;
    tally.autocorrelated += u64::from(outcome.autocorrelated);
    tally.imprecise += u64::from(outcome.imprecise);
    tally.drift += u64::from(outcome.drift);
}

fn add(sum: &mut Coverage, part: &Coverage) {
    sum.replications += part.replications;
    sum.covered += part.covered;
    sum.above += part.above;
    sum.below += part.below;
    sum.without += part.without;
    sum.samples += part.samples;
    sum.autocorrelated += part.autocorrelated;
    sum.imprecise += part.imprecise;
    sum.drift += part.drift;
}

/// What a count promises, and breaks; none where it promises nothing or keeps it.
pub fn complaint(coverage: &Coverage) -> Option<String> {
    if !coverage.assumptions_hold || coverage.replications == 0 {
        return None;
    }
    let (least, most) = match coverage.interval {
        IntervalKind::Bandwidth => ORDER_STATISTICS,
        _ => OTHERS,
    };
    let Coverage { noise, interval, replications, covered, .. } = coverage;
    let thousandth = |count: u64| count * 1000 / replications;
    let share = *covered as f64 / *replications as f64 * 100.0;
    if thousandth(*covered) < least || thousandth(*covered) > most {
        return Some(format!(
            "{interval} intervals on {noise} noise held the truth in {share:.1} %, and not in {} to {} %",
            least as f64 / 10.0,
            most as f64 / 10.0
        ));
    }
    let side = thousandth(coverage.above.max(coverage.below));
    if side > ON_ONE_SIDE {
        return Some(format!(
            "{interval} intervals on {noise} noise lay wholly on one side of the truth in {side} of 1000 cases"
        ));
    }
    let within = [IntervalKind::Bandwidth, IntervalKind::Paired].contains(interval);
    let called = thousandth(coverage.autocorrelated);
    (within && called > FALSELY_AUTOCORRELATED).then(|| {
        format!("{interval} figures with {noise} noise were called autocorrelated in {called} of 1000 cases")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(trial: &Trial, replications: u64) -> Vec<(IntervalKind, f64)> {
        let counts = trial.run(replications, 1, &AtomicBool::new(false)).unwrap();
        counts
            .iter()
            .map(|count| {
                assert_eq!((count.replications, count.without), (replications, 0));
                assert_eq!(count.covered + count.above + count.below, replications);
                (count.interval.clone(), count.covered as f64 / replications as f64)
            })
            .collect()
    }

    /// Of 400 replications the share deviates by 0.011.
    #[test]
    fn intervals_hold_the_truth_where_assumptions_hold() {
        for (noise, holding) in PROCEDURE {
            for (kind, share) in shares(&Trial::Within(noise.clone()), 400) {
                if holding.contains(&kind) {
                    assert!((0.92..=1.0).contains(&share), "{noise} {kind}: {share}");
                }
            }
        }
        let between = &shares(&Trial::Between, 400)[0];
        assert!((0.91..0.985).contains(&between.1), "{between:?}");
    }

    #[test]
    fn what_does_not_hold_is_seen() {
        let drifting = shares(&Trial::Within(Noise::Drifting), 300);
        let alike = shares(&Trial::Within(Noise::Autocorrelated), 300);
        assert!(alike[0].1 < 0.93, "{alike:?}");
        assert!(drifting.iter().all(|(_, share)| *share <= 1.0));
    }

    #[test]
    fn a_trial_is_the_same_on_any_number_of_processors_and_ends_when_it_is_told() {
        let trial = Trial::Within(Noise::Normal);
        let counts = trial.run(20, 1, &AtomicBool::new(false)).unwrap();
        let mut alone = trial.tallies();
        for n in 0..20 {
            let outcomes = trial.once(draw(1, n));
            alone.iter_mut().zip(outcomes).for_each(|(tally, one)| count(tally, &one));
        }
        assert_eq!(counts, alone);
        assert_eq!(trial.run(20, 1, &AtomicBool::new(true)), None);
    }

    #[test]
    fn promises_are_held_against_counts() {
        let mut count = Trial::Within(Noise::Normal).tallies().remove(1);
        (count.replications, count.covered) = (1000, 950);
        assert_eq!(complaint(&count), None);
        for covered in [929, 971] {
            let wrong = complaint(&Coverage { covered, ..count.clone() }).unwrap();
            assert!(wrong.contains("paired") && wrong.contains("normal"), "{wrong}");
        }
        assert!(complaint(&Coverage { autocorrelated: 16, ..count.clone() }).is_some());
        let lopsided = complaint(&Coverage { above: 36, ..count.clone() }).unwrap();
        assert!(lopsided.contains("one side"), "{lopsided}");
        let exempt = Coverage { assumptions_hold: false, covered: 100, ..count.clone() };
        assert_eq!(complaint(&exempt), None);
        let order = Coverage { interval: IntervalKind::Bandwidth, covered: 990, ..count };
        assert_eq!(complaint(&order), None);
        assert!(complaint(&Coverage { covered: 939, ..order }).is_some());
    }
}
