//! Layouts: which bytes of an arena hold the payload, and in which order they are visited.
//!
//! A layout is worked out from its parameters and a seed alone: the same seed gives the same layout
//! everywhere. Each [`slot`](Layout::slot) is a closed form that the kernels evaluate as well
//! (`cuda/index.h`), so a device can be checked against it without a copy of the index.
//!
//! Fragments of varying length are [`Extents`]: a list that comes from elsewhere. Kernels find them
//! through a [`Table`]; they are checked against the list itself, as [`Places`].

mod bijection;
mod entry_form;
mod error;
mod extents;
mod facts;
mod index;
mod pattern;
mod places;
#[cfg(test)]
mod properties;
mod slot;
mod table;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod varied_tests;

pub use bijection::{Permutation, below, draw, mix};
pub use entry_form::{EntryForm, NARROW_BYTES};
pub use error::LayoutError;
pub use extents::{Extents, MAX_FRAGMENTS, Tally};
pub use index::Index;
pub use pattern::Pattern;
pub use places::Places;
pub use slot::Fragment;
pub use table::{RANK_ROWS, ROW_PIECES, Table};

use serde::{Deserialize, Serialize};

/// The widest unit in bytes: the piece that one load or store of a thread moves.
pub const UNIT_BYTES: u64 = 16;

/// The narrowest unit in bytes, and the shortest fragment.
pub const LEAST_UNIT_BYTES: u64 = 4;

/// The largest footprint in bytes, far above any memory, so that no arithmetic here overflows.
pub const MAX_FOOTPRINT_BYTES: u64 = 1 << 62;

/// What is asked of a layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spec {
    /// The recipe.
    pub pattern: Pattern,
    /// Length of a fragment: a power of two from [`LEAST_UNIT_BYTES`] on.
    pub fragment_bytes: u64,
    /// How far the first slot lies behind an aligned address, in bytes. It limits the width of a
    /// load, for every arm alike.
    pub offset_bytes: u64,
    /// From the first to the last byte that the layout may use.
    pub footprint_bytes: u64,
    /// Bytes held by the fragments, repeats counted.
    pub payload_bytes: u64,
}

impl Spec {
    /// How many slots the footprint has: places of one fragment's length behind the offset.
    pub fn slots(&self) -> u64 {
        self.footprint_bytes.saturating_sub(self.offset_bytes) / self.fragment_bytes.max(1)
    }

    /// The widest unit, of 4, 8 or 16 B, that every fragment is made of and aligned to.
    pub fn unit_bytes(&self) -> u64 {
        let both = self.fragment_bytes | self.offset_bytes;
        UNIT_BYTES.min(1 << both.trailing_zeros().min(63))
    }

    /// The alignment that every fragment has, in bytes.
    pub fn alignment_bytes(&self) -> u64 {
        1 << (self.fragment_bytes | self.offset_bytes).trailing_zeros().min(63)
    }

    fn check(&self) -> Result<(), LayoutError> {
        let Spec { pattern, fragment_bytes, offset_bytes, footprint_bytes, payload_bytes } = *self;
        if !fragment_bytes.is_power_of_two() || fragment_bytes < LEAST_UNIT_BYTES {
            return Err(LayoutError::Fragment { fragment_bytes });
        }
        if !offset_bytes.is_multiple_of(LEAST_UNIT_BYTES) {
            return Err(LayoutError::Offset { offset_bytes });
        }
        if footprint_bytes > MAX_FOOTPRINT_BYTES {
            return Err(LayoutError::FootprintTooLarge { footprint_bytes });
        }
        if fragment_bytes.saturating_add(offset_bytes) > footprint_bytes {
            return Err(LayoutError::FragmentTooLarge {
                fragment_bytes,
                offset_bytes,
                footprint_bytes,
            });
        }
        if offset_bytes == 0 && !footprint_bytes.is_multiple_of(fragment_bytes) {
            return Err(LayoutError::UnevenFootprint { footprint_bytes, fragment_bytes });
        }
        if payload_bytes == 0
            || !payload_bytes.is_multiple_of(fragment_bytes)
            || !payload_bytes.is_multiple_of(UNIT_BYTES)
        {
            return Err(LayoutError::UnevenPayload { payload_bytes, fragment_bytes });
        }
        let fragments = payload_bytes / fragment_bytes;
        match pattern {
            Pattern::Holes { occupancy_percent } if !(1..100).contains(&occupancy_percent) => {
                return Err(LayoutError::Occupancy { occupancy_percent });
            }
            Pattern::Strided { stride: Some(0) } => return Err(LayoutError::NoStride),
            Pattern::Shuffled { window_bytes: Some(window_bytes) } => {
                let stride_bytes = self.slots() / fragments.max(1) * fragment_bytes;
                let least_bytes = 2 * stride_bytes.max(fragment_bytes);
                if window_bytes < least_bytes {
                    return Err(LayoutError::Window { window_bytes, least_bytes });
                }
            }
            _ => {}
        }
        let capacity_bytes = pattern.capacity(self.slots()) * fragment_bytes;
        let fills = pattern.fills_its_capacity();
        if payload_bytes > capacity_bytes || (fills && payload_bytes != capacity_bytes) {
            let most_bytes = capacity_bytes;
            return Err(if fills {
                LayoutError::PayloadDiffers { pattern: pattern.name(), payload_bytes, most_bytes }
            } else {
                LayoutError::PayloadTooLarge { payload_bytes, footprint_bytes, most_bytes }
            });
        }
        Ok(())
    }
}

