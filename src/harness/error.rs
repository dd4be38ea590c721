//! Why there is no such heap, layout or situation.

use thiserror::Error;

use super::{LEAST_HEAP_BYTES, MAX_SCALE_SHIFT};
use crate::layout::{LEAST_UNIT_BYTES, LayoutError, UNIT_BYTES};
use crate::policy::{ParamsError, PolicyError, SimulationError, Usage};
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
    /// A situation that does not exist.
    #[error("there is no situation `{text}`{perhaps}: there are {known}")]
    UnknownPreset {
        /// What was asked for.
        text: String,
        /// The name that was probably meant, as it stands in the sentence; else empty.
        perhaps: String,
        /// All names.
        known: String,
    },
    /// A parameter that the situation does not have.
    #[error(
        "{preset} has no parameter `{text}`{perhaps}: write key=value, parted by commas, with {known}"
    )]
    UnknownParameter {
        /// The situation.
        preset: &'static str,
        /// What was asked for.
        text: String,
        /// The name that was probably meant, as it stands in the sentence; else empty.
        perhaps: String,
        /// All parameters.
        known: String,
    },
    /// A parameter that is given more than once.
    #[error("{preset}: {key} is given twice; give it once")]
    ParameterTwice {
        /// The situation.
        preset: &'static str,
        /// The parameter.
        key: &'static str,
    },
    /// A parameter that cannot be read.
    #[error("{preset}: {key}=`{text}` cannot be read: {reason}")]
    Parameter {
        /// The situation.
        preset: &'static str,
        /// The parameter.
        key: &'static str,
        /// Its text.
        text: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A parameter that is too small or too large.
    #[error("{preset}: {key}={value} cannot be; it must be from {least} to {most}")]
    OutOfRange {
        /// The situation.
        preset: &'static str,
        /// The parameter.
        key: &'static str,
        /// Its value.
        value: String,
        /// The least that it may be.
        least: String,
        /// The most that it may be.
        most: String,
    },
    /// A row that is no whole number of units.
    #[error("embedding: a row of {row_bytes} B must be a multiple of {UNIT_BYTES} B")]
    UnevenRow {
        /// The row asked for.
        row_bytes: u64,
    },
    /// More lookups than rows.
    #[error(
        "embedding: {lookups} lookups in {rows} rows, none twice, would be a density over 1: ask \
         for lookups={rows} at most, or for more rows"
    )]
    TooManyLookups {
        /// The lookups asked for.
        lookups: u64,
        /// The rows asked for.
        rows: u64,
    },
    /// Tokens that are no whole words.
    #[error(
        "kv_cache: the keys of a token take heads x head x element = {token_bytes} B a layer, which \
         must be a multiple of {LEAST_UNIT_BYTES} B"
    )]
    UnevenToken {
        /// Bytes of a token's keys in one layer.
        token_bytes: u64,
    },
    /// A pool that does not hold the longest sequence.
    #[error(
        "kv_cache: a sequence may need {most_blocks} blocks and the pool has {blocks}: ask for \
         blocks={most_blocks} or more, or for fewer tokens"
    )]
    PoolTooSmall {
        /// The pool asked for.
        blocks: u64,
        /// Blocks of the longest sequence.
        most_blocks: u64,
    },
    /// Elements of a width that no column has.
    #[error("null_mask: elements of {element_bytes} B: they must have 4 or 8 B")]
    Element {
        /// The width asked for.
        element_bytes: u64,
    },
    /// Nulls that cannot stand so much apart.
    #[error(
        "null_mask: {null_percent} % of nulls cannot lie in runs of {mean_run} on average, as a \
         valid element lies between two runs: ask for run={least_run} or more, or for fewer nulls"
    )]
    RunTooShort {
        /// The share of nulls asked for.
        null_percent: u64,
        /// The mean run asked for.
        mean_run: u64,
        /// The least that can be.
        least_run: u64,
    },
    /// Columns without a valid element.
    #[error("null_mask: not one of {rows} elements a column is valid: ask for more rows")]
    AllNull {
        /// The elements of a column.
        rows: u64,
    },
    /// A heap that cannot be simulated.
    #[error(transparent)]
    Simulation(#[from] SimulationError),
    /// A policy that cannot be made.
    #[error(transparent)]
    Params(#[from] ParamsError),
    /// A layout that cannot be.
    #[error(transparent)]
    Layout(#[from] LayoutError),
}
