//! Ageing: a program runs on a policy until its holes are as short as wanted.

use super::churn::Churn;
use super::metrics::median_bytes;
use super::{Aged, HarnessError, Reached, Recipe, Stop};
use crate::policy::Policy;

/// The share of its occupancy that a policy has to reach when it is filled, in percent.
const LEAST_FILL_PERCENT: u128 = 97;

/// The fewest blocks that are called a state.
const LEAST_BLOCKS: u64 = 256;

/// The most blocks: some GiB of books on the host.
const MOST_BLOCKS: u64 = 1 << 26;

/// A steady median falls by less than one of so many parts.
const STEADY_PART: u64 = 16;

/// Operations for each live block before a median may count as steady: four turnovers.
const LEAST_TURNOVER: u64 = 8;

/// Ages a policy without live blocks into the state of a recipe.
///
/// The heap is filled to its occupancy; then blocks end by class of lifetime and others take their
/// place, so that each class keeps its share of live bytes. Meanwhile the byte-weighted median hole
/// falls, from all that is free in one piece to what this policy makes of this program. Ageing ends
/// when it has come down to the level, when it falls no more, or when the operations are used up;
/// what was reached stands in [`Aged::reached`]. It is looked at each time the operations have grown
/// by an eighth, when every class is full. It may jump: as long as one piece holds more than half of
/// what is free, its length is the median.
///
/// # Errors
///
/// [`HarnessError`] for a recipe that cannot be, a policy that is not empty, one that does not hand
/// out the sizes, and a heap that is out of memory below its occupancy.
pub fn age(policy: &mut dyn Policy, recipe: &Recipe) -> Result<Aged, HarnessError> {
    recipe.check()?;
    let Recipe { heap_bytes, occupancy_percent, .. } = *recipe;
    let (name, usage) = (policy.name(), policy.usage());
    if usage.live_blocks > 0 {
        return Err(HarnessError::NotEmpty { policy: name, live_blocks: usage.live_blocks });
    }
    let scale_shift = recipe.scale_shift(policy.alignment_bytes());
    let live_bytes = recipe.live_bytes();
    check_blocks(recipe, scale_shift)?;
    let mut churn = Churn::new(policy, recipe.distribution, live_bytes, scale_shift, recipe.key());
    churn.fill()?;
    let usage = churn.policy().usage();
    let is_short =
        u128::from(usage.requested_bytes) * 100 < u128::from(live_bytes) * LEAST_FILL_PERCENT;
    if is_short && churn.refusals > 0 {
        let reached = u128::from(usage.requested_bytes) * 100 / u128::from(heap_bytes);
        return Err(HarnessError::Unreachable {
            policy: name,
            heap_bytes,
            occupancy_percent,
            reached_percent: reached as u64,
            usage,
        });
    }
    let (stop, median_hole_bytes) = wear(&mut churn, recipe)?;
    let reached = Reached {
        stop,
        median_hole_bytes,
        operations: churn.operations,
        refusals: churn.refusals,
        scale_shift,
        usage: churn.policy().usage(),
    };
    Ok(Aged::new(churn, *recipe, reached))
}

/// Whether about as many blocks live as can be worked with.
fn check_blocks(recipe: &Recipe, scale_shift: i32) -> Result<(), HarnessError> {
    let distribution = recipe.distribution.name();
    let heap_bytes = recipe.heap_bytes;
    let blocks = recipe.distribution.expected_blocks(recipe.live_bytes(), scale_shift);
    let (least_blocks, most_blocks) = (LEAST_BLOCKS, MOST_BLOCKS);
    if blocks < least_blocks {
        let would_work_bytes = heap_bytes.saturating_mul(least_blocks.div_ceil(blocks.max(1)));
        return Err(HarnessError::TooFewBlocks {
            distribution,
            heap_bytes,
            blocks,
            least_blocks,
            would_work_bytes,
        });
    }
    if blocks > most_blocks {
        return Err(HarnessError::TooManyBlocks { distribution, heap_bytes, blocks, most_blocks });
    }
    Ok(())
}

/// Churns a filled heap until its median hole is what was wanted, and tells why and where it ended.
fn wear(churn: &mut Churn<'_>, recipe: &Recipe) -> Result<(Stop, u64), HarnessError> {
    let filled = churn.operations;
    let live_blocks = churn.policy().usage().live_blocks;
    let mut least = u64::MAX;
    let mut fell_at = 0;
    loop {
        let worn = churn.operations - filled;
        let median = median_free_bytes(churn.policy(), recipe.heap_bytes);
        // 0 where nothing is free: there is no state until something is.
        if 0 < median && median <= recipe.level_bytes {
            return Ok((Stop::Level, median));
        }
        if 0 < median && median < least - least / STEADY_PART {
            (least, fell_at) = (median, worn);
        }
        if worn >= (2 * fell_at).max(LEAST_TURNOVER * live_blocks) {
            return Ok((Stop::Steady, median));
        }
        if churn.operations >= recipe.limit_operations {
            return Ok((Stop::Limit, median));
        }
        let pause = (worn / 8).max(live_blocks / 64).max(1);
        let next = (churn.operations + pause).min(recipe.limit_operations);
        churn.run_to(next)?;
        churn.refill()?;
    }
}

/// The byte-weighted median of all free ranges: holes, and what the source still has as one.
fn median_free_bytes(policy: &dyn Policy, heap_bytes: u64) -> u64 {
    let mut lengths = policy.hole_lengths();
    lengths.push(heap_bytes.saturating_sub(policy.usage().reserved_bytes));
    median_bytes(&lengths).unwrap_or(0)
}
