//! The order of a measurement, on a device that takes the times it is told.

use std::cell::RefCell;
use std::rc::Rc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::*;
use crate::device::scripted::{Scripted, Timed, at_rate};
use crate::device::{Buffer, Device, Interval, Launch, SUM_BYTES};
use crate::kernel::Access;
use crate::record::{Group, Phases, Reading, Sentinel};
use crate::summary::fixture::Shape;

mod slow;

const MIB: u64 = 1 << 20;

/// Pauses that take no time.
const PAUSES: Pauses = Pauses { length: Duration::ZERO, most: 20 };

/// Reads of two lengths, as arms.
struct Arms {
    source: Buffer,
    sums: Buffer,
}

impl Arms {
    fn new(device: &dyn Device) -> Arms {
        let source = device.allocate(1024 * MIB).unwrap();
        Arms { source, sums: device.allocate(SUM_BYTES).unwrap() }
    }

    fn read(&self, bytes: u64) -> Launch<'_> {
        let span = self.source.slice(0, bytes).unwrap();
        Access::read(span, self.sums.span(), 1).launch().unwrap()
    }

    fn watched_by(&self, known: Known) -> Steady<'_> {
        Steady::Watch(Watch {
            launch: self.read(1024 * MIB),
            bytes: 1024 * MIB,
            rest: known.rest,
            disturbed: known.disturbed,
            last_busy: Some(Instant::now()),
        })
    }
}

/// What a session knows of the device before a group.
#[derive(Clone, Copy, Default)]
struct Known {
    rest: Option<Rest>,
    disturbed: bool,
}

/// Measures a group that aims at no target, under a sentinel.
fn watched(device: &Scripted, known: Known) -> Group {
    let arms = Arms::new(device);
    group_of(device, &arms, None, arms.watched_by(known)).1
}

fn warmed(device: &Scripted, target_half_width_ppm: Option<u32>) -> (Measured, Group) {
    let arms = Arms::new(device);
    group_of(device, &arms, target_half_width_ppm, Steady::WarmUp(Duration::ZERO))
}

/// The same with L2 evicted before each launch.
fn evicted(device: &Scripted, known: Known) -> (Measured, Group) {
    let arms = Arms::new(device);
    let evict = Some(arms.read(240 * MIB));
    conducted(
        device,
        &arms,
        None,
        Conduct {
            steady: arms.watched_by(known),
            evict,
            count: Count::Found { parts: 1 },
            pauses: PAUSES,
        },
    )
}

fn group_of(
    device: &Scripted,
    arms: &Arms,
    target_half_width_ppm: Option<u32>,
    steady: Steady<'_>,
) -> (Measured, Group) {
    conducted(
        device,
        arms,
        target_half_width_ppm,
        Conduct { steady, evict: None, count: Count::Found { parts: 1 }, pauses: PAUSES },
    )
}

fn conducted(
    device: &Scripted,
    arms: &Arms,
    target_half_width_ppm: Option<u32>,
    conduct: Conduct<'_>,
) -> (Measured, Group) {
    let launches = [arms.read(512 * MIB), arms.read(256 * MIB)];
    let ratio = Ratio { numerator: 0, denominator: 1 };
    let budget = Budget { target_half_width_ppm, fewest_rounds: 30, time: Duration::from_secs(1) };
    let measured = measure(device, &launches, ratio, budget, 7, &conduct).unwrap();
    let mut group = Shape::default().group();
    measured.note(&mut group);
    (measured, group)
}

#[test]
fn each_round_has_its_reasons_and_each_sample_its_clock() {
    let mut asked = 0;
    let device = Scripted::new(1 << 32, |timed| at_rate(timed, 4000.0)).throttled(move || {
        asked += 1;
        Some(asked << 8)
    });
    let (measured, group) = warmed(&device, Some(5_000));
    // Fifteen rounds of the pilot came before.
    assert_eq!(group.round_throttle_reasons, (16..46).map(|n| Some(n << 8)).collect::<Vec<_>>());
    for samples in &measured.samples {
        assert_eq!(samples.sm_khz, [Some(1_980_000); 30]);
    }
}

