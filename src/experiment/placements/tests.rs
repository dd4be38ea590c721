use std::cell::Cell;
use std::collections::BTreeSet;
use std::rc::Rc;

use super::*;
use crate::device::Interval;
use crate::device::scripted::{Scripted, at_rate};
use crate::experiment::{Suite, plans};
use crate::record::{DeviceKind, StopReason};

const GIB: u64 = 1 << 30;

/// Ceilings of 2 GiB, as the quick suite has them on a GPU.
fn ceiling() -> Plan {
    let plans = plans(Suite::Quick, &DeviceKind::Cuda);
    let wanted = |plan: &&Plan| plan.is_placed_anew() && plan.case().ends_with("footprint=2GiB");
    plans.iter().find(wanted).cloned().unwrap()
}

fn measured(device: Scripted, memory_limit_bytes: u64, plan: &Plan) -> Group {
    let group = Session::new(Box::new(device), 1, memory_limit_bytes).perform(plan);
    assert_eq!(group.lost, None);
    group
}

fn steady(memory_bytes: u64) -> Scripted {
    Scripted::new(memory_bytes, |timed| at_rate(timed, 4000.0))
}

#[test]
fn five_placements_are_one_group() {
    let group = measured(steady(64 * GIB).throttled(|| Some(0x4)), 64 * GIB, &ceiling());
    assert_eq!((&group.status, group.is_verified()), (&Status::Ok, true), "{:?}", group.reason);
    let sources: BTreeSet<&str> = group.placements.iter().map(|p| p.source.as_str()).collect();
    assert_eq!((group.placements.len(), sources.len()), (5, 5));
    assert!(sources.iter().all(|source| source.starts_with("0x")));
    assert!(group.arms.len() >= 3);
    for arm in &group.arms {
        // A steady device needs the fewest rounds, of which each placement takes at least ten.
        let samples = &arm.samples;
        assert_eq!(samples.round, (0..50).collect::<Vec<_>>(), "{}", arm.name);
        assert_eq!(samples.placement, (0..50).map(|i| i / 10).collect::<Vec<_>>());
        assert_eq!(samples.sm_khz, [Some(1_980_000); 50]);
        let lengths = [samples.position.len(), samples.launches.len(), samples.ns.len()];
        assert_eq!(lengths, [50; 3]);
        let checks = group.checks.iter().filter(|check| check.arm == arm.name).count();
        assert!(checks >= 2 * 5, "{}: {checks} checks", arm.name);
    }
    assert_eq!(group.round_throttle_reasons, [Some(0x4); 50]);
    assert_eq!((group.pilot_rounds, group.stop), (15, Some(StopReason::Target)));
    let sentinel = group.sentinel.unwrap();
    assert_eq!((sentinel.settled, sentinel.attempts.len()), (true, 5));
    // The device is unknown before the first placement, and as before on the others.
    assert_eq!(sentinel.settling.len(), 30 + 4 * 5);
}

#[test]
fn what_does_not_fit_has_fewer_placements_and_all_its_rounds() {
    let plan = ceiling();
    for placements in 1..=5 {
        let limit = plan.memory_bytes() + plan.ballast_bytes(placements - 1);
        assert_eq!(plan.peak_bytes(limit), limit);
        assert_eq!(plan.placements(limit), placements);
        assert_eq!(plan.placements(limit - 1), (placements - 1).max(1));
        let group = measured(steady(64 * GIB), limit, &plan);
        assert_eq!(group.status, Status::Ok, "{:?}", group.reason);
        assert_eq!(group.placements.len(), placements as usize);
        let samples = &group.arms[0].samples;
        assert!(samples.len() >= 30);
        assert_eq!(samples.placement.is_empty(), placements == 1);
    }
}

#[test]
fn memory_that_runs_out_later_ends_the_placements_and_not_the_group() {
    let plan = ceiling();
    let group = measured(steady(64 * GIB).refusing(plan.ballast_bytes(2)), 64 * GIB, &plan);
    assert_eq!((&group.status, group.placements.len()), (&Status::Ok, 2), "{:?}", group.reason);
    assert_eq!(group.arms[0].samples.len(), 20);
    let none = measured(steady(64 * GIB).refusing(plan.arena_bytes()), 64 * GIB, &plan);
    assert_eq!((&none.status, none.arms.len()), (&Status::Skipped, 0));
}

#[test]
fn a_placement_that_shifts_is_measured_again_on_its_own() {
    // The first sentinel interval after the arms' second turn (after calibration) is slow, once.
    let (turns, in_turn) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(false)));
    let device = Scripted::new(64 * GIB, move |timed| {
        let is_sentinel = timed.bytes == GIB;
        if !is_sentinel {
            in_turn.set(true);
        } else if in_turn.replace(false) {
            turns.set(turns.get() + 1);
        }
        at_rate(timed, if is_sentinel && turns.get() == 2 { 3900.0 } else { 4000.0 })
    });
    let group = measured(device, 64 * GIB, &ceiling());
    let voided: Vec<bool> =
        group.sentinel.unwrap().attempts.iter().map(|attempt| attempt.voided).collect();
    assert_eq!(voided, [true, false, false, false, false, false]);
    assert_eq!(group.arms[0].samples.len(), 50);
    assert!(group.checks.iter().all(|check| check.mismatches == 0));
}

#[test]
fn slow_rounds_of_one_placement_do_not_lengthen_the_next() {
    // After fifteen rounds of the pilot: three with low clocks in the first placement, and heat in all
    // of the last.
    let rounds = Rc::new(Cell::new(0));
    let ended = rounds.clone();
    let device = Scripted::new(64 * GIB, move |timed| {
        let is_slow = (18..21).contains(&rounds.get());
        match at_rate(timed, 4000.0) {
            Interval::Ns { ns, .. } if is_slow && timed.bytes != GIB => {
                Interval::Ns { ns, sm_khz: Some(1_000_000) }
            }
            other => other,
        }
    });
    let device = device.throttled(move || {
        ended.set(ended.get() + 1);
        (ended.get() > 58).then_some(0x40)
    });
    let group = measured(device, 64 * GIB, &ceiling());
    assert_eq!(group.status, Status::Ok, "{:?}", group.reason);
    let samples = &group.arms[0].samples;
    let of = |placement: u32| samples.placement.iter().filter(|p| **p == placement).count();
    assert_eq!((0..5).map(of).collect::<Vec<_>>(), [13, 10, 10, 10, 20]);
    assert_eq!(samples.round, (0..63).collect::<Vec<_>>());
}

#[test]
fn a_device_that_cannot_be_held_is_measured_all_the_same() {
    let group = measured(steady(64 * GIB).unheld(), 64 * GIB, &ceiling());
    assert_eq!((group.status, group.held), (Status::Ok, Some(false)));
    assert_eq!(group.placements.len(), 5);
}

#[test]
fn columns_stay_equally_long_where_one_placement_knows_no_clock() {
    let samples = |rounds: u32, sm_khz: Vec<Option<u32>>| {
        let mut samples = Samples { sm_khz, ..Samples::default() };
        (0..rounds).for_each(|round| samples.push(round, 0, 1, 7));
        samples
    };
    let known = || samples(2, vec![Some(5), None]);
    let mut first = samples(1, vec![]);
    append(&mut first, known(), 3, 1);
    assert_eq!((&first.round, &first.sm_khz), (&vec![0, 3, 4], &vec![None, Some(5), None]));
    let mut first = known();
    append(&mut first, samples(1, vec![]), 2, 1);
    assert_eq!((&first.round, &first.sm_khz), (&vec![0, 1, 2], &vec![Some(5), None, None]));
}
