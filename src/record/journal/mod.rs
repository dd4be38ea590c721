//! The journal: JSON Lines, the run first, then a line per group, or per kernel of a selftest.
//!
//! Every line is an object whose `type` says what it is. A line is written whole and flushed when
//! its group ends, so that a run that dies loses no more than the group that it was measuring: what
//! it leaves of a line is recognised as torn, left out with a notice, and cut off on resume. A line
//! ends with its checksum, so that one that changed in the file is an error and no wrong figure.

mod checksum;
mod error;
mod reader;
mod schema;
#[cfg(test)]
mod tests;
mod writer;

use serde_json::Value;

pub use error::JournalError;
pub use schema::schema;
pub use writer::JournalWriter;

use super::{Allocation, ClockTest, Coverage, Entry, Group, Run, Selftest};

/// What a run's line calls the checksums at the ends of all lines.
const CHECKSUM: &str = checksum::FIELD;

/// What a journal holds.
#[derive(Clone, Debug, PartialEq)]
pub struct Journal {
    /// The first line.
    pub run: Run,
    /// The groups, in the order in which they ended. Where a case has several lines, the last of
    /// them: a resumed run measures again what was lost.
    pub groups: Vec<Group>,
    /// What allocators did, likewise.
    pub allocations: Vec<Allocation>,
    /// The kernels of a selftest, likewise; of each the last line.
    pub selftests: Vec<Selftest>,
    /// How often intervals held the truth, likewise.
    pub coverages: Vec<Coverage>,
    /// A device's clock, likewise.
    pub clocks: Vec<ClockTest>,
    /// Lines of types that this version does not know, as they stand in the file but for their
    /// checksums.
    pub unknown: Vec<Value>,
    /// What to tell the user where the end of the file is torn.
    pub torn: Option<String>,
    /// Bytes of text up to the end of the last whole line: where a resumed run goes on.
    pub whole_bytes: u64,
}

impl Journal {
    /// All cases as they ended, lost ones among them.
    pub fn into_entries(self) -> Vec<Entry> {
        let groups = self.groups.into_iter().map(|group| Entry::Group(Box::new(group)));
        let allocations = self.allocations.into_iter();
        groups.chain(allocations.map(|one| Entry::Allocation(Box::new(one)))).collect()
    }
}
