//! Metrics of a layout, counted on its index.

use rayon::prelude::*;

use super::{Index, Layout};
use crate::record::LayoutFacts;

impl Layout {
    /// The layout's facts, from its sorted and its scattered index: what it touches is counted, not
    /// derived from the pattern.
    pub fn facts(&self, sorted: &Index, scattered: &Index) -> LayoutFacts {
        let distinct = |block: u64| distinct_blocks(sorted, self.fragment_bytes(), block) * block;
        let jumps = (1..scattered.len())
            .into_par_iter()
            .filter(|i| scattered.get(*i) != scattered.get(*i - 1).wrapping_add(1));
        LayoutFacts {
            fragments: self.fragments(),
            footprint_bytes: self.footprint_bytes(),
            payload_bytes: self.payload_bytes(),
            sector_bytes: distinct(32),
            touched_bytes: distinct(128),
            pages_2mib: distinct(2 << 20) / (2 << 20),
            jumps: jumps.count() as u64,
            index_entry_bytes: self.index_entry_bytes(),
        }
    }
}

/// Blocks of `block` bytes that hold a byte of a fragment. The index has to ascend.
fn distinct_blocks(sorted: &Index, fragment: u64, block: u64) -> u64 {
    let last_block = |i: usize| (sorted.get(i) * fragment + fragment - 1) / block;
    (0..sorted.len())
        .into_par_iter()
        .map(|i| {
            let first = sorted.get(i) * fragment / block;
            // Blocks up to the predecessor's last one are counted already.
            let counted = if i == 0 { 0 } else { last_block(i - 1) + 1 };
            (last_block(i) + 1).saturating_sub(first.max(counted))
        })
        .sum()
}
