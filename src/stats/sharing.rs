//! Which of several units share something, from how much each is slowed down while another one uses it.

use super::median;
use super::random::SplitMix64;

/// How often controls are split at random to learn what chance alone does.
const SPLITS: usize = 200;

/// What each unit took while each other one was at work, row by row: entry `a * units + v` is what `v`
/// took while `a` was.
#[derive(Clone, Copy, Debug)]
pub struct Trials<'a> {
    /// How many units there are.
    pub units: usize,
    /// Each repetition in which the other one used what may be shared.
    pub attacks: &'a [Vec<f64>],
    /// Each repetition in which it did as much and used nothing of it.
    pub controls: &'a [Vec<f64>],
}

/// The units that share something with each other.
#[derive(Clone, Debug, PartialEq)]
pub struct Sharing {
    /// The units of each group, in ascending order; groups by their first unit. A unit that shares
    /// nothing is a group of its own.
    pub groups: Vec<Vec<usize>>,
    /// More than this is no chance: the largest difference between two halves of the controls, over
    /// all pairs and all splits.
    pub threshold: f64,
    /// The least slowdown of any two units that are in one group, in the direction that shows less.
    pub weakest_within: Option<f64>,
    /// The largest of any two that are not.
    pub strongest_between: Option<f64>,
    /// Groups of which some pair does not show it: they hang together by others only.
    pub incomplete: usize,
}

