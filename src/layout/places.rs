//! What extents are checked against: the fragments themselves, not the table that kernels follow.

use super::{Extents, UNIT_BYTES};

/// Where each fragment lies, made by one plain walk over the extents: the route that the
/// [table](super::Table) is not made by. All numbers count units of the table's
/// [form](super::EntryForm::unit_bytes).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Places {
    visited: Vec<[u64; 3]>,
    ordered: Vec<[u64; 2]>,
}

impl Places {
    /// The places of these extents.
    pub fn new(extents: &Extents) -> Places {
        let unit_bytes = u64::from(extents.entry_form().unit_bytes());
        let (mut unit, mut piece) = (0, 0);
        let mut visited = Vec::with_capacity(extents.fragments().len() + 1);
        for fragment in extents.fragments() {
            visited.push([fragment.offset / unit_bytes, unit, piece]);
            unit += fragment.bytes / unit_bytes;
            piece += fragment.end().div_ceil(UNIT_BYTES) - fragment.offset / UNIT_BYTES;
        }
        visited.push([0, unit, piece]);
        let range = |fragment: &super::Fragment| {
            [fragment.offset / unit_bytes, fragment.end() / unit_bytes]
        };
        let mut ordered: Vec<[u64; 2]> = extents.fragments().iter().map(range).collect();
        ordered.sort_unstable();
        Places { visited, ordered }
    }

    /// Of each fragment in the order of the visits its first unit in the arena, the first unit of
    /// payload and its first piece, and last what all of them come to: three 64-bit numbers each.
    pub fn visited_bytes(&self) -> &[u8] {
        bytemuck::cast_slice(&self.visited)
    }

    /// Of each fragment in address order its first unit in the arena and the first one behind it:
    /// two 64-bit numbers each.
    pub fn ordered_bytes(&self) -> &[u8] {
        bytemuck::cast_slice(&self.ordered)
    }
}
