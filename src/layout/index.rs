//! The slot of each fragment, as a kernel reads it.

use rayon::prelude::*;

/// An index: entry `i` is the slot of fragment `i`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Index {
    /// Entries of 4 B.
    U32(Vec<u32>),
    /// Entries of 8 B.
    U64(Vec<u64>),
}

impl Index {
    /// An index of `length` entries that `slot` gives, in the narrow width where that is asked for.
    pub(super) fn generate(
        length: u64,
        narrow: bool,
        slot: impl Fn(u64) -> u64 + Sync + Send,
    ) -> Index {
        // Chunks of this length keep the threads' shares coarse.
        const CHUNK: usize = 1 << 16;
        let entries = (0..length as usize).into_par_iter().with_min_len(CHUNK);
        if narrow {
            let mut index = Vec::new();
            entries.map(|i| slot(i as u64) as u32).collect_into_vec(&mut index);
            Index::U32(index)
        } else {
            let mut index = Vec::new();
            entries.map(|i| slot(i as u64)).collect_into_vec(&mut index);
            Index::U64(index)
        }
    }

    /// The same entries in ascending order.
    pub(super) fn sorted(mut self) -> Index {
        match &mut self {
            Index::U32(entries) => entries.par_sort_unstable(),
            Index::U64(entries) => entries.par_sort_unstable(),
        }
        self
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        match self {
            Index::U32(entries) => entries.len(),
            Index::U64(entries) => entries.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Entry `i`.
    ///
    /// # Panics
    ///
    /// Where `i` is not below the length.
    #[inline]
    pub fn get(&self, i: usize) -> u64 {
        match self {
            Index::U32(entries) => u64::from(entries[i]),
            Index::U64(entries) => entries[i],
        }
    }

    /// The entries as they lie in memory.
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Index::U32(entries) => bytemuck::cast_slice(entries),
            Index::U64(entries) => bytemuck::cast_slice(entries),
        }
    }
}
