//! Any small extents against bytes that are worked out here, and launches on extents that are refused.

mod bench;

use bench::{DATA, POISON, bytes_of, checksum, open, reads, writes};
use fragbench::device::{
    Device, DeviceError, Launch, Movement, SUM_BYTES, Span, Variant, VariedEntry, VariedShape,
    VariedSpans,
};
use fragbench::kernel::{
    Access, ExtentOperands, GUARD_BYTES, Outcome, TableBuffers, TableSpans, Traffic, Verifier,
    copy_back_extents, extents_checksum, extents_staging_bytes, fill,
};
use fragbench::layout::{EntryForm, Extents, Fragment, Permutation, Table};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};

const MOVEMENTS: [Movement; 3] =
    [Movement::GatherRead, Movement::GatherCopy, Movement::ScatterCopy];

fn extents(fragments: &[(u64, u64)], footprint_bytes: u64) -> Extents {
    let fragment = |&(offset, bytes): &(u64, u64)| Fragment { offset, bytes };
    Extents::new(fragments.iter().map(fragment).collect(), footprint_bytes).unwrap()
}

/// Any extents with a payload to some 200 KiB, in any order, behind entries of any form that takes them.
fn any_extents() -> impl Strategy<Value = Extents> {
    let length = prop_oneof![5 => 1..6u64, 4 => 1..64u64, 1 => 64..3_000u64];
    let gap = prop_oneof![3 => Just(0u64), 3 => 0..8u64, 1 => 0..500u64];
    let runs = prop::collection::vec((gap, length), 1..150);
    // Units of offsets and of lengths, in bytes.
    let units = prop::sample::select(vec![(16u64, 16u64), (16, 4), (4, 4), (4, 4)]);
    let form = prop::sample::select(EntryForm::ALL.to_vec());
    (runs, units, form, any::<u64>(), 0..3u8, 0..64u64).prop_map(
        |(runs, (places, lengths), form, key, order, rest)| {
            let mut end: u64 = 0;
            let mut placed = Vec::new();
            for (gap, length) in runs {
                let offset = (end + places * gap).next_multiple_of(places);
                end = offset + lengths * length;
                placed.push(Fragment { offset, bytes: end - offset });
            }
            let turn = Permutation::new(key, placed.len() as u64);
            let visited = (0..placed.len()).map(|i| placed[turn.apply(i as u64) as usize]);
            let extents = Extents::new(visited.collect(), end + rest).unwrap();
            let extents = extents.with_entries_at_least(form);
            match order {
                0 => extents.sorted(),
                1 => extents.packed(),
                _ => extents,
            }
        },
    )
}

fn passes(outcome: Outcome) -> bool {
    outcome.compared > 0 && outcome.mismatches == 0
}

/// Every kernel on one set of extents.
fn check_extents(device: &dyn Device, extents: &Extents) -> Result<(), TestCaseError> {
    let verifier = Verifier::new(device).unwrap();
    let arena_bytes = extents.reach_bytes() + GUARD_BYTES;
    let payload_bytes = extents.payload_bytes().next_multiple_of(16) + GUARD_BYTES;
    let arena = device.allocate(arena_bytes).unwrap();
    let payload = device.allocate(payload_bytes).unwrap();
    let sums = device.allocate(SUM_BYTES).unwrap();
    let table = TableBuffers::upload(device, extents).unwrap();
    fill(device, arena.span(), DATA).unwrap();

    let access = |movement| {
        let (payload, sums) = (Some(payload.span()), Some(sums.span()));
        let operands = ExtentOperands { table: table.spans(), payload, sums };
        Access::of_extents(movement, extents, arena.span(), operands, DATA).unwrap()
    };
    let data = bytes_of(DATA, arena_bytes);
    let gathered: Vec<u8> = extents
        .fragments()
        .iter()
        .flat_map(|fragment| &data[fragment.offset as usize..fragment.end() as usize])
        .copied()
        .collect();
    let sum = checksum(&gathered, u64::from(extents.entry_form().unit_bytes()));
    prop_assert_eq!(extents_checksum(extents, u64::MAX, DATA), sum);

    prop_assert!(passes(verifier.check_index(&access(Movement::GatherCopy)).unwrap()));
    let spans = (arena.span(), payload.span());
    prop_assert!(passes(copy_back_extents(device, extents, table.spans(), spans, DATA).unwrap()));
    let bench = (device, &verifier);
    reads(bench, &access(Movement::GatherRead), sum)?;
    // Some of the fragments only.
    let some = extents.fragments().len() as u64 / 2 + 1;
    let part = extents.tally_of(some).payload_bytes as usize;
    let sum = checksum(&gathered[..part], u64::from(extents.entry_form().unit_bytes()));
    reads(bench, &access(Movement::GatherRead).of_fragments(some), sum)?;
    prop_assert_eq!(extents_checksum(extents, some, DATA), sum);

    let mut image = bytes_of(POISON, payload_bytes);
    image[..gathered.len()].copy_from_slice(&gathered);
    writes(bench, &access(Movement::GatherCopy), &payload, &image)?;
    prop_assert!(passes(verifier.check_fill(arena.span(), DATA).unwrap()));

    fill(device, payload.span(), DATA).unwrap();
    let mut image = bytes_of(POISON, arena_bytes);
    let mut from = 0;
    for fragment in extents.fragments() {
        let (begin, end) = (fragment.offset as usize, fragment.end() as usize);
        image[begin..end].copy_from_slice(&data[from..from + end - begin]);
        from += end - begin;
    }
    writes(bench, &access(Movement::ScatterCopy), &arena, &image)?;
    prop_assert!(passes(verifier.check_fill(payload.span(), DATA).unwrap()));
    Ok(())
}

