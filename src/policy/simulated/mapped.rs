//! Which parts of reserved addresses have memory.

use std::collections::BTreeMap;

use crate::policy::Region;

/// Mapped parts, by their first address, with the address behind each. Neighbours are one part.
#[derive(Debug, Default)]
pub(super) struct Mapped(BTreeMap<u64, u64>);

impl Mapped {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a byte of it is mapped.
    pub(super) fn meets(&self, part: Region) -> bool {
        let last_before_its_end = self.0.range(..part.end()).next_back();
        last_before_its_end.is_some_and(|(_, &end)| end > part.address)
    }

    /// Whether every byte of it is mapped.
    pub(super) fn holds(&self, part: Region) -> bool {
        let around = self.0.range(..=part.address).next_back();
        around.is_some_and(|(_, &end)| end >= part.end())
    }

    /// Maps a part of which no byte is.
    pub(super) fn add(&mut self, part: Region) {
        let end = self.0.remove(&part.end()).unwrap_or(part.end());
        match self.0.range_mut(..part.address).next_back() {
            Some((_, before)) if *before == part.address => *before = end,
            _ => {
                self.0.insert(part.address, end);
            }
        }
    }

    /// Unmaps a part that it holds.
    pub(super) fn remove(&mut self, part: Region) {
        let Some((&address, &end)) = self.0.range(..=part.address).next_back() else { return };
        self.0.remove(&address);
        if address < part.address {
            self.0.insert(address, part.address);
        }
        if part.end() < end {
            self.0.insert(part.end(), end);
        }
    }
}
