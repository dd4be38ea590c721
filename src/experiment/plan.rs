//! One group before it is measured.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Map;

use crate::device::Movement;
use crate::kernel::{GUARD_BYTES, staging_bytes};
use crate::measure::Budget;
use crate::record::{
    Clocks, Experiment, Group, KernelName, Mechanism, Phases, Refined, Status, size,
};

use super::backing::Chunked;
use super::mitigations;
use super::scene::{Heap, Scene};

/// What the arms of a group do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Subject {
    /// Read, write, copy and the driver's copy of one contiguous range.
    Ceiling,
    /// One kernel over a layout, packed, sorted and scattered, beside its stream.
    Layout(Movement),
    /// One kernel's default and its competitors, over the same bytes.
    Variants(Movement),
    /// One arm twice, over the same buffers: whatever difference is found is none.
    Same(Movement),
    /// One kernel over the same layout in ranges of addresses that the same physical chunks lie under,
    /// in an order of their own each.
    Backings(Movement),
    /// A gather that reads, and what is done against the TLB's misses in it.
    Mitigations,
    /// Fragments that are copied together, and reads of them before and after.
    Compaction,
    /// One arm twice, over data of its own each, which are placed anew a few times: what is found
    /// between placements is none either.
    Moved(Movement),
}

impl Subject {
    /// The kernel's name in case ids and tables.
    pub fn kernel(self) -> Refined<KernelName> {
        match self {
            Subject::Ceiling => KernelName::Ceiling.into(),
            Subject::Layout(movement) => KernelName::from(movement).into(),
            Subject::Variants(movement) => Refined::new(movement.into(), VARIANTS),
            Subject::Backings(movement) => Refined::new(movement.into(), BACKINGS),
            Subject::Mitigations => Refined::new(Movement::GatherRead.into(), MITIGATIONS),
            Subject::Compaction => Refined::new(Movement::GatherCopy.into(), COMPACTION),
            Subject::Same(movement) => Refined::new(movement.into(), SAME),
            Subject::Moved(movement) => Refined::new(movement.into(), MOVED),
        }
    }

    /// The experiment that it belongs to.
    pub fn experiment(self) -> Experiment {
        match self {
            Subject::Backings(_) | Subject::Mitigations | Subject::Compaction => {
                Experiment::Scatter
            }
            _ => Experiment::Bandwidth,
        }
    }

    /// The kernel under test; none of ceilings.
    pub fn movement(self) -> Option<Movement> {
        match self {
            Subject::Ceiling => None,
            Subject::Mitigations => Some(Movement::GatherRead),
            Subject::Compaction => Some(Movement::GatherCopy),
            Subject::Layout(movement)
            | Subject::Variants(movement)
            | Subject::Backings(movement)
            | Subject::Same(movement)
            | Subject::Moved(movement) => Some(movement),
        }
    }
}

/// The refinement of a kernel whose competitors are measured.
const VARIANTS: &str = "variants";

/// The refinement of a kernel that reads the same chunks in several orders.
pub const BACKINGS: &str = "backings";

/// The refinement of a kernel beside what is done against the TLB's misses in it.
pub const MITIGATIONS: &str = "mitigations";

/// The refinement of a copy that puts scattered fragments together.
pub const COMPACTION: &str = "compaction";

/// The refinements of a kernel that is compared with itself.
pub const SAME: &str = "same";
/// The same with data of its own for each arm.
pub const MOVED: &str = "moved";

impl Subject {
    /// Reads what [`kernel`](Subject::kernel) writes; none where there is no such subject.
    pub fn named(name: &Refined<KernelName>) -> Option<Subject> {
        let movement = Movement::ALL.into_iter().find(|m| KernelName::from(*m) == name.base);
        match (&name.base, movement, name.refinement.as_deref()) {
            (KernelName::Ceiling, _, None) => Some(Subject::Ceiling),
            (_, Some(movement), None) if movement.has_layout() => Some(Subject::Layout(movement)),
            (_, Some(movement), Some(VARIANTS)) if !movement.competitors().is_empty() => {
                Some(Subject::Variants(movement))
            }
            (_, Some(movement), Some(BACKINGS)) if movement.is_read() => {
                Some(Subject::Backings(movement))
            }
            (_, Some(Movement::GatherRead), Some(MITIGATIONS)) => Some(Subject::Mitigations),
            (_, Some(Movement::GatherCopy), Some(COMPACTION)) => Some(Subject::Compaction),
            (_, Some(movement), Some(SAME)) if movement.has_layout() => {
                Some(Subject::Same(movement))
            }
            (_, Some(movement), Some(MOVED)) if movement.has_layout() && movement.is_read() => {
                Some(Subject::Moved(movement))
            }
            _ => None,
        }
    }

