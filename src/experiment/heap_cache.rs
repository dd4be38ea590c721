//! Aged heaps: made ahead or when a group asks for one, and kept for the next group over the same.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use serde_json::Map;

use super::allocation::Allocator;
use super::fragments::VariedLayout;
use super::scene::{GRANULE_BYTES, Heap, Part};
use crate::device::{Device, DeviceAllocator};
use crate::harness::{Aged, Recipe, age, holes_layout, live_layout, metrics};
use crate::layout::{Extents, Fragment, UNIT_BYTES};
use crate::policy::{Growth, HoleOrder, Limited, Params, Placement, PolicyName, SimulatedSource};
use crate::record::HeapFacts;

/// Calls of a device's allocator after which ageing ends: some ten seconds.
const MOST_CALLS: u64 = 300_000;

/// Aged heaps: the last one, and those that other cores age before their turn comes.
pub(super) struct HeapCache {
    seed: u64,
    last: RefCell<Option<(Heap, Arc<Aged>)>>,
    ahead: Arc<Ahead>,
}

/// A heap, or why there is none.
type Outcome = Result<Arc<Aged>, String>;

/// What is aged ahead: nothing yet, while it is under way.
#[derive(Default)]
struct Ahead {
    heaps: Mutex<HashMap<Heap, Option<Outcome>>>,
    changed: Condvar,
}

