//! What is asked of an ageing, and what it came to.

use std::fmt;

use super::{Distribution, HarnessError, MAX_SCALE_SHIFT};
use crate::layout::draw;
use crate::policy::Usage;

/// Levels worth asking for: byte-weighted median holes from one block of an allocator to one page of
/// a GPU, in bytes.
pub const LEVELS_BYTES: [u64; 4] = [256, 4 << 10, 64 << 10, 2 << 20];

/// The least heap in bytes.
pub const LEAST_HEAP_BYTES: u64 = 1 << 20;

/// Live blocks that sizes are scaled for, where none are asked for.
pub const LIVE_BLOCKS: u64 = 100_000;

/// Calls of the policy after which ageing ends, where no limit is asked for.
pub const LIMIT_OPERATIONS: u64 = 50_000_000;

/// How the sizes of a distribution are fitted to a heap. The first two leave blocks a mean size of at
/// least 4 times the policy's alignment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scale {
    /// Divided by the least power of two with which so many blocks live. The larger the heap, the
    /// longer its holes.
    Blocks(u64),
    /// Times the power of two that brings the [typical](Distribution::typical_bytes) size to one to
    /// two times the level: then holes of that length are what most policies come to.
    Level,
    /// Divided by 2 to this power; multiplied where it is negative.
    Shift(i32),
}

/// What is asked of an ageing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Recipe {
    /// What the program asks for.
    pub distribution: Distribution,
    /// The seed of all random choices.
    pub seed: u64,
    /// Bytes that the policy's source holds.
    pub heap_bytes: u64,
    /// Requested bytes of live blocks by bytes of the heap, in percent: 1 to 99. The program's view,
    /// so that all policies serve the same program.
    pub occupancy_percent: u32,
    /// The byte-weighted median hole wanted, in bytes.
    pub level_bytes: u64,
    /// Calls of the policy after which ageing ends.
    pub limit_operations: u64,
    /// How sizes are fitted to the heap.
    pub scale: Scale,
}

impl Recipe {
    /// The usual recipe: 90 % of the heap, sizes scaled for [`LIVE_BLOCKS`], up to
    /// [`LIMIT_OPERATIONS`]. With less of the heap in use many policies keep most of what is free in
    /// one piece, and no level is reached.
    pub fn new(distribution: Distribution, heap_bytes: u64, level_bytes: u64, seed: u64) -> Self {
        Self {
            distribution,
            seed,
            heap_bytes,
            occupancy_percent: 90,
            level_bytes,
            limit_operations: LIMIT_OPERATIONS,
            scale: Scale::Blocks(LIVE_BLOCKS),
        }
    }

    /// Requested bytes that are to live.
    pub fn live_bytes(&self) -> u64 {
        (u128::from(self.heap_bytes) * u128::from(self.occupancy_percent) / 100) as u64
    }

    /// The shift of sizes for a policy with this alignment.
    pub fn scale_shift(&self, alignment_bytes: u64) -> i32 {
        let (distribution, live_bytes) = (self.distribution, self.live_bytes());
        let least_mean_bytes = alignment_bytes.saturating_mul(4);
        match self.scale {
            Scale::Shift(shift) => shift,
            Scale::Blocks(blocks) => {
                distribution.shift_for_blocks(live_bytes, blocks, least_mean_bytes)
            }
            Scale::Level => {
                distribution.shift_for_typical(self.level_bytes, live_bytes, least_mean_bytes)
            }
        }
    }

    /// The key of the program's random choices. Level and limit take no part: with sizes of one scale
    /// all levels are stages of one ageing.
    pub(super) fn key(&self) -> u64 {
        let name = self.distribution.name().bytes().map(u64::from);
        name.chain([self.heap_bytes, u64::from(self.occupancy_percent)])
            .fold(draw(self.seed, 0), |key, part| draw(key ^ part, 0))
    }

    /// Whether it can be.
    ///
    /// # Errors
    ///
    /// [`HarnessError`] names what cannot.
    pub fn check(&self) -> Result<(), HarnessError> {
        let Recipe { occupancy_percent, heap_bytes, .. } = *self;
        if !(1..100).contains(&occupancy_percent) {
            return Err(HarnessError::Occupancy { occupancy_percent });
        }
        if heap_bytes < LEAST_HEAP_BYTES {
            return Err(HarnessError::HeapTooSmall { heap_bytes });
        }
        if self.level_bytes == 0 {
            return Err(HarnessError::NoLevel);
        }
        match self.scale {
            Scale::Shift(shift) if shift.unsigned_abs() > MAX_SCALE_SHIFT.unsigned_abs() => {
                Err(HarnessError::Scale { scale_shift: shift })
            }
            _ => Ok(()),
        }
    }
}

/// Why ageing ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stop {
    /// The median hole had come down to the level, or below it.
    Level,
    /// The median hole fell no more: by less than a sixteenth while the operations doubled and were
    /// at least 8 for each live block.
    Steady,
    /// The operations were used up.
    Limit,
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Stop::Level => "level",
            Stop::Steady => "steady",
            Stop::Limit => "limit",
        })
    }
}

/// What an ageing came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reached {
    /// Why it ended.
    pub stop: Stop,
    /// The byte-weighted median of all free ranges of the heap, in bytes: of the policy's holes, and
    /// of what it had not taken from its source as one more. 0 where nothing was free.
    pub median_hole_bytes: u64,
    /// Calls of the policy, refused ones among them.
    pub operations: u64,
    /// Allocations that it refused for want of memory. Such a block lives elsewhere until it ends.
    pub refusals: u64,
    /// Sizes were divided by 2 to this power; multiplied where it is negative.
    pub scale_shift: i32,
    /// What the policy holds.
    pub usage: Usage,
}

impl Reached {
    /// Requested bytes of live blocks by bytes of the heap, in percent.
    pub fn occupancy_percent(&self, recipe: &Recipe) -> f64 {
        100.0 * self.usage.requested_bytes as f64 / recipe.heap_bytes as f64
    }

    /// Whether the median hole is the level asked for, within a factor of two.
    pub fn is_at_level(&self, recipe: &Recipe) -> bool {
        let Recipe { level_bytes, .. } = *recipe;
        (level_bytes.div_ceil(2)..=level_bytes.saturating_mul(2)).contains(&self.median_hole_bytes)
    }
}
