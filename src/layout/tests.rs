use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use sha2::{Digest, Sha256};

use super::*;

fn layout(pattern: PatternName, fragment: u64, slots: u64, fragments: u64, seed: u64) -> Layout {
    Layout::new(pattern, fragment, slots * fragment, fragments * fragment, seed).unwrap()
}

fn slots(layout: &Layout, order: Order) -> Vec<u64> {
    let index = layout.index(&order);
    (0..index.len()).map(|i| index.get(i)).collect()
}

/// Same seed, same layout, everywhere: these hashes may never change.
#[test]
fn layouts_have_their_golden_hashes() {
    let hash = |layout: &Layout, order: Order| {
        let digest = Sha256::digest(layout.index(&order).as_bytes());
        digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect::<String>()
    };
    let mut found = BTreeMap::new();
    for pattern in PatternName::KNOWN {
        let narrow = layout(pattern.clone(), 64, 100_000, 10_000, 7);
        let wide = layout(pattern.clone(), 16, (1 << 32) + 12_345, 5_000, 7);
        for order in [Order::Scattered, Order::Sorted] {
            found.insert(format!("{pattern} {order} 4 B"), hash(&narrow, order.clone()));
            found.insert(format!("{pattern} {order} 8 B"), hash(&wide, order));
        }
    }
    insta::assert_debug_snapshot!(found);
}

#[test]
fn impossible_layouts_are_refused() {
    let new = |fragment, footprint, payload| {
        Layout::new(PatternName::Shuffled, fragment, footprint, payload, 1).unwrap_err()
    };
    assert_eq!(new(8, 64, 64), LayoutError::Fragment(8));
    assert_eq!(new(48, 96, 96), LayoutError::Fragment(48));
    assert_eq!(new(32, 80, 64), LayoutError::Ragged(80, 32));
    assert_eq!(new(32, 64, 0), LayoutError::Ragged(0, 32));
    assert_eq!(new(32, 64, 96), LayoutError::Crowded(96, 64));
    let unknown = PatternName::Other("spiral".to_owned());
    assert!(Layout::new(unknown, 32, 64, 32, 1).is_err());
}

fn any_pattern() -> impl Strategy<Value = PatternName> {
    proptest::sample::select(PatternName::KNOWN)
}

proptest! {
    #[test]
    fn strides_hold_one_fragment_each(
        seed: u64, fragments in 1u64..300, stride in 1u64..40, rest in 0u64..39,
    ) {
        let shuffled =
            layout(PatternName::Shuffled, 32, fragments * stride + rest % stride, fragments, seed);
        let found: BTreeSet<u64> =
            slots(&shuffled, Order::Scattered).iter().map(|slot| slot / stride).collect();
        prop_assert_eq!(found, (0..fragments).collect());
    }

    #[test]
    fn sorted_is_the_same_multiset_in_ascending_order(
        pattern in any_pattern(), seed: u64, fragments in 1u64..300, more in 0u64..900,
    ) {
        let layout = layout(pattern, 16, fragments + more, fragments, seed);
        let mut scattered = slots(&layout, Order::Scattered);
        let sorted = slots(&layout, Order::Sorted);
        scattered.sort_unstable();
        prop_assert_eq!(&scattered, &sorted);
        prop_assert!(sorted.iter().all(|slot| *slot < layout.slots()));
        prop_assert_eq!(slots(&layout, Order::Packed), (0..fragments).collect::<Vec<_>>());
    }

    #[test]
    fn the_index_is_the_closed_form(
        pattern in any_pattern(), seed: u64, fragments in 1u64..300, more in 0u64..900,
    ) {
        let layout = layout(pattern, 16, fragments + more, fragments, seed);
        for order in [Order::Packed, Order::Sorted, Order::Scattered] {
            for (i, slot) in slots(&layout, order.clone()).into_iter().enumerate() {
                if let Some(closed) = layout.slot(&order, i as u64) {
                    prop_assert_eq!(slot, closed);
                }
            }
        }
    }

    #[test]
    fn facts_agree_with_counting_each_byte(
        pattern in any_pattern(), seed: u64, shift in 4u32..9, fragments in 1u64..60, more in 0u64..200,
    ) {
        let layout = layout(pattern, 1 << shift, fragments + more, fragments, seed);
        let scattered = layout.index(&Order::Scattered);
        let facts = layout.facts(&layout.index(&Order::Sorted), &scattered);
        let bytes: BTreeSet<u64> = (0..fragments)
            .filter_map(|i| layout.fragment(&Order::Scattered, i))
            .flat_map(|fragment| fragment.offset..fragment.offset + fragment.bytes)
            .collect();
        let blocks = |block: u64| bytes.iter().map(|byte| byte / block).collect::<BTreeSet<_>>().len() as u64;
        prop_assert_eq!(facts.sector_bytes, blocks(32) * 32);
        prop_assert_eq!(facts.touched_bytes, blocks(128) * 128);
        prop_assert_eq!(facts.pages_2mib, blocks(2 << 20));
        let slots = slots(&layout, Order::Scattered);
        prop_assert_eq!(facts.jumps, slots.windows(2).filter(|w| w[1] != w[0] + 1).count() as u64);
    }
}
