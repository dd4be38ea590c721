//! Fragments, patterns and their metrics. No device.
//!
//! A layout is given by its pattern, its sizes and a seed: same seed, same layout, everywhere. Its
//! slots have a closed form, which `cuda/index.h` states a second time.

pub mod bijection;
mod index;
mod metrics;
#[cfg(test)]
mod tests;

use bijection::{Permutation, below, draw, mix};
pub use index::Index;
use thiserror::Error;

use crate::record::{Mechanism, Order, PatternName, size};

/// The shortest fragment, in bytes: one unit of the kernels.
const SHORTEST: u64 = 16;

/// Sizes or a pattern of which no layout can be made.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LayoutError {
    /// The fragment's length.
    #[error(
        "a fragment of {0} B is not possible: its length has to be a power of two of at least 16 B"
    )]
    Fragment(u64),
    /// Payload or footprint do not consist of whole fragments.
    #[error("{} is no whole number of fragments of {}", size::exact(*.0), size::exact(*.1))]
    Ragged(u64, u64),
    /// The payload does not fit.
    #[error("a payload of {} does not fit into a footprint of {}", size::exact(*.0), size::exact(*.1))]
    Crowded(u64, u64),
    /// A pattern of a newer version.
    #[error("the pattern `{0}` is not known")]
    Pattern(String),
}

/// A run of bytes in an arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// Where it begins, in bytes from the arena's begin.
    pub offset: u64,
    /// Its length in bytes.
    pub bytes: u64,
}

/// Where a payload lies: fragments of one length, each in a slot of the footprint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    pattern: PatternName,
    fragment_bytes: u64,
    footprint_bytes: u64,
    payload_bytes: u64,
    key: u64,
    permutation: Permutation,
}

impl Layout {
    /// The layout of this pattern, these sizes (in bytes) and this seed.
    ///
    /// # Errors
    ///
    /// [`LayoutError`] where the sizes do not fit each other.
    pub fn new(
        pattern: PatternName,
        fragment_bytes: u64,
        footprint_bytes: u64,
        payload_bytes: u64,
        seed: u64,
    ) -> Result<Layout, LayoutError> {
        if fragment_bytes < SHORTEST || !fragment_bytes.is_power_of_two() {
            return Err(LayoutError::Fragment(fragment_bytes));
        }
        for bytes in [footprint_bytes, payload_bytes] {
            if bytes == 0 || bytes % fragment_bytes != 0 {
                return Err(LayoutError::Ragged(bytes, fragment_bytes));
            }
        }
        if payload_bytes > footprint_bytes {
            return Err(LayoutError::Crowded(payload_bytes, footprint_bytes));
        }
        let code = match &pattern {
            PatternName::Contiguous => 0,
            PatternName::Strided => 1,
            PatternName::Shuffled => 2,
            PatternName::Random => 3,
            PatternName::Other(name) => return Err(LayoutError::Pattern(name.clone())),
        };
        let parts = [code, fragment_bytes, footprint_bytes, payload_bytes];
        let key = parts.iter().fold(mix(seed), |key, part| mix(key ^ *part));
        let permutation = Permutation::new(key, payload_bytes / fragment_bytes);
        Ok(Layout { pattern, fragment_bytes, footprint_bytes, payload_bytes, key, permutation })
    }

    /// The pattern.
    pub fn pattern(&self) -> &PatternName {
        &self.pattern
    }

    /// The mechanism that the layout stands for.
    pub fn mechanism(&self) -> Mechanism {
        match self.pattern {
            PatternName::Contiguous => Mechanism::None,
            _ => Mechanism::Indirect,
        }
    }

    /// Length of a fragment in bytes.
    pub fn fragment_bytes(&self) -> u64 {
        self.fragment_bytes
    }

    /// From the first to the last byte that the layout may use.
    pub fn footprint_bytes(&self) -> u64 {
        self.footprint_bytes
    }

    /// Bytes that the fragments hold, repeats counted.
    pub fn payload_bytes(&self) -> u64 {
        self.payload_bytes
    }

    /// Payload / footprint.
    pub fn density(&self) -> f64 {
        self.payload_bytes as f64 / self.footprint_bytes as f64
    }

    /// How many fragments there are.
    pub fn fragments(&self) -> u64 {
        self.payload_bytes / self.fragment_bytes
    }

    /// How many places of one fragment's length the footprint has.
    pub fn slots(&self) -> u64 {
        self.footprint_bytes / self.fragment_bytes
    }

    /// Slots of a stride: slots / fragments, rounded down.
    pub fn stride(&self) -> u64 {
        self.slots() / self.fragments()
    }

    /// log2 of the 16 B units of a fragment.
    pub fn unit_shift(&self) -> u32 {
        (self.fragment_bytes / SHORTEST).trailing_zeros()
    }

    /// The key of the layout's random choices.
    pub fn key(&self) -> u64 {
        self.key
    }

    /// Width of an index entry: 4 B as long as every slot fits, else 8 B.
    pub fn index_entry_bytes(&self) -> u32 {
        if self.slots() <= 1 << 32 { 4 } else { 8 }
    }

    /// The slot of fragment `i` when visited in this order, in closed form. A sorted random layout
    /// has none. Packed is the identity.
    #[inline]
    pub fn slot(&self, order: &Order, i: u64) -> Option<u64> {
        if *order == Order::Packed {
            return Some(i);
        }
        match self.pattern {
            PatternName::Strided => Some(i * self.stride()),
            PatternName::Shuffled => {
                let stride = match order {
                    Order::Sorted => i,
                    _ => self.permutation.apply(i),
                };
                Some(self.slot_of_stride(stride))
            }
            PatternName::Random if *order == Order::Sorted => None,
            PatternName::Random => Some(self.random_slot(i)),
            PatternName::Contiguous | PatternName::Other(_) => Some(i),
        }
    }

    /// A random slot of the stride.
    #[inline]
    fn slot_of_stride(&self, stride: u64) -> u64 {
        stride * self.stride() + below(draw(!self.key, stride), self.stride())
    }

    #[inline]
    fn random_slot(&self, i: u64) -> u64 {
        below(draw(!self.key, i), self.slots())
    }

    /// Fragment `i` when visited in this order.
    pub fn fragment(&self, order: &Order, i: u64) -> Option<Fragment> {
        let slot = self.slot(order, i)?;
        Some(Fragment { offset: slot * self.fragment_bytes, bytes: self.fragment_bytes })
    }

    /// The index of every fragment in this order, made by all threads of the current pool. Beside
    /// the index itself nothing is allocated.
    pub fn index(&self, order: &Order) -> Index {
        let narrow = self.index_entry_bytes() == 4;
        let generate =
            |slot: &(dyn Fn(u64) -> u64 + Sync)| Index::generate(self.fragments(), narrow, slot);
        // A loop for each pattern: a match inside it would cost half the speed.
        match (&self.pattern, order) {
            (PatternName::Shuffled, Order::Scattered) => {
                Index::generate(self.fragments(), narrow, |i| {
                    self.slot_of_stride(self.permutation.apply(i))
                })
            }
            (PatternName::Random, Order::Scattered) => {
                Index::generate(self.fragments(), narrow, |i| self.random_slot(i))
            }
            (PatternName::Random, Order::Sorted) => self.index(&Order::Scattered).sorted(),
            _ => generate(&|i| self.slot(order, i).unwrap_or(i)),
        }
    }
}
