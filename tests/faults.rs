//! Planted errors: every kernel is made to do what it should not, and the verification has to see
//! it. An unfaulted run passes first, so that a check that always complains is found out as well.
//!
//! A fault is a launch of something else than what is expected, or a byte that is changed behind
//! the verification's back. `FRAGBENCH_TEST_DEVICE` names the device (default `host`), so that the
//! same tests run on a GPU: `FRAGBENCH_TEST_DEVICE=cuda:0 cargo test --test faults`.

use fragbench::device::{self, Buffer, Device, SUM_BYTES, Span};
use fragbench::kernel::{Access, GUARD_BYTES, Outcome, Verifier, copy_back, fill};
use fragbench::layout::{Index, Layout, UNIT_BYTES, draw};
use fragbench::record::{Order, PatternName};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

/// The key of the source's data.
const DATA: u64 = 0x5EED;

/// Length of a fragment and how many there are; none is a power of two, so that every kernel has a
/// tail that fills no block.
const SIZES: [(u64, u64); 4] = [(16, 9_001), (64, 2_503), (4 << 10, 67), (64 << 10, 7)];

const ORDERS: [Order; 3] = [Order::Packed, Order::Sorted, Order::Scattered];

fn patterns() -> [PatternName; 4] {
    [PatternName::Contiguous, PatternName::Strided, PatternName::Shuffled, PatternName::Random]
}

fn open() -> Box<dyn Device> {
    let id = std::env::var("FRAGBENCH_TEST_DEVICE").unwrap_or_else(|_| "host".to_owned());
    device::open(&id).unwrap_or_else(|error| panic!("{id}: {error}"))
}

#[track_caller]
fn passes(outcome: Outcome, what: &str) {
    assert!(outcome.compared > 0, "{what}: nothing was compared");
    assert_eq!(outcome.mismatches, 0, "{what}: a sound run was rejected");
}

#[track_caller]
fn caught(outcome: Outcome, what: &str) {
    assert!(outcome.mismatches > 0, "{what}: the fault went unseen");
}

/// Where exactly so many items have to differ.
#[track_caller]
fn caught_exactly(outcome: Outcome, mismatches: u64, what: &str) {
    assert_eq!(outcome.mismatches, mismatches, "{what}");
}

/// Changes one byte in a device's memory.
fn flip(device: &dyn Device, span: Span<'_>, offset: u64) {
    let byte = span.slice(offset, 1).unwrap();
    let mut value = [0];
    device.download(byte, &mut value).unwrap();
    device.upload(byte, &[value[0] ^ 0x10]).unwrap();
}

/// Keys of poison, a fresh one each time.
struct Poison(u64);

impl Poison {
    fn next(&mut self) -> u64 {
        self.0 += 1;
        draw(0xBAD, self.0)
    }
}

/// What a kernel that writes is checked with.
struct Writes<'a> {
    verifier: &'a Verifier<'a>,
    device: &'a dyn Device,
    guarded: Span<'a>,
    poison: Poison,
}

impl Writes<'_> {
    /// Runs `launched` where `expected` should have run; the outcomes of destination and guard.
    fn run(&mut self, expected: &Access<'_>, launched: Option<&Access<'_>>) -> (Outcome, Outcome) {
        let launch = launched.map(|access| access.launch().unwrap());
        let key = self.poison.next();
        self.verifier.check_copy(expected, launch.as_ref(), self.guarded, key).unwrap()
    }

    /// A sound run, a run of nothing, and a byte changed behind a sound run in the destination and
    /// in the guard.
    fn basics(&mut self, access: &Access<'_>, what: &str) {
        let (destination, guard) = self.run(access, Some(access));
        passes(destination, what);
        passes(guard, what);

        // The destination held the right bytes a moment ago: stale ones must not count.
        let (destination, _) = self.run(access, None);
        let units = access.payload_bytes() / UNIT_BYTES;
        caught_exactly(destination, units, &format!("{what}: stale destination"));

        let key = self.poison.next();
        self.verifier.poison(access, self.guarded, key).unwrap();
        self.device.launch(&access.launch().unwrap()).unwrap();
        let last = self.guarded.bytes() - 1;
        for offset in [access.payload_bytes(), last] {
            flip(self.device, self.guarded, offset);
            let guard = self.verifier.check_guard(access, self.guarded, key).unwrap();
            caught_exactly(guard, 1, &format!("{what}: a byte of the guard"));
            passes(self.verifier.check_destination(access).unwrap(), what);
            flip(self.device, self.guarded, offset);
        }
        flip(self.device, self.guarded, access.payload_bytes() - 1);
        let destination = self.verifier.check_destination(access).unwrap();
        caught_exactly(destination, 1, &format!("{what}: a byte of the destination"));
    }
}

