//! Why there is no such situation.

use thiserror::Error;

use crate::layout::{LEAST_UNIT_BYTES, LayoutError, UNIT_BYTES};
use crate::policy::{ParamsError, PolicyError, SimulationError};

/// Why a situation cannot be.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PresetError {
    /// A situation that does not exist.
    #[error("there is no situation `{text}`{perhaps}: there are {known}")]
    Unknown {
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
    /// A situation of more fragments than a host can hold.
    #[error("{preset}: about {fragments} fragments: {most} are the most; ask for a smaller one")]
    TooManyFragments {
        /// The situation.
        preset: &'static str,
        /// About how many it has.
        fragments: u64,
        /// The most there may be.
        most: u64,
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
    /// Sequences that take too long to be served.
    #[error(
        "kv_cache: {blocks} blocks to be served: {most} are the most; ask for fewer sequences or \
         tokens, or for larger blocks"
    )]
    ServedTooLong {
        /// Blocks of all sequences at their longest.
        blocks: u64,
        /// The most there may be.
        most: u64,
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
    /// A policy that cannot place the tensors.
    #[error("{policy} cannot place what a step makes: {failure}")]
    Policy {
        /// The policy.
        policy: &'static str,
        /// What it said.
        failure: PolicyError,
    },
    /// A layout that cannot be.
    #[error(transparent)]
    Layout(#[from] LayoutError),
}
