//! Readings of the sentinel: a plain read that is timed again and again, to see whether the device
//! is what it was.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One reading: the middle one, by length, of a few intervals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Reading {
    /// How many launches the interval holds.
    pub launches: u32,
    /// The length of the interval in nanoseconds.
    pub ns: u64,
    /// The SM clock during the interval, in kHz.
    #[serde(default)]
    pub sm_khz: Option<u32>,
}

impl Reading {
    /// The time of one launch, in nanoseconds.
    pub fn launch_ns(&self) -> f64 {
        self.ns as f64 / f64::from(self.launches.max(1))
    }
}

/// What stood around one attempt at a group's rounds. A reading is none where the hold gave up in
/// all of its intervals.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Attempt {
    /// What the device had settled at: the middle one of the last readings of the settling.
    pub settled: Option<Reading>,
    /// Just before the rounds.
    pub before: Option<Reading>,
    /// Just after them.
    pub after: Option<Reading>,
    /// Whether the rounds were thrown away, because the readings are too far apart, and another
    /// attempt was made.
    #[serde(default)]
    pub voided: bool,
}

/// The sentinel's readings for a group.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sentinel {
    /// Bytes that one launch reads.
    pub bytes: u64,
    /// Whether the device came to rest in time: in every settling for this group, or in the last
    /// one before it.
    pub settled: bool,
    /// The readings of every settling for this group, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub settling: Vec<Reading>,
    /// The attempts at the group's rounds, in order.
    #[serde(default)]
    pub attempts: Vec<Attempt>,
}
