//! One line of a journal: what an allocator did in a state.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::group::{is_first, is_zero};
use super::open_enum::open_enum;
use super::{Condition, Experiment, Lost, Phases, Status};

open_enum! {
    /// Whose memory an allocator hands out.
    MemoryKind {
        /// The device's.
        Device = "device",
        /// Nobody's: a range of addresses that is counted, contiguous as physical memory without
        /// pages is.
        Simulated = "simulated",
    }
}

/// What an allocator did in a state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Allocation {
    /// The case id.
    pub case: String,
    /// Which of a run's processes measured it, from 0.
    #[serde(default, skip_serializing_if = "is_first")]
    pub process: u32,
    /// The experiment.
    pub experiment: Experiment,
    /// The allocator.
    pub allocator: String,
    /// Whose memory it handed out.
    pub memory: MemoryKind,
    /// The state that was asked for, as the case id names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_state: Option<String>,
    /// Length of the request that it is about, in bytes; none where there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_bytes: Option<u64>,
    /// How it ended.
    pub status: Status,
    /// Why, where it is not `ok`.
    pub reason: Option<String>,
    /// What was lost in the middle of it. A resumed run measures it again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<Lost>,
    /// The driver's free bytes before anything was taken and after all was given back; none of
    /// simulated memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub free_bytes: Option<[u64; 2]>,
    /// What was found for each set of freed blocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subsets: Option<Subsets>,
    /// What memory was worth in the state.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub quantities: Vec<Quantity>,
    /// The state that was prepared; none of experiments that make their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<State>,
    /// How long calls took.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<Calls>,
    /// What NVML tells about the device around it; none where it tells nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<Condition>,
    /// Where the time went.
    #[serde(default)]
    pub phases: Phases,
    /// Fields of newer versions.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// Bytes of memory, as they were read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Quantity {
    /// What they are: `driver_free`, `freed`, `refillable`, `largest_allocatable`, `taken`, …
    pub metric: String,
    /// The length of the requests that they are about; none where any length will do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_bytes: Option<u64>,
    /// How many blocks they are of, where that is known and matters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocks: Option<u64>,
    /// Bytes.
    pub bytes: u64,
}

/// The state that an allocator was brought into, as it was reached.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct State {
    /// Live blocks.
    pub live_blocks: u64,
    /// Bytes that they were requested with.
    pub live_bytes: u64,
    /// Blocks that were freed between live ones.
    pub holes: u64,
    /// Bytes that these were requested with.
    pub hole_bytes: u64,
    /// The driver's free bytes in the state; none of simulated memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub free_bytes: Option<u64>,
    /// Calls of the program that ran before; 0 where none did.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub churn_calls: u64,
    /// How long all of them took together, with what the program itself takes for them, in
    /// nanoseconds.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub churn_ns: u64,
    /// What two reads of the clock take without a call between them, in nanoseconds: the median.
    pub timer_ns: u64,
}

/// One call, timed again and again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Calls {
    /// `allocate` or `free`.
    pub call: String,
    /// How long each took, with the reading of the clock, in nanoseconds and in order.
    pub ns: Vec<u64>,
}

/// A window full of blocks, every set of them freed in turn, and a request for what is free then.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Subsets {
    /// Requested bytes of the blocks, in the order in which they are allocated. In a set bit `i`
    /// stands for the block at `i`.
    pub blocks_bytes: Vec<u64>,
    /// Bytes that are requested when the set is free.
    pub request_bytes: u64,
    /// Bytes of the window.
    pub window_bytes: u64,
    /// Bytes of the window that the blocks take as the allocator counts them.
    pub rounded_bytes: u64,
    /// Sets that were tried, from 0 on: two to the power of the number of blocks, if all.
    pub tried: u32,
    /// The sets with which the request failed.
    pub failed: Vec<u32>,
    /// Those of them with which it failed again after the allocator had returned what it could.
    pub failed_again: Vec<u32>,
}

impl Subsets {
    /// Requested bytes of the blocks in a set.
    pub fn freed_bytes(&self, set: u32) -> u64 {
        let bits = (0u32..).zip(&self.blocks_bytes).filter(|(bit, _)| set >> bit & 1 == 1);
        bits.map(|(_, bytes)| bytes).sum()
    }
}