/// Which of the kernels without an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stream {
    Read,
    Copy,
    DriverCopy,
}

/// All faults of a kernel without an index; a fragment is a piece of its payload.
fn stream_faults(kind: Stream) {
    let device = open();
    let device = &*device;
    let verifier = Verifier::new(device).unwrap();
    for (fragment, fragments) in SIZES {
        let payload = fragment * fragments;
        let source = device.allocate(payload + fragment).unwrap();
        let destination = device.allocate(payload + GUARD_BYTES).unwrap();
        let sums = device.allocate(SUM_BYTES).unwrap();
        fill(device, source.span(), DATA).unwrap();
        passes(verifier.check_fill(source.span(), DATA).unwrap(), "source");

        let access = |offset: u64, bytes: u64| {
            let from = source.slice(offset, bytes).unwrap();
            let to = destination.slice(0, bytes).unwrap();
            match kind {
                Stream::Read => Access::read(from, sums.span(), DATA),
                Stream::Copy => Access::copy(from, to, DATA),
                Stream::DriverCopy => Access::driver_copy(from, to, DATA),
            }
        };
        let what = format!("{kind:?}, fragments of {fragment} B");
        let expected = access(0, payload);
        let shifted = access(fragment, payload);
        let dropped = access(0, payload - fragment);
        let overrun = access(0, payload + fragment);

        if kind == Stream::Read {
            read_faults(&verifier, &expected, &[&shifted, &dropped, &overrun], &what);
        } else {
            let guarded = destination.span();
            let mut writes = Writes { verifier: &verifier, device, guarded, poison: Poison(0) };
            writes.basics(&expected, &what);
            let units = payload / UNIT_BYTES;
            let of_fragment = fragment / UNIT_BYTES;
            let (destination, _) = writes.run(&expected, Some(&shifted));
            caught_exactly(destination, units, &format!("{what}: off by one fragment"));
            let (destination, _) = writes.run(&expected, Some(&dropped));
            caught_exactly(destination, of_fragment, &format!("{what}: dropped tail"));
            let (destination, guard) = writes.run(&expected, Some(&overrun));
            passes(destination, &what);
            caught_exactly(guard, of_fragment, &format!("{what}: one fragment too many"));
        }

        // Wrong data in the source are told by the source's own check and by the kernel's.
        flip(device, source.span(), payload / 2);
        caught_exactly(verifier.check_fill(source.span(), DATA).unwrap(), 1, &what);
        if kind == Stream::Read {
            let sum = verifier.expected_checksum(&expected).unwrap();
            let launch = expected.launch().unwrap();
            caught(verifier.check_read(&expected, Some(&launch), sum).unwrap(), &what);
        }
    }
}

/// A sound read, one of nothing, and the faulty ones; each has to give another checksum.
fn read_faults(verifier: &Verifier<'_>, expected: &Access<'_>, faulty: &[&Access<'_>], what: &str) {
    let sum = verifier.expected_checksum(expected).unwrap();
    let sound = expected.launch().unwrap();
    passes(verifier.check_read(expected, Some(&sound), sum).unwrap(), what);
    caught(verifier.check_read(expected, None, sum).unwrap(), &format!("{what}: nothing launched"));
    for (i, access) in faulty.iter().enumerate() {
        let launch = access.launch().unwrap();
        let outcome = verifier.check_read(expected, Some(&launch), sum).unwrap();
        caught(outcome, &format!("{what}: fault {i}"));
    }
    passes(verifier.check_read(expected, Some(&sound), sum).unwrap(), what);
}

#[test]
fn read() {
    stream_faults(Stream::Read);
}

#[test]
fn copy() {
    stream_faults(Stream::Copy);
}

#[test]
fn driver_copy() {
    stream_faults(Stream::DriverCopy);
}

/// Whether a gather reads or copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Gather {
    Read,
    Copy,
}

/// The buffers of a gather, each with room for one fragment more than the layout has.
struct Rig<'d> {
    device: &'d dyn Device,
    layout: Layout,
    order: Order,
    on_host: Index,
    source: Buffer,
    index: Buffer,
    destination: Buffer,
    sums: Buffer,
}