/// Finds the groups. Two units share where each slows the other down by more than chance does; what
/// hangs together by such pairs is a group. No number of groups, nor any size, is assumed. None
/// with fewer than four controls, without attacks, or where a matrix is not whole.
///
/// Chance is learnt from the controls alone: they are split into halves at random, and the largest
/// difference of medians that any pair shows in any split is the threshold (the maximum over all pairs
/// holds the error of all of them together; Westfall and Young, Resampling-Based Multiple Testing, 1993).
/// Halves scatter more than the whole, so it is rather too high.
pub fn sharing(trials: Trials<'_>, seed: u64) -> Option<Sharing> {
    let Trials { units, attacks, controls } = trials;
    let pairs = units * units;
    let is_whole = |one: &Vec<f64>| one.len() == pairs && one.iter().all(|took| took.is_finite());
    if attacks.is_empty() || controls.len() < 4 || !attacks.iter().chain(controls).all(is_whole) {
        return None;
    }
    let of = |repetitions: &[&Vec<f64>], pair: usize| {
        let took: Vec<f64> = repetitions.iter().map(|one| one[pair]).collect();
        median(&took).unwrap_or(0.0)
    };
    let is_pair = |pair: &usize| pair / units != pair % units;
    let all = |repetitions: &'_ [Vec<f64>]| {
        let repetitions: Vec<&Vec<f64>> = repetitions.iter().collect();
        (0..pairs).map(|pair| of(&repetitions, pair)).collect::<Vec<f64>>()
    };
    let mut threshold = 0.0f64;
    let mut random = SplitMix64::new(seed);
    let mut order: Vec<usize> = (0..controls.len()).collect();
    for _ in 0..SPLITS {
        (1..order.len()).for_each(|at| order.swap(at, random.below(at + 1)));
        let half = controls.len() / 2;
        let [one, other] = [&order[..half], &order[half..]]
            .map(|half| half.iter().map(|&at| &controls[at]).collect::<Vec<_>>());
        let differences =
            (0..pairs).filter(is_pair).map(|pair| (of(&one, pair) - of(&other, pair)).abs());
        threshold = differences.fold(threshold, f64::max);
    }
    let (attacked, controlled) = (all(attacks), all(controls));
    let slowdown = |a: usize, b: usize| {
        let of = |pair: usize| attacked[pair] - controlled[pair];
        of(a * units + b).min(of(b * units + a))
    };
    let mut group_of: Vec<usize> = (0..units).collect();
    let two = || (0..units).flat_map(|a| (a + 1..units).map(move |b| (a, b)));
    for (a, b) in two().filter(|&(a, b)| slowdown(a, b) > threshold) {
        let (kept, gone) = (group_of[a].min(group_of[b]), group_of[a].max(group_of[b]));
        group_of.iter_mut().filter(|group| **group == gone).for_each(|group| *group = kept);
    }
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for first in 0..units {
        let members: Vec<usize> = (0..units).filter(|&unit| group_of[unit] == first).collect();
        groups.extend((!members.is_empty()).then_some(members));
    }
    let are_one = |a: usize, b: usize| group_of[a] == group_of[b];
    let within = two().filter(|&(a, b)| are_one(a, b)).map(|(a, b)| slowdown(a, b));
    let between = two().filter(|&(a, b)| !are_one(a, b)).map(|(a, b)| slowdown(a, b));
    let is_complete = |group: &Vec<usize>| {
        let is_shown = |a: usize| group.iter().all(|&b| a == b || slowdown(a, b) > threshold);
        group.iter().all(|&a| is_shown(a))
    };
    let incomplete = groups.iter().filter(|group| !is_complete(group)).count();
    Some(Sharing {
        threshold,
        weakest_within: within.reduce(f64::min),
        strongest_between: between.reduce(f64::max),
        incomplete,
        groups,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Units of which those with equal numbers share; noise of up to one, a slowdown of `effect`.
    fn trials(group_of: &[usize], effect: f64, seed: u64) -> [Vec<Vec<f64>>; 2] {
        let units = group_of.len();
        let mut random = SplitMix64::new(seed);
        let mut matrix = |effect: f64| {
            let of = |pair: usize| {
                let shares = group_of[pair / units] == group_of[pair % units];
                let noise = random.below(1_000) as f64 / 500.0 - 1.0;
                1_000.0 + noise + if shares { effect } else { 0.0 }
            };
            (0..units * units).map(of).collect::<Vec<f64>>()
        };
        [effect, 0.0].map(|effect| (0..4).map(|_| matrix(effect)).collect())
    }

    fn found(units: usize, [attacks, controls]: &[Vec<Vec<f64>>; 2]) -> Option<Sharing> {
        sharing(Trials { units, attacks, controls }, 1)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn any_groups_are_found_again(
            group_of in prop::collection::vec(0..4usize, 2..14), seed in any::<u64>()
        ) {
            let found = found(group_of.len(), &trials(&group_of, 8.0, seed)).unwrap();
            for (unit, own) in group_of.iter().enumerate() {
                let group = found.groups.iter().find(|group| group.contains(&unit)).unwrap();
                let wanted: Vec<usize> =
                    (0..group_of.len()).filter(|&other| group_of[other] == *own).collect();
                prop_assert_eq!(group, &wanted);
            }
            prop_assert_eq!(found.incomplete, 0);
            prop_assert!(found.weakest_within.is_none_or(|least| least > found.threshold));
            prop_assert!(found.strongest_between.is_none_or(|most| most <= found.threshold));
        }

        #[test]
        fn chance_alone_makes_no_groups(seed in any::<u64>()) {
            let units = 24;
            let group_of: Vec<usize> = (0..units).collect();
            let found = found(units, &trials(&group_of, 0.0, seed)).unwrap();
            prop_assert_eq!(found.groups.len(), units);
        }
    }

    #[test]
    fn one_direction_alone_is_no_sharing() {
        let group_of = [0, 1, 2];
        let mut data = trials(&group_of, 0.0, 3);
        data[0].iter_mut().for_each(|matrix| matrix[1] += 50.0);
        assert_eq!(found(3, &data).unwrap().groups.len(), 3);
        data[0].iter_mut().for_each(|matrix| matrix[3] += 50.0);
        assert_eq!(found(3, &data).unwrap().groups, [vec![0, 1], vec![2]]);
    }

    #[test]
    fn a_chain_is_a_group_that_is_not_complete() {
        let mut data = trials(&[0, 1, 2], 0.0, 3);
        for pair in [1, 3, 5, 7] {
            data[0].iter_mut().for_each(|matrix| matrix[pair] += 50.0);
        }
        let found = found(3, &data).unwrap();
        assert_eq!((found.groups, found.incomplete), (vec![vec![0, 1, 2]], 1));
    }

    #[test]
    fn what_is_not_whole_tells_nothing() {
        let [attacks, controls] = trials(&[0, 0], 9.0, 1);
        let short = |attacks: &[Vec<f64>], controls: &[Vec<f64>]| {
            sharing(Trials { units: 2, attacks, controls }, 1).is_none()
        };
        assert!(short(&[], &controls) && short(&attacks, &controls[..3]));
        assert!(short(&[vec![1.0; 3]], &controls) && short(&[vec![f64::NAN; 4]], &controls));
    }
}
