//! From the samples of arms to rates, and from the rates of two arms to ratios, round by round.

use std::collections::BTreeMap;

use crate::record::{Arm, Group};
use crate::stats;

/// The rate of each round, in bytes a nanosecond, which are decimal GB/s.
pub type Rates = BTreeMap<u32, f64>;

/// Effective bandwidth of each round: useful bytes read and written over the time.
pub fn effective(arm: &Arm) -> Rates {
    rates(arm, arm.read_bytes.saturating_add(arm.written_bytes))
}

/// What each round moved in all, the index included.
pub fn total(arm: &Arm) -> Rates {
    let useful = arm.read_bytes.saturating_add(arm.written_bytes);
    rates(arm, useful.saturating_add(arm.index_bytes))
}

/// The ratio of the two in each round that both have.
pub fn paired(numerator: &Rates, denominator: &Rates) -> Vec<f64> {
    numerator
        .iter()
        .filter_map(|(round, rate)| Some(rate / denominator.get(round)?))
        .filter(|ratio| ratio.is_finite())
        .collect()
}

/// The ratio of two arms' effective bandwidths in each round that both have.
pub fn paired_arms(group: &Group, numerator: &str, denominator: &str) -> Vec<f64> {
    match (group.arm(numerator), group.arm(denominator)) {
        (Some(above), Some(below)) => paired(&effective(above), &effective(below)),
        _ => Vec::new(),
    }
}

/// The median effective bandwidth of each placement of the buffers; none where there was one.
pub fn placement_medians(arm: &Arm) -> Vec<f64> {
    by_placement(arm, &effective(arm))
}

/// The median of what the rounds of each placement gave; none where there was one.
pub fn by_placement(arm: &Arm, rates: &Rates) -> Vec<f64> {
    let mut placements: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    let placed: BTreeMap<&u32, &u32> =
        arm.samples.round.iter().zip(&arm.samples.placement).collect();
    for (round, placement) in placed {
        placements.entry(*placement).or_default().extend(rates.get(round));
    }
    placements.values().filter_map(|rates| stats::median(rates)).collect()
}

/// A sample without launches or without time tells no rate; of two samples that claim the same
/// round the first counts.
fn rates(arm: &Arm, bytes_per_launch: u64) -> Rates {
    let samples = &arm.samples;
    let mut rates = Rates::new();
    for ((&round, &launches), &ns) in samples.round.iter().zip(&samples.launches).zip(&samples.ns) {
        if bytes_per_launch > 0 && launches > 0 && ns > 0 {
            let bytes = bytes_per_launch as f64 * f64::from(launches);
            rates.entry(round).or_insert(bytes / ns as f64);
        }
    }
    rates
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{KernelName, PatternName, Samples};

    fn arm(read: u64, written: u64, index: u64, samples: &[(u32, u32, u64)]) -> Arm {
        let mut arm = Arm {
            name: "packed".into(),
            kernel: KernelName::GatherCopy.into(),
            pattern: PatternName::Contiguous.into(),
            order: None,
            backing: None,
            read_bytes: read,
            written_bytes: written,
            index_bytes: index,
            touched_bytes: read,
            samples: Samples::default(),
            extra: Default::default(),
        };
        for &(round, launches, ns) in samples {
            arm.samples.push(round, 0, launches, ns);
        }
        arm
    }

    #[test]
    fn bandwidth_counts_useful_bytes_read_and_written_in_every_launch() {
        // (3000 + 1000) B x 2 launches in 4000 ns are 2 B/ns.
        let arm = arm(3000, 1000, 500, &[(0, 2, 4000)]);
        assert_eq!(effective(&arm), Rates::from([(0, 2.0)]));
        assert_eq!(total(&arm), Rates::from([(0, 2.25)]));
    }

    #[test]
    fn ratios_pair_rounds_by_number_and_not_by_place() {
        let above = arm(1000, 0, 0, &[(0, 1, 1000), (2, 1, 500), (3, 1, 250)]);
        let below = arm(1000, 0, 0, &[(3, 1, 125), (1, 1, 1), (2, 1, 250)]);
        assert_eq!(paired(&effective(&above), &effective(&below)), [0.5, 0.5]);
    }

    #[test]
    fn samples_without_time_launches_or_bytes_tell_nothing() {
        assert!(effective(&arm(1000, 0, 0, &[(0, 0, 10), (1, 1, 0)])).is_empty());
        assert!(effective(&arm(0, 0, 8, &[(0, 1, 10)])).is_empty());
    }
}
