//! What a layout touches, counted on its index.

use rayon::prelude::*;

use super::index::GRAIN;
use super::{Index, Layout};
use crate::record::LayoutFacts;

/// Bytes of a sector, the least that DRAM delivers to an L2.
const SECTOR_BYTES: u64 = 32;
/// Bytes of a line of L1 and L2.
const LINE_BYTES: u64 = 128;
/// Bytes of a page of the GPU's page tables.
const PAGE_BYTES: u64 = 2 << 20;

const BLOCK_BYTES: [u64; 3] = [SECTOR_BYTES, LINE_BYTES, PAGE_BYTES];

impl Layout {
    /// The layout's metrics, from its indexes in address order and in its own order.
    ///
    /// # Panics
    ///
    /// Where the indexes have not one entry for each fragment.
    pub fn facts(&self, sorted: &Index, scattered: &Index) -> LayoutFacts {
        for index in [sorted, scattered] {
            assert_eq!(index.len() as u64, self.fragments(), "an index of another layout");
        }
        let [sectors, lines, pages] = match sorted {
            Index::U32(slots) => distinct_blocks(slots, self.fragment_bytes()),
            Index::U64(slots) => distinct_blocks(slots, self.fragment_bytes()),
        };
        LayoutFacts {
            fragments: self.fragments(),
            footprint_bytes: self.footprint_bytes(),
            payload_bytes: self.payload_bytes(),
            sector_bytes: sectors * SECTOR_BYTES,
            touched_bytes: lines * LINE_BYTES,
            pages_2mib: pages,
            jumps: match scattered {
                Index::U32(slots) => jumps(slots),
                Index::U64(slots) => jumps(slots),
            },
            index_entry_bytes: self.index_entry_bytes(),
        }
    }

    /// Touched bytes of the payload when it is packed: distinct 128 B lines x 128.
    pub fn packed_touched_bytes(&self) -> u64 {
        self.payload_bytes().next_multiple_of(LINE_BYTES)
    }

    /// Distinct 32 B sectors x 32 of the payload when it is packed.
    pub fn packed_sector_bytes(&self) -> u64 {
        self.payload_bytes().next_multiple_of(SECTOR_BYTES)
    }
}

impl LayoutFacts {
    /// Bytes of sectors for each byte of payload: 2 where a sector of 32 B is fetched for 16 B.
    /// Below 1 where fragments are visited more than once. `None` without payload.
    pub fn sector_overfetch(&self) -> Option<f64> {
        (self.payload_bytes > 0).then(|| self.sector_bytes as f64 / self.payload_bytes as f64)
    }

    /// Payload by footprint; `None` without footprint.
    pub fn density(&self) -> Option<f64> {
        (self.footprint_bytes > 0).then(|| self.payload_bytes as f64 / self.footprint_bytes as f64)
    }
}

/// Distinct blocks, for each of [`BLOCK_BYTES`], under fragments in ascending slots.
///
/// Both lengths are powers of two and every fragment is aligned to its own: either a block holds
/// whole slots, or a fragment whole blocks.
fn distinct_blocks<T>(slots: &[T], fragment_bytes: u64) -> [u64; 3]
where
    T: Copy + Into<u64> + Sync,
{
    BLOCK_BYTES.map(|block_bytes| {
        let slots_shift = (block_bytes / fragment_bytes).checked_ilog2().unwrap_or(0);
        let blocks_each = (fragment_bytes / block_bytes).max(1);
        let changes = pairs(slots, |a, b| a >> slots_shift != b >> slots_shift);
        (1 + changes) * blocks_each
    })
}

/// Fragments that do not begin where their predecessor ended.
fn jumps<T: Copy + Into<u64> + Sync>(slots: &[T]) -> u64 {
    pairs(slots, |a, b| a + 1 != b)
}

/// How many pairs of neighbours fulfil a condition.
fn pairs<T>(slots: &[T], condition: impl Fn(u64, u64) -> bool + Sync) -> u64
where
    T: Copy + Into<u64> + Sync,
{
    (0..slots.len())
        .into_par_iter()
        .step_by(GRAIN)
        .map(|from| {
            // One more than a grain: the pair that lies across its end.
            let to = slots.len().min(from + GRAIN + 1);
            let grain = slots[from..to].windows(2);
            grain.map(|pair| u64::from(condition(pair[0].into(), pair[1].into()))).sum::<u64>()
        })
        .sum()
}
