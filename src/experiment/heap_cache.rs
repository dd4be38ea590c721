//! Aged heaps: made when a group asks for one, and kept for the next group over the same.

use std::cell::RefCell;
use std::rc::Rc;

use serde_json::Map;

use super::fragments::VariedLayout;
use super::scene::{GRANULE_BYTES, Heap, Part};
use crate::harness::{Aged, age, holes_layout, live_layout, metrics};
use crate::layout::{Extents, Fragment, UNIT_BYTES};
use crate::policy::{Growth, HoleOrder, Params, Placement, SimulatedSource};
use crate::record::HeapFacts;

/// The heap that was aged last: parts of one heap follow each other.
#[derive(Default)]
pub(super) struct HeapCache {
    last: RefCell<Option<(Heap, u64, Rc<Aged>)>>,
}

impl HeapCache {
    /// The fragments of a heap.
    ///
    /// # Errors
    ///
    /// A sentence that says what cannot be, and what would work.
    pub fn layout(&self, heap: &Heap, seed: u64) -> Result<VariedLayout, String> {
        let aged = self.aged(heap, seed)?;
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
        let (reach_bytes, heap_bytes) = (scattered.reach_bytes(), heap.heap_bytes);
        if reach_bytes > heap_bytes {
            return Err(format!(
                "{} spread its regions over {reach_bytes} bytes of addresses, more than the heap's \
                 {heap_bytes}: ask for a lower occupancy",
                heap.policy
            ));
        }
        let facts = facts(heap, &aged, &scattered);
        Ok(VariedLayout::of(scattered, Some(facts)))
    }

    fn aged(&self, heap: &Heap, seed: u64) -> Result<Rc<Aged>, String> {
        let whole = Heap { part: Part::Live, ..*heap };
        let mut last = self.last.borrow_mut();
        if let Some((known, known_seed, aged)) = &*last
            && (*known, *known_seed) == (whole, seed)
        {
            return Ok(aged.clone());
        }
        // What is not needed any more goes before the next one is made.
        *last = None;
        let aged = Rc::new(age_heap(&whole, seed)?);
        *last = Some((whole, seed, aged.clone()));
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
