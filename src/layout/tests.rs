//! Layouts one by one: pinned, refused, counted by hand.

use std::collections::BTreeSet;

use sha2::{Digest, Sha256};

use super::*;
use crate::record::{LayoutFacts, Order, Refined};

const GIB: u64 = 1 << 30;

fn hash(index: &Index) -> String {
    let mut digest = Sha256::new();
    match index {
        Index::U32(slots) => slots.iter().for_each(|slot| digest.update(slot.to_le_bytes())),
        Index::U64(slots) => slots.iter().for_each(|slot| digest.update(slot.to_le_bytes())),
    }
    digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A layout without an offset.
fn plain(
    pattern: Pattern,
    fragment_bytes: u64,
    footprint_bytes: u64,
    payload_bytes: u64,
    seed: u64,
) -> Result<Layout, LayoutError> {
    let spec = Spec { pattern, fragment_bytes, offset_bytes: 0, footprint_bytes, payload_bytes };
    Layout::new(spec, seed)
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
    use Pattern::{Contiguous, Random};
    const SHUFFLED: Pattern = Pattern::SHUFFLED;
    const STRIDED: Pattern = Pattern::STRIDED;
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
            STRIDED,
            16,
            16 << 20,
            3 << 20,
            1,
            Scattered,
            "91ceaa9cc20caeedb7f941bee09f34c46880f324ddae9b9594b4f32616ba314d",
        ),
        (
            SHUFFLED,
            16,
            2 * GIB,
            3 << 18,
            1,
            Scattered,
            "b0e52b5b8d5b6708bcd028f80ecf51cfcb47972b25b6a08f1217ee604d4a0af4",
        ),
        (
            SHUFFLED,
            16,
            2 * GIB,
            3 << 18,
            1,
            Sorted,
            "a4c439cec72bfcf3e2058cbc3567fb7131ab60fcd47949c9ce7f6059c7c067cc",
        ),
        (
            SHUFFLED,
            128,
            2 * GIB,
            1 << 23,
            42,
            Scattered,
            "233981ee2ff5dbd6f83afcb0913e86d2fa37009bdbe93b824d23cf93a18fc0ef",
        ),
        (
            SHUFFLED,
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
        let layout = plain(pattern, fragment, footprint, payload, seed).unwrap();
        let index = layout.index(&order).unwrap();
        assert_eq!(hash(&index), expected, "{pattern:?} {order} {fragment} {footprint}");
    }
}

#[test]
fn bytes_are_the_entries() {
    let layout = plain(Pattern::Random, 16, 1 << 20, 1 << 16, 5).unwrap();
    let index = layout.index(&Order::Scattered).unwrap();
    let expected: Vec<u8> =
        slots(&index).iter().flat_map(|&slot| (slot as u32).to_ne_bytes()).collect();
    assert_eq!(index.as_bytes(), expected);
    assert_eq!(index.get(index.len()), None);
}

