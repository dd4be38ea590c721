//! Blocks and the segments that they divide.

use crate::policy::Region;
pub(super) use crate::policy::chain::Id;
use crate::policy::chain::{Chain, Link};

/// What a block is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Handed out.
    Live,
    /// Freed, but streams that it was recorded on may still use it.
    Pending,
    /// In a pool.
    Free,
    /// Addresses without memory.
    Unmapped,
}

/// What is known of a block beside its range.
#[derive(Clone, Debug)]
pub(super) struct Tag {
    /// What was asked for; 0 unless the block is live or pending.
    pub requested_bytes: u64,
    /// How many searches its pool had seen when the block came into it.
    pub born: u64,
    /// Index of its segment.
    pub segment: u32,
    /// Index of the list of its pool and stream.
    pub list: u32,
    /// Streams whose events are outstanding.
    pub events: u32,
    pub state: State,
}

/// A block: a range of a segment.
pub(super) type Block = Link<Tag>;

/// All blocks, linked within their segments.
pub(super) type Blocks = Chain<Tag>;

impl Blocks {
    /// The state of the block, `None` for no block.
    pub(super) fn state(&self, id: Id) -> Option<State> {
        self.get(id).map(|block| block.tag.state)
    }
}

/// What the source handed out, memory or addresses, for a segment.
#[derive(Debug, Default)]
pub(super) struct Segments {
    regions: Vec<Region>,
    gone: Vec<u32>,
}

impl Segments {
    pub(super) fn add(&mut self, region: Region) -> u32 {
        match self.gone.pop() {
            Some(index) => {
                self.regions[index as usize] = region;
                index
            }
            None => {
                self.regions.push(region);
                (self.regions.len() - 1) as u32
            }
        }
    }

    pub(super) fn remove(&mut self, index: u32) {
        self.gone.push(index);
    }

    pub(super) fn region(&self, index: u32) -> Region {
        self.regions[index as usize]
    }
}
