//! The entry points of the kernels, under the names that both targets give them.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::VariedEntry;
use super::bindings as b;

/// From so many bytes between its units on a strided gather is sparse.
pub const SPARSE_STRIDE_BYTES: u64 = b::FRAGBENCH_SPARSE_STRIDE_BYTES as u64;

/// A kernel's entry point: `fragbench_<name>` in PTX, `fragbench_host_<name>` on the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Entry {
    /// One of the kernels that are measured.
    Move(Mover),
    /// Writes random bits by position.
    Fill,
    /// Counts units that are not the random bits of their position.
    CheckFill,
    /// Counts destination units that are not what a gather puts there.
    CheckGathered,
    /// Counts units of payload that the arena does not hold where a scatter puts them.
    CheckScattered,
    /// Counts units of the arena that lie in no fragment and have changed.
    CheckGaps,
    /// Counts destination units that are not what the write kernel puts there.
    CheckWritten,
    /// Sums what a read of the layout has to give.
    ExpectChecksum,
    /// Counts index entries that are not what the layout says.
    CheckIndex,
    /// Sums the index without regard to order.
    SumIndex,
    /// Sums the layout's closed form likewise.
    ExpectIndexSum,
    /// One of the kernels for fragments of varying length.
    Varied(VariedEntry),
}

/// What a measured kernel does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Movement {
    /// Reads a contiguous range into the sums.
    Read,
    /// Writes a contiguous range.
    Write,
    /// Copies a contiguous range.
    Copy,
    /// Reads fragments behind an index into the sums.
    GatherRead,
    /// Copies fragments behind an index into a contiguous range.
    GatherCopy,
    /// Copies a contiguous range into fragments behind an index.
    ScatterCopy,
    /// Reads fragments at a constant stride into the sums.
    StridedGather,
}

/// How a measured kernel does it: the default of each arm, or a competitor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Variant {
    /// What every arm runs unless a competitor is named.
    Default,
    /// What a strided gather runs in its place from [`SPARSE_STRIDE_BYTES`] between units on: one
    /// unit a thread, in the largest blocks.
    Sparse,
    /// So many units in flight in each thread.
    Depth(u32),
    /// So many threads in a block.
    Threads(u32),
    /// Loads without a hint to the caches.
    Plain,
    /// Loads and stores with the hint that nothing is used again.
    Streaming,
    /// No more blocks than the device holds at once, each with tile after tile.
    Persistent,
    /// Each multiprocessor keeps to one window of the arena, by a table; the index is sorted into windows.
    Windows,
    /// Bulk asynchronous copies through shared memory (compute capability 9.0 and later).
    Bulk,
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Variant::Default => f.pad("default"),
            Variant::Sparse => f.pad("sparse"),
            Variant::Depth(depth) => f.pad(&format!("depth_{depth}")),
            Variant::Threads(threads) => f.pad(&format!("threads_{threads}")),
            Variant::Plain => f.pad("plain"),
            Variant::Streaming => f.pad("streaming"),
            Variant::Persistent => f.pad("persistent"),
            Variant::Windows => f.pad("windows"),
            Variant::Bulk => f.pad("bulk"),
        }
    }
}

impl Movement {
    /// Every movement.
    pub const ALL: [Movement; 7] = [
        Movement::Read,
        Movement::Write,
        Movement::Copy,
        Movement::GatherRead,
        Movement::GatherCopy,
        Movement::ScatterCopy,
        Movement::StridedGather,
    ];