impl<'d> Rig<'d> {
    fn new(device: &'d dyn Device, layout: Layout, order: Order) -> Rig<'d> {
        let on_host = layout.index(&order).unwrap();
        let entry = u64::from(layout.index_entry_bytes());
        assert_eq!(on_host.as_bytes().len() as u64, layout.fragments() * entry);
        let source = device.allocate(layout.footprint_bytes() + layout.fragment_bytes()).unwrap();
        fill(device, source.span(), DATA).unwrap();
        let index = device.allocate((layout.fragments() + 1) * entry).unwrap();
        let mut entries = on_host.as_bytes().to_vec();
        // The entry behind the last one names a slot that is there: the first.
        entries.extend(&on_host.get(0).unwrap().to_le_bytes()[..entry as usize]);
        device.upload(index.span(), &entries).unwrap();
        let destination = device.allocate(layout.payload_bytes() + GUARD_BYTES).unwrap();
        let sums = device.allocate(SUM_BYTES).unwrap();
        Rig { device, layout, order, on_host, source, index, destination, sums }
    }

    fn entry_bytes(&self) -> u64 {
        u64::from(self.layout.index_entry_bytes())
    }

    /// The gather with its source and its index begun so many fragments late.
    fn access(&self, gather: Gather, source: u64, index: u64) -> Access<'_> {
        let layout = &self.layout;
        let from = source * layout.fragment_bytes();
        let from = self.source.slice(from, layout.footprint_bytes()).unwrap();
        // All entries up to the spare one.
        let (first, entries) = (index * self.entry_bytes(), layout.fragments() + 1 - index);
        let index = self.index.slice(first, entries * self.entry_bytes()).unwrap();
        match gather {
            Gather::Read => {
                Access::gather_read(layout, &self.order, from, index, self.sums.span(), DATA)
            }
            Gather::Copy => {
                Access::gather_copy(layout, &self.order, from, index, self.destination.span(), DATA)
            }
        }
    }

    /// Writes an entry of the device's index.
    fn set_entry(&self, i: u64, slot: u64) {
        let entry = self.index.slice(i * self.entry_bytes(), self.entry_bytes()).unwrap();
        self.device.upload(entry, &slot.to_le_bytes()[..self.entry_bytes() as usize]).unwrap();
    }

    fn copy_back(&self) -> Outcome {
        let index = self.index.slice(0, self.layout.fragments() * self.entry_bytes()).unwrap();
        let source = self.source.slice(0, self.layout.footprint_bytes()).unwrap();
        let spans = (source, index, self.destination.span());
        copy_back(self.device, &self.layout, &self.order, &self.on_host, spans, DATA).unwrap()
    }

    /// Whether the expectation of this layout goes through the index, which is then the only thing
    /// that can tell a wrong entry.
    fn has_no_closed_form(&self) -> bool {
        *self.layout.pattern() == PatternName::Random && self.order == Order::Sorted
    }
}

/// All faults of a gather, over all patterns, orders and sizes.
fn gather_faults(gather: Gather, wide_index: bool) {
    let device = open();
    let verifier = Verifier::new(&*device).unwrap();
    for (fragment, fragments) in SIZES {
        for pattern in patterns() {
            for order in ORDERS {
                let payload = fragment * fragments;
                // No multiple of the payload either.
                let footprint = 3 * payload + fragment;
                let layout = Layout::new(pattern.clone(), fragment, footprint, payload, 7).unwrap();
                let layout = if wide_index { layout.with_wide_index() } else { layout };
                assert_eq!(layout.index_entry_bytes(), if wide_index { 8 } else { 4 });
                let rig = Rig::new(&*device, layout, order);
                faults_of(&rig, &verifier, gather);
            }
        }
    }
}

