//! The metrics of the summary table.

use std::fmt;

use serde::{Serialize, Serializer};

/// What a row tells. The list is open: later experiments add theirs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Metric {
    /// (Useful bytes read + useful bytes written) / time, in decimal GB/s.
    EffectiveBandwidth,
    /// Scattered / packed: what the same fragments keep when they are scattered.
    RelativeBandwidth,
    /// Packed / stream: what the index alone leaves.
    IndirectionRatio,
    /// Sorted / packed: what gaps leave when the order stays that of the addresses.
    DensityRatio,
    /// Scattered / sorted: what the order leaves when the fragments stay where they are.
    OrderRatio,
    /// Scattered / stream: all causes together.
    TotalRatio,
    /// The plain copy kernel / the driver's own copy.
    DriverCopyRatio,
    /// Effective bandwidth / theoretical peak of the device.
    PeakShare,
    /// A competing kernel / the default one over the same bytes.
    VariantRatio,
    /// An order of physical chunks / the order in which they were made.
    BackingRatio,
    /// A gather with something done against the TLB's misses / the gather as it is.
    MitigationRatio,
    /// The same / the gather within the TLB's reach.
    ReachShare,
    /// Bytes that a TLB maps at a time: random reads beyond them miss in part.
    TlbReach,
    /// The footprint from which on random reads are slower for it.
    TlbKnee,
    /// The bandwidth of random reads if every one missed.
    MissBandwidth,
    /// Passes over packed fragments after which the copy that packed them has paid.
    BreakEvenPasses,
    /// Groups of multiprocessors that share a TLB.
    TlbGroups,
    /// A kernel / the same kernel: 1 but for chance.
    SameRatio,
    /// How far the medians of single placements lie apart: (highest - lowest) / median.
    PlacementSpread,
    /// How long an allocation takes.
    AllocLatency,
    /// How long a free takes.
    FreeLatency,
    /// How many times as long an allocation takes as in the base state.
    AllocLatencyRatio,
    /// How many times as long a free takes as in the base state.
    FreeLatencyRatio,
    /// How long a call takes that puts memory under addresses.
    MapTime,
    /// Requested bytes of the blocks that were freed.
    Freed,
    /// By how much the driver's free bytes rose when they were.
    DriverFree,
    /// Freed bytes that the driver's free bytes did not rise by.
    Stranded,
    /// Bytes that requests of a length get back.
    Refillable,
    /// The longest request of whole pages that is served.
    LargestAllocatable,
    /// 1 - largest allocatable / free: on `driver` what the driver says is free, on `allocator` that
    /// and what was stranded.
    ExternalFragmentation,
    /// What a request takes of memory, together with others of its length.
    Granule,
    /// 1 - requested / taken.
    InternalFragmentation,
    /// How far apart in addresses requests of a length come.
    AddressStep,
    /// The share of sets of freed blocks with which a request fails.
    FailureProbability,
    /// The share of sets with which it fails and less is free than it asks for.
    ShortProbability,
    /// The share of sets with which it fails though as much is free as it asks for.
    FragmentedProbability,
}

impl Metric {
    /// The metric's name in tables and files.
    pub fn as_str(self) -> &'static str {
        match self {
            Metric::EffectiveBandwidth => "effective_bandwidth",
            Metric::RelativeBandwidth => "relative_bandwidth",
            Metric::IndirectionRatio => "indirection_ratio",
            Metric::DensityRatio => "density_ratio",
            Metric::OrderRatio => "order_ratio",
            Metric::TotalRatio => "total_ratio",
            Metric::DriverCopyRatio => "driver_copy_ratio",
            Metric::PeakShare => "peak_share",
            Metric::VariantRatio => "variant_ratio",
            Metric::BackingRatio => "backing_ratio",
            Metric::MitigationRatio => "mitigation_ratio",
            Metric::ReachShare => "reach_share",
            Metric::TlbReach => "tlb_reach",
            Metric::TlbKnee => "tlb_knee",
            Metric::MissBandwidth => "miss_bandwidth",
            Metric::BreakEvenPasses => "break_even_passes",
            Metric::TlbGroups => "tlb_groups",
            Metric::SameRatio => "same_ratio",
            Metric::PlacementSpread => "placement_spread",
            Metric::AllocLatency => "alloc_latency",
            Metric::FreeLatency => "free_latency",
            Metric::AllocLatencyRatio => "alloc_latency_ratio",
            Metric::FreeLatencyRatio => "free_latency_ratio",
            Metric::MapTime => "map_time",
            Metric::Freed => "freed",
            Metric::DriverFree => "driver_free",
            Metric::Stranded => "stranded",
            Metric::Refillable => "refillable",
            Metric::LargestAllocatable => "largest_allocatable",
            Metric::ExternalFragmentation => "external_fragmentation",
            Metric::Granule => "granule",
            Metric::InternalFragmentation => "internal_fragmentation",
            Metric::AddressStep => "address_step",
            Metric::FailureProbability => "failure_probability",
            Metric::ShortProbability => "short_probability",
            Metric::FragmentedProbability => "fragmented_probability",
        }
    }

    /// The unit of the metric's figures.
    pub fn unit(self) -> &'static str {
        match self {
            Metric::EffectiveBandwidth | Metric::MissBandwidth => "GB/s",
            Metric::AllocLatency | Metric::FreeLatency | Metric::MapTime => "ns",
            Metric::Freed
            | Metric::DriverFree
            | Metric::Stranded
            | Metric::Refillable
            | Metric::LargestAllocatable
            | Metric::Granule
            | Metric::AddressStep
            | Metric::TlbReach
            | Metric::TlbKnee => "bytes",
            Metric::FailureProbability
            | Metric::ShortProbability
            | Metric::FragmentedProbability => "probability",
            Metric::TlbGroups => "groups",
            Metric::BreakEvenPasses => "passes",
            _ => "ratio",
        }
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl Serialize for Metric {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}