/// An ordered list of fragments of one size that hold a payload.
///
/// The footprint is cut into slots of one fragment's length; each fragment lies in a slot.
#[derive(Clone, Debug)]
pub struct Layout {
    spec: Spec,
    key: u64,
    permutation: Permutation,
    index_entry_bytes: u32,
}

impl Layout {
    /// The layout that is asked for.
    ///
    /// A random layout, which may use a slot again, could hold more than its footprint; that is
    /// refused as for every other pattern, so that a density is never above 1.
    ///
    /// # Errors
    ///
    /// [`LayoutError`] says which parameter cannot be, and what can.
    pub fn new(spec: Spec, seed: u64) -> Result<Self, LayoutError> {
        spec.check()?;
        let fragments = spec.payload_bytes / spec.fragment_bytes;
        let sizes = [spec.fragment_bytes, spec.footprint_bytes, spec.payload_bytes];
        // What most layouts leave open takes no part in their keys.
        let open = match spec.pattern {
            Pattern::Shuffled { window_bytes } => window_bytes.unwrap_or(0),
            Pattern::Strided { stride } => stride.unwrap_or(0),
            Pattern::Holes { occupancy_percent } => u64::from(occupancy_percent),
            _ => 0,
        };
        let key = std::iter::once(spec.pattern.code())
            .chain(sizes)
            .chain([open, spec.offset_bytes].into_iter().filter(|part| *part > 0))
            .fold(draw(seed, 0), |key, part| draw(key ^ part, 0));
        let domain = match spec.pattern {
            Pattern::Holes { .. } => spec.slots(),
            _ => fragments,
        };
        let permutation = Permutation::new(key, domain);
        let index_entry_bytes = if spec.slots() <= 1 << 32 { 4 } else { 8 };
        Ok(Self { spec, key, permutation, index_entry_bytes })
    }

    /// The same layout behind an index of 8 B entries, also where 4 B could name every slot. All
    /// arms of a group have to use the same width.
    pub fn with_wide_index(self) -> Self {
        Self { index_entry_bytes: 8, ..self }
    }

    /// What was asked for.
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// The recipe.
    pub fn pattern(&self) -> Pattern {
        self.spec.pattern
    }

    /// How many fragments there are.
    pub fn fragments(&self) -> u64 {
        self.spec.payload_bytes / self.spec.fragment_bytes
    }

    /// How many slots the footprint has.
    pub fn slots(&self) -> u64 {
        self.spec.slots()
    }

    /// Slots of a stride: those asked for, or slots by fragments, rounded down.
    pub fn stride(&self) -> u64 {
        match self.spec.pattern {
            Pattern::Strided { stride: Some(stride) } => stride,
            _ => self.slots() / self.fragments(),
        }
    }

    /// Fragments of a window that a shuffle stays within; none without windows.
    pub fn window(&self) -> Option<u64> {
        match self.spec.pattern {
            Pattern::Shuffled { window_bytes } => {
                Some(window_bytes? / (self.stride() * self.spec.fragment_bytes))
            }
            _ => None,
        }
    }

    /// Length of a fragment, in bytes.
    pub fn fragment_bytes(&self) -> u64 {
        self.spec.fragment_bytes
    }

    /// Length of a [unit](Spec::unit_bytes), in bytes.
    pub fn unit_bytes(&self) -> u64 {
        self.spec.unit_bytes()
    }

    /// log2 of the units in a fragment.
    pub fn unit_shift(&self) -> u32 {
        (self.spec.fragment_bytes / self.unit_bytes()).ilog2()
    }

    /// Bytes from the first to the last that the layout may use.
    pub fn footprint_bytes(&self) -> u64 {
        self.spec.footprint_bytes
    }

    /// Bytes held by the fragments, repeats counted.
    pub fn payload_bytes(&self) -> u64 {
        self.spec.payload_bytes
    }

    /// Payload by footprint: above 0, at most 1.
    pub fn density(&self) -> f64 {
        self.spec.payload_bytes as f64 / self.spec.footprint_bytes as f64
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