    /// The movement's name in kernels and tables.
    pub fn name(self) -> &'static str {
        match self {
            Movement::Read => "read",
            Movement::Write => "write",
            Movement::Copy => "copy",
            Movement::GatherRead => "gather_read",
            Movement::GatherCopy => "gather_copy",
            Movement::ScatterCopy => "scatter_copy",
            Movement::StridedGather => "strided_gather",
        }
    }

    /// The kernels that arms run unless a competitor is named.
    fn defaults(self) -> &'static [Variant] {
        match self {
            Movement::StridedGather => &[Variant::Default, Variant::Sparse],
            _ => &[Variant::Default],
        }
    }

    /// The default's competitors. They take an index of 4 B entries and
    /// [units](Movement::competitors_unit_bytes) of one width.
    pub fn competitors(self) -> &'static [Variant] {
        use Variant::{Bulk, Depth, Persistent, Plain, Streaming, Threads};
        match self {
            Movement::Read => {
                &[Depth(2), Depth(8), Threads(512), Plain, Streaming, Persistent, Bulk]
            }
            Movement::Write => &[Depth(2), Depth(4), Threads(128), Streaming, Persistent],
            Movement::Copy => &[Depth(2), Threads(128), Plain, Streaming, Persistent, Bulk],
            Movement::GatherRead => &[Depth(2), Depth(8), Threads(128), Plain, Streaming, Bulk],
            Movement::GatherCopy => &[Depth(1), Depth(4), Threads(256), Plain, Streaming, Bulk],
            Movement::ScatterCopy => &[Depth(2), Depth(4), Threads(128), Plain, Streaming],
            Movement::StridedGather => &[Depth(1), Depth(2), Depth(8), Depth(16)],
        }
    }

    /// The width of the units that competitors move: 16 B, of a strided gather 8 B.
    pub fn competitors_unit_bytes(self) -> u32 {
        if self == Movement::StridedGather { 8 } else { b::FRAGBENCH_UNIT_BYTES }
    }

    /// Whether the kernel follows an index.
    pub fn follows_index(self) -> bool {
        matches!(self, Movement::GatherRead | Movement::GatherCopy | Movement::ScatterCopy)
    }

    /// Whether it reads from the slots of a layout.
    pub fn gathers(self) -> bool {
        matches!(self, Movement::GatherRead | Movement::GatherCopy | Movement::StridedGather)
    }

    /// Whether it reads into a checksum, and writes nothing else.
    pub fn is_read(self) -> bool {
        matches!(self, Movement::Read | Movement::GatherRead | Movement::StridedGather)
    }

    /// Whether fragments are seen at all.
    pub fn has_layout(self) -> bool {
        self.gathers() || self == Movement::ScatterCopy
    }

    fn depth(self) -> u32 {
        match self {
            Movement::Read => b::FRAGBENCH_READ_DEPTH,
            Movement::Write => b::FRAGBENCH_WRITE_DEPTH,
            Movement::Copy => b::FRAGBENCH_COPY_DEPTH,
            Movement::GatherRead => b::FRAGBENCH_GATHER_READ_DEPTH,
            Movement::GatherCopy => b::FRAGBENCH_GATHER_COPY_DEPTH,
            Movement::ScatterCopy => b::FRAGBENCH_SCATTER_COPY_DEPTH,
            Movement::StridedGather => b::FRAGBENCH_STRIDED_GATHER_DEPTH,
        }
    }
}

/// A measured kernel as it was compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Mover {
    /// What it does.
    pub movement: Movement,
    /// Width of an index entry: 4 or 8 bytes; 0 without an index.
    pub index_entry_bytes: u32,
    /// Width of a unit: 4, 8 or 16 bytes; 16 on contiguous kernels.
    pub unit_bytes: u32,
    /// How it does it.
    pub variant: Variant,
}

impl Mover {
    /// Every kernel that was compiled for a GPU, defaults first, but those that need a table of windows:
    /// these are held against the default wherever they are measured.
    pub fn all() -> Vec<Mover> {
        let mut movers = Vec::new();
        for movement in Movement::ALL {
            let entries: &[u32] = if movement.follows_index() { &[4, 8] } else { &[0] };
            let units: &[u32] = if movement.has_layout() { &[4, 8, 16] } else { &[16] };
            for &index_entry_bytes in entries {
                for &unit_bytes in units {
                    for &variant in movement.defaults() {
                        movers.push(Mover { movement, index_entry_bytes, unit_bytes, variant });
                    }
                }
            }
        }
        for movement in Movement::ALL {
            let index_entry_bytes = if movement.follows_index() { 4 } else { 0 };
            movers.extend(movement.competitors().iter().map(|&variant| Mover {
                movement,
                index_entry_bytes,
                unit_bytes: movement.competitors_unit_bytes(),
                variant,
            }));
        }
        movers
    }

    /// The gather that reads by windows.
    fn by_windows(index_entry_bytes: u32) -> Mover {
        Mover {
            movement: Movement::GatherRead,
            index_entry_bytes,
            unit_bytes: b::FRAGBENCH_UNIT_BYTES,
            variant: Variant::Windows,
        }
    }