    /// Whether the arms see fragments.
    pub fn has_layout(self) -> bool {
        self.movement().is_some_and(Movement::has_layout)
    }

    /// Whether anything but a checksum is written.
    pub fn writes(self) -> bool {
        self.movement().is_none_or(|movement| !movement.is_read())
    }
}

/// How often buffers are placed, where they are placed anew.
const PLACEMENTS: u32 = 5;

/// The driver gives memory out in pages of this size.
const PAGE_BYTES: u64 = 2 << 20;

/// A group that is to be measured. Nothing in it depends on a device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The experiment.
    pub experiment: Experiment,
    /// What the arms do.
    pub subject: Subject,
    /// What the arms go over.
    pub scene: Scene,
    /// The physical chunks under the arena, and their orders; none where it is a plain allocation.
    #[serde(default)]
    pub chunked: Option<Chunked>,
    /// Whether the payload was asked for and is no default, and so belongs to the case id.
    pub names_payload: bool,
    /// The half-width of the ratio's interval that is aimed at, in parts per million.
    pub target_half_width_ppm: Option<u32>,
    /// The fewest rounds.
    pub fewest_rounds: u32,
    /// The time that the rounds may take, in milliseconds.
    pub rounds_ms: u64,
    /// Which repetition of the same plan it is: each has other orders of its arms.
    #[serde(default)]
    pub repetition: u32,
}

impl Plan {
    /// The case id: nothing in it is derived from the device or the seed.
    pub fn case(&self) -> String {
        let (kernel, scene) = (self.subject.kernel(), &self.scene);
        let keys = scene.keys(self.subject.has_layout());
        let mut case = format!("{}/kernel={kernel}{keys}", self.experiment);
        // That of a situation follows from its parameters.
        if !matches!(scene, Scene::Preset(_)) {
            case += &format!("/footprint={}", size::exact(scene.footprint_bytes()));
        }
        if let Some(chunked) = &self.chunked {
            case += &format!("/chunk={}", size::exact(chunked.chunk_bytes));
        }
        if self.names_payload {
            case += &format!("/payload={}", size::exact(scene.payload_bytes()));
        }
        case
    }

    /// The aged heap that its fragments lie in, whichever part of it they are.
    pub fn heap(&self) -> Option<Heap> {
        match &self.scene {
            Scene::Aged(heap) => Some(heap.whole()),
            _ => None,
        }
    }

