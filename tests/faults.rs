//! The selftest, which plants faults in every kernel, and any small layout against bytes that are
//! worked out here.

mod bench;

use std::collections::BTreeSet;

use bench::{DATA, POISON, bytes_of, checksum, open, reads, writes};
use fragbench::device::{Device, Movement, SUM_BYTES};
use fragbench::kernel::{
    Access, GUARD_BYTES, Operands, Outcome, Verifier, copy_back, fill, host_checksum,
};
use fragbench::layout::{Layout, Pattern, Spec, UNIT_BYTES};
use fragbench::record::{FaultKind, Order, Selftest, Status};
use fragbench::selftest::{self, Subject};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};

/// Layouts of each kernel: every pattern has its turn in the layout's order and in that of addresses,
/// and two processors are done in less than a minute in a debug build.
const LAYOUTS: u64 = 20;

/// By how much the words of the write kernel differ from their neighbours.
const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

/// The kinds of faults that make sense for a kernel.
fn kinds(movement: Option<Movement>) -> BTreeSet<FaultKind> {
    use FaultKind::*;
    let is_read = movement.is_some_and(Movement::is_read);
    let mut kinds = BTreeSet::from([NothingLaunched, TailDropped, FragmentAdded]);
    if movement != Some(Movement::Write) {
        kinds.extend([SourceShifted, SourceFragmentByte]);
        if movement != Some(Movement::ScatterCopy) {
            kinds.insert(SourceGapByte);
        }
    }
    match is_read {
        true => kinds.extend([LaunchedTwice]),
        false => kinds.extend([DestinationShifted, DestinationByte, BehindByte]),
    }
    if movement.is_some_and(Movement::follows_index) {
        kinds.extend([IndexShifted, FirstEntryWrong, MiddleEntryWrong, LastEntryWrong]);
        kinds.insert(EntriesSwapped);
    }
    kinds
}

#[test]
fn every_planted_fault_is_caught() {
    let device = open();
    let records = selftest::run(&*device, 1, LAYOUTS, &mut |_| {});
    assert_eq!(records.len(), Subject::all().len());
    for (record, subject) in records.iter().zip(Subject::all()) {
        let kernel = &record.kernel;
        if record.status == Status::Skipped {
            assert!(subject.entry().is_some_and(|entry| !device.has(entry)), "{record:?}");
            continue;
        }
        assert_eq!(record.reason, None, "{kernel}");
        assert_eq!(record.status, Status::Ok, "{kernel}");
        assert_eq!((record.layouts, record.mismatches), (LAYOUTS, 0), "{kernel}");
        assert!(record.compared > 0 && record.planted() > 5 * LAYOUTS, "{record:?}");
        assert!(record.faults.iter().all(|fault| fault.caught == fault.planted), "{record:?}");
        check_kinds(record, subject);
    }
}

/// No kind of fault has gone missing.
fn check_kinds(record: &Selftest, subject: Subject) {
    let movement = subject.movement();
    let planted: BTreeSet<FaultKind> =
        record.faults.iter().map(|fault| fault.kind.clone()).collect();
    let mut wanted = kinds(movement);
    if let Subject::Varied(_) = subject {
        wanted.extend([FaultKind::RankWrong, FaultKind::RankBitWrong]);
    }
    if movement == Some(Movement::ScatterCopy) {
        wanted.insert(FaultKind::GapByte);
        // Where an offset was drawn.
        wanted.extend(planted.iter().filter(|kind| **kind == FaultKind::BeginByte).cloned());
    }
    assert_eq!(planted, wanted, "{}", record.kernel);
}

/// Where each fragment lies, without the crate's index.
fn offsets(layout: &Layout, order: &Order) -> Vec<usize> {
    let of = |order| (0..layout.fragments()).map(move |i| layout.fragment(order, i));
    let own: Option<Vec<_>> = of(order).collect();
    let mut sorted: Vec<_> = match own {
        Some(own) => {
            let own: Vec<usize> = own.iter().map(|fragment| fragment.offset as usize).collect();
            // What the pattern itself says.
            let Spec { pattern, fragment_bytes, offset_bytes, .. } = *layout.spec();
            let stride = match pattern {
                _ if *order == Order::Packed => Some(1),
                Pattern::Contiguous => Some(1),
                Pattern::Strided { stride } => stride,
                _ => None,
            };
            if let Some(stride) = stride {
                let places = (offset_bytes..).step_by((stride * fragment_bytes) as usize);
                assert!(own.iter().zip(places).all(|(own, place)| *own as u64 == place));
            }
            return own;
        }
        None => of(&Order::Scattered).map(|fragment| fragment.unwrap().offset as usize).collect(),
    };
    sorted.sort_unstable();
    sorted
}

