//! Why there is no such layout, or no index of it.

use thiserror::Error;

use super::{MAX_FOOTPRINT_BYTES, UNIT_BYTES};
use crate::record::{Order, PatternName, size};

/// Why a layout or its index cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LayoutError {
    /// A pattern of another version.
    #[error("no layout is known for the pattern `{0}`")]
    UnknownPattern(PatternName),
    /// An order of another version.
    #[error("no layout is known for the order `{0}`")]
    UnknownOrder(Order),
    /// A fragment that is no power of two, or less than a unit.
    #[error("a fragment of {fragment_bytes} B: it must be a power of two from {UNIT_BYTES} B on")]
    Fragment {
        /// The fragment asked for.
        fragment_bytes: u64,
    },
    /// A footprint beyond [`MAX_FOOTPRINT_BYTES`].
    #[error("a footprint of {footprint_bytes} B: {MAX_FOOTPRINT_BYTES} B is the most")]
    FootprintTooLarge {
        /// The footprint asked for.
        footprint_bytes: u64,
    },
    /// A footprint that is not a whole number of fragments.
    #[error(
        "a footprint of {footprint_bytes} B is not a whole number of fragments of {}",
        size::exact(*.fragment_bytes)
    )]
    UnevenFootprint {
        /// The footprint asked for.
        footprint_bytes: u64,
        /// The fragment asked for.
        fragment_bytes: u64,
    },
    /// A payload that is empty or not a whole number of fragments.
    #[error(
        "a payload of {payload_bytes} B is not a whole number, at least one, of fragments of {}",
        size::exact(*.fragment_bytes)
    )]
    UnevenPayload {
        /// The payload asked for.
        payload_bytes: u64,
        /// The fragment asked for.
        fragment_bytes: u64,
    },
    /// A payload larger than its footprint.
    #[error(
        "a payload of {} does not fit a footprint of {}",
        size::exact(*.payload_bytes),
        size::exact(*.footprint_bytes)
    )]
    PayloadTooLarge {
        /// The payload asked for.
        payload_bytes: u64,
        /// The footprint asked for.
        footprint_bytes: u64,
    },
    /// The host has no memory for the index.
    #[error("no memory for an index of {fragments} entries of {entry_bytes} B")]
    OutOfMemory {
        /// Entries of the index.
        fragments: u64,
        /// Width of an entry in bytes.
        entry_bytes: u32,
    },
}
