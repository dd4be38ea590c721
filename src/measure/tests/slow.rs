//! Rounds whose clock is low, and what is done about them.

use std::cell::Cell;

use super::*;
use crate::record::StopReason;

const HIGH: u32 = 1_980_000;
/// Just under 90 % of that.
const LOW: u32 = 1_781_999;

/// A device whose second arm has this clock, and whose first arm takes so many times as long, in the
/// n-th round since it was asked first; and the intervals of its arms after the first round.
fn clocked(script: impl Fn(u64) -> (Option<u32>, f64) + 'static) -> (Scripted, Rc<Cell<u64>>) {
    let (rounds, intervals) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
    let (round, count) = (rounds.clone(), intervals.clone());
    let device = Scripted::new(1 << 32, move |timed| {
        let (sm_khz, times) = script(round.get());
        let slower = if timed.bytes == 512 * MIB { times } else { 1.0 };
        let is_second = timed.bytes == 256 * MIB;
        count.set(count.get() + u64::from(round.get() > 0 && !is_sentinel(timed)));
        match at_rate(timed, 4000.0 / slower) {
            Interval::Ns { ns, sm_khz: _ } if is_second => Interval::Ns { ns, sm_khz },
            other => other,
        }
    });
    let ended = move || {
        rounds.set(rounds.get() + 1);
        None
    };
    (device.throttled(ended), intervals)
}

/// Rounds of the pilot, which come first.
const PILOT: u64 = 15;

fn aiming(device: &Scripted) -> (Measured, Group) {
    let arms = Arms::new(device);
    group_of(device, &arms, Some(5_000), arms.watched_by(at_rest()))
}

fn is_high(measured: &Measured) -> Vec<bool> {
    measured.samples[1].sm_khz.iter().map(|khz| *khz == Some(HIGH)).collect()
}

#[test]
fn slow_rounds_are_kept_and_taken_again() {
    let is_slow = |round: u64| (5..12).contains(&round);
    let (device, intervals) = clocked(move |n| {
        let is_high = n < PILOT || !is_slow(n - PILOT);
        (Some(if is_high { HIGH } else { LOW }), 1.0)
    });
    let (measured, group) = aiming(&device);
    for samples in &measured.samples {
        assert_eq!(samples.round, (0..37).collect::<Vec<_>>());
    }
    assert_eq!(is_high(&measured), (0..37).map(|n| !is_slow(n)).collect::<Vec<_>>());
    assert_eq!((group.pilot_rounds, group.stop), (15, Some(StopReason::Target)));
    // Each slow round is followed by a pause, after which each arm runs once unseen.
    assert_eq!(intervals.get(), 2 * (14 + 37) + 2 * 7);
    // Nine and seventeen launches an interval, and what calibration takes.
    let launched = |per_interval: u64| per_interval * (15 + 37 + 7);
    assert!(measured.launches[0] >= launched(9) && measured.launches[1] >= launched(17));
}

#[test]
fn a_device_that_stays_slow_ends_after_twice_the_rounds() {
    let (device, intervals) = clocked(|n| (Some(if n < PILOT { HIGH } else { LOW }), 1.0));
    let arms = Arms::new(&device);
    let pauses = Pauses { length: Duration::from_millis(1), most: 5 };
    let steady = arms.watched_by(at_rest());
    let count = Count::Found { parts: 1 };
    let conduct = Conduct { steady, evict: None, count, pauses };
    let (measured, group) = conducted(&device, &arms, Some(5_000), conduct);
    assert_eq!(measured.samples[0].len(), 60);
    assert_eq!(intervals.get(), 2 * (14 + 60) + 2 * 5);
    // The pauses are waiting time.
    let before = Shape::default().group().phases.wait_ns;
    assert!(group.phases.wait_ns >= before + 5_000_000, "{:?}", group.phases);
}

#[test]
fn the_time_of_a_group_bounds_what_is_taken_again() {
    let (device, _) = clocked(|n| (Some(if n < PILOT { HIGH } else { LOW }), 1.0));
    let arms = Arms::new(&device);
    let launches = [arms.read(512 * MIB), arms.read(256 * MIB)];
    let ratio = Ratio { numerator: 0, denominator: 1 };
    let budget =
        Budget { target_half_width_ppm: Some(5_000), fewest_rounds: 30, time: Duration::ZERO };
    let steady = arms.watched_by(at_rest());
    let count = Count::Found { parts: 1 };
    let conduct = Conduct { steady, evict: None, count, pauses: PAUSES };
    let measured = measure(&device, &launches, ratio, budget, 7, &conduct).unwrap();
    assert_eq!(measured.samples[0].len(), 30);
}

