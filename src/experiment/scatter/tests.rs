//! Cases of scattered memory on a device that is scripted.

use super::*;
use crate::device::Device;
use crate::device::scripted::{Scripted, at_rate};
use crate::experiment::arena::Arena;
use crate::experiment::arms::{Buffers, Ground, Reference, plan_arms};
use crate::experiment::fragments::Fragments;
use crate::experiment::heap_cache::HeapCache;
use crate::experiment::tlb::{duels, tlb_groups};
use crate::experiment::{Session, cases, parse_case, parse_plan};
use crate::record::{Group, Mechanism, Status};

fn device(memory_bytes: u64) -> Scripted {
    Scripted::new(memory_bytes, |timed| at_rate(timed, 4000.0))
}

fn session(device: Scripted, limit_bytes: u64) -> Session {
    Session::new(Box::new(device), 1, limit_bytes)
}

fn plan(text: &str) -> Plan {
    parse_plan(text, Suite::Full, &DeviceKind::Cuda).unwrap()
}

fn names(group: &Group) -> Vec<&str> {
    group.arms.iter().map(|arm| arm.name.as_str()).collect()
}

const ORDERS: [&str; 6] =
    ["in_order", "shuffled.1", "shuffled.2", "shuffled.3", "reversed", "strided.64"];

#[test]
fn the_same_chunks_are_read_in_every_order_and_mapped_once() {
    let mut session = session(device(16 * GIB), 16 * GIB);
    let free = session.device().free_bytes().unwrap();
    let read = |footprint: &str| {
        let case = "scatter/kernel=read.backings/pattern=contiguous/footprint=";
        plan(&format!("{case}{footprint}/chunk=2MiB"))
    };
    let group = session.perform(&read("4GiB"));
    assert_eq!((&group.status, &group.reason), (&Status::Ok, &None));
    assert_eq!((&group.mechanism, names(&group)), (&Mechanism::Physical, ORDERS.to_vec()));
    assert!(group.arms.iter().all(|arm| arm.backing.as_deref() == Some(&arm.name)));
    let mapped: Vec<&str> = group.mappings.iter().map(|one| one.backing.as_str()).collect();
    assert_eq!(mapped, ORDERS);
    let chunks = group.mappings[0].chunks;
    assert_eq!(chunks, (4 * GIB / CHUNK_BYTES) + 1);
    // The scripted device's n-th call takes n ns.
    let calls = chunks * (chunks + 1) / 2;
    let took = |at: usize| {
        let one = &group.mappings[at];
        [one.create_ns, one.map_ns, one.open_ns, one.reserve_ns]
    };
    assert_eq!((took(0), took(1)), ([calls, calls, 9, 7], [0, calls, 9, 7]));
    // Shorter ones are the beginning of what is mapped already, longer ones are not.
    let group = session.perform(&read("1GiB"));
    assert_eq!((&group.status, names(&group)), (&Status::Ok, ORDERS.to_vec()));
    assert!(group.mappings.is_empty());
    assert_eq!(session.perform(&read("6GiB")).mappings.len(), 6);
    // A plain arena takes its place, and all memory comes back.
    let plain = plan("bandwidth/kernel=ceiling/pattern=contiguous/footprint=1GiB");
    assert_eq!(session.perform(&plain).status, Status::Ok);
    session.free_arena();
    assert_eq!(session.device().free_bytes().unwrap(), free);
}

/// The arms of a plan on a device, as names with their kernels, without measuring them.
fn planned(device: &Scripted, plan: &Plan) -> Vec<(String, String)> {
    let (arena, _) = Arena::make(device, plan, 1).unwrap();
    let duels = duels(device, arena.span(), 1);
    let tlb = duels.as_ref().ok().map(|duels| (duels, tlb_groups(duels).unwrap()));
    let ground = Ground {
        device,
        arena: arena.span(),
        whole: arena.span(),
        ranges: arena.ranges(plan),
        tlb: tlb.as_ref().map(|(duels, sharing)| (*duels, sharing)),
        seed: 1,
        turn: 0,
        data_key: 1,
        heaps: &HeapCache::new(1),
    };
    let fragments = Fragments::of(&plan.scene, &ground).unwrap();
    let buffers = Buffers::allocate(&ground, plan, Some(&fragments)).unwrap();
    let arms = plan_arms(&ground, plan, Some(&fragments), 1, &buffers).unwrap();
    arms.iter()
        .map(|arm| {
            let is_known = matches!(arm.reference, Reference::ClosedForm);
            let needs_none = matches!(
                arm.name.as_str(),
                "packed" | "sorted" | "scattered" | "in_reach" | "in_order" | "in_order.sorted"
            );
            // Whatever no closed form tells is held against something else.
            assert_eq!(is_known, needs_none, "{}", arm.name);
            (arm.name.clone(), arm.access.kernel().to_string())
        })
        .collect()
}

