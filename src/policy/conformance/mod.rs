//! What every allocator keeps: each policy over simulated memory, and any other that a test gives.
//!
//! The checks are the same. What an allocator may do otherwise is in its [`Traits`]; what memory lies
//! below is looked at where it is simulated.

mod books;
mod checked;
mod checks;
mod opaque;
mod simulated;
mod traits;

pub(crate) use traits::{Fit, Refill, Refusal, Tells, Traits};

use super::{Limited, Policy};
use checked::Checked;

/// Makes the allocator anew, with nothing live.
type Make<'a> = &'a mut dyn FnMut() -> Checked;

/// A check, which panics where the allocator does not conform.
type Check = fn(Make);

/// Every check by its name. Each makes what it needs, and frees it.
const CHECKS: &[(&str, Check)] = &[
    ("blocks_are_aligned", checks::blocks_are_aligned),
    ("a_freed_block_is_used_again", checks::a_freed_block_is_used_again),
    ("it_recovers_from_exhaustion", checks::it_recovers_from_exhaustion),
    ("only_live_blocks_are_freed", checks::only_live_blocks_are_freed),
    ("impossible_requests_are_refused", checks::impossible_requests_are_refused),
    ("unused_memory_goes_back", checks::unused_memory_goes_back),
    ("books_are_kept_through_any_calls", books::books_are_kept_through_any_calls),
];

/// Requests above that no memory holds.
const IMPOSSIBLE_BYTES: u64 = 1 << 50;

/// Every check of an allocator that `make` gives anew, with nothing live. A limit of
/// [`Traits::capacity_bytes`] is put around it, so that it is exhausted before the memory below is.
/// Two are made at once only where they [repeat](Traits::repeats) each other.
///
/// Panics where the allocator does not conform, after the name of the check.
pub(crate) fn check_opaque(make: &mut dyn FnMut() -> Box<dyn Policy>, traits: Traits) {
    for (name, check) in CHECKS {
        eprintln!("{name}");
        check(&mut || {
            let limited = Limited::new(make(), traits.capacity_bytes);
            Checked::new(Box::new(limited), None, traits)
        });
    }
    // What the limit would refuse does not reach the allocator itself.
    eprintln!("impossible_requests_are_refused without a limit");
    let traits = Traits { capacity_bytes: IMPOSSIBLE_BYTES, ..traits };
    checks::impossible_requests_are_refused(&mut || Checked::new(make(), None, traits));
}
