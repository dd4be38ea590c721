//! Segments go back to the source: unused ones that are old, oversize ones, or all.

use super::allocate::Request;
use super::blocks::Id;
use super::{Caching, PoolId, PoolKind};
use crate::policy::by_size::Key;
use crate::policy::{Source, SourceError};

impl<S: Source> Caching<S> {
    /// Gives back whole free segments of the large pool until no more than `garbage_bytes` are
    /// reserved: those first that have not been used for at least the average number of searches.
    pub(super) fn collect_garbage(&mut self, garbage_bytes: u64) -> Result<(), SourceError> {
        let target = self.statistics.reserved_bytes.current.saturating_sub(garbage_bytes);
        if target == 0 || self.config.expandable_segments {
            return Ok(());
        }
        let large = PoolId::DEFAULT.index(PoolKind::Large);
        let searches = self.pools.pool(large).searches;
        let whole = self.pools.free(large).filter(|&id| !self.blocks[id].is_split());
        let mut unused: Vec<(Id, u64)> =
            whole.map(|id| (id, searches - self.blocks[id].tag.born)).collect();
        let mut reclaimed = 0;
        while reclaimed < target && !unused.is_empty() {
            let total: u128 = unused.iter().map(|(_, age)| u128::from(*age)).sum();
            let count = unused.len() as u128;
            let (old, young): (Vec<_>, Vec<_>) =
                unused.into_iter().partition(|(_, age)| u128::from(*age) * count >= total);
            for (id, _) in old {
                reclaimed += self.blocks[id].bytes;
                self.release_segment(id)?;
            }
            unused = young;
        }
        Ok(())
    }

    /// Where blocks above a size are not split, gives back the smallest oversize block of the
    /// request's stream that would hold it; where none would, the largest until their sum would.
    /// Whether that much went back.
    pub(super) fn release_oversize(&mut self, request: &Request) -> Result<bool, SourceError> {
        let Some(max_split) = self.config.max_split_bytes else {
            return Ok(false);
        };
        if self.config.expandable_segments {
            return Ok(false);
        }
        let least = request.bytes.max(max_split);
        let free = &self.pools[request.list].free;
        if let Some(place) = free.from(Key::at_least(least)) {
            self.release_segment(free.id(place))?;
            return Ok(true);
        }
        let oversize: Vec<Id> = free.iter_from(Key::at_least(max_split)).collect();
        let mut released = 0;
        for id in oversize.into_iter().rev() {
            if released >= least {
                break;
            }
            released += self.blocks[id].bytes;
            self.release_segment(id)?;
        }
        Ok(released >= least)
    }

    /// Waits for all events, then gives back every segment, and every page of an expandable one,
    /// that no block uses.
    pub(super) fn release_cache(&mut self) -> Result<(), SourceError> {
        self.statistics.synchronizations += 1;
        self.complete_all_events();
        self.process_events();
        let default = [PoolKind::Large, PoolKind::Small].map(|kind| PoolId::DEFAULT.index(kind));
        let retired = self.retired.iter();
        let retired =
            retired.flat_map(|id| [PoolKind::Small, PoolKind::Large].map(|kind| id.index(kind)));
        let pools: Vec<usize> = default.into_iter().chain(retired).collect();
        pools.into_iter().try_for_each(|pool| self.release_pool(pool))
    }

    fn release_pool(&mut self, pool: usize) -> Result<(), SourceError> {
        let free: Vec<Id> = self.pools.free(pool).collect();
        for id in free {
            if self.config.expandable_segments {
                self.unmap_pages(id)?;
            } else if !self.blocks[id].is_split() {
                self.release_segment(id)?;
            }
        }
        Ok(())
    }

    /// Gives the segment of a free block of a pool back, which is all of it.
    fn release_segment(&mut self, id: Id) -> Result<(), SourceError> {
        debug_assert!(!self.blocks[id].is_split());
        let segment = self.blocks[id].tag.segment;
        let region = self.segments.region(segment);
        self.source.release(region)?;
        self.pools.remove(&self.blocks, id);
        self.held_bytes -= region.bytes;
        self.statistics.segments.subtract(1);
        self.statistics.reserved_bytes.subtract(self.blocks[id].bytes);
        self.statistics.device_frees += 1;
        self.blocks.remove(id);
        self.segments.remove(segment);
        Ok(())
    }
}
