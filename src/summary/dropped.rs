//! Rounds that a lowered clock spoiled: they are dropped whole, from every figure.

use std::borrow::Cow;
use std::collections::BTreeSet;

use crate::measure::{LOWEST_CLOCK, SPOILING_REASONS};
use crate::record::{Arm, Group, Samples};
use crate::stats;

/// The median SM clock in kHz over those samples of the arms that have one.
pub fn median_sm_khz<'a>(arms: impl IntoIterator<Item = &'a Arm>) -> Option<f64> {
    let known = arms.into_iter().flat_map(|arm| arm.samples.sm_khz.iter().flatten());
    stats::median(&known.map(|khz| f64::from(*khz)).collect::<Vec<_>>())
}

/// Whether the arm's clock lies as far below the run's throughout.
pub fn is_slow(arm: &Arm, run_median_sm_khz: Option<f64>) -> bool {
    let both = median_sm_khz([arm]).zip(run_median_sm_khz);
    both.is_some_and(|(own, run)| own < LOWEST_CLOCK * run)
}

/// The group without its spoiled rounds, and how many those are.
pub fn without_spoiled(group: &Group) -> (Cow<'_, Group>, u32) {
    let spoiled = spoiled(group);
    if spoiled.is_empty() {
        return (Cow::Borrowed(group), 0);
    }
    let mut kept = group.clone();
    for arm in &mut kept.arms {
        arm.samples = without(&arm.samples, &spoiled);
    }
    (Cow::Owned(kept), spoiled.len() as u32)
}

/// Rounds that have samples, and of which NVML or a sample's clock says that they are spoiled. A
/// clock is held against its arm's median in the group and not against the run's: a kernel that
/// itself draws all the power that a unit allows has a lower clock than others in every round, and
/// that clock is part of what it costs there.
fn spoiled(group: &Group) -> BTreeSet<u32> {
    let reasons = |round: u32| {
        group.round_throttle_reasons.get(round as usize).copied().flatten().unwrap_or(0)
    };
    let samples = group.arms.iter().flat_map(|arm| {
        let least = median_sm_khz([arm]).map_or(0.0, |median| LOWEST_CLOCK * median);
        let is_slow = move |i: usize| {
            let khz = arm.samples.sm_khz.get(i).copied().flatten();
            khz.is_some_and(|khz| f64::from(khz) < least)
        };
        arm.samples.round.iter().enumerate().map(move |(i, round)| (*round, is_slow(i)))
    });
    samples
        .filter(|(round, is_slow)| *is_slow || reasons(*round) & SPOILING_REASONS != 0)
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
        let (kept, dropped) = without_spoiled(group);
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
        let (kept, dropped) = without_spoiled(&unknown);
        assert!(matches!(kept, Cow::Borrowed(_)));
        assert_eq!((kept.arms[0].samples.len(), dropped), (6, 0));
    }

    #[test]
    fn a_kernel_whose_clock_is_low_in_every_round_keeps_them() {
        let mut hungry = group();
        hungry.arms[1].samples.sm_khz = vec![Some(1_400_000); 6];
        assert_eq!(left(&hungry), (vec![0, 1, 2, 3, 4, 5], 0));
        hungry.arms[1].samples.sm_khz[2] = Some(1_259_999);
        assert_eq!(left(&hungry), (vec![0, 1, 3, 4, 5], 1));
    }
}