fn faults_of(rig: &Rig<'_>, verifier: &Verifier<'_>, gather: Gather) {
    let (layout, fragments) = (&rig.layout, rig.layout.fragments());
    let (fragment, entry) = (layout.fragment_bytes(), rig.entry_bytes());
    let what = format!(
        "{gather:?}, {}, {}, fragments of {fragment} B, entries of {entry} B",
        layout.pattern(),
        rig.order
    );
    let expected = rig.access(gather, 0, 0);
    passes(verifier.check_index(&expected).unwrap(), &what);
    passes(verifier.check_fill(rig.source.span(), DATA).unwrap(), &what);
    passes(rig.copy_back(), &what);

    let shifted_source = rig.access(gather, 1, 0);
    let shifted_index = rig.access(gather, 0, 1);
    let dropped = expected.of_fragments(fragments - 1);
    let overrun = expected.of_fragments(fragments + 1);
    let of_fragment = fragment / UNIT_BYTES;
    let guarded = rig.destination.span();
    let mut writes = Writes { verifier, device: rig.device, guarded, poison: Poison(0) };
    match gather {
        Gather::Read => {
            let faulty = [&shifted_source, &shifted_index, &dropped, &overrun];
            read_faults(verifier, &expected, &faulty, &what);
        }
        Gather::Copy => {
            writes.basics(&expected, &what);
            let units = layout.payload_bytes() / UNIT_BYTES;
            let (destination, _) = writes.run(&expected, Some(&shifted_source));
            caught_exactly(destination, units, &format!("{what}: source off by one fragment"));
            let (destination, _) = writes.run(&expected, Some(&shifted_index));
            let moved = (0..fragments)
                .filter(|i| rig.on_host.get(*i as usize) != next_slot(&rig.on_host, *i))
                .count() as u64;
            let what_shifted = format!("{what}: index off by one fragment");
            caught(destination, &what_shifted);
            caught_exactly(destination, moved * of_fragment, &what_shifted);
            let (destination, _) = writes.run(&expected, Some(&dropped));
            caught_exactly(destination, of_fragment, &format!("{what}: dropped tail"));
            let (destination, guard) = writes.run(&expected, Some(&overrun));
            passes(destination, &what);
            caught_exactly(guard, of_fragment, &format!("{what}: one fragment too many"));
        }
    }
    wrong_index(rig, verifier, gather, &expected, &mut writes, &what);
    wrong_source(rig, verifier, &what);
}

/// The slot that a fragment reads where the index is read one entry late.
fn next_slot(index: &Index, i: u64) -> Option<u64> {
    index.get(i as usize + 1).or_else(|| index.get(0))
}

/// One entry of the device's index names another slot, which is there as well.
fn wrong_index(
    rig: &Rig<'_>,
    verifier: &Verifier<'_>,
    gather: Gather,
    expected: &Access<'_>,
    writes: &mut Writes<'_>,
    what: &str,
) {
    let last = rig.layout.fragments() - 1;
    let sum = verifier.expected_checksum(expected).unwrap();
    for i in [0, last / 2, last] {
        let right = rig.on_host.get(i as usize).unwrap();
        // A slot of another fragment: where the order is that of addresses the nearest one, so that
        // the entries still ascend and only their content can tell.
        let all = (0..=last).map(|j| rig.on_host.get(j as usize).unwrap());
        let wrong = all.filter(|slot| *slot != right).min_by_key(|slot| slot.abs_diff(right));
        let wrong = wrong.unwrap();
        let what = format!("{what}: entry {i} is {wrong} instead of {right}");
        rig.set_entry(i, wrong);
        let outcome = verifier.check_index(expected).unwrap();
        caught(outcome, &format!("{what} (index)"));
        if !rig.has_no_closed_form() {
            caught_exactly(outcome, 1, &format!("{what} (index)"));
        }
        match gather {
            Gather::Read => {
                let launch = expected.launch().unwrap();
                let outcome = verifier.check_read(expected, Some(&launch), sum).unwrap();
                caught(outcome, &format!("{what} (checksum)"));
            }
            // Without a closed form the destination is held against the index itself.
            Gather::Copy if rig.has_no_closed_form() => {}
            Gather::Copy => {
                let (destination, guard) = writes.run(expected, Some(expected));
                let units = rig.layout.fragment_bytes() / UNIT_BYTES;
                caught_exactly(destination, units, &format!("{what} (destination)"));
                passes(guard, &what);
            }
        }
        if i != last / 2 {
            // The first and the last fragment are always among those that are copied back; the
            // entry counts, and so do the units that came from elsewhere.
            let units = rig.layout.fragment_bytes() / UNIT_BYTES;
            let back = rig.copy_back();
            assert!(back.mismatches > units, "{what} (copied back): {back:?}");
        }
        rig.set_entry(i, right);
        passes(verifier.check_index(expected).unwrap(), &what);
    }
}

