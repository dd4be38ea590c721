//! Which multiprocessors share a TLB: found by duels, and how windows are dealt out among them.

use std::time::Instant;

use crate::device::{DUEL_PAGE_BYTES, DUEL_SCRATCH_BYTES, Device, DeviceError, Duel, Span, Walk};
use crate::layout::{Permutation, draw, mix};
use crate::record::Duels;
use crate::stats::{Sharing, Trials, sharing};

/// Repetitions of each attack and of each control.
const REPETITIONS: u64 = 4;

/// Dependent reads of each multiprocessor in a duel: some 0.3 ms.
const READS: u32 = 256;

/// The part of the arena that reads are followed through, and that which is flooded, in percent: each
/// within the reach where both together are well beyond it.
const PART_PERCENT: u64 = 45;

/// Has every multiprocessor attack all others, and as often do as much without an attack.
///
/// # Errors
///
/// Whatever the device says.
pub(super) fn duels(device: &dyn Device, arena: Span<'_>, seed: u64) -> Result<Duels, DeviceError> {
    let begin = Instant::now();
    let scratch = device.allocate(DUEL_SCRATCH_BYTES)?;
    let pages = arena.bytes() / DUEL_PAGE_BYTES * PART_PERCENT / 100;
    let mut drawn = 0;
    let mut duel = |aggressor: Option<u32>, first: u64| {
        drawn += 1;
        device.duel(&Duel {
            arena,
            scratch: scratch.span(),
            pages,
            flood: (first, pages),
            aggressor,
            only: None,
            reads: READS,
            warms: true,
            key: draw(mix(seed ^ 0x6475_656c), drawn),
        })
    };
    // The first tells who is there, and wakes the clocks.
    let there: Vec<u32> =
        (0..).zip(duel(None, 0)?).filter_map(|(own, walk)| walk.map(|_| own)).collect();
    let cycles = |walks: &[Option<Walk>]| -> Vec<u32> {
        let of = |own: &u32| walks.get(*own as usize).copied().flatten().unwrap_or_default();
        there.iter().map(|own| of(own).cycles.min(u32::MAX.into()) as u32).collect()
    };
    let (mut attacks, mut controls) = (Vec::new(), Vec::new());
    for repetition in 0..REPETITIONS {
        let count = there.len();
        let [mut attack, mut control] = [(); 2].map(|()| vec![0; count * count]);
        let order = Permutation::new(draw(mix(seed), repetition), count.max(1) as u64);
        for at in 0..count {
            let at = order.apply(at as u64) as usize;
            let row = at * count..(at + 1) * count;
            let aggressor = Some(there[at]);
            // Which of the two comes first changes from one repetition to the next.
            let mut firsts = [(pages, true), (0, false)];
            firsts.rotate_left((repetition % 2) as usize);
            for (first, is_attack) in firsts {
                let found = cycles(&duel(aggressor, first)?);
                let into = if is_attack { &mut attack } else { &mut control };
                into[row.clone()].copy_from_slice(&found);
            }
        }
        attacks.push(attack);
        controls.push(control);
    }
    Ok(Duels {
        clusters: device.clusters(scratch.span())?,
        multiprocessors: there,
        reads: READS,
        page_bytes: DUEL_PAGE_BYTES,
        pages,
        flood_pages: pages,
        attacks,
        controls,
        took_ns: begin.elapsed().as_nanos() as u64,
    })
}

/// The groups of multiprocessors that share a TLB, as places in the duels' list; see
/// [`sharing`](crate::stats::sharing).
pub fn tlb_groups(duels: &Duels) -> Option<Sharing> {
    let reads = f64::from(duels.reads.max(1));
    let a_read = |all: &[Vec<u32>]| -> Vec<Vec<f64>> {
        all.iter().map(|one| one.iter().map(|&took| f64::from(took) / reads).collect()).collect()
    };
    let (attacks, controls) = (a_read(&duels.attacks), a_read(&duels.controls));
    let units = duels.multiprocessors.len();
    sharing(Trials { units, attacks: &attacks, controls: &controls }, 0)
}

/// Deals windows out to sets of multiprocessors: the largest set first, to the window that has the
/// fewest so far. For each multiprocessor of a set its window.
pub(super) fn deal(sets: &[Vec<usize>], windows: usize) -> Vec<(usize, usize)> {
    let mut order: Vec<&Vec<usize>> = sets.iter().collect();
    order.sort_by_key(|set| std::cmp::Reverse(set.len()));
    let mut held = vec![0usize; windows];
    let mut dealt = Vec::new();
    for set in order {
        let Some(window) = (0..windows).min_by_key(|&window| held[window]) else { break };
        held[window] += set.len();
        dealt.extend(set.iter().map(|&unit| (unit, window)));
    }
    dealt.sort_unstable();
    dealt
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_dealt_out_evenly_and_sets_stay_together() {
        let sets: Vec<Vec<usize>> =
            (0..22).map(|set| (0..6).map(|unit| set * 6 + unit).collect()).collect();
        let dealt = deal(&sets, 3);
        assert_eq!(dealt.len(), 132);
        let held = |window: usize| dealt.iter().filter(|(_, own)| *own == window).count();
        let mut shares = [0, 1, 2].map(held);
        shares.sort_unstable();
        assert_eq!(shares, [42, 42, 48]);
        for set in &sets {
            let windows: Vec<usize> = set.iter().map(|&unit| dealt[unit].1).collect();
            assert!(windows.iter().all(|window| *window == windows[0]));
        }
        assert!(deal(&sets, 0).is_empty());
    }

    #[test]
    fn groups_come_from_cycles_of_a_read() {
        // Two and two share, three repetitions more than chance needs.
        let matrix = |effect: u32| {
            let of = |pair: u32| {
                let shares = pair / 4 / 2 == pair % 4 / 2;
                256_000 + pair * 16 + if shares { effect } else { 0 }
            };
            (0..16).map(of).collect::<Vec<u32>>()
        };
        let duels = Duels {
            multiprocessors: vec![0, 1, 7, 9],
            reads: 256,
            attacks: vec![matrix(25_600); 4],
            controls: vec![matrix(0); 4],
            ..Duels::default()
        };
        let found = tlb_groups(&duels).unwrap();
        assert_eq!(found.groups, [vec![0, 1], vec![2, 3]]);
        assert_eq!((found.weakest_within, found.threshold), (Some(100.0), 0.0));
    }
}
