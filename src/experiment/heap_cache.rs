//! Aged heaps: made when a group asks for one, and kept for the next group over the same.

use std::cell::RefCell;
use std::rc::Rc;

use serde_json::Map;

use super::scene::{GRANULE_BYTES, Heap, Part};
use crate::harness::{Aged, age, holes_layout, live_layout, metrics};
use crate::layout::{EntryForm, Extents};
use crate::policy::{Growth, HoleOrder, Params, Placement, SimulatedSource};
use crate::record::HeapFacts;

/// The heap that was aged last: parts of one heap follow each other.
#[derive(Default)]
pub(super) struct HeapCache {
    last: RefCell<Option<(Heap, u64, Rc<Aged>)>>,
}

/// Fragments of an aged heap in every order, with entries of one form.
pub(super) struct HeapLayout {
    pub packed: Extents,
    pub sorted: Extents,
    pub scattered: Extents,
    pub facts: HeapFacts,
}

impl HeapCache {
    /// The fragments of a heap.
    ///
    /// # Errors
    ///
    /// A sentence that says what cannot be, and what would work.
    pub fn layout(&self, heap: &Heap, seed: u64) -> Result<HeapLayout, String> {
        let aged = self.aged(heap, seed)?;
        let (sorted, scattered) = match heap.part {
            Part::Live => {
                let scattered = live_layout(&aged).map_err(|error| error.to_string())?;
                (scattered.sorted(), scattered)
            }
            Part::Holes => {
                let filled = |order| holes_layout(&aged, heap.payload_bytes(), order);
                let scattered = filled(HoleOrder::FreeList).map_err(|error| error.to_string())?;
                // The same fragments by address, where the list is cut off before the last hole.
                (scattered.sorted(), scattered)
            }
        };
        let arena_bytes = heap.heap_bytes;
        if scattered.reach_bytes() > arena_bytes {
            return Err(format!(
                "{} spread its regions over {} bytes of addresses, more than the heap's {arena_bytes}",
                heap.policy,
                scattered.reach_bytes()
            ));
        }
        let packed = scattered.packed();
        let forms = [&packed, &sorted, &scattered].map(Extents::entry_form);
        let form = forms.into_iter().max().unwrap_or(EntryForm::Narrow);
        let facts = facts(heap, &aged, &scattered);
        let [packed, sorted, scattered] =
            [packed, sorted, scattered].map(|extents| extents.with_entries_at_least(form));
        Ok(HeapLayout { packed, sorted, scattered, facts })
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
