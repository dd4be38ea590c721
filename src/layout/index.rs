//! The index: the slot of each fragment, as the kernels read it.

use rayon::prelude::*;

use super::{Layout, LayoutError};
use crate::record::Order;

/// Fragments that a thread takes at a time: long enough to make the split free, short enough to
/// keep every core busy to the end.
pub(super) const GRAIN: usize = 1 << 14;

/// The slot of each fragment, in the order of the visits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Index {
    /// Entries of 4 bytes.
    U32(Vec<u32>),
    /// Entries of 8 bytes.
    U64(Vec<u64>),
}

impl Index {
    /// How many entries there are.
    pub fn len(&self) -> usize {
        match self {
            Self::U32(slots) => slots.len(),
            Self::U64(slots) => slots.len(),
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Entry `i`, from 0.
    pub fn get(&self, i: usize) -> Option<u64> {
        match self {
            Self::U32(slots) => slots.get(i).copied().map(u64::from),
            Self::U64(slots) => slots.get(i).copied(),
        }
    }

    /// The entries as they lie in memory, in the byte order of the host.
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Self::U32(slots) => bytemuck::cast_slice(slots),
            Self::U64(slots) => bytemuck::cast_slice(slots),
        }
    }

    fn sort(&mut self) {
        match self {
            Self::U32(slots) => slots.par_sort_unstable(),
            Self::U64(slots) => slots.par_sort_unstable(),
        }
    }
}

impl Layout {
    /// The index of an order, made in parallel. It needs its own memory only: one entry of
    /// [`index_entry_bytes`](Layout::index_entry_bytes) for each fragment.
    ///
    /// # Errors
    ///
    /// [`LayoutError::UnknownOrder`] for an order of another version, and
    /// [`LayoutError::OutOfMemory`].
    pub fn index(&self, order: &Order) -> Result<Index, LayoutError> {
        let unknown = || LayoutError::UnknownOrder(order.clone());
        let (rule, needs_sorting) = self.rule(order).ok_or_else(unknown)?;
        let mut index = self.collect(|i| rule.slot(i))?;
        if needs_sorting {
            index.sort();
        }
        Ok(index)
    }

    fn collect(&self, slot: impl Fn(u64) -> u64 + Sync + Send) -> Result<Index, LayoutError> {
        let fragments = self.fragments();
        // Four bytes name every slot below 2^32: the narrowing loses nothing.
        let index = if self.index_entry_bytes() == 4 {
            exactly(fragments, |i| slot(i) as u32).map(Index::U32)
        } else {
            exactly(fragments, slot).map(Index::U64)
        };
        let entry_bytes = self.index_entry_bytes();
        index.ok_or(LayoutError::OutOfMemory { fragments, entry_bytes })
    }
}

/// `entry(0)..entry(count - 1)` in memory of exactly that length, or `None` where there is none.
pub(super) fn exactly<T>(count: u64, entry: impl Fn(u64) -> T + Sync) -> Option<Vec<T>>
where
    T: Clone + Default + Send,
{
    let count = usize::try_from(count).ok()?;
    // `vec!` takes zeroed pages from the system, which each thread touches first where it writes,
    // but ends the process where there are none: so ask before.
    Vec::<T>::new().try_reserve_exact(count).ok()?;
    let mut entries = vec![T::default(); count];
    entries.par_chunks_mut(GRAIN).enumerate().for_each(|(chunk, entries)| {
        let first = (chunk * GRAIN) as u64;
        for (i, slot) in (first..).zip(entries) {
            *slot = entry(i);
        }
    });
    Some(entries)
}
