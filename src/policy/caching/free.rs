//! From a live block back to its pool, at once or when the streams that use it have come past.

use super::blocks::{Id, State};
use super::{Caching, Stream};
use crate::policy::{PolicyError, Source};

/// What a block has absorbed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Merged {
    pub blocks: u64,
    pub bytes: u64,
}

impl<S: Source> Caching<S> {
    pub(super) fn free_at(&mut self, address: u64) -> Result<(), PolicyError> {
        let id = self.live.remove(&self.blocks, address).ok_or(PolicyError::NotLive { address })?;
        let block = &mut self.blocks[id];
        self.statistics.allocated_blocks.subtract(1);
        self.statistics.allocated_bytes.subtract(block.bytes);
        self.live_requested_bytes -= block.tag.requested_bytes;
        block.tag.events = self.events.insert(id);
        if block.tag.events == 0 {
            self.return_to_pool(id);
        } else {
            block.tag.state = State::Pending;
        }
        Ok(())
    }

    /// Notes that `stream` uses the live block at `address` as well: freed, it waits until that
    /// stream has [come past](Self::complete_events). The block's own stream needs no note.
    ///
    /// # Errors
    ///
    /// [`PolicyError::NotLive`] where no live block begins there.
    pub fn record_stream(&mut self, address: u64, stream: Stream) -> Result<(), PolicyError> {
        let id = self.live.get(&self.blocks, address).ok_or(PolicyError::NotLive { address })?;
        if self.pools[self.blocks[id].tag.list].stream != stream.0 {
            self.events.record(id, stream.0);
        }
        Ok(())
    }

    /// The stream has come past all that was freed so far. Blocks that wait for no other stream are
    /// free from the next [`process_events`](Self::process_events) on.
    pub fn complete_events(&mut self, stream: Stream) {
        self.events.complete(stream.0);
    }

    /// All streams have come past all that was freed so far, as after a synchronization of the
    /// device.
    pub fn complete_all_events(&mut self) {
        self.events.complete_all();
    }

    /// Frees the blocks whose events are complete. Each allocation begins with it.
    pub fn process_events(&mut self) {
        if !self.events.any_complete() {
            return;
        }
        for id in self.events.take_complete() {
            self.blocks[id].tag.events -= 1;
            if self.blocks[id].tag.events == 0 {
                self.return_to_pool(id);
            }
        }
    }

    /// Events that freed blocks still wait for.
    pub fn outstanding_events(&self) -> usize {
        self.events.outstanding()
    }

    fn return_to_pool(&mut self, id: Id) {
        let block = &mut self.blocks[id];
        block.tag.state = State::Free;
        self.statistics.active_blocks.subtract(1);
        self.statistics.active_bytes.subtract(block.bytes);
        self.statistics.requested_bytes.subtract(block.tag.requested_bytes);
        block.tag.requested_bytes = 0;
        let merged = self.merge(id);
        self.pools.insert(&mut self.blocks, id);
        if self.config.expandable_segments {
            return;
        }
        let statistics = &mut self.statistics;
        statistics.inactive_split_blocks.subtract(merged.blocks);
        statistics.inactive_split_bytes.subtract(merged.bytes);
        if self.blocks[id].is_split() {
            statistics.inactive_split_blocks.add(1);
            statistics.inactive_split_bytes.add(self.blocks[id].bytes);
        }
    }

    /// Joins a block, free or unmapped and in no pool, with neighbours that are the same.
    pub(super) fn merge(&mut self, id: Id) -> Merged {
        let state = self.blocks[id].tag.state;
        let mut merged = Merged::default();
        let prev = self.blocks[id].prev;
        if self.blocks.state(prev) == Some(state) {
            merged.blocks += 1;
            merged.bytes += self.blocks[prev].bytes;
            self.pools.remove(&self.blocks, prev);
            self.blocks.join_prev(id);
        }
        let next = self.blocks[id].next;
        if self.blocks.state(next) == Some(state) {
            merged.blocks += 1;
            merged.bytes += self.blocks[next].bytes;
            self.pools.remove(&self.blocks, next);
            self.blocks.join_next(id);
        }
        merged
    }
}