    fn name(self) -> String {
        let Mover { movement, index_entry_bytes, unit_bytes, variant } = self;
        let mut name = movement.name().to_owned();
        if movement.follows_index() {
            name += &format!("_i{index_entry_bytes}");
        }
        if movement.has_layout() {
            name += &format!("_u{unit_bytes}");
        }
        if variant != Variant::Default {
            name += &format!("_{variant}");
        }
        name
    }

    /// Whether its units are narrower than the widest.
    fn is_narrow(self) -> bool {
        self.unit_bytes < b::FRAGBENCH_UNIT_BYTES
    }

    /// Threads of a block.
    pub fn threads(self) -> u32 {
        match (self.variant, self.movement) {
            (Variant::Threads(threads), _) => threads,
            (Variant::Sparse, _) => b::FRAGBENCH_SPARSE_THREADS,
            (Variant::Bulk, movement) if movement.is_read() => b::FRAGBENCH_BULK_READ_THREADS,
            (Variant::Bulk, _) => b::FRAGBENCH_BULK_COPY_THREADS,
            (_, Movement::GatherCopy) => b::FRAGBENCH_GATHER_COPY_THREADS,
            (_, Movement::GatherRead) if self.is_narrow() => b::FRAGBENCH_NARROW_THREADS,
            _ => b::FRAGBENCH_BLOCK_THREADS,
        }
    }

    /// Units that each thread moves.
    pub fn depth(self) -> u32 {
        let of_stage = |bytes: u32| bytes / b::FRAGBENCH_UNIT_BYTES / self.threads();
        match (self.variant, self.movement) {
            (Variant::Depth(depth), _) => depth,
            (Variant::Sparse, _) => 1,
            (Variant::Bulk, movement) if movement.is_read() => {
                of_stage(b::FRAGBENCH_BULK_READ_BYTES)
            }
            (Variant::Bulk, _) => of_stage(b::FRAGBENCH_BULK_COPY_BYTES),
            (_, Movement::GatherRead) if self.unit_bytes == 4 => b::FRAGBENCH_NARROW_RUN_4,
            (_, Movement::GatherRead) if self.unit_bytes == 8 => b::FRAGBENCH_NARROW_RUN_8,
            (_, movement) if self.is_narrow() => movement.depth() * b::FRAGBENCH_NARROW_FACTOR,
            (_, movement) => movement.depth(),
        }
    }
}

impl Entry {
    /// Every entry point.
    pub fn all() -> Vec<Entry> {
        let checks = [
            Entry::Fill,
            Entry::CheckFill,
            Entry::CheckGathered,
            Entry::CheckScattered,
            Entry::CheckGaps,
            Entry::CheckWritten,
            Entry::ExpectChecksum,
            Entry::CheckIndex,
            Entry::SumIndex,
            Entry::ExpectIndexSum,
        ];
        let varied = VariedEntry::all().into_iter().map(Entry::Varied);
        let windows = [4, 8].map(Mover::by_windows).map(Entry::Move);
        let moves = Mover::all().into_iter().map(Entry::Move);
        moves.chain(windows).chain(checks).chain(varied).collect()
    }

    /// The name without its prefix.
    pub fn name(self) -> String {
        match self {
            Entry::Move(mover) => mover.name(),
            Entry::Varied(entry) => entry.name(),
            other => other.kind().to_owned(),
        }
    }

