//! What the arms of a group go over.

use serde::{Deserialize, Serialize};

use super::allocation::Allocator;
use crate::harness::{Distribution, Preset, Recipe, Scale, Situation};
use crate::layout::{Layout, LayoutError, Spec, UNIT_BYTES};
use crate::record::{Mechanism, PatternName, Refined, size};

/// The granule of a heap's source in bytes: a page of a GPU.
pub(super) const GRANULE_BYTES: u64 = 2 << 20;

/// Calls of a policy after which ageing ends: some seconds.
const MOST_OPERATIONS: u64 = 10_000_000;

/// What the arms of a group go over.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Scene {
    /// Fragments of one length; of contiguous kernels only the sizes count.
    Uniform(Spec),
    /// What an aged heap leaves.
    Aged(Heap),
    /// A situation that readers know.
    Preset(Staged),
}

/// A situation, and about what its fragments come to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Staged {
    /// The situation.
    pub preset: Preset,
    /// From its first to its last byte.
    pub footprint_bytes: u64,
    /// Bytes that its fragments need in any order: packed ones each begin at a whole piece.
    pub arena_bytes: u64,
    /// Bytes of its fragments.
    pub payload_bytes: u64,
    /// How many there are.
    pub fragments: u64,
    /// What they stand for.
    pub mechanism: Mechanism,
}

impl Staged {
    /// The situation with this seed.
    ///
    /// # Errors
    ///
    /// A sentence that says which parameters contradict each other, and what would work.
    pub fn new(preset: Preset, seed: u64) -> Result<Staged, String> {
        let Situation { extents, mechanism, .. } =
            preset.situation(seed).map_err(|error| error.to_string())?;
        let needed =
            [extents.footprint_bytes(), extents.reach_bytes(), extents.packed().reach_bytes()];
        Ok(Staged {
            preset,
            footprint_bytes: extents.footprint_bytes(),
            arena_bytes: needed.into_iter().max().unwrap_or(0).next_multiple_of(UNIT_BYTES),
            payload_bytes: extents.payload_bytes(),
            fragments: extents.fragments().len() as u64,
            mechanism,
        })
    }
}

/// Fragments of an aged heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Heap {
    /// What of it.
    pub part: Part,
    /// What was aged: a policy over simulated memory, or an allocator of the device.
    pub policy: Allocator,
    /// The sizes and lifetimes of its blocks.
    pub sizes: Distribution,
    /// Requested bytes of live blocks by bytes of the heap, in percent.
    pub occupancy_percent: u32,
    /// The byte-weighted median hole that is asked for, in bytes.
    pub hole_bytes: u64,
    /// Bytes of the heap.
    pub heap_bytes: u64,
}

/// A part of an aged heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Part {
    /// All live blocks, each whole, in the order in which they were made.
    Live,
    /// A payload that fills the holes, in the order of the policy's free list.
    Holes,
}

impl Part {
    /// Both parts.
    pub const ALL: [Part; 2] = [Part::Live, Part::Holes];

    /// The refinement of the pattern `aged`.
    pub fn name(self) -> &'static str {
        match self {
            Part::Live => "live",
            Part::Holes => "holes",
        }
    }
}

impl Heap {
    /// What the harness is asked for.
    pub fn recipe(&self, seed: u64) -> Recipe {
        Recipe {
            occupancy_percent: self.occupancy_percent,
            scale: Scale::Level,
            limit_operations: MOST_OPERATIONS,
            ..Recipe::new(self.sizes, self.heap_bytes, self.hole_bytes, seed)
        }
    }

    /// Whether there can be such a heap.
    ///
    /// # Errors
    ///
    /// A sentence that says what cannot be, and what would work.
    pub fn check(&self) -> Result<(), String> {
        self.recipe(0).check().map_err(|error| error.to_string())?;
        if self.is_on_device() && self.part == Part::Holes {
            return Err(format!("{} does not tell its holes: take pattern=aged.live", self.policy));
        }
        if !self.heap_bytes.is_multiple_of(GRANULE_BYTES) {
            let granule = size::exact(GRANULE_BYTES);
            return Err(format!(
                "a heap of {}: it is taken in pages, so give a multiple of {granule}",
                size::exact(self.heap_bytes)
            ));
        }
        Ok(())
    }

    /// Whether an allocator of the device is aged: only there, and only its live blocks can be seen.
    pub(super) fn is_on_device(&self) -> bool {
        matches!(self.policy, Allocator::Device(_))
    }

    /// Bytes of addresses that the heap may spread over: an eighth more than it has memory, as a caching
    /// allocator reserves for itself, for addresses are not given out again as closely as memory. A
    /// device's allocator leaves wider gaps.
    pub(super) fn arena_bytes(&self) -> u64 {
        match self.is_on_device() {
            true => 2 * self.heap_bytes,
            false => self.heap_bytes / 8 * 9,
        }
    }

    /// Bytes of the device that it takes to age it: blocks above 1 MiB take whole pages.
    pub(super) fn aging_bytes(&self) -> u64 {
        if self.is_on_device() { 2 * self.heap_bytes } else { 0 }
    }

    /// The heap as all of its parts name it.
    pub(super) fn whole(&self) -> Heap {
        Heap { part: Part::Live, ..*self }
    }

