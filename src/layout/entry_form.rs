//! The forms that the entries of a table have.

use super::UNIT_BYTES;

/// How an entry of a [table](super::Table) says where a fragment lies, from the form that costs
/// least to the one that takes every fragment. Kernels are compiled for one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EntryForm {
    /// 4 B: whole pieces of an arena up to 64 GiB.
    Narrow,
    /// 8 B: whole pieces of any arena.
    Wide,
    /// 16 B: any 4 B words of any arena.
    Ragged,
}

/// The longest arena that 32 bits number the pieces of: 64 GiB.
pub const NARROW_BYTES: u64 = UNIT_BYTES << 32;

impl EntryForm {
    /// Every form.
    pub const ALL: [EntryForm; 3] = [EntryForm::Narrow, EntryForm::Wide, EntryForm::Ragged];

    /// The form that costs least of those that take such fragments.
    pub fn least(alignment_bytes: u64, reach_bytes: u64) -> EntryForm {
        match () {
            () if alignment_bytes < UNIT_BYTES => EntryForm::Ragged,
            () if reach_bytes > NARROW_BYTES => EntryForm::Wide,
            () => EntryForm::Narrow,
        }
    }

    /// Its name in kernels.
    pub fn name(self) -> &'static str {
        match self {
            EntryForm::Narrow => "e4",
            EntryForm::Wide => "e8",
            EntryForm::Ragged => "ragged",
        }
    }

    /// Length of an entry in bytes.
    pub fn bytes(self) -> u32 {
        match self {
            EntryForm::Narrow => 4,
            EntryForm::Wide => 8,
            EntryForm::Ragged => 16,
        }
    }

    /// The unit that the payload is counted, weighted and compared in: 16 B where fragments are
    /// whole pieces, else 4 B.
    pub fn unit_bytes(self) -> u32 {
        match self {
            EntryForm::Ragged => 4,
            _ => UNIT_BYTES as u32,
        }
    }
}