#[test]
fn ninety_percent_of_the_pilots_clock_is_not_slow() {
    let (device, _) = clocked(|n| (Some(if n < PILOT { HIGH } else { LOW + 1 }), 1.0));
    assert_eq!(aiming(&device).0.samples[0].len(), 30);
}

#[test]
fn a_clock_that_the_arm_always_has_is_not_slow() {
    // The sentinel had settled at 1980 MHz, where the other arm runs too; this one at 80 % of it.
    let (device, intervals) = clocked(|_| (Some(HIGH / 5 * 4), 1.0));
    let mut known = at_rest();
    let settled = known.rest.as_mut().and_then(|rest| rest.reading.as_mut());
    settled.unwrap().sm_khz = Some(HIGH);
    let arms = Arms::new(&device);
    let (measured, group) = group_of(&device, &arms, Some(5_000), arms.watched_by(known));
    assert_eq!((group.pilot_rounds, measured.samples[0].len()), (15, 30));
    // Nor was there a pause.
    assert_eq!(intervals.get(), 2 * (14 + 30));
}

#[test]
fn the_pilot_after_a_shift_expects_no_clock() {
    // Once the first attempt has its rounds, the sentinel has shifted and the clock of all is low.
    let rounds = Rc::new(Cell::new(0));
    let ended = rounds.clone();
    let device = Scripted::new(1 << 32, move |timed| {
        let has_shifted = rounds.get() >= PILOT + 30;
        let rate = if has_shifted && is_sentinel(timed) { 3800.0 } else { 4000.0 };
        match at_rate(timed, rate) {
            Interval::Ns { ns, .. } if has_shifted => Interval::Ns { ns, sm_khz: Some(LOW) },
            other => other,
        }
    });
    let device = device.throttled(move || {
        ended.set(ended.get() + 1);
        None
    });
    let (measured, group) = aiming(&device);
    assert_eq!(group.sentinel.unwrap().attempts.len(), 2);
    assert_eq!((group.pilot_rounds, measured.samples[0].len()), (15, 30));
}

#[test]
fn without_a_clock_nothing_is_slow() {
    let (device, intervals) = clocked(|_| (None, 1.0));
    let (measured, _) = aiming(&device);
    assert_eq!((measured.samples[0].len(), intervals.get()), (30, 2 * (14 + 30)));
    // Nor where it was not known in the pilot.
    let (device, _) = clocked(|n| (if n < PILOT { None } else { Some(LOW) }, 1.0));
    assert_eq!(aiming(&device).0.samples[0].len(), 30);
}

#[test]
fn heat_and_hardware_make_a_round_slow_and_a_power_cap_does_not() {
    let mut round = 0;
    let device = Scripted::new(1 << 32, |timed| at_rate(timed, 4000.0)).throttled(move || {
        round += 1;
        Some(
            [0x4, 0x8, 0x20, 0x40, 0x80]
                .get(usize::wrapping_sub(round, 16))
                .copied()
                .unwrap_or(0x4),
        )
    });
    assert_eq!(aiming(&device).0.samples[0].len(), 34);
}

#[test]
fn slow_rounds_of_the_pilot_do_not_set_the_number() {
    // Twelve hot rounds with another ratio, then fifteen that are alike.
    let rounds = Rc::new(Cell::new(0));
    let ended = rounds.clone();
    let device = Scripted::new(1 << 32, move |timed| {
        let is_other = rounds.get() < 12 && timed.bytes == 512 * MIB;
        at_rate(timed, if is_other { 2500.0 } else { 4000.0 })
    });
    let device = device.throttled(move || {
        ended.set(ended.get() + 1);
        (ended.get() <= 12).then_some(0x40)
    });
    let (measured, group) = aiming(&device);
    assert_eq!((group.pilot_rounds, group.stop), (27, Some(StopReason::Target)));
    assert_eq!(measured.samples[0].len(), 30);
}

#[test]
fn a_pilot_of_slow_rounds_is_better_than_none() {
    let device = Scripted::new(1 << 32, |timed| at_rate(timed, 4000.0)).throttled(|| Some(0x40));
    let (measured, group) = aiming(&device);
    assert_eq!((group.pilot_rounds, group.stop), (30, Some(StopReason::Target)));
    assert_eq!(measured.samples[0].len(), 60);
}
