//! Properties of every layout.

use proptest::prelude::*;

use super::tests::{both, slots};
use super::*;
use crate::record::Order;

fn any_layout(patterns: &'static [PatternName]) -> impl Strategy<Value = Layout> {
    (prop::sample::select(patterns), 4..13u32, 1..600u64, 1..9u64, any::<u64>(), any::<u64>())
        .prop_map(|(pattern, shift, fragments, stride, rest, seed)| {
            let slots = fragments * stride + rest % fragments;
            Layout::new(pattern, 1 << shift, slots << shift, fragments << shift, seed).unwrap()
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn each_stride_holds_one_fragment(
        layout in any_layout(&[PatternName::Strided, PatternName::Shuffled]),
    ) {
        for index in both(&layout) {
            let mut strides: Vec<u64> =
                slots(&index).iter().map(|slot| slot / layout.stride()).collect();
            strides.sort_unstable();
            prop_assert!(strides.into_iter().eq(0..layout.fragments()));
        }
    }

    #[test]
    fn indexes_keep_their_promises(layout in any_layout(PatternName::KNOWN)) {
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
    fn the_closed_form_is_the_index(layout in any_layout(PatternName::KNOWN)) {
        for order in Order::KNOWN {
            let index = layout.index(order).unwrap();
            let closed = *order != Order::Sorted || *layout.pattern() != PatternName::Random;
            for i in 0..layout.fragments() {
                let slot = index.get(i as usize).filter(|_| closed);
                prop_assert_eq!(layout.slot(order, i), slot);
                let bytes = layout.fragment_bytes();
                let fragment = slot.map(|slot| Fragment { offset: slot * bytes, bytes });
                prop_assert_eq!(layout.fragment(order, i), fragment);
            }
        }
    }

    #[test]
    fn facts_are_those_of_a_plain_count(layout in any_layout(PatternName::KNOWN)) {
        let [sorted, scattered] = both(&layout);
        let distinct = |block: u64| {
            let bytes = layout.fragment_bytes();
            let mut blocks: Vec<u64> = slots(&scattered)
                .into_iter()
                .flat_map(|slot| (slot * bytes..(slot + 1) * bytes).step_by(16))
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
    }
}
