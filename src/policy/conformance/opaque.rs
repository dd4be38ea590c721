//! Allocators of which no more is known than what they tell, here some that need no device.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::{Refill, Refusal, Tells, Traits, check_opaque};
use crate::policy::{
    BestFit, Block, Counted, Growth, Hole, HoleOrder, Limited, Params, Placement, Policy,
    PolicyError, PolicyName, SimulatedSource, Usage,
};

/// What all instances together were asked for.
#[derive(Debug, Default)]
struct Cost {
    calls: AtomicU64,
    live_bytes: AtomicU64,
    peak_live_bytes: AtomicU64,
}

/// An opaque allocator: addresses never come back, and no holes are told.
#[derive(Debug)]
struct Bump {
    /// The alignment, and what sizes are rounded up to.
    unit_bytes: u64,
    next: u64,
    live: BTreeMap<u64, Block>,
    /// Bytes of freed blocks that it keeps until they are released; `None` keeps nothing.
    kept_bytes: Option<u64>,
    cost: Arc<Cost>,
}

impl Bump {
    const END: u64 = 1 << 50;

    fn new(unit_bytes: u64, kept_bytes: Option<u64>, cost: &Arc<Cost>) -> Self {
        let cost = Arc::clone(cost);
        Self { unit_bytes, next: 1 << 32, live: BTreeMap::new(), kept_bytes, cost }
    }
}

impl Policy for Bump {
    fn name(&self) -> &'static str {
        "bump"
    }

    fn alignment_bytes(&self) -> u64 {
        self.unit_bytes
    }

    fn allocate(&mut self, bytes: u64) -> Result<Block, PolicyError> {
        self.cost.calls.fetch_add(1, Relaxed);
        let requested_bytes = bytes.max(1);
        if requested_bytes > Self::END - self.next {
            return Err(self.usage().out_of_memory(requested_bytes));
        }
        let rounded_bytes = requested_bytes.next_multiple_of(self.unit_bytes);
        let block = Block { address: self.next, requested_bytes, rounded_bytes };
        self.next += rounded_bytes;
        self.live.insert(block.address, block);
        let live_bytes = self.cost.live_bytes.fetch_add(rounded_bytes, Relaxed) + rounded_bytes;
        self.cost.peak_live_bytes.fetch_max(live_bytes, Relaxed);
        Ok(block)
    }

    fn free(&mut self, address: u64) -> Result<(), PolicyError> {
        self.cost.calls.fetch_add(1, Relaxed);
        let block = self.live.remove(&address).ok_or(PolicyError::NotLive { address })?;
        self.kept_bytes = self.kept_bytes.map(|bytes| bytes + block.rounded_bytes);
        self.cost.live_bytes.fetch_sub(block.rounded_bytes, Relaxed);
        Ok(())
    }

    fn is_live(&self, address: u64) -> bool {
        self.live.contains_key(&address)
    }

    fn usage(&self) -> Usage {
        let rounded_bytes = self.live.values().map(|block| block.rounded_bytes).sum();
        Usage {
            live_blocks: self.live.len() as u64,
            requested_bytes: self.live.values().map(|block| block.requested_bytes).sum(),
            rounded_bytes,
            reserved_bytes: rounded_bytes + self.kept_bytes.unwrap_or(0),
        }
    }

    fn holes(&self, _order: HoleOrder) -> Vec<Hole> {
        Vec::new()
    }

    fn release_unused(&mut self) -> Result<u64, PolicyError> {
        self.cost.calls.fetch_add(1, Relaxed);
        Ok(self.kept_bytes.as_mut().map_or(0, std::mem::take))
    }
}

/// The calls of all checks come to some thousand, though real ones may take 200 us each.
#[test]
fn an_opaque_allocator_conforms_at_little_cost() {
    let kept = Traits {
        tells: Tells::Reserved,
        // A block that is rounded past the limit goes back and is kept.
        refusal: Refusal::ChangesReserved,
        ..Traits::OPAQUE
    };
    let kinds =
        [(512, None, Traits::OPAQUE), (512, Some(0), kept), (2 << 20, None, Traits::OPAQUE)];
    for (unit_bytes, kept_bytes, traits) in kinds {
        let cost = Arc::new(Cost::default());
        let mut make = || -> Box<dyn Policy> { Box::new(Bump::new(unit_bytes, kept_bytes, &cost)) };
        check_opaque(&mut make, traits);
        assert_eq!(cost.live_bytes.load(Relaxed), 0, "all was freed");
        let (calls, bytes) = (cost.calls.load(Relaxed), cost.peak_live_bytes.load(Relaxed));
        assert!(calls < 4000, "{calls} calls");
        assert!(bytes <= 256 << 20, "{bytes} bytes");
    }
}

/// What is known is checked though no source is seen.
#[test]
fn a_limited_policy_conforms() {
    let memory = 64 << 20;
    let mut make = || -> Box<dyn Policy> {
        let source = SimulatedSource::new(memory, 4096, Placement::Contiguous).unwrap();
        let params = Params::default().with_growth(Growth::Regions { bytes: 1 << 20 });
        let policy = Counted::new(BestFit::new(source, &params).unwrap());
        Box::new(Limited::new(policy, memory / 4))
    };
    let traits = Traits {
        capacity_bytes: memory / 4,
        least_taken_bytes: memory / 8,
        most_bytes: 1 << 20,
        block_bytes: 256 << 10,
        tells: Tells::Holes,
        reuses_addresses: true,
        merges_neighbours: true,
        repeats: true,
        ..Traits::OPAQUE
    };
    check_opaque(&mut make, traits);
}

/// Any policy may be given as one of which little is known.
#[test]
fn every_policy_conforms_opaquely() {
    for name in PolicyName::ALL {
        let mut make = || {
            let source = SimulatedSource::new(1 << 30, 2 << 20, Placement::Contiguous).unwrap();
            let params = Params { block_bytes: 4 << 20, ..Params::default() };
            name.build(source, &params).unwrap()
        };
        let traits = Traits {
            largest_bytes: 4 << 20,
            tells: Tells::Holes,
            refill: Refill::AfterRelease,
            refusal: Refusal::ChangesReserved,
            ..Traits::OPAQUE
        };
        check_opaque(&mut make, traits);
    }
}
