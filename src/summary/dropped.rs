//! Rounds that a lowered clock spoiled: they are dropped whole, from every figure.

use std::borrow::Cow;
use std::collections::BTreeSet;

use crate::record::{Group, Samples};
use crate::stats;

/// NVML's reasons that drop a round: hardware slowdown (0x8), software thermal slowdown (0x20),
/// hardware thermal slowdown (0x40), hardware power brake (0x80) (`nvmlClocksThrottleReasons*` in
/// nvml.h). The software power cap (0x4) is not among them: many units run at it all the time.
const DROPPING_REASONS: u64 = 0x8 | 0x20 | 0x40 | 0x80;

/// A round is dropped where the SM clock of a sample lies below this share of the run's median.
const LOWEST_CLOCK: f64 = 0.9;

/// The median SM clock in kHz over all samples of a run that have one.
pub fn median_sm_khz(groups: &[Group]) -> Option<f64> {
    let arms = groups.iter().flat_map(|group| &group.arms);
    let known = arms.flat_map(|arm| arm.samples.sm_khz.iter().flatten());
    stats::median(&known.map(|khz| f64::from(*khz)).collect::<Vec<_>>())
}

/// The group without its spoiled rounds, and how many those are.
pub fn without_spoiled(group: &Group, median_sm_khz: Option<f64>) -> (Cow<'_, Group>, u32) {
    let spoiled = spoiled(group, median_sm_khz);
    if spoiled.is_empty() {
        return (Cow::Borrowed(group), 0);
    }
    let mut kept = group.clone();
    for arm in &mut kept.arms {
        arm.samples = without(&arm.samples, &spoiled);
    }
    (Cow::Owned(kept), spoiled.len() as u32)
}

/// Rounds that have samples, and of which NVML or a sample's clock says that they are spoiled.
fn spoiled(group: &Group, median_sm_khz: Option<f64>) -> BTreeSet<u32> {
    let reasons = |round: u32| {
        group.round_throttle_reasons.get(round as usize).copied().flatten().unwrap_or(0)
    };
    let slow = |khz: Option<u32>| {
        khz.zip(median_sm_khz).is_some_and(|(khz, median)| f64::from(khz) < LOWEST_CLOCK * median)
    };
    let samples = group.arms.iter().flat_map(|arm| {
        let clock = |i: usize| arm.samples.sm_khz.get(i).copied().flatten();
        arm.samples.round.iter().enumerate().map(move |(i, round)| (*round, clock(i)))
    });
    samples
        .filter(|(round, khz)| slow(*khz) || reasons(*round) & DROPPING_REASONS != 0)
        .map(|(round, _)| round)
        .collect()
}

fn without(samples: &Samples, rounds: &BTreeSet<u32>) -> Samples {
    let is_kept = |i: usize| samples.round.get(i).is_none_or(|round| !rounds.contains(round));
    fn column<T: Copy>(all: &[T], is_kept: impl Fn(usize) -> bool) -> Vec<T> {
        all.iter().enumerate().filter(|(i, _)| is_kept(*i)).map(|(_, value)| *value).collect()
    }
    Samples {
        round: column(&samples.round, is_kept),
        position: column(&samples.position, is_kept),
        launches: column(&samples.launches, is_kept),
        ns: column(&samples.ns, is_kept),
        sm_khz: column(&samples.sm_khz, is_kept),
        placement: column(&samples.placement, is_kept),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::fixture::Shape;

    fn group() -> Group {
        let mut group = Shape { rounds: 6, ..Shape::default() }.group();
        for arm in &mut group.arms {
            arm.samples.sm_khz = vec![Some(2_000_000); 6];
        }
        group
    }

    fn left(group: &Group) -> (Vec<u32>, u32) {
        let median = median_sm_khz(std::slice::from_ref(group));
        let (kept, dropped) = without_spoiled(group, median);
        let rounds = kept.arms[0].samples.round.clone();
        for arm in &kept.arms {
            assert_eq!(arm.samples.round, rounds, "{}", arm.name);
            assert_eq!(arm.samples.ns.len(), rounds.len());
            assert_eq!(arm.samples.sm_khz.len(), rounds.len());
        }
        (rounds, dropped)
    }

    #[test]
    fn a_slow_sample_drops_its_round_from_every_arm() {
        let mut slow = group();
        slow.arms[2].samples.sm_khz[4] = Some(1_799_999);
        slow.arms[1].samples.sm_khz[0] = Some(1_800_000);
        slow.arms[1].samples.sm_khz[1] = None;
        assert_eq!(left(&slow), (vec![0, 1, 2, 3, 5], 1));
    }

    #[test]
    fn hardware_and_heat_drop_a_round_and_a_power_cap_does_not() {
        let mut throttled = group();
        throttled.round_throttle_reasons =
            [0x4, 0x8, 0x20, 0x40, 0x80 | 0x4].map(Some).into_iter().chain([None]).collect();
        assert_eq!(left(&throttled), (vec![0, 5], 4));
    }

    #[test]
    fn without_clocks_and_reasons_nothing_is_dropped() {
        let mut unknown = group();
        for arm in &mut unknown.arms {
            arm.samples.sm_khz.clear();
        }
        assert_eq!(left_of_unknown(&unknown), (6, 0));
    }

    fn left_of_unknown(group: &Group) -> (usize, u32) {
        let (kept, dropped) = without_spoiled(group, median_sm_khz(&[]));
        assert!(matches!(kept, Cow::Borrowed(_)));
        (kept.arms[0].samples.len(), dropped)
    }

    #[test]
    fn the_median_is_that_of_the_run() {
        let mut slow = group();
        for arm in &mut slow.arms {
            arm.samples.sm_khz = vec![Some(1_000_000); 6];
        }
        let run = [group(), group(), slow];
        let median = median_sm_khz(&run);
        assert_eq!(median, Some(2_000_000.0));
        assert_eq!(without_spoiled(&run[2], median).1, 6);
    }
}
