//! Properties of every layout.

use proptest::prelude::*;

use super::tests::{both, slots};
use super::*;
use crate::record::Order;

/// Any layout with one of the patterns; `full` are those that say themselves how much they hold.
fn any_layout(patterns: &'static [Pattern]) -> impl Strategy<Value = Layout> {
    let sizes = (2..13u32, 4..600u64, 1..9u64, any::<u64>());
    (prop::sample::select(patterns), sizes, 0..9u64, any::<u64>()).prop_filter_map(
        "the payload is whole",
        |(pattern, (shift, fragments, stride, rest), offset, seed)| {
            // Whole units of 16 B, whatever the fragment.
            let fragments = fragments & !3;
            let slots = fragments * stride + rest % fragments;
            let held = match pattern.fills_its_capacity() {
                true => pattern.capacity(slots) & !3,
                false => fragments.min(pattern.capacity(slots)) & !3,
            };
            let spec = Spec {
                pattern,
                fragment_bytes: 1 << shift,
                offset_bytes: 4 * offset,
                footprint_bytes: (slots << shift) + 4 * offset,
                payload_bytes: held << shift,
            };
            Layout::new(spec, seed).ok()
        },
    )
}

const STRIDES: &[Pattern] = &[Pattern::STRIDED, Pattern::SHUFFLED];
const ALL: &[Pattern] = &[
    Pattern::Contiguous,
    Pattern::STRIDED,
    Pattern::Strided { stride: Some(3) },
    Pattern::SHUFFLED,
    Pattern::Shuffled { window_bytes: Some(1 << 16) },
    Pattern::Random,
    Pattern::Checkerboard,
    Pattern::Holes { occupancy_percent: 30 },
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn each_stride_holds_one_fragment(
        layout in any_layout(STRIDES),
    ) {
        for index in both(&layout) {
            let mut strides: Vec<u64> =
                slots(&index).iter().map(|slot| slot / layout.stride()).collect();
            strides.sort_unstable();
            prop_assert!(strides.into_iter().eq(0..layout.fragments()));
        }
    }

    #[test]
    fn indexes_keep_their_promises(layout in any_layout(ALL)) {
        let [sorted, scattered] = both(&layout).map(|index| slots(&index));
        prop_assert_eq!(sorted.len() as u64, layout.fragments());
        prop_assert!(sorted.is_sorted());
        prop_assert!(sorted.iter().all(|&slot| slot < layout.slots()));
        let mut ordered = scattered;
        ordered.sort_unstable();
        prop_assert_eq!(ordered, sorted);
        let packed = layout.index(&Order::Packed).unwrap();
        prop_assert!(slots(&packed).into_iter().eq(0..layout.fragments()));
    }

    #[test]
    fn the_closed_form_is_the_index(layout in any_layout(ALL)) {
        for order in Order::KNOWN {
            let index = layout.index(order).unwrap();
            let closed = *order != Order::Sorted || layout.pattern().has_sorted_form();
            for i in 0..layout.fragments() {
                let slot = index.get(i as usize).filter(|_| closed);
                prop_assert_eq!(layout.slot(order, i), slot);
                let bytes = layout.fragment_bytes();
                let origin = layout.spec().offset_bytes;
                let fragment =
                    slot.map(|slot| Fragment { offset: origin + slot * bytes, bytes });
                prop_assert_eq!(layout.fragment(order, i), fragment);
            }
        }
    }

    #[test]
    fn facts_are_those_of_a_plain_count(layout in any_layout(ALL)) {
        let [sorted, scattered] = both(&layout);
        let distinct = |block: u64| {
            let bytes = layout.fragment_bytes();
            let mut blocks: Vec<u64> = slots(&scattered)
                .into_iter()
                .map(|slot| layout.spec().offset_bytes + slot * bytes)
                .flat_map(|first| (first..first + bytes).step_by(4))
                .map(|byte| byte / block)
                .collect();
            blocks.sort_unstable();
            blocks.dedup();
            blocks.len() as u64
        };
        let order = slots(&scattered);
        let follows = (1..order.len()).filter(|&i| order[i - 1] + 1 == order[i]).count();
        let facts = layout.facts(&sorted, &scattered);
        prop_assert_eq!(facts.sector_bytes, 32 * distinct(32));
        prop_assert_eq!(facts.touched_bytes, 128 * distinct(128));
        prop_assert_eq!(facts.pages_2mib, distinct(2 << 20));
        prop_assert_eq!(facts.jumps as usize, order.len() - 1 - follows);
        prop_assert_eq!(facts.fragments, layout.fragments());
        if let Some(closed) = layout.strided_facts() {
            prop_assert_eq!(closed, facts);
        }
    }
}