#[test]
fn any_small_extents_pass() {
    let device = open();
    let config = Config { cases: 64, failure_persistence: None, ..Config::default() };
    let verified =
        TestRunner::new(config).run(&any_extents(), |extents| check_extents(&*device, &extents));
    verified.unwrap();
}

#[test]
fn one_long_fragment_is_cut_like_the_others() {
    let device = open();
    // Longer than what threads share work by, beside short ones, and off every boundary.
    let mut fragments = vec![(4 << 20, (1 << 20) + 12)];
    fragments.extend((0..3_000).map(|i| (36 + 64 * i, 4 + 4 * (i % 15))));
    for form in [EntryForm::Ragged, EntryForm::Narrow] {
        let own = extents(&fragments, 6 << 20).with_entries_at_least(form);
        check_extents(&*device, &own).unwrap();
        check_extents(&*device, &own.sorted()).unwrap();
    }
}

/// The operands of an access.
struct Operands<'a> {
    arena: Span<'a>,
    table: TableSpans<'a>,
    payload: Option<Span<'a>>,
    sums: Option<Span<'a>>,
}

impl<'a> Operands<'a> {
    fn access(&self, movement: Movement, extents: &'a Extents) -> Result<Access<'a>, DeviceError> {
        let Operands { arena, table, payload, sums } = *self;
        Access::of_extents(movement, extents, arena, ExtentOperands { table, payload, sums }, DATA)
    }

    fn refusal(&self, movement: Movement, extents: &'a Extents) -> String {
        let launch = self.access(movement, extents).and_then(|access| access.launch());
        launch.err().map(|error| error.to_string()).unwrap_or_default()
    }
}

#[test]
fn operands_that_do_not_fit_are_refused() {
    let device = open();
    let own = extents(&[(64, 20), (0, 12), (32, 28)], 90);
    let (arena, payload) = (device.allocate(4096).unwrap(), device.allocate(4096).unwrap());
    let sums = device.allocate(SUM_BYTES).unwrap();
    let buffers = TableBuffers::upload(&*device, &own).unwrap();
    let table = buffers.spans();
    let sound = || Operands {
        arena: arena.span(),
        table,
        payload: Some(payload.span()),
        sums: Some(sums.span()),
    };
    for movement in MOVEMENTS {
        assert_eq!(sound().refusal(movement, &own), "");
        let arena = arena.slice(0, own.reach_bytes()).unwrap();
        assert_eq!(Operands { arena, ..sound() }.refusal(movement, &own), "");
        // The last piece is loaded whole, though the fragment ends within it.
        let arena = arena.slice(0, own.reach_bytes() - 4).unwrap();
        let refusal = Operands { arena, ..sound() }.refusal(movement, &own);
        assert!(refusal.contains("has 92 bytes and needs 96"), "{refusal}");
        let arena = sound().arena.slice(8, 2048).unwrap();
        let refusal = Operands { arena, ..sound() }.refusal(movement, &own);
        assert!(refusal.contains("not aligned to 16 bytes"), "{refusal}");
        let entries = table.entries.slice(0, 32).unwrap();
        let short = TableSpans { entries, ..table };
        let refusal = Operands { table: short, ..sound() }.refusal(movement, &own);
        assert!(refusal.contains("the table has 32 bytes and needs 48"), "{refusal}");
        let ranks = table.ranks.slice(0, 8 * Table::rows(own.tally().pieces)).unwrap();
        let short = TableSpans { ranks, ..table };
        let refusal = Operands { table: short, ..sound() }.refusal(movement, &own);
        assert!(refusal.contains("the directory of ranks has"), "{refusal}");
        let nothing = Operands { payload: None, sums: None, ..sound() };
        assert!(nothing.refusal(movement, &own).contains("is missing"));
        let access = sound().access(movement, &own).unwrap();
        assert!(access.of_fragments(0).launch().is_err());
        // Competitors take entries of 4 B only.
        assert!(!device.has(access.by(Variant::Depth(3)).entry().unwrap()));
    }
    for movement in [Movement::StridedGather, Movement::Read, Movement::Write, Movement::Copy] {
        let refusal = sound().refusal(movement, &own);
        assert!(refusal.contains("takes no fragments of varying length"), "{refusal}");
    }
    let verifier = Verifier::new(&*device).unwrap();
    let access = sound().access(Movement::ScatterCopy, &own).unwrap();
    let some = access.of_fragments(2);
    assert!(verifier.check_untouched(&some, arena.span(), POISON).is_err());
    let refusal = copy_back_extents(
        &*device,
        &own,
        table,
        (arena.span(), payload.slice(0, 16).unwrap()),
        DATA,
    );
    assert!(refusal.unwrap_err().to_string().contains("first fragment does not fit"));
}

#[test]
fn places_that_contradict_each_other_check_nothing() {
    let device = open();
    let fragments: Vec<(u64, u64)> = (0..100).map(|i| (4096 - 32 * i, 4 + 4 * (i % 7))).collect();
    for form in [EntryForm::Ragged, EntryForm::Wide] {
        let whole = |&(offset, bytes): &(u64, u64)| (offset, bytes.next_multiple_of(16));
        let own = match form {
            EntryForm::Ragged => extents(&fragments, 8192),
            _ => extents(&fragments.iter().map(whole).collect::<Vec<_>>(), 8192),
        };
        let own = own.with_entries_at_least(form);
        let arena = device.allocate(8192).unwrap();
        let buffers = TableBuffers::upload(&*device, &own).unwrap();
        let table = buffers.spans();
        let operands = ExtentOperands { table, payload: Some(arena.span()), sums: None };
        let movement = Movement::GatherCopy;
        let access = Access::of_extents(movement, &own, arena.span(), operands, DATA).unwrap();
        let verifier = Verifier::new(&*device).unwrap();
        assert!(passes(verifier.check_index(&access).unwrap()));
        // Offset, first unit and first piece, of the first, a middle and the last fragment, and of
        // the one behind it, which lies nowhere.
        for place in [0, 50, 99, 100] {
            for number in 0..3 {
                let word = table.places.slice(24 * place + 8 * number, 8).unwrap();
                let mut right = [0; 8];
                device.download(word, &mut right).unwrap();
                let wrong = u64::from_le_bytes(right).wrapping_add(1).to_le_bytes();
                device.upload(word, &wrong).unwrap();
                let found = verifier.check_index(&access).unwrap().mismatches;
                assert_eq!(found > 0, (place, number) != (100, 0), "{place} {number}");
                device.upload(word, &right).unwrap();
            }
        }
        assert!(passes(verifier.check_index(&access).unwrap()));
    }
}

#[test]
fn a_table_of_other_extents_is_seen() {
    let device = open();
    let arena = device.allocate(4096).unwrap();
    let verifier = Verifier::new(&*device).unwrap();
    let own = extents(&[(64, 20), (0, 12)], 90);
    let other_places = TableBuffers::upload(&*device, &own).unwrap();
    let TableSpans { places, ranges, .. } = other_places.spans();
    // The last fragment is longer, but takes no more pieces; shorter; missing; and elsewhere, which only
    // the right places tell.
    let others: [(&[(u64, u64)], bool); 4] = [
        (&[(64, 20), (0, 16)], true),
        (&[(64, 20), (0, 8)], true),
        (&[(64, 20)], true),
        (&[(64, 20), (16, 12)], false),
    ];
    for (other, by_its_own) in others {
        let buffers = TableBuffers::upload(&*device, &extents(other, 90)).unwrap();
        let table = buffers.spans();
        let behind = TableSpans { places, ranges, ..table };
        for table in [behind, table].into_iter().take(1 + usize::from(by_its_own)) {
            let operands = ExtentOperands { table, payload: Some(arena.span()), sums: None };
            let movement = Movement::GatherCopy;
            let access = Access::of_extents(movement, &own, arena.span(), operands, DATA).unwrap();
            // Too short a table is refused.
            let outcome = verifier.check_index(&access);
            assert!(outcome.is_err() || outcome.unwrap().mismatches > 0, "{other:?}");
        }
    }
}

#[test]
fn a_place_that_takes_more_pieces_than_it_has_is_seen() {
    let device = open();
    let sums = device.allocate(SUM_BYTES).unwrap();
    let verifier = Verifier::new(&*device).unwrap();
    // 64 B at the begin of the arena, 4 pieces; the entry is right however many they are.
    let entries = device.allocate(16).unwrap();
    let places = device.allocate(48).unwrap();
    for (pieces, wrong) in [(4, 0), (5, 1)] {
        let numbers = [0, 0, 0, 0, 16, pieces];
        let bytes: Vec<u8> = numbers.iter().flat_map(|number: &u64| number.to_le_bytes()).collect();
        device.upload(places.span(), &bytes).unwrap();
        let spans = VariedSpans {
            entries: Some(entries.span()),
            places: Some(places.span()),
            sums: Some(sums.span()),
            ..VariedSpans::default()
        };
        let shape = VariedShape {
            form: EntryForm::Ragged,
            fragments: 1,
            pieces,
            units: 16,
            reach_bytes: 64,
            arena_units: 0,
            data_key: DATA,
        };
        verifier.zero(sums.span()).unwrap();
        let launch = Launch::varied(VariedEntry::CheckEntries, spans, shape).unwrap();
        device.launch(&launch).unwrap();
        assert_eq!(verifier.total(sums.span()).unwrap(), wrong);
    }
}

#[test]
fn an_access_says_what_it_moves() {
    let device = open();
    let (arena, payload) = (device.allocate(4096).unwrap(), device.allocate(4096).unwrap());
    // 40 pieces in two rows; 3 fragments.
    let own = extents(&[(1024, 320), (0, 256), (512, 64)], 2048);
    assert_eq!(extents_staging_bytes(&own), 640);
    for (form, entry_bytes, unit_bytes) in
        [(EntryForm::Narrow, 4, 16), (EntryForm::Wide, 8, 16), (EntryForm::Ragged, 16, 4)]
    {
        let own = own.clone().with_entries_at_least(form);
        let buffers = TableBuffers::upload(&*device, &own).unwrap();
        let operands = Operands {
            arena: arena.span(),
            table: buffers.spans(),
            payload: Some(payload.span()),
            sums: None,
        };
        for movement in MOVEMENTS {
            let access = operands.access(movement, &own).unwrap();
            let written_bytes = if movement.is_read() { 0 } else { 640 };
            let index_bytes = 3 * entry_bytes + 2 * 8;
            let expected = Traffic { read_bytes: 640, written_bytes, index_bytes };
            assert_eq!(access.traffic(), expected);
            assert_eq!(access.kernel().to_string(), format!("{}.varied", movement.name()));
            let by = access.by(Variant::Depth(2));
            assert_eq!(by.kernel().to_string(), format!("{}.varied.depth_2", movement.name()));
            let name = access.entry().unwrap().name();
            assert_eq!(name, format!("varied_{}_{}", movement.name(), form.name()));
            assert_eq!((access.payload_bytes(), access.unit_bytes()), (640, unit_bytes));
            assert_eq!(access.of_fragments(1).payload_bytes(), 320);
        }
        let ranks = 32 * 8;
        assert_eq!(buffers.bytes(), 3 * entry_bytes + ranks + 4 * 24 + 3 * 16);
    }
}
