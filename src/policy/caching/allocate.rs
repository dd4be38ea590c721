//! From a request to a block: the order in which memory is looked for.

use super::blocks::{Id, State, Tag};
use super::{Caching, LIMIT_BYTES, MIN_BLOCK_BYTES, PoolId, PoolKind, SMALL_BLOCK_BYTES, Stream};
use crate::policy::by_size::{Key, Place};
use crate::policy::{Block, PolicyError, Source, SourceError};

/// A request, rounded and with its pool.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    pub requested_bytes: u64,
    pub bytes: u64,
    /// Index of the list of its pool and stream.
    pub list: u32,
}

impl<S: Source> Caching<S> {
    /// A new block for `stream`, in the default pools.
    ///
    /// # Errors
    ///
    /// As [`allocate_in`](Self::allocate_in).
    pub fn allocate_on(&mut self, stream: Stream, bytes: u64) -> Result<Block, PolicyError> {
        self.allocate_in(PoolId::DEFAULT, stream, bytes)
    }

    /// A new block of at least `bytes` bytes for `stream`, in these pools; 0 bytes are taken for 1.
    ///
    /// # Errors
    ///
    /// [`PolicyError::OutOfMemory`] where the source has nothing even after the cache was released
    /// (which [`Config::releases_cache_on_failure`](super::Config::releases_cache_on_failure)
    /// switches off), [`PolicyError::Size`] from [`LIMIT_BYTES`] on, [`PolicyError::Source`] where
    /// the source fails otherwise.
    pub fn allocate_in(
        &mut self,
        pools: PoolId,
        stream: Stream,
        bytes: u64,
    ) -> Result<Block, PolicyError> {
        let requested_bytes = bytes.max(1);
        if requested_bytes >= LIMIT_BYTES {
            let takes = "less than 1 EiB".to_owned();
            return Err(PolicyError::Size { requested_bytes, takes });
        }
        let rounded_bytes = self.config.round_size(requested_bytes);
        let kind = match rounded_bytes <= SMALL_BLOCK_BYTES {
            true => PoolKind::Small,
            false => PoolKind::Large,
        };
        let request = Request {
            requested_bytes,
            bytes: rounded_bytes,
            list: self.pools.list(pools.index(kind), stream.0),
        };
        self.process_events();
        let found = match self.best_fit(&request) {
            Some(id) => Some(id),
            None => self.find_elsewhere(&request).map_err(PolicyError::Source)?,
        };
        let Some(id) = found else {
            self.statistics.ooms += 1;
            return Err(PolicyError::OutOfMemory {
                requested_bytes,
                hole_bytes: self.hole_bytes(),
            });
        };
        Ok(self.hand_out(id, &request))
    }

    /// Takes the smallest free block of the stream that fits, unless it is too large for the
    /// request.
    fn best_fit(&mut self, request: &Request) -> Option<Id> {
        let pool = self.pools[request.list].pool;
        self.pools.pool_mut(pool).searches += u64::from(self.garbage_bytes.is_some());
        let free = &self.pools[request.list].free;
        let mut found = free.from(Key::at_least(request.bytes))?;
        if self.config.expandable_segments {
            // A block counts with the unmapped one behind it, into which it can grow.
            let room = |place: Place| {
                let block = &self.blocks[free.id(place)];
                let grows = self.blocks.state(block.next) == Some(State::Unmapped);
                block.bytes + if grows { self.blocks[block.next].bytes } else { 0 }
            };
            while let Some(next) = free.after(found).filter(|&next| room(next) < room(found)) {
                found = next;
            }
        }
        let bytes = self.blocks[free.id(found)].bytes;
        if let Some(max_split) = self.config.max_split_bytes {
            let limit = match request.bytes < max_split {
                true => max_split,
                false => request.bytes + self.config.max_non_split_rounding_bytes,
            };
            if bytes >= limit {
                return None;
            }
        }
        Some(self.pools[request.list].free.remove(found))
    }