#[test]
fn the_width_follows_the_slots() {
    let width = |slots: u64| {
        let layout = plain(Pattern::STRIDED, 16, 16 * slots, 1024, 0).unwrap();
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
        let (pattern, offset_bytes) = Pattern::parse(&Refined::parse(pattern))?;
        let spec = Spec {
            pattern,
            fragment_bytes: fragment,
            offset_bytes,
            footprint_bytes: footprint,
            payload_bytes: payload,
        };
        Layout::new(spec, 1).map(|_| ())
    };
    use LayoutError as E;
    assert!(matches!(new("aged", 16, 64, 64), Err(E::UnknownPattern(_))));
    assert!(matches!(new("random", 2, 64, 64), Err(E::Fragment { .. })));
    assert!(matches!(new("random", 0, 64, 64), Err(E::Fragment { .. })));
    assert!(matches!(new("random", 48, 96, 48), Err(E::Fragment { .. })));
    assert!(matches!(new("random", 128, 64, 64), Err(E::FragmentTooLarge { .. })));
    assert!(matches!(new("random.offset_4B", 64, 64, 64), Err(E::FragmentTooLarge { .. })));
    assert!(matches!(new("random.offset_2B", 64, 128, 64), Err(E::Offset { offset_bytes: 2 })));
    assert!(matches!(new("strided", 64, 96, 64), Err(E::UnevenFootprint { .. })));
    assert!(matches!(new("strided", 64, 128, 96), Err(E::UnevenPayload { .. })));
    assert!(matches!(new("strided", 64, 128, 0), Err(E::UnevenPayload { .. })));
    assert!(matches!(new("strided", 4, 128, 36), Err(E::UnevenPayload { .. })));
    assert!(matches!(new("random", 64, 128, 192), Err(E::PayloadTooLarge { .. })));
    assert!(matches!(new("strided.stride_4", 16, 128, 48), Err(E::PayloadTooLarge { .. })));
    assert!(matches!(new("strided.stride_0", 16, 128, 48), Err(E::NoStride)));
    assert!(matches!(new("checkerboard", 16, 128, 32), Err(E::PayloadDiffers { .. })));
    assert!(matches!(new("holes.occupancy_75", 16, 128, 48), Err(E::PayloadDiffers { .. })));
    assert!(matches!(new("holes.occupancy_100", 16, 128, 16), Err(E::Occupancy { .. })));
    let error = new("shuffled.window_32B", 16, 128, 32).unwrap_err();
    assert_eq!(error, E::Window { window_bytes: 32, least_bytes: 128 });
    assert_eq!(new("shuffled.window_128B", 16, 128, 32), Ok(()));
    assert_eq!(new("holes.occupancy_75", 16, 128, 32), Ok(()));
    let beyond = MAX_FOOTPRINT_BYTES + 16;
    assert!(matches!(new("random", 16, beyond, 16), Err(E::FootprintTooLarge { .. })));
    assert_eq!(new("shuffled", 16, MAX_FOOTPRINT_BYTES, MAX_FOOTPRINT_BYTES), Ok(()));
}

#[test]
fn what_cannot_be_indexed_is_an_error() {
    let layout = plain(Pattern::STRIDED, 16, 1 << 62, 1 << 62, 1).unwrap();
    let error = layout.index(&Order::Sorted).unwrap_err();
    assert_eq!(error, LayoutError::OutOfMemory { fragments: 1 << 58, entry_bytes: 8 });
    let other = Order::Other("spiral".into());
    assert_eq!(layout.index(&other), Err(LayoutError::UnknownOrder(other.clone())));
    assert_eq!(layout.slot(&other, 0), None);
    assert_eq!(layout.slot(&Order::Sorted, 1 << 58), None);
}

#[test]
fn the_seed_and_every_parameter_change_the_key() {
    use Pattern::Random;
    const SHUFFLED: Pattern = Pattern::SHUFFLED;
    let keys: BTreeSet<u64> = [
        (SHUFFLED, 16, 4096, 2048, 1),
        (SHUFFLED, 16, 4096, 2048, 2),
        (Random, 16, 4096, 2048, 1),
        (SHUFFLED, 32, 4096, 2048, 1),
        (SHUFFLED, 16, 8192, 2048, 1),
        (SHUFFLED, 16, 4096, 1024, 1),
    ]
    .into_iter()
    .map(|(pattern, fragment, footprint, payload, seed)| {
        plain(pattern, fragment, footprint, payload, seed).unwrap().key()
    })
    .collect();
    assert_eq!(keys.len(), 6);
}

#[test]
fn facts_of_a_layout_that_can_be_counted_by_hand() {
    // 4 fragments of 16 B, one each 64 B: slots 0, 4, 8, 12.
    let layout = plain(Pattern::STRIDED, 16, 256, 64, 1).unwrap();
    let index = layout.index(&Order::Scattered).unwrap();
    assert_eq!(slots(&index), [0, 4, 8, 12]);
    let facts = layout.facts(&index, &index);
    assert_eq!((facts.sector_bytes, facts.touched_bytes, facts.pages_2mib), (128, 256, 1));
    assert_eq!(facts.jumps, 3);
    assert_eq!((facts.sector_overfetch(), facts.density()), (Some(2.0), Some(0.25)));
    assert_eq!(layout.packed_touched_bytes(), 128);
    assert_eq!((layout.density(), layout.stride(), layout.unit_shift()), (0.25, 4, 0));
    assert_eq!(LayoutFacts::default().sector_overfetch(), None);
    assert_eq!(LayoutFacts::default().density(), None);
}

