//! What every allocator keeps, through any sequence of calls.

use std::cell::RefCell;

use proptest::prelude::*;

use super::{Make, Tells};

/// Any sequence of calls keeps the books of a plain model, and gives the same blocks each time where
/// the allocator does.
pub(super) fn books_are_kept_through_any_calls(make: Make) {
    let traits = make().traits;
    let (runs, most_calls) = traits.runs;
    let make = RefCell::new(make);
    let make = || (make.borrow_mut())();
    let step = (0..20u8, any::<u64>(), any::<prop::sample::Index>());
    let steps = prop::collection::vec(step, 1..most_calls);
    proptest!(ProptestConfig::with_cases(runs), |(steps in steps)| {
        let mut checked = make();
        let mut twin = traits.repeats.then(&make);
        let mut freed = 0;
        for (kind, random, index) in steps {
            let live: Vec<u64> = checked.live.keys().copied().collect();
            match kind {
                0..11 => {
                    let bytes = checked.size(random);
                    let block = checked.allocate(bytes);
                    if let Some(twin) = &mut twin {
                        prop_assert_eq!(block, twin.policy.allocate(bytes).ok());
                    }
                }
                11..18 if !live.is_empty() => {
                    freed = live[index.index(live.len())];
                    checked.free(freed);
                    if let Some(twin) = &mut twin {
                        prop_assert_eq!(twin.policy.free(freed), Ok(()));
                    }
                }
                18 => {
                    let before = checked.policy.usage().reserved_bytes;
                    let released_bytes = checked.policy.release_unused().unwrap();
                    let after = checked.policy.usage().reserved_bytes;
                    if traits.tells != Tells::Nothing {
                        prop_assert_eq!(released_bytes, before - after);
                    }
                    if let Some(twin) = &mut twin {
                        prop_assert_eq!(twin.policy.release_unused(), Ok(released_bytes));
                    }
                }
                _ if !live.contains(&freed) => checked.refuses_to_free(freed),
                _ => checked.refuses_to_free(random),
            }
            checked.check();
        }
        if let Some(twin) = &twin {
            prop_assert_eq!(checked.state(), twin.state());
        }
        checked.finish();
    });
}
