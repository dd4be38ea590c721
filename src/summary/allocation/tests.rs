//! Rows of allocators from records with a known shape.

use super::*;
use crate::record::{Calls, Entry, Quantity, State};
use crate::summary::Summary;
use crate::summary::fixture::{allocation, classic, gpu_run};

fn rows_of(allocation: &Allocation) -> Vec<Row> {
    rows(&Source { run_id: "run", run: &gpu_run(), allocation })
}

fn value(rows: &[Row], metric: Metric, arm: Option<&str>) -> f64 {
    let row = rows.iter().find(|row| row.metric == metric && row.arm() == arm);
    row.unwrap_or_else(|| panic!("{metric} {arm:?}")).figure.median.unwrap()
}

#[test]
fn failures_for_want_of_bytes_and_by_fragmentation_are_told_apart() {
    let rows = rows_of(&classic("first_fit"));
    let both = |metric| TRIES.map(|arm| value(&rows, metric, Some(arm)) * 1024.0);
    assert_eq!(both(Metric::FailureProbability), [3.0, 2.0]);
    assert_eq!(both(Metric::ShortProbability), [2.0, 2.0]);
    assert_eq!(both(Metric::FragmentedProbability), [1.0, 0.0]);
    assert!(rows.iter().all(|row| row.figure.interval == Some("exact") && row.verified));
}

#[test]
fn a_case_without_answer_says_why() {
    let reason = Some("no room".to_owned());
    let skipped = Allocation { status: Status::Skipped, reason, ..classic("first_fit") };
    let rows = rows_of(&skipped);
    assert_eq!((rows.len(), &rows[0].status), (1, &Status::Skipped));
    assert_eq!((rows[0].reason.as_deref(), rows[0].figure.median), (Some("no room"), None));
}

fn capacity(free_after: u64) -> Allocation {
    let of = |metric: &str, request_bytes, bytes| Quantity {
        metric: metric.to_owned(),
        request_bytes,
        blocks: None,
        bytes,
    };
    let case =
        "capacity/allocator=cu_mem_alloc/memory=device/block=1MiB/freed=alternate/window=1GiB";
    let quantities = vec![
        of("free_full", Some(1 << 20), 10),
        of("freed", Some(1 << 20), 400),
        of("driver_free", Some(1 << 20), 110),
        of("refillable", Some(1 << 19), 400),
        of("refillable", Some(1 << 20), 390),
        of("refillable", Some(1 << 21), 0),
        of("refillable", None, 395),
        of("largest_allocatable", None, 55),
        of("driver_free_after", Some(1 << 20), free_after),
    ];
    Allocation { quantities, ..allocation(case) }
}

#[test]
fn fragmentation_names_whose_free_it_is() {
    let rows = rows_of(&capacity(110));
    let bytes = |metric| value(&rows, metric, None);
    assert_eq!((bytes(Metric::Freed), bytes(Metric::DriverFree)), (400.0, 100.0));
    assert_eq!(bytes(Metric::Stranded), 300.0);
    let refill = LENGTHS.map(|arm| value(&rows, Metric::Refillable, Some(arm)));
    assert_eq!(refill, [400.0, 390.0, 0.0, 395.0]);
    let external = OWNERS.map(|arm| value(&rows, Metric::ExternalFragmentation, Some(arm)));
    assert_eq!(external, [0.5, 1.0 - 55.0 / 410.0]);
    assert!(rows.iter().all(|row| row.flags.is_empty()));
    assert!(rows_of(&capacity(111)).iter().all(|row| row.flags.contains(&Flag::Disturbed)));
}

#[test]
fn a_granule_is_what_one_of_many_takes() {
    let of = |metric: &str, bytes| Quantity {
        metric: metric.to_owned(),
        request_bytes: Some(3 << 20),
        blocks: Some(10),
        bytes,
    };
    let quantities = vec![of("taken", 40 << 20), of("address_step", 4 << 20)];
    let case = "granule/allocator=cu_mem_alloc/memory=device";
    let rows = rows_of(&Allocation { quantities, ..allocation(case) });
    let of = |metric| value(&rows, metric, Some("3MiB"));
    assert_eq!(of(Metric::Granule), f64::from(4 << 20));
    assert_eq!(of(Metric::InternalFragmentation), 0.25);
    assert_eq!(of(Metric::AddressStep), f64::from(4 << 20));
}