#[test]
fn the_hosts_time_is_what_it_does_not_wait() {
    const NAP: Duration = Duration::from_millis(1);
    let device = Scripted::new(1 << 32, |timed| {
        sleep(NAP);
        at_rate(timed, 4000.0)
    });
    let device = device.throttled(|| {
        sleep(NAP);
        None
    });
    let begin = Instant::now();
    let (_, group) = warmed(&device, Some(5_000));
    let wall = begin.elapsed();
    let Phases { host_ns, intervals, .. } = group.phases;
    // Reasons are read after each of 45 rounds: the pilot's and the reported ones.
    let (least, most) = (45 * NAP, wall - intervals as u32 * NAP);
    let host = Duration::from_nanos(host_ns);
    assert!((least..=most).contains(&host), "{least:?} {host:?} {most:?}");
}

#[test]
fn what_is_never_known_is_no_column() {
    let device = Scripted::new(1 << 32, |timed| match at_rate(timed, 4000.0) {
        Interval::Ns { ns, .. } => Interval::Ns { ns, sm_khz: None },
        void => void,
    });
    let (measured, group) = warmed(&device.unheld(), None);
    assert!(group.round_throttle_reasons.is_empty());
    assert!(measured.samples.iter().all(|samples| samples.sm_khz.is_empty()));
}

#[test]
fn an_interval_is_a_millisecond_long_where_32_launches_allow() {
    let seen: Rc<RefCell<Vec<Timed>>> = Rc::default();
    let log = seen.clone();
    let device = Scripted::new(1 << 32, move |timed| {
        log.borrow_mut().push(timed);
        at_rate(timed, 4096.0)
    });
    let (measured, _) = warmed(&device, None);
    // 512 MiB take 131 us at 4096 B/ns: 9 launches for a millisecond and a tenth. The half of it
    // takes 17.
    assert!(measured.samples[0].launches.iter().all(|launches| *launches == 9));
    assert!(measured.samples[1].launches.iter().all(|launches| *launches == 17));
    let launched = |bytes: u64| -> u64 {
        let seen = seen.borrow();
        let own = seen.iter().filter(|timed| timed.bytes == bytes);
        own.map(|timed| u64::from(timed.launches)).sum()
    };
    assert_eq!(measured.launches, [launched(512 * MIB), launched(256 * MIB)]);
}

/// Whether an interval is the sentinel's: no arm is as long.
fn is_sentinel(timed: Timed) -> bool {
    timed.bytes == 1024 * MIB
}

/// A device whose sentinel runs at the rate that the script gives for its n-th interval, from 0.
fn sentinel_device(mut rate: impl FnMut(usize) -> f64 + 'static) -> Scripted {
    let mut intervals = 0;
    Scripted::new(1 << 32, move |timed| {
        if !is_sentinel(timed) {
            return at_rate(timed, 4000.0);
        }
        intervals += 1;
        at_rate(timed, rate(intervals - 1))
    })
}

fn sentinel_of(device: &Scripted, known: Known) -> Sentinel {
    watched(device, known).sentinel.unwrap()
}

/// At rest at 4000 B/ns.
fn at_rest() -> Known {
    let ns = (1 << 30) * 5 / 4000;
    let reading = Some(Reading { launches: 5, ns, sm_khz: None });
    Known { rest: Some(Rest { reading, settled: true }), disturbed: false }
}

#[test]
fn a_steady_device_settles_after_the_fewest_readings() {
    let sentinel = sentinel_of(&sentinel_device(|_| 4000.0), Known::default());
    assert!(sentinel.settled);
    assert_eq!((sentinel.bytes, sentinel.settling.len()), (1 << 30, 30));
    // 1 GiB takes 268 us at 4000 B/ns: five of it are a millisecond and a tenth.
    assert!(sentinel.settling.iter().all(|reading| reading.launches == 5));
    let [attempt] = &sentinel.attempts[..] else { panic!("{sentinel:?}") };
    assert_eq!((attempt.settled, attempt.before), (attempt.before, attempt.after));
    assert!(!attempt.voided && !has_drifted(attempt));
}