    /// The orders in which the fragments are visited, each by an arm.
    pub(super) fn orders(&self) -> &'static [crate::record::Order] {
        use crate::record::Order::{Packed, Scattered, Sorted};
        match self.subject {
            Subject::Layout(Movement::StridedGather) => &[Packed, Scattered],
            Subject::Layout(_) | Subject::Mitigations => &[Packed, Sorted, Scattered],
            Subject::Variants(movement) if movement.has_layout() => &[Packed, Scattered],
            Subject::Compaction => &[Packed, Scattered],
            Subject::Backings(movement) if movement.follows_index() => &[Sorted, Scattered],
            Subject::Same(_) | Subject::Moved(_) => &[Scattered],
            _ => &[],
        }
    }

    /// Bytes beside the arena: the payload's other end with its guard, or the staging of what is
    /// copied back; and the index of each order.
    pub fn extra_bytes(&self) -> u64 {
        let payload_bytes = self.scene.payload_bytes();
        let payload = match self.subject.writes() {
            true => payload_bytes + GUARD_BYTES,
            false => staging_bytes(self.scene.fragment_bytes().unwrap_or(0), payload_bytes),
        };
        let follows = self.subject.movement().is_some_and(Movement::follows_index);
        let orders = self.orders().len() as u64;
        // A directory of other slots, as wide as any, stands in for a range with other chunks.
        let fragments = payload_bytes / self.scene.fragment_bytes().unwrap_or(payload_bytes).max(1);
        let translated = self.chunked.as_ref().map_or(0, |_| 8 * fragments);
        let index = if follows { orders * self.scene.index_bytes() } else { 0 } + translated;
        // Sums, events and the allocator's own rounding.
        const SMALL_CHANGE: u64 = 16 << 20;
        let aging = self.heap().map_or(0, |heap| heap.aging_bytes());
        let more = mitigations::extra_bytes(self);
        payload + index + self.twin_bytes() + aging + more + SMALL_CHANGE
    }

    /// Bytes of the second arm's own data, with a guard behind them; none where arms share theirs.
    pub(super) fn twin_bytes(&self) -> u64 {
        if matches!(self.subject, Subject::Moved(_)) { self.arena_bytes() } else { 0 }
    }

    /// Bytes of the arena with a guard behind it.
    pub fn arena_bytes(&self) -> u64 {
        let bytes = self.scene.arena_bytes() + GUARD_BYTES;
        match &self.chunked {
            Some(chunked) => chunked.chunks(bytes) * chunked.chunk_bytes,
            None => bytes,
        }
    }

    /// Whether the group's buffers are placed several times.
    pub fn is_placed_anew(&self) -> bool {
        matches!(self.subject, Subject::Ceiling | Subject::Moved(_))
    }

    /// Bytes that are held while the buffers are placed for the n-th time, from 0, so that they come
    /// to lie elsewhere than before: none the first time.
    pub fn ballast_bytes(&self, placement: u32) -> u64 {
        let step = (self.scene.footprint_bytes() / 8).next_multiple_of(PAGE_BYTES) + PAGE_BYTES;
        u64::from(placement) * step
    }

    /// How often the buffers are placed within a memory limit. What the ballast does not fit into
    /// has fewer placements, and never none.
    pub fn placements(&self, memory_limit_bytes: u64) -> u32 {
        let fits = |placement: &u32| {
            self.memory_bytes() + self.ballast_bytes(*placement) <= memory_limit_bytes
        };
        match self.is_placed_anew() {
            true => ((1..PLACEMENTS).take_while(fits).count() + 1) as u32,
            false => 1,
        }
    }

    /// Bytes of distinct lines that an arm touches at least, source and destination.
    pub fn touched_bytes(&self) -> u64 {
        let payload_bytes = self.scene.payload_bytes();
        // Of draws with replacement at least 1 - 1/e are distinct.
        if self.scene.repeats() { payload_bytes / 2 } else { payload_bytes }
    }

    /// Device memory that the group takes at least, in bytes.
    pub fn memory_bytes(&self) -> u64 {
        self.arena_bytes() + self.extra_bytes()
    }

    /// Device memory that the group takes at its peak within a memory limit, in bytes.
    pub fn peak_bytes(&self, memory_limit_bytes: u64) -> u64 {
        let last = self.placements(memory_limit_bytes) - 1;
        self.memory_bytes() + self.ballast_bytes(last)
    }

    /// A rough guess of the group's wall time on a device of this memory bandwidth, in bytes a
    /// second: data and verification touch the footprint and the payload a few times each.
    pub fn estimate(&self, bytes_per_s: f64) -> Duration {
        let scatters = self.subject.movement() == Some(Movement::ScatterCopy);
        let passes = if scatters { 30 } else { 3 };
        let touched = passes * self.scene.footprint_bytes() + 40 * self.scene.payload_bytes();
        let touched = touched * u64::from(self.placements(u64::MAX));
        Duration::from_secs_f64(0.2 + touched as f64 / bytes_per_s)
            + Duration::from_millis(self.rounds_ms / 2)
    }

    pub(super) fn budget(&self) -> Budget {
        Budget {
            target_half_width_ppm: self.target_half_width_ppm,
            fewest_rounds: self.fewest_rounds,
            time: Duration::from_millis(self.rounds_ms),
        }
    }

    /// The group's record before anything was measured, with this status and reason.
    pub fn record(&self, status: Status, reason: Option<String>) -> Group {
        let scene = &self.scene;
        let has_layout = self.subject.has_layout();
        Group {
            case: self.case(),
            process: 0,
            experiment: self.experiment.clone(),
            mechanism: match (&self.chunked, has_layout) {
                (Some(_), _) => Mechanism::Physical,
                (None, true) => scene.mechanism(),
                (None, false) => Mechanism::None,
            },
            kernel: self.subject.kernel(),
            pattern: scene.pattern(),
            fragment_bytes: scene.fragment_bytes().filter(|_| has_layout),
            alignment_bytes: scene.alignment_bytes().filter(|_| has_layout),
            footprint_bytes: scene.footprint_bytes(),
            payload_bytes: scene.payload_bytes(),
            layout: None,
            status,
            reason,
            lost: None,
            heap: None,
            arms: Vec::new(),
            checks: Vec::new(),
            held: None,
            void_samples: 0,
            pilot_rounds: 0,
            stop: None,
            target_half_width_ppm: self.target_half_width_ppm,
            clocks: Clocks::default(),
            condition: None,
            round_throttle_reasons: Vec::new(),
            sentinel: None,
            l2_evicted: false,
            placements: Vec::new(),
            duels: None,
            mappings: Vec::new(),
            phases: Phases::default(),
            extra: Map::new(),
        }
    }
}