fn latency(state: &str, ns: impl Iterator<Item = u64>) -> Allocation {
    let case = format!("latency/allocator=cu_mem_alloc/memory=device/state={state}/request=2MiB");
    let ns: Vec<u64> = ns.collect();
    let calls = ["allocate", "free"].map(|call| Calls { call: call.to_owned(), ns: ns.clone() });
    let state = Some(State { timer_ns: 20, ..State::default() });
    Allocation { calls: calls.into(), state, ..allocation(&case) }
}

#[test]
fn the_clocks_own_time_is_taken_off_and_tails_want_samples() {
    let rows = rows_of(&latency("base", (1020..=1420).rev()));
    assert_eq!(value(&rows, Metric::AllocLatency, None), 1200.0);
    let row = &rows[1];
    assert_eq!((row.metric, row.unit), (Metric::FreeLatency, "ns"));
    assert!(row.figure.p99.is_some() && row.figure.p999.is_none());
    assert_eq!((row.state.as_deref(), row.request_bytes), (Some("base"), Some(2 << 20)));
}

#[test]
fn steps_have_rows_of_their_own_and_no_ratio() {
    let of = |call: &str, ns: u64| Calls { call: call.to_owned(), ns: vec![ns; 9] };
    let calls = vec![
        of("cu_mem_create", 1_020),
        of("cu_mem_map", 220),
        of("cu_mem_set_access", 3_020),
        of("of_a_newer_version", 9),
    ];
    let case = "latency/allocator=vmm.chunk_2MiB/memory=device/state=steps/request=2MiB";
    let state = Some(State { timer_ns: 20, ..State::default() });
    let steps = Allocation { calls, state, ..allocation(case) };
    let rows = rows_of(&steps);
    let of = |call| value(&rows, Metric::MapTime, Some(call));
    assert_eq!(rows.len(), 3);
    assert_eq!(
        [of("cu_mem_create"), of("cu_mem_map"), of("cu_mem_set_access")],
        [1_000.0, 200.0, 3_000.0]
    );
    let base = latency("base", 1..10);
    assert!(ratios("run", &gpu_run(), &[base, steps]).is_empty());
}

#[test]
fn a_ratio_holds_a_state_against_the_base_of_the_same_calls() {
    let mixed = |scale: u64| (0..100).map(move |n| 20 + scale * (100 + n * 37 % 100));
    let found = [latency("holes.2MiB_x10", mixed(3)), latency("base", mixed(1))];
    let rows = ratios("run", &gpu_run(), &found);
    assert_eq!(rows.len(), 2);
    let (process, row) = &rows[0];
    let figure = &row.figure;
    assert_eq!(*process, 0);
    assert_eq!(figure.median, Some(3.0));
    let (low, high) = (figure.ci_low.unwrap(), figure.ci_high.unwrap());
    assert!(2.0 < low && low < 3.0 && 3.0 < high && high < 4.5, "{low} {high}");
    assert_eq!(row.baseline.as_deref(), Some("base"));
    // Nothing to hold it against.
    assert!(ratios("run", &gpu_run(), &found[..1]).is_empty());
}

#[test]
fn several_processes_make_rows_together() {
    let mixed = |scale: u64| (0..100).map(move |n| 20 + scale * (100 + n * 37 % 100));
    let of_process = |process: u32, scale| {
        let slow = latency("holes.2MiB_x10", mixed(scale));
        [slow, latency("base", mixed(1))]
            .map(|one| Entry::Allocation(Box::new(Allocation { process, ..one })))
    };
    let entries: Vec<Entry> =
        (0..).zip([3, 4, 5]).flat_map(|(process, scale)| of_process(process, scale)).collect();
    let rows = Summary::of_entries(gpu_run(), entries).rows;
    // Two calls of two cases, and two ratios.
    assert_eq!(rows.len(), 6);
    assert!(rows.iter().all(|row| row.processes == Some(3)));
    let ratio = rows.iter().find(|row| row.metric == Metric::AllocLatencyRatio).unwrap();
    assert_eq!(ratio.figure.median, Some(4.0));
    assert_eq!((ratio.process_low, ratio.process_high), (Some(3.0), Some(5.0)));
    assert_eq!(ratio.figure.interval, Some("between"));
}
