//! One line of a journal: a group of arms that were measured together.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::open_enum::open_enum;
use super::{Condition, HeapFacts, Refined, Sentinel};

open_enum! {
    /// What a group belongs to.
    Experiment {
        /// Effective bandwidth by layout.
        Bandwidth = "bandwidth",
        /// Ten blocks of which any may have been freed, and a request of 512 MiB.
        Classic = "classic",
        /// What memory is worth after blocks were freed between others.
        Capacity = "capacity",
        /// What requests of each length take.
        Granule = "granule",
        /// How long calls of an allocator take.
        Latency = "latency",
        /// What physical memory costs that is scattered under one range of addresses.
        Scatter = "scatter",
    }
}

open_enum! {
    /// The mechanism that a layout stands for.
    Mechanism {
        /// Not scattered at all.
        None = "none",
        /// Rows behind an index: embeddings, sparse matrices, graphs.
        Indirect = "indirect",
        /// A software block table: paged KV caches.
        Paged = "paged",
        /// Whole tensors where an aged allocator puts them.
        Placement = "placement",
        /// Scattered physical pages under one virtual range.
        Physical = "physical",
    }
}

open_enum! {
    /// The kernel that an arm runs.
    KernelName {
        /// Reads a contiguous range into a checksum.
        Read = "read",
        /// Copies a contiguous range.
        Copy = "copy",
        /// Writes a contiguous range.
        Write = "write",
        /// The driver's own device-to-device copy (`memcpy` on the host).
        DriverCopy = "driver_copy",
        /// Reads fragments behind an index into a checksum.
        GatherRead = "gather_read",
        /// Copies fragments behind an index into a contiguous range.
        GatherCopy = "gather_copy",
        /// Copies a contiguous range into fragments behind an index.
        ScatterCopy = "scatter_copy",
        /// Reads elements at a constant stride, without an index, into a checksum.
        StridedGather = "strided_gather",
        /// The group of ceilings: read, write, copy and the driver's copy side by side.
        Ceiling = "ceiling",
    }
}

open_enum! {
    /// The recipe of a layout.
    PatternName {
        /// Fragment after fragment, no gap.
        Contiguous = "contiguous",
        /// The first slot of each stride, in address order.
        Strided = "strided",
        /// One random slot of each stride, in permuted order.
        Shuffled = "shuffled",
        /// Any slot, with replacement.
        Random = "random",
        /// Every other slot, in permuted order.
        Checkerboard = "checkerboard",
        /// The free slots of a random occupancy, in permuted order.
        Holes = "holes",
        /// What a churned allocator leaves: its live blocks, or its holes.
        Aged = "aged",
        /// Fragments of a situation that readers know: paged KV caches, embeddings.
        Preset = "preset",
    }
}

open_enum! {
    /// The order in which an arm visits the fragments.
    Order {
        /// Contiguous, behind an identity index.
        Packed = "packed",
        /// The layout's fragments in address order.
        Sorted = "sorted",
        /// The layout's fragments in the layout's order.
        Scattered = "scattered",
    }
}

open_enum! {
    /// How a group ended.
    Status {
        /// Measured and verified.
        Ok = "ok",
        /// Not measured, for a reason that is no fault.
        Skipped = "skipped",
        /// Not measured, or measured and not believed.
        Failed = "failed",
    }
}

open_enum! {
    /// What was lost before a group had come to its answer.
    Lost {
        /// The process that measured it ended, fell silent, or answered nonsense.
        Worker = "worker",
        /// A call of the driver failed, and nothing more can be expected of the device in that
        /// process.
        Device = "device",
    }
}

open_enum! {
    /// Why a group stopped taking rounds.
    StopReason {
        /// The pilot's estimate for the target half-width.
        Target = "target",
        /// The group's time was used up first; the interval may be wider than the target.
        TimeCap = "time_cap",
        /// The suite asks for no precision on this device.
        NoTarget = "no_target",
    }
}

open_enum! {
    /// What a check compared.
    CheckKind {
        /// Every index entry with the layout's closed form, evaluated on the device.
        Index = "index",
        /// Sampled index entries and fragments, copied back and compared with the host's layout.
        CopyBack = "copy_back",
        /// One launch's checksum with a checksum computed from the closed form alone.
        Checksum = "checksum",
        /// The sum over all timed launches with the same expectation.
        TimedChecksum = "timed_checksum",
        /// Every destination byte with the closed form.
        Destination = "destination",
        /// The bytes that nobody may write: behind the destination, and between scattered fragments.
        Guard = "guard",
        /// Every byte of the source, gaps included, with the closed form.
        Source = "source",
    }
}

open_enum! {
    /// When a check was made.
    When {
        /// Before the first sample.
        Before = "before",
        /// After the last sample.
        After = "after",
    }
}

/// One comparison of what a kernel did with what it had to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Check {
    /// The arm that was checked.
    pub arm: String,
    /// What was compared.
    pub kind: CheckKind,
    /// When.
    pub when: When,
    /// How many items were compared: units of 16 B, index entries, or launches that were summed.
    pub compared: u64,
    /// How many differed; of a sum over launches 0 or 1.
    pub mismatches: u64,
}

