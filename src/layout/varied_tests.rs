//! Extents and their tables against plain counts.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

const GIB: u64 = 1 << 30;

fn fragment(offset: u64, bytes: u64) -> Fragment {
    Fragment { offset, bytes }
}

fn extents(fragments: &[(u64, u64)], footprint_bytes: u64) -> Result<Extents, LayoutError> {
    let fragments = fragments.iter().map(|(offset, bytes)| fragment(*offset, *bytes)).collect();
    Extents::new(fragments, footprint_bytes)
}

/// Lengths and the gaps before them, in words, in an order of their own.
fn any_extents() -> impl Strategy<Value = Extents> {
    // Many short ones, some long, and some aligned throughout.
    let length = prop_oneof![4 => 1..8u64, 4 => 1..100u64, 1 => 100..5_000u64];
    let gap = prop_oneof![2 => Just(0u64), 3 => 0..10u64, 1 => 0..2_000u64];
    let granule = prop::sample::select(vec![1u64, 1, 4]);
    let runs = prop::collection::vec((gap, length), 1..200);
    (runs, granule, any::<u64>(), 0..100u64).prop_map(|(runs, granule, key, rest)| {
        let mut end = 0;
        let mut fragments = Vec::new();
        for (gap, length) in runs {
            let offset = end + 4 * gap * granule;
            end = offset + 4 * length * granule;
            fragments.push(fragment(offset, end - offset));
        }
        let order = Permutation::new(key, fragments.len() as u64);
        let visited = (0..fragments.len()).map(|i| fragments[order.apply(i as u64) as usize]);
        Extents::new(visited.collect(), end + rest).unwrap()
    })
}

#[test]
fn impossible_extents_are_told_apart() {
    use LayoutError as E;
    assert_eq!(extents(&[], 64), Err(E::NoFragments));
    for bad in [(0, 0), (2, 4), (4, 6)] {
        let error = extents(&[(32, 4), bad], 64).unwrap_err();
        assert_eq!(error, E::NoWords { number: 1, fragment: fragment(bad.0, bad.1) });
        assert!(error.to_string().contains("multiples of 4 B"), "{error}");
    }
    for bad in [(60, 8), (64, 4), (u64::MAX - 3, 8)] {
        let error = extents(&[bad], 64).unwrap_err();
        assert!(matches!(error, E::OutsideFootprint { number: 0, .. }), "{error}");
    }
    let overlap = E::Overlap { first: fragment(0, 32), second: fragment(28, 8) };
    assert_eq!(extents(&[(28, 8), (64, 4), (0, 32)], 128), Err(overlap));
    let beyond = MAX_FOOTPRINT_BYTES + 1;
    assert_eq!(extents(&[(0, 4)], beyond), Err(E::FootprintTooLarge { footprint_bytes: beyond }));
    assert!(extents(&[(32, 32), (0, 32)], 64).is_ok());
}

#[test]
fn the_form_follows_alignment_and_reach() {
    let form = |fragments: &[(u64, u64)]| extents(fragments, 80 * GIB).unwrap().entry_form();
    assert_eq!(form(&[(64 * GIB - 16, 16)]), EntryForm::Narrow);
    assert_eq!(form(&[(64 * GIB, 16)]), EntryForm::Wide);
    assert_eq!(form(&[(64 * GIB, 16), (4, 16)]), EntryForm::Ragged);
    assert_eq!(form(&[(16, 12)]), EntryForm::Ragged);
    let whole = extents(&[(16, 32), (0, 16)], 48).unwrap();
    assert_eq!((whole.alignment_bytes(), whole.reach_bytes()), (16, 48));
    let wide = whole.clone().with_entries_at_least(EntryForm::Wide);
    assert_eq!(wide.entry_form(), EntryForm::Wide);
    assert_eq!(wide.sorted().entry_form(), EntryForm::Wide);
    assert_eq!(wide.packed().with_entries_at_least(EntryForm::Narrow), wide.packed());
    assert_ne!(wide, whole);
}

#[test]
fn the_same_extents_have_the_same_hash_everywhere() {
    let own = extents(&[(64, 12), (0, 20)], 128).unwrap();
    assert_eq!(own.hash(), 17_305_136_122_454_201_087);
    assert_ne!(own.hash(), own.sorted().hash());
    assert_ne!(own.hash(), own.packed().hash());
    assert_ne!(own.hash(), extents(&[(64, 12), (0, 20)], 132).unwrap().hash());
}

