//! Layouts: which bytes of an arena hold the payload, and in which order they are visited.
//!
//! A layout is worked out from its parameters and a seed alone: the same seed gives the same layout
//! everywhere. Each [`slot`](Layout::slot) is a closed form that the kernels evaluate as well
//! (`cuda/index.h`), so a device can be checked against it without a copy of the index.

mod bijection;
mod error;
mod facts;
mod index;
#[cfg(test)]
mod properties;
mod slot;
#[cfg(test)]
mod tests;

pub use bijection::{Permutation, below, draw, mix};
pub use error::LayoutError;
pub use index::Index;
pub use slot::Fragment;

use crate::record::{Mechanism, PatternName};

/// The smallest piece of payload, and of a fragment, in bytes: one load of a thread.
pub const UNIT_BYTES: u64 = 16;

/// The largest footprint in bytes, far above any memory, so that no arithmetic here overflows.
pub const MAX_FOOTPRINT_BYTES: u64 = 1 << 62;

/// The patterns that this version knows, with their numbers in `cuda/fragment.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pattern {
    Contiguous = 0,
    Strided = 1,
    Shuffled = 2,
    Random = 3,
}

/// An ordered list of fragments of one size that hold a payload.
///
/// The footprint is cut into slots of one fragment's length; each fragment lies in a slot.
#[derive(Clone, Debug)]
pub struct Layout {
    name: PatternName,
    pattern: Pattern,
    fragment_bytes: u64,
    footprint_bytes: u64,
    payload_bytes: u64,
    key: u64,
    permutation: Permutation,
    index_entry_bytes: u32,
}

impl Layout {
    /// The layout of `payload_bytes` in fragments of `fragment_bytes` within `footprint_bytes`.
    ///
    /// A random layout, which may use a slot again, could hold more than its footprint; that is
    /// refused as for every other pattern, so that a density is never above 1.
    ///
    /// # Errors
    ///
    /// [`LayoutError`] says which parameter cannot be, and what can.
    pub fn new(
        pattern: PatternName,
        fragment_bytes: u64,
        footprint_bytes: u64,
        payload_bytes: u64,
        seed: u64,
    ) -> Result<Self, LayoutError> {
        let name = pattern;
        let pattern = match &name {
            PatternName::Contiguous => Pattern::Contiguous,
            PatternName::Strided => Pattern::Strided,
            PatternName::Shuffled => Pattern::Shuffled,
            PatternName::Random => Pattern::Random,
            PatternName::Other(_) => return Err(LayoutError::UnknownPattern(name)),
        };
        if !fragment_bytes.is_power_of_two() || fragment_bytes < UNIT_BYTES {
            return Err(LayoutError::Fragment { fragment_bytes });
        }
        if footprint_bytes > MAX_FOOTPRINT_BYTES {
            return Err(LayoutError::FootprintTooLarge { footprint_bytes });
        }
        if !footprint_bytes.is_multiple_of(fragment_bytes) {
            return Err(LayoutError::UnevenFootprint { footprint_bytes, fragment_bytes });
        }
        if payload_bytes == 0 || !payload_bytes.is_multiple_of(fragment_bytes) {
            return Err(LayoutError::UnevenPayload { payload_bytes, fragment_bytes });
        }
        if payload_bytes > footprint_bytes {
            return Err(LayoutError::PayloadTooLarge { payload_bytes, footprint_bytes });
        }
        let key = [pattern as u64, fragment_bytes, footprint_bytes, payload_bytes]
            .into_iter()
            .fold(draw(seed, 0), |key, part| draw(key ^ part, 0));
        let permutation = Permutation::new(key, payload_bytes / fragment_bytes);
        let index_entry_bytes = if footprint_bytes / fragment_bytes <= 1 << 32 { 4 } else { 8 };
        Ok(Self {
            name,
            pattern,
            fragment_bytes,
            footprint_bytes,
            payload_bytes,
            key,
            permutation,
            index_entry_bytes,
        })
    }

    /// The same layout behind an index of 8 B entries, also where 4 B could name every slot. All
    /// arms of a group have to use the same width.
    pub fn with_wide_index(self) -> Self {
        Self { index_entry_bytes: 8, ..self }
    }

    /// The recipe.
    pub fn pattern(&self) -> &PatternName {
        &self.name
    }

    /// What the layout stands for: nothing where it is contiguous, else rows behind an index.
    pub fn mechanism(&self) -> Mechanism {
        match self.pattern {
            Pattern::Contiguous => Mechanism::None,
            Pattern::Strided | Pattern::Shuffled | Pattern::Random => Mechanism::Indirect,
        }
    }

    /// How many fragments there are.
    pub fn fragments(&self) -> u64 {
        self.payload_bytes / self.fragment_bytes
    }

    /// How many slots the footprint has.
    pub fn slots(&self) -> u64 {
        self.footprint_bytes / self.fragment_bytes
    }

    /// Slots of a stride: slots by fragments, rounded down.
    pub fn stride(&self) -> u64 {
        self.slots() / self.fragments()
    }

    /// Length of a fragment, in bytes.
    pub fn fragment_bytes(&self) -> u64 {
        self.fragment_bytes
    }

    /// log2 of the [units](UNIT_BYTES) in a fragment.
    pub fn unit_shift(&self) -> u32 {
        (self.fragment_bytes / UNIT_BYTES).ilog2()
    }

    /// Bytes from the first to the last that the layout may use.
    pub fn footprint_bytes(&self) -> u64 {
        self.footprint_bytes
    }

    /// Bytes held by the fragments, repeats counted.
    pub fn payload_bytes(&self) -> u64 {
        self.payload_bytes
    }

    /// Payload by footprint: above 0, at most 1.
    pub fn density(&self) -> f64 {
        self.payload_bytes as f64 / self.footprint_bytes as f64
    }

    /// The key of the layout's random choices: of the seed, the pattern and the sizes.
    pub fn key(&self) -> u64 {
        self.key
    }

    /// Width of an index entry in bytes: 4 where that can name every slot, else (or where it was
    /// [asked for](Layout::with_wide_index)) 8.
    pub fn index_entry_bytes(&self) -> u32 {
        self.index_entry_bytes
    }
}
