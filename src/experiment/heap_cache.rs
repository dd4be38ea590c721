//! Aged heaps: made ahead or when a group asks for one, and kept for the next group over the same.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use serde_json::Map;

use super::fragments::VariedLayout;
use super::scene::{GRANULE_BYTES, Heap, Part};
use crate::harness::{Aged, age, holes_layout, live_layout, metrics};
use crate::layout::{Extents, Fragment, UNIT_BYTES};
use crate::policy::{Growth, HoleOrder, Params, Placement, SimulatedSource};
use crate::record::HeapFacts;

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
        for heap in heaps.iter().take(threads) {
            if known.contains_key(heap) || is_last(heap) {
                continue;
            }
            let (heap, seed, ahead) = (*heap, self.seed, self.ahead.clone());
            let thread = std::thread::Builder::new().spawn(move || {
                let outcome = age_heap(&heap, seed).map(Arc::new);
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
    pub fn layout(&self, heap: &Heap) -> Result<VariedLayout, String> {
        let aged = self.aged(heap)?;
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

    fn aged(&self, heap: &Heap) -> Outcome {
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
        let aged = outcome.unwrap_or_else(|| age_heap(&whole, self.seed).map(Arc::new))?;
        *last = Some((whole, aged.clone()));
        Ok(aged)
    }
}

/// Ages a policy over a heap of its own.
fn age_heap(heap: &Heap, seed: u64) -> Result<Aged, String> {
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
    let mut policy = heap.policy.build(source, &params).map_err(|error| error.to_string())?;
    age(&mut *policy, &recipe).map_err(|error| error.to_string())
}

fn facts(heap: &Heap, aged: &Aged, scattered: &Extents) -> HeapFacts {
    let reached = aged.reached();
    let holes: Vec<u64> = aged.holes(HoleOrder::Address).iter().map(|hole| hole.bytes).collect();
    HeapFacts {
        policy: heap.policy.to_string(),
        sizes: heap.sizes.to_string(),
        heap_bytes: heap.heap_bytes,
        occupancy_percent: heap.occupancy_percent,
        hole_bytes: heap.hole_bytes,
        median_hole_bytes: reached.median_hole_bytes,
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
    use crate::harness::Distribution;
    use crate::policy::PolicyName;

    fn heap(policy: PolicyName) -> Heap {
        Heap {
            part: Part::Live,
            policy,
            sizes: Distribution::LogNormal,
            occupancy_percent: 60,
            hole_bytes: 64 << 10,
            heap_bytes: 64 << 20,
        }
    }

    fn hash(cache: &HeapCache, heap: &Heap) -> String {
        cache.layout(heap).unwrap().heap_facts().unwrap().layout_hash.clone()
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
        let error = plain.layout(&full).err().unwrap();
        assert!(error.contains("buddy") && error.contains("99 %"), "{error}");
        assert_eq!(ahead.layout(&full).err().unwrap(), error);
    }
}