#[test]
fn extents_that_can_be_counted_by_hand() {
    // The second one straddles a line, and follows the first without a gap.
    let own = extents(&[(8, 112), (120, 12), (512, 16)], 1024).unwrap();
    let facts = own.facts();
    assert_eq!((facts.fragments, facts.payload_bytes, facts.jumps), (3, 140, 1));
    assert_eq!((facts.touched_bytes, facts.sector_bytes), (3 * 128, (4 + 1 + 1) * 32));
    assert_eq!((facts.pages_2mib, facts.index_entry_bytes), (1, 16));
    assert_eq!(own.touched_bytes(), facts.touched_bytes);
    assert_eq!(own.tally(), Tally { fragments: 3, pieces: 8 + 2 + 1, payload_bytes: 140 });
    assert_eq!(own.tally_of(1), Tally { fragments: 1, pieces: 8, payload_bytes: 112 });
    assert_eq!(own.tally_of(u64::MAX), own.tally());
    let packed = own.packed();
    let places: Vec<u64> = packed.fragments().iter().map(|fragment| fragment.offset).collect();
    assert_eq!((&places[..], packed.footprint_bytes()), (&[0, 112, 128][..], 144));
}

/// Where each piece lies, word by word: arena piece, payload word of its first word, and which of
/// its words belong to the fragment.
fn pieces(extents: &Extents) -> Vec<(usize, u64, u64, std::ops::Range<u64>)> {
    let mut word: u64 = 0;
    let mut pieces = Vec::new();
    for (number, fragment) in extents.fragments().iter().enumerate() {
        let (begin, end) = (fragment.offset / 4, fragment.end() / 4);
        for piece in begin / 4..end.div_ceil(4) {
            let own = begin.max(4 * piece) - 4 * piece..end.min(4 * piece + 4) - 4 * piece;
            pieces.push((number, piece, word.wrapping_sub(own.start), own.clone()));
            word += own.end - own.start;
        }
    }
    pieces
}

fn words<const N: usize>(bytes: &[u8]) -> Vec<[u64; N]> {
    let words: Vec<u64> =
        bytes.as_chunks::<8>().0.iter().map(|word| u64::from_ne_bytes(*word)).collect();
    words.as_chunks::<N>().0.to_vec()
}

fn pairs(bytes: &[u8]) -> Vec<[u32; 2]> {
    let words: Vec<u32> =
        bytes.as_chunks::<4>().0.iter().map(|word| u32::from_ne_bytes(*word)).collect();
    words.as_chunks::<2>().0.to_vec()
}

/// What a kernel makes of the table, piece by piece.
fn check_table(extents: &Extents) -> Result<(), TestCaseError> {
    let table = Table::new(extents).unwrap();
    let (entries, ranks) = (table.entry_bytes(), pairs(table.rank_bytes()));
    let pieces = pieces(extents);
    let count = pieces.len() as u64;
    prop_assert_eq!(extents.tally().pieces, count);
    prop_assert_eq!(ranks.len() as u64, Table::ranks(count));
    prop_assert_eq!(
        entries.len(),
        extents.fragments().len() * extents.entry_form().bytes() as usize
    );
    let begins = |p: u64| ranks[(p / 32) as usize][1] >> (p % 32) & 1 == 1;
    for (p, (number, arena, word, own)) in (0u64..).zip(&pieces) {
        let [before, bits] = ranks[(p / 32) as usize];
        let fragment = before + (bits & (u32::MAX >> (31 - p % 32))).count_ones() - 1;
        prop_assert_eq!(fragment as usize, *number);
        let at = *number * extents.entry_form().bytes() as usize;
        let entry = &entries[at..];
        match extents.entry_form() {
            EntryForm::Narrow => {
                let entry = u32::from_ne_bytes(entry[..4].try_into().unwrap());
                prop_assert_eq!(u64::from(entry.wrapping_add(p as u32)), *arena);
            }
            EntryForm::Wide => {
                let entry = u64::from_ne_bytes(entry[..8].try_into().unwrap());
                prop_assert_eq!(entry.wrapping_add(p), *arena);
            }
            EntryForm::Ragged => {
                let [lead, shift] = words::<2>(&entry[..16])[0];
                let place = (lead >> 4).wrapping_add(p) & (u64::MAX >> 4);
                prop_assert_eq!(place, *arena);
                prop_assert_eq!((4 * p).wrapping_add(shift), *word);
                let head = if begins(p) { lead >> 2 & 3 } else { 0 };
                let tail = if begins(p + 1) { lead & 3 } else { 0 };
                prop_assert_eq!(head..4 - tail, own.clone());
            }
        }
    }
    prop_assert!(begins(count));
    let set: u32 = ranks.iter().map(|[_, bits]| bits.count_ones()).sum();
    prop_assert_eq!(set as usize, extents.fragments().len() + 1);
    let mut before = 0;
    for [own, bits] in ranks {
        prop_assert_eq!(own, before);
        before += bits.count_ones();
    }
    Ok(())
}