/// A layout of about so many fragments; none where there is no such layout.
fn layout(
    pattern: Pattern,
    fragment_bytes: u64,
    (fragments, gaps, offset_bytes): (u64, u64, u64),
    seed: u64,
) -> Option<Layout> {
    let granule = (UNIT_BYTES / fragment_bytes).max(1);
    let fragments = fragments.next_multiple_of(granule);
    let slots = match pattern {
        Pattern::Strided { stride: Some(stride) } => fragments * stride + gaps,
        Pattern::Checkerboard => 2 * fragments + gaps % 2,
        _ => fragments + fragments * gaps / 100,
    };
    let held = |slots: u64| match pattern.fills_its_capacity() {
        true => pattern.capacity(slots),
        false => fragments,
    };
    let mut all = slots..slots + 1_000;
    let slots = all.find(|slots| held(*slots) > 0 && held(*slots).is_multiple_of(granule))?;
    let spec = Spec {
        pattern,
        fragment_bytes,
        offset_bytes,
        footprint_bytes: offset_bytes + slots * fragment_bytes,
        payload_bytes: held(slots) * fragment_bytes,
    };
    Layout::new(spec, seed).ok()
}

/// Any layout with a payload to 128 KiB, and an order.
fn any_case() -> impl Strategy<Value = (Layout, Order)> {
    let patterns = vec![
        Pattern::Contiguous,
        Pattern::STRIDED,
        Pattern::Strided { stride: Some(3) },
        Pattern::SHUFFLED,
        Pattern::Shuffled { window_bytes: Some(16 << 10) },
        Pattern::Random,
        Pattern::Checkerboard,
        Pattern::Holes { occupancy_percent: 20 },
        Pattern::Holes { occupancy_percent: 85 },
    ];
    let offsets = prop::sample::select(vec![0u64, 4, 8, 16, 32, 64]);
    let sizes = (2u32..=13).prop_flat_map(|shift| (Just(shift), 1..=(1u64 << (17 - shift))));
    let choices = (prop::sample::select(patterns), prop::sample::select(Order::KNOWN.to_vec()));
    (choices, sizes, 0u64..=300, offsets, any::<u64>(), any::<bool>()).prop_filter_map(
        "there is no such layout",
        |((pattern, order), (shift, fragments), gaps, offset, seed, wide)| {
            let layout = layout(pattern, 1 << shift, (fragments, gaps, offset), seed)?;
            Some((if wide { layout.with_wide_index() } else { layout }, order))
        },
    )
}