    /// Looks for memory where no free block fits: from the source, and once more after each way of
    /// giving something back, where these are not switched off.
    fn find_elsewhere(&mut self, request: &Request) -> Result<Option<Id>, SourceError> {
        if let Some(garbage_bytes) = self.garbage_bytes {
            self.collect_garbage(garbage_bytes)?;
        }
        if let Some(id) = self.take_new(request)? {
            return Ok(Some(id));
        }
        if !self.config.releases_cache_on_failure {
            return Ok(None);
        }
        if self.release_oversize(request)?
            && let Some(id) = self.take_new(request)?
        {
            return Ok(Some(id));
        }
        self.release_cache()?;
        self.statistics.alloc_retries += 1;
        self.take_new(request)
    }

    /// A segment, or pages of one, of the source; `None` where it has none or no more is allowed.
    fn take_new(&mut self, request: &Request) -> Result<Option<Id>, SourceError> {
        let bytes = self.config.allocation_size(request.bytes);
        let reserved = self.statistics.reserved_bytes.current.saturating_add(bytes);
        if self.allowed_bytes.is_some_and(|allowed| reserved > allowed) {
            return Ok(None);
        }
        if self.config.expandable_segments {
            return self.expand(request);
        }
        let region = match self.source.allocate(bytes) {
            Err(SourceError::OutOfMemory { .. }) => return Ok(None),
            region => region?,
        };
        self.held_bytes += region.bytes;
        self.statistics.segments.add(1);
        self.statistics.reserved_bytes.add(bytes);
        self.statistics.device_allocations += 1;
        let segment = self.segments.add(region);
        Ok(Some(self.add_block(request, region.address, bytes, segment, State::Free)))
    }

    /// A block that is a whole segment, in no pool.
    pub(super) fn add_block(
        &mut self,
        request: &Request,
        address: u64,
        bytes: u64,
        segment: u32,
        state: State,
    ) -> Id {
        let tag =
            Tag { requested_bytes: 0, born: 0, segment, list: request.list, events: 0, state };
        self.blocks.add(address, bytes, tag)
    }

    /// Makes a free block that is in no pool live, and puts what is left over back.
    fn hand_out(&mut self, id: Id, request: &Request) -> Block {
        let was_split = self.blocks[id].is_split();
        let rest = self.blocks[id].bytes - request.bytes;
        let splits = self.splits(request, rest);
        if splits {
            let back = self.blocks.split(id, request.bytes);
            self.pools.insert(&mut self.blocks, back);
        }
        if !self.config.expandable_segments {
            let statistics = &mut self.statistics;
            match (was_split, splits) {
                (true, true) => statistics.inactive_split_bytes.subtract(request.bytes),
                (true, false) => {
                    statistics.inactive_split_bytes.subtract(request.bytes + rest);
                    statistics.inactive_split_blocks.subtract(1);
                }
                (false, true) => {
                    statistics.inactive_split_bytes.add(rest);
                    statistics.inactive_split_blocks.add(1);
                }
                (false, false) => {}
            }
        }
        let block = &mut self.blocks[id];
        block.tag.state = State::Live;
        block.tag.requested_bytes = request.requested_bytes;
        let address = block.address;
        let rounded_bytes = block.bytes;
        self.live.insert(&self.blocks, id);
        self.live_requested_bytes += request.requested_bytes;
        let statistics = &mut self.statistics;
        statistics.allocated_blocks.add(1);
        statistics.allocated_bytes.add(rounded_bytes);
        statistics.active_blocks.add(1);
        statistics.active_bytes.add(rounded_bytes);
        statistics.requested_bytes.add(request.requested_bytes);
        Block { address, requested_bytes: request.requested_bytes, rounded_bytes }
    }

    /// Whether so much is left over that it becomes a block of its own.
    fn splits(&self, request: &Request, rest: u64) -> bool {
        if self.pools.pool_of(request.list).kind == PoolKind::Small
            || self.config.expandable_segments
        {
            return rest >= MIN_BLOCK_BYTES;
        }
        let whole = self.config.max_split_bytes.is_some_and(|limit| request.bytes >= limit);
        !whole && rest > SMALL_BLOCK_BYTES
    }
}