/// A byte of the source is wrong: in a gap, and in a fragment.
fn wrong_source(rig: &Rig<'_>, verifier: &Verifier<'_>, what: &str) {
    let fragment = rig.layout.fragment_bytes();
    let taken = |slot: u64| (0..rig.on_host.len()).any(|i| rig.on_host.get(i) == Some(slot));
    let gap = (0..rig.layout.slots()).rev().find(|slot| !taken(*slot)).unwrap();
    let check = || verifier.check_fill(rig.source.span(), DATA).unwrap();
    flip(rig.device, rig.source.span(), gap * fragment);
    caught_exactly(check(), 1, &format!("{what}: a byte of a gap"));
    passes(rig.copy_back(), what);
    flip(rig.device, rig.source.span(), gap * fragment);
    passes(check(), what);

    let first = rig.on_host.get(0).unwrap();
    flip(rig.device, rig.source.span(), (first + 1) * fragment - 1);
    caught_exactly(check(), 1, &format!("{what}: a byte of a fragment"));
    caught(rig.copy_back(), &format!("{what}: a byte of a fragment that is copied back"));
}

#[test]
fn gather_read_4() {
    gather_faults(Gather::Read, false);
}

#[test]
fn gather_read_8() {
    gather_faults(Gather::Read, true);
}

#[test]
fn gather_copy_4() {
    gather_faults(Gather::Copy, false);
}

#[test]
fn gather_copy_8() {
    gather_faults(Gather::Copy, true);
}

/// The checksum of a gather, computed here from the host's index and the data's closed form.
fn checksum(layout: &Layout, index: &Index) -> u64 {
    let units = layout.fragment_bytes() / UNIT_BYTES;
    (0..layout.fragments() * units).fold(0, |sum: u64, unit| {
        let slot = index.get((unit / units) as usize).unwrap();
        let word = 2 * (slot * units + unit % units);
        let low = draw(DATA, word).wrapping_mul(4 * unit + 1);
        let high = draw(DATA, word + 1).wrapping_mul(4 * unit + 3);
        sum.wrapping_add(low).wrapping_add(high)
    })
}

/// Any small layout passes, and the device's closed form is the host's.
#[test]
fn any_small_layout_passes() {
    let device = open();
    let device = &*device;
    let verifier = Verifier::new(device).unwrap();
    let config = Config { cases: 96, failure_persistence: None, ..Config::default() };
    let pattern = prop::sample::select(patterns().to_vec());
    let order = prop::sample::select(ORDERS.to_vec());
    // Fragments of 16 B to 8 KiB; payloads to 256 KiB; densities down to a fifth.
    let sizes = (0u32..=9).prop_flat_map(|shift| {
        let most = (16_384u64 >> shift).max(2);
        (Just(UNIT_BYTES << shift), 1..=most, 0u64..=400)
    });
    let cases = (pattern, order, sizes, any::<u64>(), any::<bool>());
    let verified = TestRunner::new(config).run(&cases, |(pattern, order, sizes, seed, wide)| {
        let (fragment, fragments, gaps) = sizes;
        let slots = fragments + fragments * gaps / 100;
        let layout =
            Layout::new(pattern, fragment, slots * fragment, fragments * fragment, seed).unwrap();
        let layout = if wide { layout.with_wide_index() } else { layout };
        let rig = Rig::new(device, layout, order);
        let (read, copy) = (rig.access(Gather::Read, 0, 0), rig.access(Gather::Copy, 0, 0));
        prop_assert_eq!(verifier.check_index(&copy).unwrap().mismatches, 0);
        let sum = verifier.expected_checksum(&read).unwrap();
        prop_assert_eq!(sum, checksum(&rig.layout, &rig.on_host));
        let launch = read.launch().unwrap();
        prop_assert_eq!(verifier.check_read(&read, Some(&launch), sum).unwrap().mismatches, 0);
        let launch = copy.launch().unwrap();
        let guarded = rig.destination.span();
        let checked = verifier.check_copy(&copy, Some(&launch), guarded, seed ^ 1).unwrap();
        prop_assert_eq!((checked.0.mismatches, checked.1.mismatches), (0, 0));
        prop_assert_eq!(rig.copy_back().mismatches, 0);
        prop_assert_eq!(verifier.check_fill(rig.source.span(), DATA).unwrap().mismatches, 0);
        Ok(())
    });
    verified.unwrap();
}