#[test]
fn a_device_that_rises_settles_when_it_has_risen() {
    // One interval to calibrate, then five a reading: it rises for 40 readings.
    let device = sentinel_device(|i| 4000.0 - 20.0 * 40usize.saturating_sub(i / 5) as f64);
    let sentinel = sentinel_of(&device, Known::default());
    assert!(sentinel.settled);
    assert!((41..46).contains(&sentinel.settling.len()), "{}", sentinel.settling.len());
}

#[test]
fn a_device_that_was_at_rest_and_still_is_takes_a_window() {
    let steady = || sentinel_device(|_| 4010.0);
    let disturbed = Known { disturbed: true, ..at_rest() };
    assert_eq!(sentinel_of(&steady(), disturbed).settling.len(), 5);
    assert_eq!(sentinel_of(&steady(), at_rest()).settling.len(), 0);
    // At rest, but elsewhere.
    let elsewhere = sentinel_of(&sentinel_device(|_| 3900.0), disturbed);
    assert_eq!((elsewhere.settled, elsewhere.settling.len()), (true, 30));
}

#[test]
fn a_device_that_never_settles_says_so_and_ends() {
    // Each reading differs from the one before by 1 %.
    let restless = || sentinel_device(|i| if (i / 5) % 2 == 0 { 4000.0 } else { 4040.0 });
    let sentinel = sentinel_of(&restless(), Known::default());
    assert!(!sentinel.settled);
    assert_eq!(sentinel.settling.len(), 500);
    assert_eq!(sentinel.attempts.len(), 1);
    // What is known of it stays known until it settles.
    let rest = Some(Rest { reading: None, settled: false });
    let next = sentinel_of(&restless(), Known { rest, disturbed: false });
    assert!(!next.settled && next.settling.is_empty());
}

#[test]
fn clocks_that_differ_are_no_rest() {
    let mut intervals = 0u32;
    let device = Scripted::new(1 << 32, move |timed| {
        intervals += 1;
        let Interval::Ns { ns, .. } = at_rate(timed, 4000.0) else { return Interval::Void };
        // Rises by 0.4 % a reading, and the time of a read does not care.
        Interval::Ns { ns, sm_khz: Some(1_000_000 + 4_000 * (intervals / 5).min(100)) }
    });
    let sentinel = sentinel_of(&device, Known::default());
    assert!(sentinel.settled);
    assert!((95..105).contains(&sentinel.settling.len()), "{}", sentinel.settling.len());
}

/// A device whose sentinel is slower by so many percent each time after the arms had their turn, of
/// which the first is the calibration; the last holds on. And the launches of its arms.
fn drifting(slower: &'static [f64]) -> (Scripted, Rc<RefCell<u64>>) {
    let (mut turns, mut in_turn) = (0, false);
    let launched = Rc::new(RefCell::new(0));
    let count = launched.clone();
    let device = Scripted::new(1 << 32, move |timed| {
        if !is_sentinel(timed) {
            *count.borrow_mut() += u64::from(timed.launches);
            in_turn = true;
            return at_rate(timed, 4000.0);
        }
        turns += usize::from(std::mem::take(&mut in_turn));
        let slower = slower.get(turns).or(slower.last()).unwrap();
        at_rate(timed, 4000.0 / (1.0 + slower / 100.0))
    });
    (device, launched)
}

#[test]
fn a_shift_voids_the_rounds_once_and_they_are_taken_again() {
    // It becomes slow in the first rounds and stays so: the second attempt is held against the new
    // rest.
    let (device, launched) = drifting(&[0.0, 0.0, 5.0]);
    let arms = Arms::new(&device);
    let (measured, group) = group_of(&device, &arms, None, arms.watched_by(at_rest()));
    let sentinel = group.sentinel.unwrap();
    let [first, second] = &sentinel.attempts[..] else { panic!("{sentinel:?}") };
    assert!(first.voided && has_drifted(first));
    assert!(!second.voided && !has_drifted(second));
    assert!(sentinel.settled && sentinel.settling.len() == 30);
    // The launches of the voided rounds are among those that the checksums have to account for.
    assert_eq!(measured.launches.iter().sum::<u64>(), *launched.borrow());
    assert_eq!(measured.samples[0].round, (0..30).collect::<Vec<_>>());
}