    /// The name without widths and variant.
    pub fn kind(self) -> &'static str {
        match self {
            Entry::Move(mover) => mover.movement.name(),
            Entry::Fill => "fill",
            Entry::CheckFill => "check_fill",
            Entry::CheckGathered => "check_gathered",
            Entry::CheckScattered => "check_scattered",
            Entry::CheckGaps => "check_gaps",
            Entry::CheckWritten => "check_written",
            Entry::ExpectChecksum => "expect_checksum",
            Entry::CheckIndex => "check_index",
            Entry::SumIndex => "sum_index",
            Entry::ExpectIndexSum => "expect_index_sum",
            Entry::Varied(entry) => entry.kind(),
        }
    }

    /// The PTX modules that hold it, the one for the newest devices first.
    pub fn modules(self) -> &'static [&'static str] {
        match self {
            Entry::Move(Mover { variant: Variant::Bulk, .. }) => &["bulk"],
            Entry::Move(Mover { variant: Variant::Windows, .. }) => &["windows_80", "windows"],
            Entry::Move(_) => &["access_80", "access"],
            Entry::Varied(VariedEntry::Move(_)) => &["varied_80", "varied"],
            Entry::Varied(_) => &["verify_varied"],
            _ => &["verify"],
        }
    }

    /// Threads of a block.
    pub fn threads(self) -> u32 {
        match self {
            Entry::Move(mover) => mover.threads(),
            Entry::Varied(VariedEntry::Move(mover)) => mover.threads(),
            _ => b::FRAGBENCH_BLOCK_THREADS,
        }
    }

    /// Items that a block of a measured kernel takes, each block one tile; none where any number of
    /// blocks shares all items.
    pub(super) fn tile(self) -> Option<u64> {
        let (threads, depth) = match self {
            Entry::Move(Mover { variant: Variant::Persistent | Variant::Windows, .. }) => {
                return None;
            }
            Entry::Move(mover) => (mover.threads(), mover.depth()),
            Entry::Varied(VariedEntry::Move(mover)) => (mover.threads(), mover.depth()),
            _ => return None,
        };
        Some(u64::from(threads) * u64::from(depth))
    }

    /// Whether the kernel's items are index entries and not units.
    pub fn walks_index(self) -> bool {
        matches!(self, Entry::CheckIndex | Entry::SumIndex | Entry::ExpectIndexSum)
    }

    /// What the kernel reads directly.
    pub(super) fn source(self) -> Extent {
        match self {
            Entry::Move(mover) if mover.movement.gathers() => Extent::Slots,
            Entry::Move(mover) if mover.movement == Movement::Write => Extent::Nothing,
            Entry::Move(_) | Entry::CheckFill => Extent::Units,
            _ => Extent::Nothing,
        }
    }

    /// What the kernel writes, or checks of what was written.
    pub(super) fn destination(self) -> Extent {
        match self {
            Entry::Move(mover) if mover.movement == Movement::ScatterCopy => Extent::Slots,
            Entry::Move(Mover { variant: Variant::Windows, .. }) => Extent::WindowTable,
            Entry::Move(mover) if mover.movement.is_read() => Extent::Nothing,
            Entry::CheckScattered => Extent::Slots,
            Entry::Move(_)
            | Entry::Fill
            | Entry::CheckGathered
            | Entry::CheckGaps
            | Entry::CheckWritten => Extent::Units,
            _ => Extent::Nothing,
        }
    }

    pub(super) fn follows_index(self) -> bool {
        matches!(self, Entry::Move(mover) if mover.movement.follows_index())
    }

    pub(super) fn reads_index(self) -> bool {
        self.follows_index() || matches!(self, Entry::CheckIndex | Entry::SumIndex)
    }

    pub(super) fn adds_to_sums(self) -> bool {
        match self {
            Entry::Move(mover) => mover.movement.is_read(),
            Entry::Varied(entry) => entry.adds_to_sums(),
            other => other != Entry::Fill,
        }
    }
}

/// How much of a span a kernel addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    /// Nothing of it.
    Nothing,
    /// As many bytes as the launch has units.
    Units,
    /// Every slot of the layout.
    Slots,
    /// A table of windows.
    WindowTable,
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_entry_has_a_name_of_its_own() {
        let all = Entry::all();
        let names: HashSet<String> = all.iter().map(|entry| entry.name()).collect();
        assert_eq!(names.len(), all.len());
        assert!(names.contains("gather_copy_i8_u4") && names.contains("strided_gather_u8"));
        assert!(names.contains("read") && names.contains("copy_depth_2"));
    }

    #[test]
    fn every_entry_is_in_its_module() {
        for entry in Entry::all() {
            for name in entry.modules() {
                let modules = super::super::modules::MODULES;
                let module = modules.iter().find(|module| module.name == *name);
                let begin = format!(".entry fragbench_{}(", entry.name());
                assert!(
                    module.is_some_and(|module| module.ptx.contains(&begin)),
                    "{name}: {begin}"
                );
            }
        }
    }
}