#[test]
fn tables_of_several_chunks_are_whole() {
    // Short fragments, then one over many rows, then short ones: rows that chunks share, and rows
    // in which nothing begins.
    let chunk = index::GRAIN as u64;
    for (long_at, count) in [(chunk - 1, 2 * chunk + 7), (chunk, 3 * chunk), (5, chunk + 1)] {
        for unit in [4, 16] {
            let mut end = 0;
            let mut fragments = Vec::new();
            for i in 0..count {
                let words = if i == long_at { 100_000 } else { 1 + below(draw(7, i), 6) };
                let offset = end + unit * below(draw(8, i), 3);
                end = offset + unit * words;
                fragments.push(fragment(offset, end - offset));
            }
            let extents = Extents::new(fragments, end).unwrap();
            check_table(&extents).unwrap();
        }
    }
}

#[test]
fn leads_wrap_around() {
    // Far behind in the order and first in the arena, and the other way round.
    let far = 100 * GIB;
    for (offset, form) in [(64 * GIB - 64, EntryForm::Narrow), (far, EntryForm::Wide)] {
        let own = extents(&[(offset, 64), (0, 32), (64, 16)], 2 * far).unwrap();
        assert_eq!(own.entry_form(), form);
        check_table(&own).unwrap();
        check_table(&own.with_entries_at_least(EntryForm::Ragged)).unwrap();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]

    #[test]
    fn tables_find_every_piece(own in any_extents()) {
        for form in EntryForm::ALL {
            let own = own.clone().with_entries_at_least(form);
            check_table(&own)?;
            check_table(&own.sorted())?;
            check_table(&own.packed())?;
        }
    }

    #[test]
    fn places_say_what_the_extents_say(own in any_extents()) {
        let places = Places::new(&own);
        let unit = u64::from(own.entry_form().unit_bytes());
        let visited = words::<3>(places.visited_bytes());
        let (mut bytes, mut pieces) = (0, 0);
        for (i, fragment) in own.fragments().iter().enumerate() {
            prop_assert_eq!(visited[i], [fragment.offset / unit, bytes / unit, pieces]);
            bytes += fragment.bytes;
            pieces = own.tally_of(i as u64 + 1).pieces;
        }
        prop_assert_eq!(visited.last(), Some(&[0, own.payload_bytes() / unit, pieces]));
        let ordered = words::<2>(places.ordered_bytes());
        prop_assert!(ordered.is_sorted());
        let sorted: Vec<[u64; 2]> = own
            .sorted()
            .fragments()
            .iter()
            .map(|fragment| [fragment.offset / unit, fragment.end() / unit])
            .collect();
        prop_assert_eq!(ordered, sorted);
    }

    #[test]
    fn facts_are_those_of_a_plain_count_of_words(own in any_extents()) {
        let words: BTreeSet<u64> = own
            .fragments()
            .iter()
            .flat_map(|fragment| (fragment.offset..fragment.end()).step_by(4))
            .collect();
        let distinct = |block: u64| {
            words.iter().map(|word| word / block).collect::<BTreeSet<u64>>().len() as u64
        };
        for order in [own.clone(), own.sorted()] {
            let facts = order.facts();
            prop_assert_eq!(facts.payload_bytes, 4 * words.len() as u64);
            prop_assert_eq!(facts.sector_bytes, 32 * distinct(32));
            prop_assert_eq!(facts.touched_bytes, 128 * distinct(128));
            prop_assert_eq!(facts.pages_2mib, distinct(2 << 20));
            let all = order.fragments();
            let follows = all.windows(2).filter(|two| two[0].end() == two[1].offset).count();
            prop_assert_eq!(facts.jumps as usize, all.len() - 1 - follows);
        }
        let packed = own.packed();
        prop_assert!(packed.fragments().iter().all(|fragment| fragment.offset % 16 == 0));
        let lengths = |own: &Extents| -> Vec<u64> {
            own.fragments().iter().map(|fragment| fragment.bytes).collect()
        };
        prop_assert_eq!(lengths(&packed), lengths(&own));
        prop_assert!(packed.fragments().windows(2).all(|two| two[1].offset - two[0].end() < 16));
        prop_assert!(own.sorted().fragments().is_sorted_by_key(|fragment| fragment.offset));
    }
}
