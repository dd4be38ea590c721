//! Expandable segments: addresses that are reserved once, and mapped and unmapped by the page.

use super::allocate::Request;
use super::blocks::{Id, State};
use super::{Caching, PoolKind, Reserve, SMALL_SEGMENT_BYTES};
use crate::policy::{Region, Source, SourceError};

impl<S: Source> Caching<S> {
    /// A free block of at least the request, in no pool, made by mapping pages; `None` where the
    /// source has too few. What could be mapped stays.
    pub(super) fn expand(&mut self, request: &Request) -> Result<Option<Id>, SourceError> {
        let Some(mut id) = self.find_expandable(request)? else {
            return Ok(None);
        };
        if self.blocks[id].tag.state == State::Unmapped && !self.map(id, request.bytes)? {
            return Ok(None);
        }
        while self.blocks[id].bytes < request.bytes {
            let rest = request.bytes - self.blocks[id].bytes;
            // Free blocks that touch are one, so this is an unmapped one; mapped, it absorbs `id`.
            id = self.blocks[id].next;
            if !self.map(id, rest)? {
                return Ok(None);
            }
        }
        self.pools.remove(&self.blocks, id);
        Ok(Some(id))
    }

    /// The free or unmapped block at the lowest address of the stream that begins a run of such
    /// blocks with room for the request, at least one of them unmapped; else a new segment.
    fn find_expandable(&mut self, request: &Request) -> Result<Option<Id>, SourceError> {
        for &id in self.pools[request.list].unmapped.values() {
            let prev = self.blocks[id].prev;
            let first = match self.blocks.state(prev) {
                Some(State::Free) => prev,
                _ => id,
            };
            if self.has_room(first, request.bytes) {
                return Ok(Some(first));
            }
        }
        let bytes = self.reserve_bytes(request.list);
        if request.bytes > bytes {
            return Ok(None);
        }
        let region = match self.source.reserve_addresses(bytes) {
            Err(SourceError::OutOfMemory { .. }) => return Ok(None),
            region => region?,
        };
        let segment = self.segments.add(region);
        let id = self.add_block(request, region.address, bytes, segment, State::Unmapped);
        self.pools.insert(&mut self.blocks, id);
        Ok(Some(id))
    }

    fn has_room(&self, first: Id, bytes: u64) -> bool {
        let (mut id, mut room) = (first, 0);
        while room < bytes
            && let Some(State::Free | State::Unmapped) = self.blocks.state(id)
        {
            room += self.blocks[id].bytes;
            id = self.blocks[id].next;
        }
        room >= bytes
    }

    /// Addresses of a new segment, in whole pages.
    fn reserve_bytes(&self, list: u32) -> u64 {
        // An eighth more than all memory: pages may be missing in the middle of a segment.
        let most = self.total_bytes.saturating_add(self.total_bytes / 8);
        let bytes = match self.config.expandable_segments_reserve {
            Some(Reserve::Share(share)) => share.of(self.total_bytes).min(most),
            Some(Reserve::Bytes(bytes)) => bytes.min(most),
            None => most,
        };
        let page = self.page_bytes(list);
        bytes.checked_next_multiple_of(page).unwrap_or(bytes / page * page)
    }

    fn page_bytes(&self, list: u32) -> u64 {
        match self.pools.pool_of(list).kind {
            PoolKind::Small => SMALL_SEGMENT_BYTES,
            PoolKind::Large => self.config.large_segment_bytes,
        }
    }

    /// Maps the first pages of an unmapped block, `bytes` of it or all, and puts the free block that
    /// comes of them and of free neighbours into its pool, under the same index. `false` where the
    /// source has too little: nothing has changed then.
    fn map(&mut self, id: Id, bytes: u64) -> Result<bool, SourceError> {
        let block = &self.blocks[id];
        let page = self.page_bytes(block.tag.list);
        let bytes = bytes.min(block.bytes).next_multiple_of(page);
        match self.source.map(Region { address: block.address, bytes }) {
            Err(SourceError::OutOfMemory { .. }) => return Ok(false),
            mapped => mapped?,
        }
        self.pools.remove(&self.blocks, id);
        if bytes < self.blocks[id].bytes {
            let rest = self.blocks.split(id, bytes);
            self.pools.insert(&mut self.blocks, rest);
        }
        self.blocks[id].tag.state = State::Free;
        self.merge(id);
        self.pools.insert(&mut self.blocks, id);
        self.held_bytes += bytes;
        self.statistics.reserved_bytes.add(bytes);
        self.statistics.device_allocations += 1;
        Ok(true)
    }

    /// Unmaps the pages that lie wholly in a free block of a pool, and gives the addresses back
    /// where that leaves nothing mapped in the segment.
    pub(super) fn unmap_pages(&mut self, id: Id) -> Result<(), SourceError> {
        let block = &self.blocks[id];
        let segment = block.tag.segment;
        let region = self.segments.region(segment);
        let page = self.page_bytes(block.tag.list);
        let first = region.address + (block.address - region.address).next_multiple_of(page);
        let end = region.address + (block.end() - region.address) / page * page;
        if first >= end {
            return Ok(());
        }
        let bytes = end - first;
        self.source.unmap(Region { address: first, bytes })?;
        self.pools.remove(&self.blocks, id);
        let mut unmapped = id;
        if self.blocks[id].address < first {
            unmapped = self.blocks.split(id, first - self.blocks[id].address);
            self.pools.insert(&mut self.blocks, id);
        }
        if end < self.blocks[unmapped].end() {
            let back = self.blocks.split(unmapped, bytes);
            self.pools.insert(&mut self.blocks, back);
        }
        self.blocks[unmapped].tag.state = State::Unmapped;
        self.merge(unmapped);
        self.pools.insert(&mut self.blocks, unmapped);
        self.held_bytes -= bytes;
        self.statistics.reserved_bytes.subtract(bytes);
        self.statistics.device_frees += 1;
        if !self.blocks[unmapped].is_split() {
            self.source.release_addresses(region)?;
            self.pools.remove(&self.blocks, unmapped);
            self.blocks.remove(unmapped);
            self.segments.remove(segment);
        }
        Ok(())
    }
}
