//! One line of a selftest's journal: what the device's clock tells.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Intervals of a device's timer, beside those of the host's monotonic clock.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClockTest {
    /// Bytes that the shortest launch reads.
    pub short_bytes: u64,
    /// Intervals of one such launch, in nanoseconds, in the order in which they were taken.
    pub short_ns: Vec<u64>,
    /// What each of them took on the host, from asking for it to its answer, in nanoseconds.
    pub short_host_ns: Vec<u64>,
    /// Bytes that a long launch reads.
    pub long_bytes: u64,
    /// Launches of a long interval.
    pub long_launches: u32,
    /// Long intervals by the device's timer, in nanoseconds.
    pub long_ns: Vec<u64>,
    /// What as many launches take on the host: twice as many, less as many, so that what comes with
    /// every interval is not in it. In nanoseconds; entry `i` was taken next to entry `i` of `long_ns`.
    pub long_host_ns: Vec<i64>,
    /// Fields of newer versions.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}
