//! Layouts one by one: pinned, refused, counted by hand.

use std::collections::BTreeSet;

use sha2::{Digest, Sha256};

use super::*;
use crate::record::{LayoutFacts, Order};

const GIB: u64 = 1 << 30;

fn hash(index: &Index) -> String {
    let mut digest = Sha256::new();
    match index {
        Index::U32(slots) => slots.iter().for_each(|slot| digest.update(slot.to_le_bytes())),
        Index::U64(slots) => slots.iter().for_each(|slot| digest.update(slot.to_le_bytes())),
    }
    digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(super) fn slots(index: &Index) -> Vec<u64> {
    (0..index.len()).map(|i| index.get(i).unwrap()).collect()
}

pub(super) fn both(layout: &Layout) -> [Index; 2] {
    [Order::Sorted, Order::Scattered].map(|order| layout.index(&order).unwrap())
}

#[test]
fn the_same_seed_gives_the_same_layout_everywhere() {
    // Also what `fb_layout_slot` of `cuda/index.h` gives, compiled by g++.
    use Order::{Scattered, Sorted};
    use PatternName::{Contiguous, Random, Shuffled, Strided};
    let cases = [
        (
            Contiguous,
            64,
            1 << 20,
            1 << 20,
            1,
            Scattered,
            "999b5382075e99fc59c39652a6d0776f0c73f49866ad762d450569c51a30f5db",
        ),
        (
            Strided,
            16,
            16 << 20,
            3 << 20,
            1,
            Scattered,
            "91ceaa9cc20caeedb7f941bee09f34c46880f324ddae9b9594b4f32616ba314d",
        ),
        (
            Shuffled,
            16,
            2 * GIB,
            3 << 18,
            1,
            Scattered,
            "b0e52b5b8d5b6708bcd028f80ecf51cfcb47972b25b6a08f1217ee604d4a0af4",
        ),
        (
            Shuffled,
            16,
            2 * GIB,
            3 << 18,
            1,
            Sorted,
            "a4c439cec72bfcf3e2058cbc3567fb7131ab60fcd47949c9ce7f6059c7c067cc",
        ),
        (
            Shuffled,
            128,
            2 * GIB,
            1 << 23,
            42,
            Scattered,
            "233981ee2ff5dbd6f83afcb0913e86d2fa37009bdbe93b824d23cf93a18fc0ef",
        ),
        (
            Shuffled,
            16,
            120 * GIB,
            1 << 20,
            u64::MAX,
            Scattered,
            "18807c2a9d0115f4fd475a3f5ed2c8fc2a6030274870574abfa34703971bfd9b",
        ),
        (
            Random,
            4096,
            2 * GIB,
            GIB / 4,
            1,
            Scattered,
            "1c93b4d53a2b015e4fe66f674bb7a4927acc7f85311a91d07272dbde88601828",
        ),
        (
            Random,
            16,
            120 * GIB,
            1 << 20,
            1,
            Scattered,
            "06cbda9abd5fd9ac01d0c4b5e8ee3369e947faaa11ce823bd6e86c803a405f88",
        ),
        (
            Random,
            16,
            120 * GIB,
            1 << 20,
            1,
            Sorted,
            "5ccaf7b0db2878965e14b1f6cef18f2b16b8fd0df24638e8a74049812926c82c",
        ),
    ];
    for (pattern, fragment, footprint, payload, seed, order, expected) in cases {
        let layout = Layout::new(pattern.clone(), fragment, footprint, payload, seed).unwrap();
        let index = layout.index(&order).unwrap();
        assert_eq!(hash(&index), expected, "{pattern} {order} {fragment} {footprint}");
    }
}

#[test]
fn bytes_are_the_entries() {
    let layout = Layout::new(PatternName::Random, 16, 1 << 20, 1 << 16, 5).unwrap();
    let index = layout.index(&Order::Scattered).unwrap();
    let expected: Vec<u8> =
        slots(&index).iter().flat_map(|&slot| (slot as u32).to_ne_bytes()).collect();
    assert_eq!(index.as_bytes(), expected);
    assert_eq!(index.get(index.len()), None);
}

#[test]
fn the_width_follows_the_slots() {
    let width = |slots: u64| {
        let layout = Layout::new(PatternName::Strided, 16, 16 * slots, 1024, 0).unwrap();
        let index = layout.index(&Order::Sorted).unwrap();
        assert_eq!(matches!(index, Index::U32(_)), layout.index_entry_bytes() == 4);
        layout.index_entry_bytes()
    };
    assert_eq!(width(1 << 32), 4);
    assert_eq!(width((1 << 32) + 1), 8);
}

#[test]
fn impossible_layouts_are_told_apart() {
    let new = |pattern: &str, fragment, footprint, payload| {
        Layout::new(pattern.to_owned().into(), fragment, footprint, payload, 1).map(|_| ())
    };
    use LayoutError as E;
    assert!(matches!(new("aged", 16, 64, 64), Err(E::UnknownPattern(_))));
    assert!(matches!(new("random", 8, 64, 64), Err(E::Fragment { .. })));
    assert!(matches!(new("random", 0, 64, 64), Err(E::Fragment { .. })));
    assert!(matches!(new("random", 48, 96, 48), Err(E::Fragment { .. })));
    assert!(matches!(new("strided", 64, 96, 64), Err(E::UnevenFootprint { .. })));
    assert!(matches!(new("strided", 64, 128, 96), Err(E::UnevenPayload { .. })));
    assert!(matches!(new("strided", 64, 128, 0), Err(E::UnevenPayload { .. })));
    assert!(matches!(new("random", 64, 128, 192), Err(E::PayloadTooLarge { .. })));
    let beyond = MAX_FOOTPRINT_BYTES + 16;
    assert!(matches!(new("random", 16, beyond, 16), Err(E::FootprintTooLarge { .. })));
    assert_eq!(new("shuffled", 16, MAX_FOOTPRINT_BYTES, MAX_FOOTPRINT_BYTES), Ok(()));
}

#[test]
fn what_cannot_be_indexed_is_an_error() {
    let layout = Layout::new(PatternName::Strided, 16, 1 << 62, 1 << 62, 1).unwrap();
    let error = layout.index(&Order::Sorted).unwrap_err();
    assert_eq!(error, LayoutError::OutOfMemory { fragments: 1 << 58, entry_bytes: 8 });
    let other = Order::Other("spiral".into());
    assert_eq!(layout.index(&other), Err(LayoutError::UnknownOrder(other.clone())));
    assert_eq!(layout.slot(&other, 0), None);
    assert_eq!(layout.slot(&Order::Sorted, 1 << 58), None);
}

#[test]
fn the_seed_and_every_parameter_change_the_key() {
    use PatternName::{Random, Shuffled};
    let keys: BTreeSet<u64> = [
        (Shuffled, 16, 4096, 2048, 1),
        (Shuffled, 16, 4096, 2048, 2),
        (Random, 16, 4096, 2048, 1),
        (Shuffled, 32, 4096, 2048, 1),
        (Shuffled, 16, 8192, 2048, 1),
        (Shuffled, 16, 4096, 1024, 1),
    ]
    .into_iter()
    .map(|(pattern, fragment, footprint, payload, seed)| {
        Layout::new(pattern, fragment, footprint, payload, seed).unwrap().key()
    })
    .collect();
    assert_eq!(keys.len(), 6);
}

#[test]
fn facts_of_a_layout_that_can_be_counted_by_hand() {
    // 4 fragments of 16 B, one each 64 B: slots 0, 4, 8, 12.
    let layout = Layout::new(PatternName::Strided, 16, 256, 64, 1).unwrap();
    let index = layout.index(&Order::Scattered).unwrap();
    assert_eq!(slots(&index), [0, 4, 8, 12]);
    let facts = layout.facts(&index, &index);
    assert_eq!((facts.sector_bytes, facts.touched_bytes, facts.pages_2mib), (128, 256, 1));
    assert_eq!(facts.jumps, 3);
    assert_eq!((facts.sector_overfetch(), facts.density()), (Some(2.0), Some(0.25)));
    assert_eq!((layout.packed_touched_bytes(), layout.packed_sector_bytes()), (128, 64));
    assert_eq!((layout.density(), layout.stride(), layout.unit_shift()), (0.25, 4, 0));
    assert_eq!(LayoutFacts::default().sector_overfetch(), None);
    assert_eq!(LayoutFacts::default().density(), None);
}

#[test]
fn fragments_longer_than_a_page_touch_all_their_pages() {
    let layout = Layout::new(PatternName::Shuffled, 4 << 20, 64 << 20, 12 << 20, 1).unwrap();
    let [sorted, scattered] = both(&layout);
    let facts = layout.facts(&sorted, &scattered);
    assert_eq!((facts.sector_bytes, facts.touched_bytes), (12 << 20, 12 << 20));
    assert_eq!((facts.pages_2mib, layout.unit_shift()), (6, 18));
}

#[test]
fn no_pair_is_lost_between_the_shares_of_two_threads() {
    // One fragment in each page of 2 MiB; more fragments than a thread takes at a time.
    let fragments = 3 * index::GRAIN as u64 + 1;
    let layout = Layout::new(PatternName::Strided, 16, fragments << 21, fragments << 4, 1).unwrap();
    let [sorted, scattered] = both(&layout);
    let facts = layout.facts(&sorted, &scattered);
    assert_eq!((facts.sector_bytes, facts.touched_bytes), (32 * fragments, 128 * fragments));
    assert_eq!((facts.pages_2mib, facts.jumps), (fragments, fragments - 1));
}

#[test]
#[should_panic(expected = "an index of another layout")]
fn facts_refuse_a_foreign_index() {
    let layout = Layout::new(PatternName::Strided, 16, 256, 64, 1).unwrap();
    let other = Layout::new(PatternName::Strided, 16, 256, 32, 1).unwrap();
    let index = layout.index(&Order::Sorted).unwrap();
    layout.facts(&index, &other.index(&Order::Sorted).unwrap());
}
