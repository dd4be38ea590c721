//! PyTorch's caching allocator: its rules and its settings, over any [`Source`].
//!
//! Requests are rounded to 512 B and served from the free blocks of their stream, the smallest that
//! fits first; what is left over is split off and stays free. Where no block fits, a segment is
//! allocated: 2 MiB for blocks up to 1 MiB, 20 MiB for blocks below 10 MiB, made to measure above.
//! Freed blocks join their free neighbours but never another segment, and segments go back only when
//! memory runs out. With `expandable_segments` a stream has one growing segment a pool, of which
//! pages are mapped as they are needed.
//!
//! The rules are those of PyTorch 2.15 (`c10/cuda/CUDACachingAllocator.cpp`), blocks of one size
//! ordered by address as until 2.8. Left out: graph capture, fallback to a memory pool of the
//! program, pools that never split, and callbacks that free memory.

mod allocate;
mod blocks;
mod config;
mod events;
mod expandable;
mod free;
mod info;
mod pool;
mod release;
mod rounding;
mod statistics;
#[cfg(test)]
mod tests;

pub use config::{Config, ConfigError, Reserve, Share, WithoutEffect};
pub use info::{BlockInfo, BlockState, SegmentInfo};
pub use pool::PoolKind;
pub use rounding::{
    INTERVALS, LIMIT_BYTES, MIN_BLOCK_BYTES, MIN_LARGE_BYTES, ROUND_LARGE_BYTES, SMALL_BLOCK_BYTES,
    SMALL_SEGMENT_BYTES,
};
pub use statistics::{Level, Statistics};

use std::collections::BTreeSet;

use super::{AddressIndex, Block, Hole, HoleOrder, Policy, PolicyError, Source, Usage};
use blocks::{Blocks, Segments};
use events::Events;
use pool::Pools;

/// A stream, by its handle. Blocks are kept by stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Stream(pub u64);

/// A pair of pools, for small and for large blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PoolId(u32);

impl PoolId {
    /// The pools of all that asks for no others.
    pub const DEFAULT: Self = Self(0);

    /// Its number: 0 for the default, then in the order of their making.
    pub fn number(self) -> u32 {
        self.0
    }

    fn index(self, kind: PoolKind) -> usize {
        2 * self.0 as usize + kind as usize
    }
}

/// The caching allocator.
///
/// An allocation that fails has released the cache before, as PyTorch does, unless
/// [`Config::releases_cache_on_failure`] is switched off; live blocks are as they were.
///
/// ```
/// # use fragbench::policy::{PolicyError, Source};
/// use fragbench::policy::caching::{Caching, Config, Stream};
///
/// # fn ages(source: impl Source + Send) -> Result<(), PolicyError> {
/// let config: Config = "max_split_size_mb:128".parse().expect("settings");
/// let mut allocator = Caching::new(config, source).expect("no expandable segments");
/// let block = allocator.allocate_on(Stream(7), 1000)?;
/// assert_eq!(block.rounded_bytes, 1024);
/// assert_eq!(allocator.statistics().reserved_bytes.current, 2 << 20);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Caching<S> {
    config: Config,
    source: S,
    blocks: Blocks,
    segments: Segments,
    pools: Pools,
    /// Pools whose segments may go back.
    retired: BTreeSet<PoolId>,
    /// Live blocks by address.
    live: AddressIndex,
    /// What they were requested with.
    live_requested_bytes: u64,
    events: Events,
    statistics: Statistics,
    /// Bytes of the regions that the source has given, which may round segments up.
    held_bytes: u64,
    /// The device's memory.
    total_bytes: u64,
    /// What of it may be reserved.
    allowed_bytes: Option<u64>,
    /// From how many reserved bytes on garbage is collected.
    garbage_bytes: Option<u64>,
}

impl<S: Source> Caching<S> {
    /// An allocator that holds nothing, of a device whose memory is what the source has free now.
    ///
    /// # Errors
    ///
    /// [`ConfigError::Granule`] where the source's units are below 512 B, [`ConfigError::Page`]
    /// where it cannot map the pages of expandable segments.
    pub fn new(config: Config, source: S) -> Result<Self, ConfigError> {
        let total_bytes = source.free_bytes();
        Self::with_total(config, source, total_bytes)
    }