#[test]
fn a_second_shift_stands_and_tells() {
    let sentinel = sentinel_of(&drifting(&[0.0, 0.0, 5.0, 10.0]).0, at_rest());
    let told: Vec<_> = sentinel.attempts.iter().map(|a| (a.voided, has_drifted(a))).collect();
    assert_eq!(told, [(true, true), (false, true)]);
}

#[test]
fn a_device_that_is_not_where_it_rested_voids_too() {
    let sentinel = sentinel_of(&drifting(&[3.0]).0, at_rest());
    let told: Vec<_> = sentinel.attempts.iter().map(|a| (a.voided, has_drifted(a))).collect();
    assert_eq!(told, [(true, true), (false, false)]);
    // Less than 2 % is no shift.
    assert_eq!(sentinel_of(&drifting(&[1.9]).0, at_rest()).attempts.len(), 1);
}

#[test]
fn a_sentinel_without_a_reading_says_nothing() {
    let device = Scripted::new(1 << 32, |timed| match is_sentinel(timed) {
        true => Interval::Void,
        false => at_rate(timed, 4000.0),
    });
    let sentinel = sentinel_of(&device, Known::default());
    assert!(!sentinel.settled && sentinel.settling.is_empty());
    let [attempt] = &sentinel.attempts[..] else { panic!("{sentinel:?}") };
    assert_eq!((attempt.settled, attempt.before, attempt.after), (None, None, None));
    assert!(!attempt.voided);
}

#[test]
fn reads_are_calmed_before_where_other_arms_write() {
    let seen = Rc::new(RefCell::new(Vec::new()));
    let log = seen.clone();
    let device = Scripted::new(1 << 34, move |timed| {
        if !is_sentinel(timed) {
            log.borrow_mut().push((timed.entry.is_some(), timed.cold));
        }
        at_rate(timed, 4000.0)
    });
    let arms = Arms::new(&device);
    let read = arms.read(1 << 29);
    let (from, to) = (device.allocate(1 << 29).unwrap(), device.allocate(1 << 29).unwrap());
    let copy = Launch::driver_copy(from.span(), to.span()).unwrap();
    let ratio = Ratio { numerator: 0, denominator: 1 };
    let budget = Budget { target_half_width_ppm: None, fewest_rounds: 4, time: Duration::ZERO };
    let steady = arms.watched_by(at_rest());
    let count = Count::Given(Quota::of_part(4, 1));
    let conduct = Conduct { steady, evict: None, count, pauses: PAUSES };
    measure(&device, &[read, copy], ratio, budget, 7, &conduct).unwrap();
    assert!(seen.borrow().iter().all(|(is_read, cold)| is_read == cold), "{seen:?}");
    seen.borrow_mut().clear();
    measure(&device, &[read, read], ratio, budget, 7, &conduct).unwrap();
    assert!(seen.borrow().len() > 8 && seen.borrow().iter().all(|(_, cold)| !cold), "{seen:?}");
}

#[test]
fn evicted_arms_are_cold_and_the_sentinel_is_not() {
    let seen: Rc<RefCell<Vec<Timed>>> = Rc::default();
    let log = seen.clone();
    let device = Scripted::new(1 << 32, move |timed| {
        log.borrow_mut().push(timed);
        // The half is read at a rate at which 32 launches are no millisecond.
        at_rate(timed, if timed.bytes == 256 * MIB { 40_000.0 } else { 4096.0 })
    });
    let (measured, group) = evicted(&device, at_rest());
    assert!(group.l2_evicted);
    for timed in seen.borrow().iter() {
        assert_eq!(timed.cold, !is_sentinel(*timed), "{timed:?}");
        assert!(!timed.cold || timed.launches == 1, "{timed:?}");
    }
    // Launches are counted and times summed as anywhere else.
    let first = |arm: usize| {
        let samples = &measured.samples[arm];
        (samples.launches[0], samples.ns[0])
    };
    assert_eq!(first(0), (9, 9 * 131_072));
    assert_eq!(first(1).0, 32);
    assert!(!warmed(&device, None).1.l2_evicted);
}
