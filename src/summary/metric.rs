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
    /// A kernel / the same kernel: 1 but for chance.
    SameRatio,
    /// How far the medians of single placements lie apart: (highest - lowest) / median.
    PlacementSpread,
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
            Metric::SameRatio => "same_ratio",
            Metric::PlacementSpread => "placement_spread",
        }
    }

    /// The unit of the metric's figures.
    pub fn unit(self) -> &'static str {
        match self {
            Metric::EffectiveBandwidth => "GB/s",
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