impl Ahead {
    fn lock(&self) -> MutexGuard<'_, HashMap<Heap, Option<Outcome>>> {
        // A heap whose ageing panicked stays under way; the others are as they were.
        self.heaps.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The heap, once it is there; none where nobody ages it.
    fn take(&self, heap: &Heap) -> Option<Outcome> {
        let mut heaps = self.lock();
        loop {
            match heaps.get(heap)? {
                Some(_) => return heaps.remove(heap).flatten(),
                None => {
                    heaps = self.changed.wait(heaps).unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }
}

impl HeapCache {
    /// An empty cache for heaps of this seed.
    pub fn new(seed: u64) -> HeapCache {
        HeapCache { seed, last: RefCell::default(), ahead: Arc::default() }
    }

    /// Ages the first few of these heaps on other cores, a thread each, for groups that will ask for
    /// them soon. Half of the cores stay free for what is measured meanwhile.
    pub fn age_ahead(&self, heaps: &[Heap]) {
        let threads = std::thread::available_parallelism().map_or(1, |cores| cores.get() / 2);
        let mut known = self.ahead.lock();
        let is_last =
            |heap: &Heap| self.last.borrow().as_ref().is_some_and(|(last, _)| last == heap);
        // Those of the device's own allocators are aged on it, when it is their turn.
        let simulated = heaps.iter().filter(|heap| !heap.is_on_device());
        for heap in simulated.take(threads) {
            if known.contains_key(heap) || is_last(heap) {
                continue;
            }
            let Allocator::Policy(policy) = heap.policy else { continue };
            let (heap, seed, ahead) = (*heap, self.seed, self.ahead.clone());
            let thread = std::thread::Builder::new().spawn(move || {
                let outcome = age_simulated(policy, &heap, seed).map(Arc::new);
                ahead.lock().insert(heap, Some(outcome));
                ahead.changed.notify_all();
            });
            // Without a thread it is aged when its turn comes.
            if thread.is_ok() {
                known.insert(heap, None);
            }
        }
    }

    /// The fragments of a heap.
    ///
    /// # Errors
    ///
    /// A sentence that says what cannot be, and what would work.
    pub fn layout(&self, heap: &Heap, device: &dyn Device) -> Result<VariedLayout, String> {
        let aged = self.aged(heap, device)?;
        let scattered = match heap.part {
            Part::Live => live_layout(&aged),
            Part::Holes => {
                let held = |holes: &[Fragment]| -> u64 {
                    holes.iter().map(|hole| hole.bytes / UNIT_BYTES * UNIT_BYTES).sum()
                };
                let payload_bytes = heap.payload_bytes().min(held(aged.holes(HoleOrder::Address)));
                holes_layout(&aged, payload_bytes, HoleOrder::FreeList)
            }
        };
        let scattered = scattered.map_err(|error| error.to_string())?;
        let (reach_bytes, arena_bytes) = (scattered.reach_bytes(), heap.arena_bytes());
        if reach_bytes > arena_bytes {
            return Err(format!(
                "{} spread its regions over {reach_bytes} bytes of addresses, more than \
                 {arena_bytes}: ask for a lower occupancy",
                heap.policy
            ));
        }
        let facts = facts(heap, &aged, &scattered);
        Ok(VariedLayout::of(scattered, Some(facts)))
    }

    /// Ages a heap, so that it is there when its fragments are asked for. Whatever goes wrong is told
    /// then.
    pub fn age_first(&self, heap: &Heap, device: &dyn Device) {
        let _ = self.aged(heap, device);
    }

    fn aged(&self, heap: &Heap, device: &dyn Device) -> Outcome {
        let whole = heap.whole();
        let mut last = self.last.borrow_mut();
        if let Some((known, aged)) = &*last
            && *known == whole
        {
            return Ok(aged.clone());
        }
        // What is not needed any more goes before the next one is made.
        *last = None;
        let outcome = self.ahead.take(&whole);
        let age_now = || match whole.policy {
            Allocator::Device(which) => age_on(device, which, &whole, self.seed),
            Allocator::Policy(policy) => age_simulated(policy, &whole, self.seed),
        };
        let aged = outcome.unwrap_or_else(|| age_now().map(Arc::new))?;
        *last = Some((whole, aged.clone()));
        Ok(aged)
    }
}

/// Ages an allocator of the device in the device's own memory, and gives all of it back: what stays are
/// the addresses that it had handed out.
fn age_on(
    device: &dyn Device,
    which: DeviceAllocator,
    heap: &Heap,
    seed: u64,
) -> Result<Aged, String> {
    let own = device.allocator(which).map_err(|error| error.to_string())?;
    let recipe = Recipe { limit_operations: MOST_CALLS, ..heap.recipe(seed) };
    age(&mut Limited::new(own, heap.heap_bytes), &recipe).map_err(|error| error.to_string())
}

/// Ages a policy over a heap of its own.
fn age_simulated(policy: PolicyName, heap: &Heap, seed: u64) -> Result<Aged, String> {
    let source = SimulatedSource::new(heap.heap_bytes, GRANULE_BYTES, Placement::Contiguous)
        .map_err(|error| error.to_string())?;
    let recipe = heap.recipe(seed);
    let params = Params {
        growth: Growth::Whole,
        block_bytes: heap
            .sizes
            .largest_bytes(recipe.scale_shift(Params::default().alignment_bytes)),
        ..Params::default()
    };
    let mut policy = policy.build(source, &params).map_err(|error| error.to_string())?;
    age(&mut *policy, &recipe).map_err(|error| error.to_string())
}

/// What lies between live blocks: of an allocator that tells no holes all that is to be seen of them,
/// be there memory under it or not.
fn gaps(live: &[Fragment]) -> Vec<u64> {
    let mut blocks: Vec<(u64, u64)> =
        live.iter().map(|block| (block.offset, block.offset + block.bytes)).collect();
    blocks.sort_unstable();
    let between = blocks.windows(2).map(|two| two[1].0.saturating_sub(two[0].1));
    between.filter(|bytes| *bytes > 0).collect()
}

fn facts(heap: &Heap, aged: &Aged, scattered: &Extents) -> HeapFacts {
    let reached = aged.reached();
    let holes = match heap.is_on_device() {
        true => gaps(aged.live()),
        false => aged.holes(HoleOrder::Address).iter().map(|hole| hole.bytes).collect(),
    };
    let median_hole_bytes = match heap.is_on_device() {
        true => metrics::median_bytes(&holes).unwrap_or(0),
        false => reached.median_hole_bytes,
    };
    HeapFacts {
        policy: heap.policy.to_string(),
        sizes: heap.sizes.to_string(),
        heap_bytes: heap.heap_bytes,
        occupancy_percent: heap.occupancy_percent,
        hole_bytes: heap.hole_bytes,
        median_hole_bytes,
        stop: reached.stop.to_string(),
        operations: reached.operations,
        refusals: reached.refusals,
        scale_shift: reached.scale_shift,
        live_blocks: reached.usage.live_blocks,
        requested_bytes: reached.usage.requested_bytes,
        rounded_bytes: reached.usage.rounded_bytes,
        reserved_bytes: reached.usage.reserved_bytes,
        largest_hole_bytes: metrics::largest_bytes(&holes).unwrap_or(0),
        hole_sum_bytes: holes.iter().sum(),
        layout_hash: format!("{:#018x}", scattered.hash()),
        extra: Map::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::scripted::{Scripted, at_rate};
    use crate::harness::Distribution;

    fn device() -> Scripted {
        Scripted::new(1 << 30, |timed| at_rate(timed, 4000.0))
    }

    fn heap(policy: PolicyName) -> Heap {
        Heap {
            part: Part::Live,
            policy: Allocator::Policy(policy),
            sizes: Distribution::LogNormal,
            occupancy_percent: 60,
            hole_bytes: 64 << 10,
            heap_bytes: 64 << 20,
        }
    }

    fn hash(cache: &HeapCache, heap: &Heap) -> String {
        cache.layout(heap, &device()).unwrap().heap_facts().unwrap().layout_hash.clone()
    }

    #[test]
    fn a_heap_that_was_aged_ahead_is_the_same() {
        let (ahead, plain) = (HeapCache::new(1), HeapCache::new(1));
        let heaps = [PolicyName::BestFit, PolicyName::Buddy].map(heap);
        ahead.age_ahead(&heaps);
        // Asked for again while it is under way or done.
        ahead.age_ahead(&heaps);
        for heap in &heaps {
            let holes = Heap { part: Part::Holes, ..*heap };
            assert_eq!(hash(&ahead, heap), hash(&plain, heap), "{}", heap.policy);
            assert_eq!(hash(&ahead, &holes), hash(&plain, &holes), "{}", heap.policy);
        }
        assert!(ahead.ahead.lock().is_empty());
        assert_ne!(hash(&HeapCache::new(2), &heaps[0]), hash(&plain, &heaps[0]));
    }

    #[test]
    fn a_heap_that_cannot_be_says_so_either_way() {
        let full = Heap { occupancy_percent: 99, ..heap(PolicyName::Buddy) };
        let (ahead, plain) = (HeapCache::new(1), HeapCache::new(1));
        ahead.age_ahead(&[full]);
        let error = plain.layout(&full, &device()).err().unwrap();
        assert!(error.contains("buddy") && error.contains("99 %"), "{error}");
        assert_eq!(ahead.layout(&full, &device()).err().unwrap(), error);
    }

    #[test]
    fn a_devices_allocator_is_aged_on_it_and_leaves_it_as_it_was() {
        let device = device();
        let free = device.free_bytes().unwrap();
        let own = Heap {
            policy: Allocator::Device(DeviceAllocator::CuMemAlloc),
            occupancy_percent: 30,
            hole_bytes: 1 << 20,
            heap_bytes: 1 << 30,
            ..heap(PolicyName::FirstFit)
        };
        let cache = HeapCache::new(1);
        // Not ahead: the device is this thread's.
        cache.age_ahead(&[own]);
        assert!(cache.ahead.lock().is_empty());
        let found = cache.layout(&own, &device).unwrap();
        assert_eq!(device.free_bytes().unwrap(), free);
        let facts = found.heap_facts().unwrap();
        assert_eq!((facts.policy.as_str(), &facts.stop[..]), ("cu_mem_alloc", "steady"));
        assert!(facts.live_blocks >= 256 && facts.operations > 2 * facts.live_blocks);
        // Blocks take whole pages, so gaps lie behind all that are shorter.
        assert!(facts.hole_sum_bytes > 0 && facts.median_hole_bytes < 2 << 20);
        let pool = Heap { policy: Allocator::Device(DeviceAllocator::MemPoolKeep), ..own };
        let error = cache.layout(&pool, &device).err().unwrap();
        assert!(error.contains("only CUDA devices have"), "{error}");
    }

    #[test]
    fn gaps_lie_between_live_blocks_whatever_their_order() {
        let block = |offset, bytes| Fragment { offset, bytes };
        assert_eq!(gaps(&[block(100, 20), block(0, 30), block(30, 20)]), [50]);
        assert!(gaps(&[]).is_empty());
    }
}
