//! The entry points of the kernels for fragments of varying length.

use super::super::bindings::{self as b, varied_task};
use super::super::{Movement, Variant};
use crate::layout::{EntryForm, ROW_PIECES};

// A table is laid out as the kernels read it.
const _: () = assert!(ROW_PIECES == b::FRAGBENCH_ROW_PIECES as u64);
const _: () = assert!(crate::layout::RANK_ROWS == b::FRAGBENCH_RANK_ROWS as u64);

/// A kernel's entry point: `fragbench_varied_<name>` in PTX, `fragbench_host_varied_<name>` on the
/// host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum VariedEntry {
    /// One of the kernels that are measured.
    Move(VariedMover),
    /// Sums what a read has to give.
    ExpectChecksum,
    /// Counts destination units that are not what a gather puts there.
    CheckGathered,
    /// Counts units of payload that the arena does not hold where a scatter puts them.
    CheckScattered,
    /// Counts units of the arena that lie in no fragment and have changed.
    CheckGaps,
    /// Counts entries that are not what the fragments say.
    CheckEntries,
    /// Counts ranks that are not what the fragments say.
    CheckRanks,
}

/// A measured kernel as it was compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct VariedMover {
    /// What it does: a gather behind a table, or a scatter.
    pub movement: Movement,
    /// The form of the entries that it follows.
    pub form: EntryForm,
    /// How it does it.
    pub variant: Variant,
}

impl VariedMover {
    /// What such kernels do.
    pub const MOVEMENTS: [Movement; 3] =
        [Movement::GatherRead, Movement::GatherCopy, Movement::ScatterCopy];

    /// Every kernel that was compiled for a GPU, defaults first.
    pub fn all() -> Vec<VariedMover> {
        let defaults = Self::MOVEMENTS.into_iter().flat_map(|movement| {
            let of_form = move |form| VariedMover { movement, form, variant: Variant::Default };
            EntryForm::ALL.into_iter().map(of_form)
        });
        let competitors = Self::MOVEMENTS.into_iter().flat_map(|movement| {
            let by = move |variant: &Variant| VariedMover {
                movement,
                form: EntryForm::Narrow,
                variant: *variant,
            };
            Self::competitors(movement).iter().map(by)
        });
        defaults.chain(competitors).collect()
    }

    /// The default's competitors. They take entries of 4 B.
    pub fn competitors(movement: Movement) -> &'static [Variant] {
        use Variant::{Depth, Threads};
        match movement {
            Movement::GatherRead => &[Depth(2), Depth(8), Threads(128)],
            Movement::GatherCopy => &[Depth(1), Depth(4), Threads(256)],
            Movement::ScatterCopy => &[Depth(2), Depth(4), Threads(128)],
            _ => &[],
        }
    }

    fn name(self) -> String {
        let VariedMover { movement, form, variant } = self;
        let name = format!("varied_{}_{}", movement.name(), form.name());
        match variant {
            Variant::Default => name,
            variant => format!("{name}_{variant}"),
        }
    }

    /// Threads of a block.
    pub fn threads(self) -> u32 {
        match (self.variant, self.movement) {
            (Variant::Threads(threads), _) => threads,
            (_, Movement::GatherCopy) => b::FRAGBENCH_VARIED_GATHER_THREADS,
            (_, Movement::ScatterCopy) => b::FRAGBENCH_VARIED_SCATTER_THREADS,
            _ => b::FRAGBENCH_VARIED_READ_THREADS,
        }
    }

    /// Rows that each warp moves: pieces of each thread.
    pub fn depth(self) -> u32 {
        match (self.variant, self.movement) {
            (Variant::Depth(depth), _) => depth,
            (_, Movement::GatherCopy) => b::FRAGBENCH_VARIED_GATHER_DEPTH,
            (_, Movement::ScatterCopy) => b::FRAGBENCH_VARIED_SCATTER_DEPTH,
            _ => b::FRAGBENCH_VARIED_READ_DEPTH,
        }
    }
}

impl VariedEntry {
    /// Every entry point.
    pub fn all() -> Vec<VariedEntry> {
        let checks = [
            VariedEntry::ExpectChecksum,
            VariedEntry::CheckGathered,
            VariedEntry::CheckScattered,
            VariedEntry::CheckGaps,
            VariedEntry::CheckEntries,
            VariedEntry::CheckRanks,
        ];
        VariedMover::all().into_iter().map(VariedEntry::Move).chain(checks).collect()
    }

    pub(in super::super) fn name(self) -> String {
        match self {
            VariedEntry::Move(mover) => mover.name(),
            other => other.kind().to_owned(),
        }
    }

    pub(in super::super) fn kind(self) -> &'static str {
        match self {
            VariedEntry::Move(mover) => match mover.movement {
                Movement::GatherCopy => "varied_gather_copy",
                Movement::ScatterCopy => "varied_scatter_copy",
                _ => "varied_gather_read",
            },
            VariedEntry::ExpectChecksum => "varied_expect_checksum",
            VariedEntry::CheckGathered => "varied_check_gathered",
            VariedEntry::CheckScattered => "varied_check_scattered",
            VariedEntry::CheckGaps => "varied_check_gaps",
            VariedEntry::CheckEntries => "varied_check_entries",
            VariedEntry::CheckRanks => "varied_check_ranks",
        }
    }

    pub(in super::super) fn adds_to_sums(self) -> bool {
        match self {
            VariedEntry::Move(mover) => mover.movement.is_read(),
            _ => true,
        }
    }

    /// Items that the kernel's threads share.
    pub(in super::super) fn items(self, task: &varied_task) -> u64 {
        match self {
            VariedEntry::Move(_) => task.pieces,
            VariedEntry::CheckGaps => task.arena_units,
            VariedEntry::CheckEntries => task.fragments,
            // That of the piece behind the last as well.
            VariedEntry::CheckRanks => task.pieces / ROW_PIECES + 1,
            _ => task.units,
        }
    }
}
