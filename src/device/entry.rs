//! The entry points of the kernels, under the names that both targets give them.

use super::bindings as b;

/// A kernel's entry point: `fragbench_<name>` in PTX, `fragbench_host_<name>` on the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Entry {
    /// Reads a contiguous range into the sums.
    Read,
    /// Copies a contiguous range.
    Copy,
    /// Gather read behind an index of 4 B entries.
    GatherRead4,
    /// Gather read behind an index of 8 B entries.
    GatherRead8,
    /// Gather copy behind an index of 4 B entries.
    GatherCopy4,
    /// Gather copy behind an index of 8 B entries.
    GatherCopy8,
    /// Writes random bits by position.
    Fill,
    /// Counts units that are not the random bits of their position.
    CheckFill,
    /// Counts destination units that are not what the layout puts there.
    CheckDestination,
    /// Sums what a read of the layout has to give.
    ExpectChecksum,
    /// Counts index entries that are not what the layout says.
    CheckIndex,
    /// Sums the index without regard to order.
    SumIndex,
    /// Sums the layout's closed form likewise.
    ExpectIndexSum,
}

impl Entry {
    /// Every entry point.
    pub const ALL: [Entry; 13] = [
        Entry::Read,
        Entry::Copy,
        Entry::GatherRead4,
        Entry::GatherRead8,
        Entry::GatherCopy4,
        Entry::GatherCopy8,
        Entry::Fill,
        Entry::CheckFill,
        Entry::CheckDestination,
        Entry::ExpectChecksum,
        Entry::CheckIndex,
        Entry::SumIndex,
        Entry::ExpectIndexSum,
    ];

    /// The name without its prefix.
    pub fn name(self) -> &'static str {
        match self {
            Entry::Read => "read",
            Entry::Copy => "copy",
            Entry::GatherRead4 => "gather_read_4",
            Entry::GatherRead8 => "gather_read_8",
            Entry::GatherCopy4 => "gather_copy_4",
            Entry::GatherCopy8 => "gather_copy_8",
            Entry::Fill => "fill",
            Entry::CheckFill => "check_fill",
            Entry::CheckDestination => "check_destination",
            Entry::ExpectChecksum => "expect_checksum",
            Entry::CheckIndex => "check_index",
            Entry::SumIndex => "sum_index",
            Entry::ExpectIndexSum => "expect_index_sum",
        }
    }

    /// The PTX module that holds it.
    pub fn module(self) -> &'static str {
        if self.depth().is_some() { "access" } else { "verify" }
    }

    /// Units that each thread moves, for kernels whose grid covers the payload once; `None` for
    /// kernels that walk their items with a stride of the whole grid.
    pub fn depth(self) -> Option<u32> {
        match self {
            Entry::Read => Some(b::FRAGBENCH_READ_DEPTH),
            Entry::Copy => Some(b::FRAGBENCH_COPY_DEPTH),
            Entry::GatherRead4 | Entry::GatherRead8 => Some(b::FRAGBENCH_GATHER_READ_DEPTH),
            Entry::GatherCopy4 | Entry::GatherCopy8 => Some(b::FRAGBENCH_GATHER_COPY_DEPTH),
            _ => None,
        }
    }

    /// Whether the kernel's items are index entries and not units of payload.
    pub fn walks_index(self) -> bool {
        matches!(self, Entry::CheckIndex | Entry::SumIndex | Entry::ExpectIndexSum)
    }

    pub(super) fn reads_source(self) -> bool {
        self.depth().is_some() || self == Entry::CheckFill
    }

    pub(super) fn uses_destination(self) -> bool {
        matches!(
            self,
            Entry::Copy
                | Entry::GatherCopy4
                | Entry::GatherCopy8
                | Entry::Fill
                | Entry::CheckDestination
        )
    }

    pub(super) fn reads_index(self) -> bool {
        self.gathers() || matches!(self, Entry::CheckIndex | Entry::SumIndex)
    }

    pub(super) fn gathers(self) -> bool {
        matches!(
            self,
            Entry::GatherRead4 | Entry::GatherRead8 | Entry::GatherCopy4 | Entry::GatherCopy8
        )
    }

    pub(super) fn adds_to_sums(self) -> bool {
        !matches!(self, Entry::Copy | Entry::GatherCopy4 | Entry::GatherCopy8 | Entry::Fill)
    }
}
