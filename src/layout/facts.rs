//! What a layout touches, counted on its index.

use rayon::prelude::*;

use super::index::GRAIN;
use super::{Index, Layout, Pattern};
use crate::record::LayoutFacts;

/// Bytes of a sector, the least that DRAM delivers to an L2.
pub(super) const SECTOR_BYTES: u64 = 32;
/// Bytes of a line of L1 and L2.
pub(super) const LINE_BYTES: u64 = 128;
/// Bytes of a page of the GPU's page tables.
const PAGE_BYTES: u64 = 2 << 20;

pub(super) const BLOCK_BYTES: [u64; 3] = [SECTOR_BYTES, LINE_BYTES, PAGE_BYTES];

impl Layout {
    /// The metrics of a strided layout, in closed form; none for other patterns.
    pub fn strided_facts(&self) -> Option<LayoutFacts> {
        let Pattern::Strided { .. } = self.pattern() else { return None };
        let [sectors, lines, pages] =
            BLOCK_BYTES.map(|block_bytes| self.strided_blocks(block_bytes));
        let jumps = if self.stride() > 1 { self.fragments() - 1 } else { 0 };
        Some(self.facts_of([sectors, lines, pages], jumps))
    }

    /// Distinct blocks under fragments at a constant stride. How many each adds to its predecessor
    /// repeats once the stride has come round to the same place in a block.
    fn strided_blocks(&self, block_bytes: u64) -> u64 {
        let stride_bytes = self.stride() * self.fragment_bytes();
        let period = block_bytes >> stride_bytes.trailing_zeros().min(block_bytes.trailing_zeros());
        let added =
            |i: u64| self.added_blocks((i - 1) * self.stride(), i * self.stride(), block_bytes);
        let sum = |count: u64| (1..=count).map(added).sum::<u64>();
        let pairs = self.fragments() - 1;
        let (first, last) = self.blocks_under(0, block_bytes);
        let repeated = if pairs >= period { pairs / period * sum(period) } else { 0 };
        last - first + 1 + repeated + sum(pairs % period)
    }

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
            Index::U32(slots) => self.distinct_blocks(slots),
            Index::U64(slots) => self.distinct_blocks(slots),
        };
        let jumps = match scattered {
            Index::U32(slots) => jumps(slots),
            Index::U64(slots) => jumps(slots),
        };
        self.facts_of([sectors, lines, pages], jumps)
    }

    fn facts_of(&self, [sectors, lines, pages]: [u64; 3], jumps: u64) -> LayoutFacts {
        LayoutFacts {
            fragments: self.fragments(),
            footprint_bytes: self.footprint_bytes(),
            payload_bytes: self.payload_bytes(),
            sector_bytes: sectors * SECTOR_BYTES,
            touched_bytes: lines * LINE_BYTES,
            pages_2mib: pages,
            jumps,
            index_entry_bytes: self.index_entry_bytes(),
        }
    }

    /// Touched bytes of the payload when it is packed: distinct 128 B lines x 128.
    pub fn packed_touched_bytes(&self) -> u64 {
        let within_line = self.spec.offset_bytes % LINE_BYTES;
        (within_line + self.payload_bytes()).next_multiple_of(LINE_BYTES)
    }

    /// Distinct blocks, for each of [`BLOCK_BYTES`], under fragments in ascending slots.
    fn distinct_blocks<T>(&self, slots: &[T]) -> [u64; 3]
    where
        T: Copy + Into<u64> + Sync,
    {
        BLOCK_BYTES.map(|block_bytes| {
            let (first, last) = self.blocks_under(slots[0].into(), block_bytes);
            last - first
                + 1
                + over_pairs(slots, |before, slot| self.added_blocks(before, slot, block_bytes))
        })
    }

    /// The first and the last block under the fragment in a slot.
    #[inline]
    fn blocks_under(&self, slot: u64, block_bytes: u64) -> (u64, u64) {
        let first = self.spec.offset_bytes + slot * self.fragment_bytes();
        (first / block_bytes, (first + self.fragment_bytes() - 1) / block_bytes)
    }

    /// Blocks under the fragment in `slot` that do not lie under the one in the slot `before`.
    #[inline]
    fn added_blocks(&self, before: u64, slot: u64, block_bytes: u64) -> u64 {
        let (_, reached) = self.blocks_under(before, block_bytes);
        let (first, last) = self.blocks_under(slot, block_bytes);
        (last + 1).saturating_sub(first.max(reached + 1))
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

/// Fragments that do not begin where their predecessor ended.
fn jumps<T: Copy + Into<u64> + Sync>(slots: &[T]) -> u64 {
    over_pairs(slots, |a, b| u64::from(a + 1 != b))
}

/// The sum of a term over all pairs of neighbours.
fn over_pairs<T>(slots: &[T], term: impl Fn(u64, u64) -> u64 + Sync) -> u64
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
            grain.map(|pair| term(pair[0].into(), pair[1].into())).sum::<u64>()
        })
        .sum()
}