    /// Bytes of payload: of live blocks about what is asked for, of holes three quarters of what is
    /// free then, or all that they hold.
    pub fn payload_bytes(&self) -> u64 {
        let part = |percent: u64| self.heap_bytes / 200 * percent / UNIT_BYTES * UNIT_BYTES;
        match self.part {
            Part::Live => part(2 * u64::from(self.occupancy_percent)),
            Part::Holes => part(3 * u64::from(100 - self.occupancy_percent.min(99)) / 2),
        }
    }

    /// About how many fragments there are at most.
    fn fragments(&self) -> u64 {
        // The shortest blocks of the suites have some KiB on average.
        self.heap_bytes >> 10
    }
}

impl Scene {
    /// The layout of fragments of one length; none of another scene.
    ///
    /// # Errors
    ///
    /// [`LayoutError`] where the sizes do not fit each other.
    pub fn layout(&self, seed: u64) -> Option<Result<Layout, LayoutError>> {
        match self {
            Scene::Uniform(spec) => Some(Layout::new(*spec, seed)),
            Scene::Aged(_) | Scene::Preset(_) => None,
        }
    }

    /// The spec of fragments of one length; none of another scene.
    pub fn spec(&self) -> Option<&Spec> {
        match self {
            Scene::Uniform(spec) => Some(spec),
            Scene::Aged(_) | Scene::Preset(_) => None,
        }
    }

    /// From the first to the last byte that the fragments may use.
    pub fn footprint_bytes(&self) -> u64 {
        match self {
            Scene::Uniform(spec) => spec.footprint_bytes,
            Scene::Aged(heap) => heap.heap_bytes,
            Scene::Preset(staged) => staged.footprint_bytes,
        }
    }

    /// Bytes of the arena that the arms need.
    pub fn arena_bytes(&self) -> u64 {
        match self {
            Scene::Preset(staged) => staged.arena_bytes,
            Scene::Aged(heap) => heap.arena_bytes(),
            Scene::Uniform(spec) => spec.footprint_bytes,
        }
    }

    /// Bytes of payload; of varying fragments about how many there will be.
    pub fn payload_bytes(&self) -> u64 {
        match self {
            Scene::Uniform(spec) => spec.payload_bytes,
            Scene::Aged(heap) => heap.payload_bytes(),
            Scene::Preset(staged) => staged.payload_bytes,
        }
    }

    /// The length of all fragments, where they have one.
    pub fn fragment_bytes(&self) -> Option<u64> {
        self.spec().map(|spec| spec.fragment_bytes)
    }

    /// The alignment of all fragments, where it is known beforehand.
    pub fn alignment_bytes(&self) -> Option<u64> {
        self.spec().map(Spec::alignment_bytes)
    }

    /// The pattern, with what its name leaves open.
    pub fn pattern(&self) -> Refined<PatternName> {
        match self {
            Scene::Uniform(spec) => spec.pattern.refined(spec.offset_bytes),
            Scene::Aged(heap) => Refined::new(PatternName::Aged, heap.part.name()),
            Scene::Preset(staged) => Refined::new(PatternName::Preset, staged.preset.name()),
        }
    }

    /// How far the slots of fragments of one length lie behind an aligned address.
    pub fn offset_bytes(&self) -> u64 {
        self.spec().map_or(0, |spec| spec.offset_bytes)
    }

    /// What the fragments stand for.
    pub fn mechanism(&self) -> Mechanism {
        match self {
            Scene::Uniform(spec) => spec.pattern.mechanism(),
            Scene::Aged(_) => Mechanism::Placement,
            Scene::Preset(staged) => staged.mechanism.clone(),
        }
    }

    /// Whether a fragment may be visited again.
    pub fn repeats(&self) -> bool {
        self.spec().is_some_and(|spec| spec.pattern.repeats())
    }

    /// What a case id says between kernel and footprint.
    pub(super) fn keys(&self, has_layout: bool) -> String {
        let pattern = format!("/pattern={}", self.pattern());
        match self {
            Scene::Uniform(spec) if has_layout => {
                format!("{pattern}/fragment={}", size::exact(spec.fragment_bytes))
            }
            Scene::Uniform(_) => pattern,
            Scene::Aged(Heap { policy, sizes, occupancy_percent, hole_bytes, .. }) => format!(
                "{pattern}/policy={policy}/sizes={sizes}/occupancy={occupancy_percent}/hole={}",
                size::exact(*hole_bytes)
            ),
            Scene::Preset(staged) => match staged.preset.own_parameters() {
                own if own.is_empty() => pattern,
                own => format!("{pattern}/with={own}"),
            },
        }
    }

    /// Bytes of all that tells kernels where the fragments of one order are.
    pub(super) fn index_bytes(&self) -> u64 {
        match self {
            Scene::Uniform(_) => self
                .layout(0)
                .and_then(Result::ok)
                .map_or(0, |layout| layout.fragments() * u64::from(layout.index_entry_bytes())),
            Scene::Aged(heap) => table_bytes(heap.fragments(), heap.heap_bytes),
            Scene::Preset(staged) => table_bytes(staged.fragments, staged.payload_bytes),
        }
    }
}

/// The most that the table of so many fragments takes: an entry of 16 B each, and for checks a place of
/// 24 B and a range of 16 B; 8 B of rank for each row, which holds 128 B of the shortest fragments.
fn table_bytes(fragments: u64, payload_bytes: u64) -> u64 {
    fragments * 56 + (payload_bytes / 64).min(payload_bytes / 512 * 8 + fragments * 8)
}