    /// An allocator that holds nothing, of a device with `total_bytes` of memory:
    /// `per_process_memory_fraction` and the reserve of expandable segments are shares of these.
    ///
    /// # Errors
    ///
    /// [`ConfigError::Granule`] where the source's units are below 512 B, [`ConfigError::Page`]
    /// where it cannot map the pages of expandable segments.
    pub fn with_total(config: Config, source: S, total_bytes: u64) -> Result<Self, ConfigError> {
        let granule_bytes = source.granule_bytes();
        if !granule_bytes.is_multiple_of(MIN_BLOCK_BYTES) {
            return Err(ConfigError::Granule { granule_bytes });
        }
        for page_bytes in [SMALL_SEGMENT_BYTES, config.large_segment_bytes] {
            if config.expandable_segments && !page_bytes.is_multiple_of(granule_bytes) {
                return Err(ConfigError::Page { page_bytes, granule_bytes });
            }
        }
        let mut pools = Pools::default();
        pools.add_pair();
        let allowed_bytes = config.memory_fraction.map(|share| share.of(total_bytes));
        let garbage = config.garbage_collection_threshold.zip(allowed_bytes);
        Ok(Self {
            source,
            blocks: Blocks::default(),
            segments: Segments::default(),
            pools,
            retired: BTreeSet::new(),
            live: AddressIndex::default(),
            live_requested_bytes: 0,
            events: Events::default(),
            statistics: Statistics::default(),
            held_bytes: 0,
            total_bytes,
            allowed_bytes,
            garbage_bytes: garbage.map(|(threshold, allowed)| threshold.of(allowed)),
            config,
        })
    }

    /// The settings.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Where its memory comes from.
    pub fn source(&self) -> &S {
        &self.source
    }

    /// What it has counted.
    pub fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// New pools, which share no segment with others (those of a CUDA graph, say). Their segments
    /// stay until the pools are [retired](Self::retire_pools).
    pub fn add_pools(&mut self) -> PoolId {
        let id = PoolId((self.pools.len() / 2) as u32);
        self.pools.add_pair();
        id
    }

    /// Nothing more is allocated in these pools: their segments may go back as soon as they are
    /// unused. The default pools never are.
    pub fn retire_pools(&mut self, pools: PoolId) {
        if pools != PoolId::DEFAULT {
            self.retired.insert(pools);
        }
    }

    /// Bytes of free blocks.
    fn hole_bytes(&self) -> u64 {
        self.statistics.reserved_bytes.current - self.statistics.active_bytes.current
    }
}

impl<S: Source + Send> Policy for Caching<S> {
    fn name(&self) -> &'static str {
        "caching"
    }

    fn alignment_bytes(&self) -> u64 {
        MIN_BLOCK_BYTES
    }

    fn allocate(&mut self, bytes: u64) -> Result<Block, PolicyError> {
        self.allocate_on(Stream::default(), bytes)
    }

    fn free(&mut self, address: u64) -> Result<(), PolicyError> {
        self.free_at(address)
    }

    fn is_live(&self, address: u64) -> bool {
        self.live.get(&self.blocks, address).is_some()
    }

    fn usage(&self) -> Usage {
        Usage {
            live_blocks: self.statistics.allocated_blocks.current,
            requested_bytes: self.live_requested_bytes,
            rounded_bytes: self.statistics.allocated_bytes.current,
            reserved_bytes: self.held_bytes,
        }
    }

    fn holes(&self, order: HoleOrder) -> Vec<Hole> {
        let ids = (0..self.pools.len()).flat_map(|pool| self.pools.free(pool));
        let mut holes: Vec<Hole> = ids
            .map(|id| Hole { address: self.blocks[id].address, bytes: self.blocks[id].bytes })
            .collect();
        if order == HoleOrder::Address {
            holes.sort_unstable_by_key(|hole| hole.address);
        }
        holes
    }

    fn hole_lengths(&self) -> Vec<u64> {
        let lists = (0..self.pools.len()).flat_map(|pool| self.pools.lists(pool));
        lists.flat_map(|list| list.free.lengths()).collect()
    }

    fn release_unused(&mut self) -> Result<u64, PolicyError> {
        let before = self.held_bytes;
        self.release_cache().map_err(PolicyError::Source)?;
        Ok(before - self.held_bytes)
    }
}