/// The samples of one arm, a column each; entry `i` of every column belongs to the same sample. A
/// column that the device cannot fill is empty.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Samples {
    /// The round of each sample, from 0.
    pub round: Vec<u32>,
    /// The position of the arm within its round, from 0.
    pub position: Vec<u32>,
    /// How many launches the interval holds.
    pub launches: Vec<u32>,
    /// The length of the interval in nanoseconds.
    pub ns: Vec<u64>,
    /// The SM clock during the interval, in kHz.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sm_khz: Vec<Option<u32>>,
    /// The placement of the buffers, from 0; empty where there was one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub placement: Vec<u32>,
}

impl Samples {
    /// Appends one sample.
    pub fn push(&mut self, round: u32, position: u32, launches: u32, ns: u64) {
        self.round.push(round);
        self.position.push(position);
        self.launches.push(launches);
        self.ns.push(ns);
    }

    /// How many samples there are.
    pub fn len(&self) -> usize {
        self.ns.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ns.is_empty()
    }
}

/// One thing that was timed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Arm {
    /// The arm's name within its group: `stream`, `packed`, `sorted`, `scattered`, or a ceiling's
    /// kernel.
    pub name: String,
    /// The kernel that it runs.
    pub kernel: Refined<KernelName>,
    /// The pattern that it reads: contiguous on stream and packed.
    pub pattern: Refined<PatternName>,
    /// The order of the fragments; none on a stream.
    pub order: Option<Order>,
    /// The order of the physical chunks under the range that it reads; none where that is a plain
    /// allocation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backing: Option<String>,
    /// Useful bytes read by one launch.
    pub read_bytes: u64,
    /// Useful bytes written by one launch.
    pub written_bytes: u64,
    /// Bytes of index read by one launch.
    pub index_bytes: u64,
    /// Distinct 128 B lines x 128 that one launch touches, source and destination, index apart.
    pub touched_bytes: u64,
    /// What was measured.
    #[serde(default)]
    pub samples: Samples,
    /// Fields of newer versions.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// Metrics of a layout, counted on the layout itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LayoutFacts {
    /// Fragments.
    pub fragments: u64,
    /// From the first to the last byte that the layout may use.
    pub footprint_bytes: u64,
    /// Bytes held by the fragments, repeats counted.
    pub payload_bytes: u64,
    /// Distinct 32 B sectors x 32.
    pub sector_bytes: u64,
    /// Distinct 128 B lines x 128.
    pub touched_bytes: u64,
    /// Distinct 2 MiB pages.
    pub pages_2mib: u64,
    /// Fragments that do not begin where their predecessor ended.
    pub jumps: u64,
    /// Width of one index entry in bytes.
    pub index_entry_bytes: u32,
}

/// Where the buffers of a group lay: virtual addresses of the device, in hexadecimal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Placement {
    /// The beginning of the source.
    pub source: String,
    /// The beginning of the destination.
    pub destination: String,
}

impl Placement {
    /// A placement at these addresses.
    pub fn at(source: u64, destination: u64) -> Placement {
        Placement { source: format!("{source:#x}"), destination: format!("{destination:#x}") }
    }
}

/// A range of addresses with physical chunks under it, and how long the driver took to make it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Mapping {
    /// The order of the chunks.
    pub backing: String,
    /// How long a chunk is, in bytes.
    pub chunk_bytes: u64,
    /// How many lie under the range.
    pub chunks: u64,
    /// The reservation of the addresses, in nanoseconds.
    pub reserve_ns: u64,
    /// The making of all chunks, in nanoseconds; 0 where those of another range are used again.
    pub create_ns: u64,
    /// Mapping all of them, one by one, in nanoseconds.
    pub map_ns: u64,
    /// Making the range accessible, in one call, in nanoseconds.
    pub open_ns: u64,
}

/// What following dependent reads took each multiprocessor, while another one flooded other pages.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Duels {
    /// The numbers of the multiprocessors, as `%smid` gives them, in ascending order.
    pub multiprocessors: Vec<u32>,
    /// Dependent reads of each in one duel.
    pub reads: u32,
    /// Length of a page, in bytes.
    pub page_bytes: u64,
    /// Pages that reads are followed through.
    pub pages: u64,
    /// Pages that are flooded: in an attack others, in a control the same.
    pub flood_pages: u64,
    /// Cycles of each multiprocessor's reads in attacks, a list for each repetition: entry
    /// `a * n + v` is what the `v`-th took while the `a`-th flooded.
    pub attacks: Vec<Vec<u32>>,
    /// The same of controls.
    pub controls: Vec<Vec<u32>>,
    /// Multiprocessors that were put into one cluster of blocks, and so share a GPC; empty where the
    /// device has no clusters.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clusters: Vec<Vec<u32>>,
    /// How long all of it took, in nanoseconds.
    pub took_ns: u64,
}

