//! Cases of allocators on a device that is scripted, and in simulation.

use super::*;
use crate::device::scripted::{Scripted, at_rate};
use crate::device::{DeviceAllocator, Snapshot};
use crate::experiment::Freed;
use crate::policy::PolicyName;

fn session(device: Scripted, allow_fill: bool) -> Session {
    Session::new(Box::new(device), 1, 1 << 40).allowing_fill(allow_fill)
}

fn device() -> Scripted {
    Scripted::new(8 << 30, |timed| at_rate(timed, 4000.0))
}

fn plan(allocator: Allocator, memory: MemoryKind) -> AllocationPlan {
    AllocationPlan { study: Study::Classic, allocator, memory }
}

const PLAIN: Allocator = Allocator::Device(DeviceAllocator::CuMemAlloc);

#[test]
fn a_device_of_pages_fails_only_for_want_of_bytes_and_is_left_as_it_was() {
    let mut session = session(device(), true);
    let free = session.device().free_bytes().unwrap();
    for allocator in [PLAIN, Allocator::Policy(PolicyName::Caching)] {
        let record = session.perform_allocation(&plan(allocator, MemoryKind::Device));
        assert_eq!((&record.status, &record.reason), (&Status::Ok, &None));
        assert_eq!(record.free_bytes, Some([free, free]));
        let subsets = record.subsets.unwrap();
        let short = (0..1024).filter(|&set| subsets.freed_bytes(set) < 512 << 20);
        assert_eq!(subsets.failed_again, short.collect::<Vec<u32>>());
        assert_eq!(subsets.failed == subsets.failed_again, allocator == PLAIN);
    }
    // In one long range of the device's memory, blocks are as much apart as anywhere.
    let first_fit = Allocator::Policy(PolicyName::FirstFit);
    let record = session.perform_allocation(&plan(first_fit, MemoryKind::Device));
    assert_eq!(record.subsets.unwrap().failed.len(), 96);
    assert_eq!(session.device().free_bytes().unwrap(), free);
}

#[test]
fn a_device_that_is_not_provably_ours_is_not_filled() {
    let refused = |session: &mut Session| {
        let record = session.perform_allocation(&plan(PLAIN, MemoryKind::Device));
        assert_eq!((&record.status, &record.subsets), (&Status::Skipped, &None));
        record.reason.unwrap()
    };
    let reason = refused(&mut session(device(), false));
    assert!(reason.contains("NVML is not there") && reason.contains("--allow-fill"), "{reason}");
    let ours = || device().alone();
    let seen = |other_processes| Snapshot { other_processes, ..Snapshot::default() };
    let reason = refused(&mut session(ours().seen(move || seen(Some(2))), false));
    assert!(reason.contains("2 other processes have come"), "{reason}");
    let mut alone = session(ours().seen(move || seen(Some(0))), false);
    let record = alone.perform_allocation(&plan(PLAIN, MemoryKind::Device));
    assert_eq!((record.status, record.reason), (Status::Ok, None));
}

#[test]
fn less_than_the_window_is_skipped_and_given_back() {
    let small = Scripted::new(2 << 30, |timed| at_rate(timed, 4000.0));
    let mut session = session(small, true);
    let record = session.perform_allocation(&plan(PLAIN, MemoryKind::Device));
    assert_eq!(record.status, Status::Skipped);
    assert_eq!(session.device().free_bytes().unwrap(), 2 << 30);
}

#[test]
fn memory_that_does_not_come_back_fails_the_case() {
    let mut session = session(device().leaking(), true);
    let factor = Factor::Base;
    let study = Study::Latency { factor, request_bytes: 4096, samples: 5 };
    let plan = AllocationPlan { study, allocator: PLAIN, memory: MemoryKind::Device };
    let record = session.perform_allocation(&plan);
    assert_eq!(record.status, Status::Failed);
    assert!(record.reason.unwrap().contains("did not come back"));
    assert!(record.free_bytes.is_some_and(|[before, after]| after < before));
}