/// Every kernel on one layout.
fn check_layout(device: &dyn Device, layout: &Layout, order: &Order) -> Result<(), TestCaseError> {
    let verifier = Verifier::new(device).unwrap();
    let on_host = layout.index(order).unwrap();
    let (payload_bytes, fragment) = (layout.payload_bytes(), layout.fragment_bytes() as usize);
    let arena_bytes = layout.footprint_bytes().next_multiple_of(UNIT_BYTES) + GUARD_BYTES;
    let arena = device.allocate(arena_bytes).unwrap();
    let payload = device.allocate(payload_bytes + GUARD_BYTES).unwrap();
    let index = device.allocate(on_host.as_bytes().len() as u64).unwrap();
    let sums = device.allocate(SUM_BYTES).unwrap();
    device.upload(index.span(), on_host.as_bytes()).unwrap();
    fill(device, arena.span(), DATA).unwrap();

    let access = |movement| {
        let (index, payload) = (Some(index.span()), Some(payload.span()));
        let operands = Operands { index, payload, sums: Some(sums.span()) };
        Access::of_layout(movement, layout, order, arena.span(), operands, DATA).unwrap()
    };
    let places = offsets(layout, order);
    let data = bytes_of(DATA, arena_bytes);
    let gathered: Vec<u8> =
        places.iter().flat_map(|at| &data[*at..*at + fragment]).copied().collect();
    let sum = checksum(&gathered, layout.unit_bytes());
    let own = host_checksum(layout, order, layout.fragments(), DATA);
    prop_assert!(own.is_none_or(|own| own == sum));

    let bench = (device, &verifier);
    let passes = |outcome: Outcome| outcome.compared > 0 && outcome.mismatches == 0;
    prop_assert!(passes(verifier.check_index(&access(Movement::GatherCopy)).unwrap()));
    let spans = (arena.span(), index.span(), payload.span());
    prop_assert!(passes(copy_back(device, layout, order, &on_host, spans, DATA).unwrap()));
    reads(bench, &access(Movement::GatherRead), sum)?;
    let follows_rule = matches!(layout.pattern(), Pattern::Strided { .. } | Pattern::Contiguous);
    if *order == Order::Packed || follows_rule {
        reads(bench, &access(Movement::StridedGather), sum)?;
    }
    let mut image = bytes_of(POISON, payload.bytes());
    image[..gathered.len()].copy_from_slice(&gathered);
    writes(bench, &access(Movement::GatherCopy), &payload, &image)?;
    prop_assert!(passes(verifier.check_fill(arena.span(), DATA).unwrap()));

    if *order == Order::Packed || !layout.pattern().repeats() {
        fill(device, payload.span(), DATA).unwrap();
        let mut image = bytes_of(POISON, arena_bytes);
        for (i, at) in places.iter().enumerate() {
            image[*at..*at + fragment].copy_from_slice(&data[i * fragment..(i + 1) * fragment]);
        }
        writes(bench, &access(Movement::ScatterCopy), &arena, &image)?;
        prop_assert!(passes(verifier.check_fill(payload.span(), DATA).unwrap()));
    }
    Ok(())
}

#[test]
fn layouts_that_a_kernel_does_not_take_are_refused() {
    let device = open();
    let arena = device.allocate(64 << 10).unwrap();
    let payload = device.allocate(64 << 10).unwrap();
    for (movement, pattern) in [
        (Movement::StridedGather, Pattern::SHUFFLED),
        (Movement::ScatterCopy, Pattern::Random),
        (Movement::Copy, Pattern::Contiguous),
    ] {
        let layout = layout(pattern, 64, (100, 50, 0), 1).unwrap();
        let payload = Some(payload.span());
        let operands = Operands { index: payload, payload, sums: payload };
        let access = |order: Order| {
            Access::of_layout(movement, &layout, &order, arena.span(), operands, DATA)
        };
        assert!(access(Order::Scattered).is_err(), "{movement:?}");
        assert_eq!(access(Order::Packed).is_ok(), movement.has_layout(), "{movement:?}");
    }
}

#[test]
fn any_small_layout_passes() {
    let device = open();
    let config = Config { cases: 96, failure_persistence: None, ..Config::default() };
    let verified = TestRunner::new(config)
        .run(&any_case(), |(layout, order)| check_layout(&*device, &layout, &order));
    verified.unwrap();
}

#[test]
fn any_contiguous_payload_passes() {
    let device = open();
    let device = &*device;
    let verifier = Verifier::new(device).unwrap();
    let bench = (device, &verifier);
    let config = Config { cases: 24, failure_persistence: None, ..Config::default() };
    let verified = TestRunner::new(config).run(&(1u64..=20_000), |units| {
        let bytes = units * UNIT_BYTES;
        let source = device.allocate(bytes).unwrap();
        let destination = device.allocate(bytes + GUARD_BYTES).unwrap();
        let sums = device.allocate(SUM_BYTES).unwrap();
        fill(device, source.span(), DATA).unwrap();
        let (from, to) = (source.span(), destination.slice(0, bytes).unwrap());
        let mut image = bytes_of(POISON, destination.bytes());
        image[..bytes as usize].copy_from_slice(&bytes_of(DATA, bytes));
        reads(
            bench,
            &Access::read(from, sums.span(), DATA),
            checksum(&image[..bytes as usize], 16),
        )?;
        writes(bench, &Access::copy(from, to, DATA), &destination, &image)?;
        writes(bench, &Access::driver_copy(from, to, DATA), &destination, &image)?;
        for (word, i) in image[..bytes as usize].chunks_exact_mut(8).zip(1u64..) {
            word.copy_from_slice(&DATA.wrapping_add(i.wrapping_mul(STEP)).to_le_bytes());
        }
        writes(bench, &Access::write(to, DATA), &destination, &image)
    });
    verified.unwrap();
}
