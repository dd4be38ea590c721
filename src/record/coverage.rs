//! One line of a selftest's journal: how often intervals held what they should.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::open_enum::open_enum;

open_enum! {
    /// How the noise of simulated samples is distributed.
    Noise {
        /// Normal.
        Normal = "normal",
        /// Log-normal: skewed to long times.
        LogNormal = "log_normal",
        /// Two modes, of 70 and 30 %.
        Bimodal = "bimodal",
        /// Cauchy: without a mean.
        HeavyTailed = "heavy_tailed",
        /// Normal, and both arms become slower alike.
        CommonDrift = "common_drift",
        /// Normal, and one arm alone becomes slower.
        Drifting = "drifting",
        /// Autoregressive of order 1 with coefficient 0.3.
        WeaklyAutocorrelated = "weakly_autocorrelated",
        /// Autoregressive of order 1 with coefficient 0.5.
        Autocorrelated = "autocorrelated",
        /// Normal, and each process has an offset of its own.
        Processes = "processes",
    }
}

open_enum! {
    /// Which interval.
    IntervalKind {
        /// Of a bandwidth: order statistics of the median, or the block bootstrap where
        /// autocorrelation is found.
        Bandwidth = "bandwidth",
        /// Of a ratio of two arms, paired by round, likewise.
        Paired = "paired",
        /// The block bootstrap alone, whether anything is found or not.
        BlockBootstrap = "block_bootstrap",
        /// The hierarchical bootstrap between processes.
        Between = "between",
    }
}

/// One interval on one kind of noise, with a known truth, again and again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Coverage {
    /// The noise.
    pub noise: Noise,
    /// The interval.
    pub interval: IntervalKind,
    /// Whether the noise is what the interval assumes.
    pub assumptions_hold: bool,
    /// How often the procedure was run.
    pub replications: u64,
    /// How often the interval held the truth.
    pub covered: u64,
    /// How often all of it lay above the truth: a threshold there would be called reached.
    pub above: u64,
    /// How often all of it lay below the truth: a threshold there would be called missed.
    pub below: u64,
    /// How often there was no interval.
    pub without: u64,
    /// Values that the figures stood on, all replications together.
    pub samples: u64,
    /// How often the figure was flagged as autocorrelated.
    pub autocorrelated: u64,
    /// How often it was flagged as less precise than was aimed at.
    pub imprecise: u64,
    /// How often it was flagged because the sentinel drifted.
    pub drift: u64,
    /// Fields of newer versions.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}