#[test]
fn fragments_longer_than_a_page_touch_all_their_pages() {
    let layout = plain(Pattern::SHUFFLED, 4 << 20, 64 << 20, 12 << 20, 1).unwrap();
    let [sorted, scattered] = both(&layout);
    let facts = layout.facts(&sorted, &scattered);
    assert_eq!((facts.sector_bytes, facts.touched_bytes), (12 << 20, 12 << 20));
    assert_eq!((facts.pages_2mib, layout.unit_shift()), (6, 18));
}

#[test]
fn no_pair_is_lost_between_the_shares_of_two_threads() {
    // One fragment in each page of 2 MiB; more fragments than a thread takes at a time.
    let fragments = 3 * index::GRAIN as u64 + 1;
    let layout = plain(Pattern::STRIDED, 16, fragments << 21, fragments << 4, 1).unwrap();
    let [sorted, scattered] = both(&layout);
    let facts = layout.facts(&sorted, &scattered);
    assert_eq!((facts.sector_bytes, facts.touched_bytes), (32 * fragments, 128 * fragments));
    assert_eq!((facts.pages_2mib, facts.jumps), (fragments, fragments - 1));
}

#[test]
#[should_panic(expected = "an index of another layout")]
fn facts_refuse_a_foreign_index() {
    let layout = plain(Pattern::STRIDED, 16, 256, 64, 1).unwrap();
    let other = plain(Pattern::STRIDED, 16, 256, 32, 1).unwrap();
    let index = layout.index(&Order::Sorted).unwrap();
    layout.facts(&index, &other.index(&Order::Sorted).unwrap());
}

#[test]
fn facts_see_lines_that_an_offset_makes_fragments_straddle() {
    // 128 B fragments in every other slot of 1 KiB, all 4 B late: two lines and five sectors each.
    let spec = Spec {
        pattern: Pattern::Strided { stride: Some(2) },
        fragment_bytes: 128,
        offset_bytes: 4,
        footprint_bytes: 1024,
        payload_bytes: 256,
    };
    let layout = Layout::new(spec, 1).unwrap();
    let index = layout.index(&Order::Sorted).unwrap();
    assert_eq!(slots(&index), [0, 2]);
    let facts = layout.facts(&index, &index);
    assert_eq!((facts.sector_bytes, facts.touched_bytes), (2 * 5 * 32, 2 * 2 * 128));
    assert_eq!((layout.unit_bytes(), layout.unit_shift(), layout.slots()), (4, 5, 7));
    assert_eq!(layout.fragment(&Order::Sorted, 1), Some(Fragment { offset: 260, bytes: 128 }));
    assert_eq!((spec.alignment_bytes(), layout.packed_touched_bytes()), (4, 384));
}

#[test]
fn windows_keep_the_order_within_themselves() {
    // Strides of 64 B: a window of 1 KiB has 16 fragments; the last one has 4.
    let pattern = Pattern::Shuffled { window_bytes: Some(1024) };
    let layout = plain(pattern, 16, 64 * 100, 1600, 1).unwrap();
    assert_eq!(layout.window(), Some(16));
    let order = slots(&layout.index(&Order::Scattered).unwrap());
    for (number, window) in order.chunks(16).enumerate() {
        let number = number as u64;
        assert!(window.iter().all(|slot| slot / 64 == number), "{number}: {window:?}");
        assert!(!window.is_sorted(), "{number}: {window:?}");
    }
}

#[test]
fn holes_are_free_slots_of_a_random_occupancy() {
    let pattern = Pattern::Holes { occupancy_percent: 90 };
    let layout = plain(pattern, 16, 16 * 100_000, 16 * 10_000, 3).unwrap();
    let order = slots(&layout.index(&Order::Scattered).unwrap());
    let distinct: BTreeSet<u64> = order.iter().copied().collect();
    assert_eq!(distinct.len(), 10_000);
    // Spread over the footprint as chance has it: 1,000 expected in each tenth, deviation 30.
    for tenth in 0..10 {
        let within = distinct.range(tenth * 10_000..(tenth + 1) * 10_000).count();
        assert!((880..1120).contains(&within), "{tenth}: {within}");
    }
}
