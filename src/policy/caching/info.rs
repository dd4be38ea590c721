//! What lies where: segments and their blocks, as a snapshot shows them.

use super::blocks::{Block, State, Tag};
use super::{Caching, PoolId, PoolKind, Stream};
use crate::policy::Source;

/// What a block is, named as in PyTorch's snapshots.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BlockState {
    /// Handed out: `active_allocated`.
    Allocated,
    /// Freed, but a stream may still use it: `active_pending_free`.
    PendingFree,
    /// Free: `inactive`.
    Inactive,
}

impl BlockState {
    /// Its name in a snapshot.
    pub fn name(self) -> &'static str {
        match self {
            Self::Allocated => "active_allocated",
            Self::PendingFree => "active_pending_free",
            Self::Inactive => "inactive",
        }
    }
}

/// A block of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BlockInfo {
    /// Its first address.
    pub address: u64,
    /// Its length in bytes.
    pub bytes: u64,
    /// Bytes that it was asked for with; 0 where it is inactive.
    pub requested_bytes: u64,
    /// What it is.
    pub state: BlockState,
}

/// A segment, or a contiguous mapped range of an expandable one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentInfo {
    /// Its first address.
    pub address: u64,
    /// Its length in bytes.
    pub bytes: u64,
    /// The stream of its blocks.
    pub stream: Stream,
    /// The pools that it belongs to.
    pub pools: PoolId,
    /// Which of the two.
    pub kind: PoolKind,
    /// Whether pages can be added to it.
    pub expandable: bool,
    /// Its blocks by address; each begins where the one before it ends.
    pub blocks: Vec<BlockInfo>,
}

impl SegmentInfo {
    /// Bytes of blocks that are handed out.
    pub fn allocated_bytes(&self) -> u64 {
        let allocated = self.blocks.iter().filter(|block| block.state == BlockState::Allocated);
        allocated.map(|block| block.bytes).sum()
    }

    /// Bytes of blocks that are handed out or may still be used.
    pub fn active_bytes(&self) -> u64 {
        let active = self.blocks.iter().filter(|block| block.state != BlockState::Inactive);
        active.map(|block| block.bytes).sum()
    }

    /// Bytes that the active blocks were asked for with.
    pub fn requested_bytes(&self) -> u64 {
        self.blocks.iter().map(|block| block.requested_bytes).sum()
    }
}

impl<S: Source> Caching<S> {
    /// All segments by address, with their blocks.
    pub fn segments(&self) -> Vec<SegmentInfo> {
        let begins = |block: &Block| {
            block.tag.state != State::Unmapped
                && matches!(self.blocks.state(block.prev), None | Some(State::Unmapped))
        };
        let heads = self.blocks.iter().map(|(_, block)| block).filter(|block| begins(block));
        let mut segments: Vec<SegmentInfo> = heads.map(|head| self.segment_info(head)).collect();
        segments.sort_unstable_by_key(|segment| segment.address);
        segments
    }

    /// All blocks by address.
    pub fn blocks(&self) -> impl Iterator<Item = BlockInfo> {
        self.segments().into_iter().flat_map(|segment| segment.blocks)
    }

    fn segment_info(&self, head: &Block) -> SegmentInfo {
        let mut blocks = Vec::new();
        let mut block = head;
        while let Some(state) = snapshot_state(block.tag.state) {
            let Block { address, bytes, tag: Tag { requested_bytes, .. }, .. } = *block;
            blocks.push(BlockInfo { address, bytes, requested_bytes, state });
            match self.blocks.state(block.next) {
                Some(_) => block = &self.blocks[block.next],
                None => break,
            }
        }
        let list = &self.pools[head.tag.list];
        SegmentInfo {
            address: head.address,
            bytes: blocks.iter().map(|block| block.bytes).sum(),
            stream: Stream(list.stream),
            pools: PoolId((list.pool / 2) as u32),
            kind: self.pools.pool(list.pool).kind,
            expandable: self.config.expandable_segments,
            blocks,
        }
    }
}

/// The state as a snapshot shows it; it does not show addresses without memory.
fn snapshot_state(state: State) -> Option<BlockState> {
    match state {
        State::Live => Some(BlockState::Allocated),
        State::Pending => Some(BlockState::PendingFree),
        State::Free => Some(BlockState::Inactive),
        State::Unmapped => None,
    }
}
