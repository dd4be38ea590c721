//! What a run adds to its journal, case by case.

use super::{Allocation, Group, Lost, Status};

/// One case as it ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Entry {
    /// Arms that were compared.
    Group(Box<Group>),
    /// An allocator in a state.
    Allocation(Box<Allocation>),
}

impl Entry {
    /// The case id.
    pub fn case(&self) -> &str {
        match self {
            Entry::Group(group) => &group.case,
            Entry::Allocation(allocation) => &allocation.case,
        }
    }

    /// How it ended.
    pub fn status(&self) -> &Status {
        match self {
            Entry::Group(group) => &group.status,
            Entry::Allocation(allocation) => &allocation.status,
        }
    }

    /// Why, where it is not `ok`.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Entry::Group(group) => group.reason.as_deref(),
            Entry::Allocation(allocation) => allocation.reason.as_deref(),
        }
    }

    /// What was lost in the middle of it.
    pub fn lost(&self) -> Option<&Lost> {
        match self {
            Entry::Group(group) => group.lost.as_ref(),
            Entry::Allocation(allocation) => allocation.lost.as_ref(),
        }
    }

    /// The same, lost with what measured it.
    pub fn with_lost(mut self, what: Lost) -> Entry {
        match &mut self {
            Entry::Group(group) => group.lost = Some(what),
            Entry::Allocation(allocation) => allocation.lost = Some(what),
        }
        self
    }

    /// Which of a run's processes measured it, from 0.
    pub fn process(&self) -> u32 {
        match self {
            Entry::Group(group) => group.process,
            Entry::Allocation(allocation) => allocation.process,
        }
    }

    /// The same, measured by this one of the run's processes.
    pub fn with_process(mut self, process: u32) -> Entry {
        match &mut self {
            Entry::Group(group) => group.process = process,
            Entry::Allocation(allocation) => allocation.process = process,
        }
        self
    }
}