/// Clocks around a group, as NVML tells them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Clocks {
    /// SM clock before and after, in MHz.
    pub sm_mhz: Option<[u32; 2]>,
    /// Memory clock before and after, in MHz.
    pub memory_mhz: Option<[u32; 2]>,
    /// NVML's bits of reasons for a lowered clock, seen before or after.
    pub throttle_reasons: Option<u64>,
}

/// Where the wall time of a group went, in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Phases {
    /// Allocation, data, layouts and index.
    pub prepare_ns: u64,
    /// Verification.
    pub verify_ns: u64,
    /// Pilot and rounds, the gaps between intervals included.
    pub measure_ns: u64,
    /// Waiting for the device: memory that comes back, clocks that settle.
    #[serde(default)]
    pub wait_ns: u64,
    /// Of `measure_ns`, what lay within timed intervals, those of pilot and calibration included.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub timed_ns: u64,
    /// How many intervals those are.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub intervals: u64,
    /// Of `measure_ns`, what the host took for them while the device did not keep it waiting: queueing
    /// what runs before an interval and in it, reading its time, reading NVML's reasons after a round.
    /// Absent where a launch runs on the host itself.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub host_ns: u64,
}

pub(super) fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// The arms that are compared with each other, measured together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Group {
    /// The case id, without an arm.
    pub case: String,
    /// Which of a run's processes measured it, from 0: a run may repeat its groups in fresh ones.
    #[serde(default, skip_serializing_if = "is_first")]
    pub process: u32,
    /// The experiment.
    pub experiment: Experiment,
    /// The mechanism that the layout stands for.
    pub mechanism: Mechanism,
    /// The access kernel of the group.
    pub kernel: Refined<KernelName>,
    /// The layout's pattern.
    pub pattern: Refined<PatternName>,
    /// Length of a fragment, in bytes; none where nothing is cut into fragments.
    pub fragment_bytes: Option<u64>,
    /// Alignment of each fragment, in bytes.
    pub alignment_bytes: Option<u64>,
    /// The ladder's footprint, in bytes.
    pub footprint_bytes: u64,
    /// The payload, in bytes.
    pub payload_bytes: u64,
    /// Facts of the layout; none for a group that was skipped or has no fragments.
    pub layout: Option<LayoutFacts>,
    /// How the group ended.
    pub status: Status,
    /// Why, where it is not `ok`.
    pub reason: Option<String>,
    /// What was lost in the middle of it. Such a failure says nothing certain about the case, and a
    /// resumed run measures it again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<Lost>,
    /// The aged heap that the layout lies in; none of other layouts, and where it was skipped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heap: Option<HeapFacts>,
    /// What was timed.
    #[serde(default)]
    pub arms: Vec<Arm>,
    /// What was verified.
    #[serde(default)]
    pub checks: Vec<Check>,
    /// Whether the stream was held while launches were queued; false where a trial hold failed.
    pub held: Option<bool>,
    /// Samples that were thrown away because the hold gave up.
    #[serde(default)]
    pub void_samples: u32,
    /// Rounds of the pilot, which are discarded.
    #[serde(default)]
    pub pilot_rounds: u32,
    /// Why no more rounds were taken.
    pub stop: Option<StopReason>,
    /// The half-width of the ratio's interval that was aimed at, in parts per million.
    pub target_half_width_ppm: Option<u32>,
    /// Clocks.
    #[serde(default)]
    pub clocks: Clocks,
    /// What else NVML tells about the device around the group; none where it tells nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<Condition>,
    /// NVML's bits of reasons for lowered clocks, read after each round; entry `i` belongs to round
    /// `i`. Empty where nothing is known of any round.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub round_throttle_reasons: Vec<Option<u64>>,
    /// The sentinel's readings; none where no sentinel watched, as on the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sentinel: Option<Sentinel>,
    /// Whether L2 was evicted before each launch of an arm; `launches` intervals, one for each
    /// launch, are then summed in a sample.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub l2_evicted: bool,
    /// Where the buffers lay, for each time that they were allocated anew: ceilings only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub placements: Vec<Placement>,
    /// The duels that windows for multiprocessors follow from, where the group is the first to need them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duels: Option<Duels>,
    /// The ranges that physical chunks were mapped under, where the group is the first to use them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mappings: Vec<Mapping>,
    /// Where the time went.
    #[serde(default)]
    pub phases: Phases,
    /// Fields of newer versions.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

pub(super) fn is_first(process: &u32) -> bool {
    *process == 0
}

impl Group {
    /// The arm with this name.
    pub fn arm(&self, name: &str) -> Option<&Arm> {
        self.arms.iter().find(|arm| arm.name == name)
    }

    /// Whether every arm was checked, before and after, and nothing differed.
    pub fn is_verified(&self) -> bool {
        let covered = |arm: &Arm, when: When| {
            self.checks
                .iter()
                .any(|check| check.arm == arm.name && check.when == when && check.compared > 0)
        };
        !self.arms.is_empty()
            && self.checks.iter().all(|check| check.mismatches == 0)
            && self.arms.iter().all(|arm| covered(arm, When::Before) && covered(arm, When::After))
    }
}