#[test]
fn every_policy_of_any_size_has_an_answer_in_simulation() {
    let mut session = session(device(), false);
    for name in PolicyName::OF_ANY_SIZE {
        let of = plan(Allocator::Policy(*name), MemoryKind::Simulated);
        let record = session.perform_allocation(&of);
        assert_eq!((&record.status, &record.reason), (&Status::Ok, &None), "{name}");
        let subsets = record.subsets.unwrap();
        assert_eq!(subsets.tried, 1024);
        assert!(subsets.window_bytes >= subsets.rounded_bytes && record.free_bytes.is_none());
    }
}

#[test]
fn the_steps_of_a_block_are_timed_where_there_are_any() {
    let mut session = session(device(), true);
    let study = Study::Latency { factor: Factor::Steps, request_bytes: 4 << 20, samples: 3 };
    let chunk = Chunk::of(2 << 20).unwrap();
    let mut of = |which| {
        let allocator = Allocator::Device(which);
        let memory = MemoryKind::Device;
        session.perform_allocation(&AllocationPlan { study: study.clone(), allocator, memory })
    };
    let record = of(DeviceAllocator::Vmm(chunk));
    assert_eq!((&record.status, &record.reason), (&Status::Ok, &None));
    let calls: Vec<(&str, usize)> =
        record.calls.iter().map(|calls| (calls.call.as_str(), calls.ns.len())).collect();
    assert_eq!(calls, [("cu_mem_create", 6), ("cu_mem_map", 6), ("cu_mem_set_access", 3)]);
    let record = of(DeviceAllocator::CuMemAlloc);
    assert_eq!(record.status, Status::Skipped);
    assert!(record.reason.unwrap().contains("one call"));
}

#[test]
fn every_other_study_is_made_on_a_device_and_leaves_it_as_it_was() {
    let mut session = session(device(), true);
    let free = session.device().free_bytes().unwrap();
    let mut of = |study: Study, allocator| {
        let plan = AllocationPlan { study, allocator, memory: MemoryKind::Device };
        let record = session.perform_allocation(&plan);
        assert_eq!((&record.status, &record.reason), (&Status::Ok, &None), "{}", record.case);
        assert_eq!(record.free_bytes, Some([free, free]), "{}", record.case);
        record
    };
    let window_bytes = Some(64 << 20);
    let study = Study::Capacity { block_bytes: 2 << 20, freed: Freed::Random, window_bytes };
    let found = of(study, PLAIN).quantities;
    let bytes = |metric: &str| found.iter().find(|one| one.metric == metric).unwrap().bytes;
    assert_eq!((bytes("freed"), bytes("driver_free")), (32 << 20, 32 << 20));
    assert_eq!(bytes("largest_allocatable"), 32 << 20);
    let taken = of(Study::Granule, PLAIN).quantities;
    assert!(taken.iter().any(|one| one.metric == "taken" && one.request_bytes == Some(1)));
    let caching = Allocator::Policy(PolicyName::Caching);
    for text in [
        "base",
        "live.20",
        "holes.1MiB_x20",
        "tight.2MiB_x20",
        "joined.2MiB_x20",
        "fill",
        "busy.1us",
        "threads.3",
    ] {
        let factor: Factor = text.parse().unwrap();
        let study = || Study::Latency { factor, request_bytes: 2 << 20, samples: 12 };
        for allocator in [PLAIN, caching] {
            let record = of(study(), allocator);
            assert!(record.calls.iter().all(|calls| calls.ns.len() == 12), "{text}");
            let state = record.state.unwrap();
            let expected = if text.contains("20") { 20 } else { 0 };
            assert_eq!(state.live_blocks, expected, "{text}");
            if factor.is_tight() && allocator == PLAIN {
                assert_eq!(state.free_bytes, Some(40 << 20));
            }
        }
    }
}
