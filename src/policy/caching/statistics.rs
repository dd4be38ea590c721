//! What the allocator counts.

/// A quantity now, and its highest value so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Level {
    /// Now.
    pub current: u64,
    /// The highest so far.
    pub peak: u64,
}

impl Level {
    pub(super) fn add(&mut self, amount: u64) {
        self.current += amount;
        self.peak = self.peak.max(self.current);
    }

    pub(super) fn subtract(&mut self, amount: u64) {
        debug_assert!(amount <= self.current, "{amount} of {}", self.current);
        self.current -= amount;
    }
}

/// The allocator's statistics, named as `torch.cuda.memory_stats` names them where it has them.
///
/// *Allocated* blocks are those handed out. *Active* ones are these and the freed ones that a stream
/// may still use. *Inactive split* ones are free parts of segments in use, which cannot go back;
/// expandable segments have none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Bytes of all segments, and of all mapped pages.
    pub reserved_bytes: Level,
    /// Segments, without those that expand.
    pub segments: Level,
    /// Blocks handed out.
    pub allocated_blocks: Level,
    /// Their bytes, as rounded.
    pub allocated_bytes: Level,
    /// Active blocks.
    pub active_blocks: Level,
    /// Their bytes, as rounded.
    pub active_bytes: Level,
    /// Bytes that active blocks were asked for with.
    pub requested_bytes: Level,
    /// Inactive split blocks.
    pub inactive_split_blocks: Level,
    /// Their bytes.
    pub inactive_split_bytes: Level,
    /// How often memory was asked for again after the cache had been released (`num_alloc_retries`).
    pub alloc_retries: u64,
    /// How often that, too, did not help (`num_ooms`).
    pub ooms: u64,
    /// How often all events were waited for (`num_sync_all_streams`).
    pub synchronizations: u64,
    /// Calls that took memory of the source: allocations and mappings (`num_device_alloc`).
    pub device_allocations: u64,
    /// Calls that gave memory back (`num_device_free`).
    pub device_frees: u64,
}
