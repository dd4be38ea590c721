//! Why there is no such heap or layout.

use thiserror::Error;

use super::{LEAST_HEAP_BYTES, MAX_SCALE_SHIFT};
use crate::layout::LayoutError;
use crate::policy::{PolicyError, Usage};
use crate::record::size;

/// Why the harness cannot do what it was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum HarnessError {
    /// A distribution that does not exist.
    #[error("there is no distribution `{text}`{perhaps}: there are {known}")]
    UnknownDistribution {
        /// What was asked for.
        text: String,
        /// The name that was probably meant, as it stands in the sentence; else empty.
        perhaps: String,
        /// All names.
        known: String,
    },
    /// An occupancy that leaves nothing free, or everything.
    #[error("an occupancy of {occupancy_percent} %: it must be from 1 to 99 %")]
    Occupancy {
        /// The occupancy asked for.
        occupancy_percent: u32,
    },
    /// A heap that no distribution fills.
    #[error(
        "a heap of {}: it must be at least {}",
        size::exact(*.heap_bytes),
        size::exact(LEAST_HEAP_BYTES)
    )]
    HeapTooSmall {
        /// The heap asked for.
        heap_bytes: u64,
    },
    /// A level of no bytes.
    #[error("a level of 0 bytes: no hole is as short; take 256B or more")]
    NoLevel,
    /// A scale that leaves nothing of any size.
    #[error(
        "sizes divided by 2^{scale_shift}: the exponent must be from -{MAX_SCALE_SHIFT} to \
         {MAX_SCALE_SHIFT}"
    )]
    Scale {
        /// The shift asked for.
        scale_shift: i32,
    },
    /// A heap that holds too few blocks to have a state.
    #[error(
        "a heap of {} holds about {blocks} blocks of {distribution} in this scale, and {least_blocks} \
         are the least: take a heap of {} or more, or shorter blocks",
        size::exact(*.heap_bytes),
        size::exact(*.would_work_bytes)
    )]
    TooFewBlocks {
        /// The distribution.
        distribution: &'static str,
        /// The heap asked for.
        heap_bytes: u64,
        /// About how many blocks it holds.
        blocks: u64,
        /// The least that do.
        least_blocks: u64,
        /// A heap that holds as many.
        would_work_bytes: u64,
    },
    /// A policy that holds blocks of somebody else.
    #[error("{policy} holds {live_blocks} live blocks already: age a new one")]
    NotEmpty {
        /// The policy.
        policy: &'static str,
        /// Its live blocks.
        live_blocks: u64,
    },
    /// A heap that holds more blocks than a host can keep books of.
    #[error(
        "a heap of {} holds about {blocks} blocks of {distribution} in this scale, and {most_blocks} \
         are the most: take a smaller heap, or larger blocks",
        size::exact(*.heap_bytes)
    )]
    TooManyBlocks {
        /// The distribution.
        distribution: &'static str,
        /// The heap asked for.
        heap_bytes: u64,
        /// About how many blocks it holds.
        blocks: u64,
        /// The most that there may be.
        most_blocks: u64,
    },
    /// A heap that was out of memory before it was as full as asked.
    #[error(
        "{policy} cannot fill {occupancy_percent} % of a heap of {} with requested bytes: it is out \
         of memory at {reached_percent} %, where {} requested take {} of {} reserved; ask for \
         {reached_percent} % or less, or for a larger heap",
        size::exact(*.heap_bytes),
        size::rounded(.usage.requested_bytes),
        size::rounded(.usage.rounded_bytes),
        size::rounded(.usage.reserved_bytes)
    )]
    Unreachable {
        /// The policy.
        policy: &'static str,
        /// The heap.
        heap_bytes: u64,
        /// The occupancy asked for.
        occupancy_percent: u32,
        /// The occupancy reached, rounded down, which would work.
        reached_percent: u64,
        /// What the policy held then.
        usage: Usage,
    },
    /// Sizes that the policy does not hand out.
    #[error(
        "{policy} does not hand out the sizes of {distribution}, which go up to {}: {refusal}",
        size::exact(*.largest_bytes)
    )]
    Sizes {
        /// The policy.
        policy: &'static str,
        /// The distribution.
        distribution: &'static str,
        /// The largest size, scaled.
        largest_bytes: u64,
        /// What the policy said.
        refusal: PolicyError,
    },
    /// A policy that failed where it should not.
    #[error("{policy} failed: {failure}")]
    Policy {
        /// The policy.
        policy: &'static str,
        /// What it said.
        failure: PolicyError,
    },
    /// A payload that is no whole number of units.
    #[error(
        "a payload of {payload_bytes} B in holes: it must be a multiple, above 0, of {unit_bytes} B"
    )]
    UnevenPayload {
        /// The payload asked for.
        payload_bytes: u64,
        /// What it must be a multiple of.
        unit_bytes: u64,
    },
    /// A payload larger than what the holes hold.
    #[error(
        "a payload of {} does not lie in the holes of {policy}: they hold {}; ask for no more, or \
         for a lower occupancy",
        size::exact(*.payload_bytes),
        size::exact(*.held_bytes)
    )]
    HolesTooSmall {
        /// The policy.
        policy: &'static str,
        /// The payload asked for.
        payload_bytes: u64,
        /// What all holes hold, in whole units.
        held_bytes: u64,
    },
    /// A layout that cannot be.
    #[error(transparent)]
    Layout(#[from] LayoutError),
}
