//! What an aged heap was, and what its ageing came to.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The heap that a layout lies in: what was asked of the harness, and what was reached.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HeapFacts {
    /// The allocation policy, or the allocator of the device.
    pub policy: String,
    /// The distribution of sizes and lifetimes.
    pub sizes: String,
    /// Bytes that the policy could take.
    pub heap_bytes: u64,
    /// Requested bytes of live blocks by bytes of the heap that were asked for, in percent.
    pub occupancy_percent: u32,
    /// The byte-weighted median hole that was asked for, in bytes.
    pub hole_bytes: u64,
    /// The byte-weighted median of all free ranges that was reached, in bytes; of an allocator of the
    /// device, which tells none, of the gaps between its live blocks.
    pub median_hole_bytes: u64,
    /// Why ageing ended: `level`, `steady` or `limit`.
    pub stop: String,
    /// Calls of the policy.
    pub operations: u64,
    /// Requests that it refused for want of memory.
    pub refusals: u64,
    /// Sizes of the distribution were divided by 2 to this power; multiplied where it is negative.
    pub scale_shift: i32,
    /// Live blocks.
    pub live_blocks: u64,
    /// Bytes that live blocks were requested with.
    pub requested_bytes: u64,
    /// Bytes that live blocks take.
    pub rounded_bytes: u64,
    /// Bytes that the policy held of its heap.
    pub reserved_bytes: u64,
    /// The largest hole, in bytes.
    pub largest_hole_bytes: u64,
    /// Bytes of all holes.
    pub hole_sum_bytes: u64,
    /// A hash over offsets and lengths of all fragments in the order of the visits, in hexadecimal:
    /// the same on every machine.
    pub layout_hash: String,
    /// Fields of newer versions.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}
