//! Blocks and the segments that they divide, linked by index.

use crate::policy::Region;

/// A block's index.
pub(super) type Id = u32;

/// No block.
pub(super) const NONE: Id = Id::MAX;

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
    /// An index that is to be used again.
    Gone,
}

/// A block: a range of a segment. Aligned, so that it lies in one line of memory.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(super) struct Block {
    pub address: u64,
    pub bytes: u64,
    /// What was asked for; 0 unless the block is live or pending.
    pub requested_bytes: u64,
    /// How many searches its pool had seen when the block came into it.
    pub born: u64,
    /// Its neighbours within the segment.
    pub prev: Id,
    pub next: Id,
    /// Index of its segment.
    pub segment: u32,
    /// Index of the list of its pool and stream.
    pub list: u32,
    /// Streams whose events are outstanding.
    pub events: u32,
    pub state: State,
}

impl Block {
    pub(super) fn end(&self) -> u64 {
        self.address + self.bytes
    }

    pub(super) fn is_split(&self) -> bool {
        self.prev != NONE || self.next != NONE
    }
}

/// All blocks. Indexes of blocks that are gone are used again.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    blocks: Vec<Block>,
    gone: Vec<Id>,
}

impl Blocks {
    pub(super) fn add(&mut self, block: Block) -> Id {
        match self.gone.pop() {
            Some(id) => {
                self[id] = block;
                id
            }
            None => {
                self.blocks.push(block);
                (self.blocks.len() - 1) as Id
            }
        }
    }

    /// Forgets a block that has no neighbours any more.
    pub(super) fn remove(&mut self, id: Id) {
        self[id].state = State::Gone;
        self.gone.push(id);
    }

    /// Cuts the block after `bytes` bytes and returns the part behind, in the same state.
    pub(super) fn split(&mut self, id: Id, bytes: u64) -> Id {
        let front = &mut self[id];
        let mut back = front.clone();
        front.bytes = bytes;
        back.address += bytes;
        back.bytes -= bytes;
        back.prev = id;
        let next = back.next;
        let back = self.add(back);
        self[id].next = back;
        if next != NONE {
            self[next].prev = back;
        }
        back
    }

    /// Joins a block with the one behind it, which is gone then.
    pub(super) fn join_next(&mut self, id: Id) {
        let gone = self[id].next;
        let Block { bytes, next, .. } = self[gone];
        self[id].bytes += bytes;
        self[id].next = next;
        if next != NONE {
            self[next].prev = id;
        }
        self.remove(gone);
    }

    /// Joins a block with the one before it, which is gone then.
    pub(super) fn join_prev(&mut self, id: Id) {
        let gone = self[id].prev;
        let Block { address, bytes, prev, .. } = self[gone];
        self[id].address = address;
        self[id].bytes += bytes;
        self[id].prev = prev;
        if prev != NONE {
            self[prev].next = id;
        }
        self.remove(gone);
    }

    /// The state of the block, `None` for no block.
    pub(super) fn state(&self, id: Id) -> Option<State> {
        (id != NONE).then(|| self[id].state)
    }

    /// All that are not gone, in no order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Id, &Block)> {
        let all = self.blocks.iter().enumerate().map(|(id, block)| (id as Id, block));
        all.filter(|(_, block)| block.state != State::Gone)
    }
}

impl std::ops::Index<Id> for Blocks {
    type Output = Block;

    #[inline]
    fn index(&self, id: Id) -> &Block {
        &self.blocks[id as usize]
    }
}

impl std::ops::IndexMut<Id> for Blocks {
    #[inline]
    fn index_mut(&mut self, id: Id) -> &mut Block {
        &mut self.blocks[id as usize]
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