#[test]
fn a_gather_is_read_from_every_range_in_both_orders() {
    let case = "scatter/kernel=gather_read.backings/pattern=random/fragment=128B/footprint=1GiB";
    let arms = planned(&device(16 * GIB), &plan(&format!("{case}/chunk=2MiB/payload=1MiB")));
    let names: Vec<&str> = arms.iter().map(|(name, _)| name.as_str()).collect();
    let wanted: Vec<String> =
        ORDERS.iter().flat_map(|name| [format!("{name}.sorted"), (*name).to_owned()]).collect();
    assert_eq!(names, wanted);
}

const MITIGATIONS: &str = "scatter/kernel=gather_read.mitigations/pattern=random/fragment=128B";

#[test]
fn mitigations_stand_beside_the_gather() {
    let case = format!("{MITIGATIONS}/footprint=40GiB/payload=1MiB");
    let arms = planned(&device(80 * GIB).in_pairs(6), &plan(&case));
    let windows = ["windows.2", "windows.3", "windows.4", "random_groups.3", "by_number.3"];
    let plain = ["packed", "sorted", "scattered", "in_reach"];
    let named = |names: &[&str], kernel: &str| -> Vec<(String, String)> {
        names.iter().map(|name| ((*name).to_owned(), kernel.to_owned())).collect()
    };
    assert_eq!(
        arms,
        [named(&plain, "gather_read"), named(&windows, "gather_read.windows")].concat()
    );
}

#[test]
fn without_groups_there_are_no_windows() {
    let case = format!("{MITIGATIONS}/footprint=4GiB/payload=1MiB");
    // All share one TLB, or the device has no duels; and all of the arena lies within any reach.
    for device in [device(16 * GIB).in_pairs(1), device(16 * GIB)] {
        let names: Vec<String> =
            planned(&device, &plan(&case)).into_iter().map(|arm| arm.0).collect();
        assert_eq!(names, ["packed", "sorted", "scattered"]);
    }
}

#[test]
fn duels_find_pairs_and_the_clusters_agree() {
    let device = device(16 * GIB).in_pairs(5);
    let arena = device.allocate(GIB).unwrap();
    let found = duels(&device, arena.span(), 7).unwrap();
    let groups = tlb_groups(&found).unwrap().groups;
    assert_eq!(groups, [[0, 1], [2, 3], [4, 5], [6, 7], [8, 9]]);
    assert_eq!((found.clusters.len(), found.pages), (5, 230));
}

#[test]
fn what_a_device_has_not_is_skipped_with_the_reason() {
    let mut session = session(device(2 * GIB), 2 * GIB);
    let text = "scatter/kernel=gather_read.backings/pattern=random/fragment=128B/footprint=4GiB/chunk=2MiB";
    let group = session.perform(&plan(text));
    assert_eq!(group.status, Status::Skipped);
    let reason = group.reason.unwrap();
    assert!(reason.contains("of memory"), "{reason}");
    assert_eq!(session.device().free_bytes().unwrap(), 2 * GIB);
}

#[test]
fn wrong_cases_are_told_what_would_work() {
    let says = |text: &str, kind: &DeviceKind, part: &str| {
        let error = parse_case(text, Suite::Full, kind).unwrap_err();
        assert!(error.contains(part), "{text}: {error}");
    };
    let cuda = &DeviceKind::Cuda;
    let random = "pattern=random/fragment=128B/footprint=4GiB";
    let backings = format!("scatter/kernel=gather_read.backings/{random}");
    says(&backings, cuda, "it has no chunk=");
    says(&format!("{backings}/chunk=3MiB"), cuda, "from 2MiB to 1GiB");
    says(&format!("{backings}/chunk=2MiB"), &DeviceKind::Host, "the host is none");
    says(&format!("scatter/kernel=gather_read/{random}"), cuda, "write bandwidth/");
    let offset = "scatter/kernel=gather_read.backings/pattern=random.offset_64B/fragment=128B/footprint=4GiB/chunk=2MiB";
    says(offset, cuda, "without an offset");
    let narrow = "scatter/kernel=gather_read.mitigations/pattern=random/fragment=8B/footprint=4GiB";
    says(narrow, cuda, "16 B or more");
    says(&format!("bandwidth/kernel=gather_read.mitigations/{random}"), cuda, "write scatter/");
}

#[test]
fn quick_maps_nothing_and_exhaustive_asks_for_runs() {
    let of = |suite| plans(suite, &DeviceKind::Cuda);
    assert!(of(Suite::Quick).is_empty() && of(Suite::Standard).is_empty());
    assert!(plans(Suite::Exhaustive, &DeviceKind::Host).is_empty());
    let backings = |suite| chunked(suite, CHUNK_BYTES).backings;
    assert_eq!(backings(Suite::Full).len(), ORDERS.len());
    assert!(backings(Suite::Exhaustive).contains(&Backing::Blocks { bytes: 4 * MIB }));
    let all = cases(Suite::Exhaustive, &DeviceKind::Cuda);
    assert!(all.iter().any(|case| case.id().contains("kernel=gather_read.mitigations")));
}
