//! Why there is no such layout, or no index of it.

use thiserror::Error;

use super::{Fragment, LEAST_UNIT_BYTES, MAX_FOOTPRINT_BYTES, MAX_FRAGMENTS, UNIT_BYTES};
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
    /// A refinement that its pattern does not have.
    #[error(
        "the pattern `{pattern}` has no refinement `{part}`: there are strided.stride_N, \
         shuffled.window_SIZE, holes.occupancy_PERCENT, and .offset_SIZE on each pattern"
    )]
    Refinement {
        /// The pattern.
        pattern: PatternName,
        /// The part of the refinement.
        part: String,
    },
    /// A fragment that is no power of two, or less than the narrowest unit.
    #[error(
        "a fragment of {fragment_bytes} B: it must be a power of two from {LEAST_UNIT_BYTES} B on"
    )]
    Fragment {
        /// The fragment asked for.
        fragment_bytes: u64,
    },
    /// An alignment that no kernel takes.
    #[error(
        "an offset of {offset_bytes} B: no kernel takes fragments that are not aligned to \
         {LEAST_UNIT_BYTES} B; take a multiple of {LEAST_UNIT_BYTES} B"
    )]
    Offset {
        /// The offset asked for.
        offset_bytes: u64,
    },
    /// A fragment, behind its offset, that does not fit the footprint.
    #[error(
        "a fragment of {} at an offset of {offset_bytes} B does not fit a footprint of {}: take a \
         shorter fragment or a larger footprint",
        size::exact(*.fragment_bytes),
        size::exact(*.footprint_bytes)
    )]
    FragmentTooLarge {
        /// The fragment asked for.
        fragment_bytes: u64,
        /// The offset asked for.
        offset_bytes: u64,
        /// The footprint asked for.
        footprint_bytes: u64,
    },
    /// An occupancy that leaves nothing free, or everything.
    #[error("an occupancy of {occupancy_percent} %: it must be from 1 to 99 %")]
    Occupancy {
        /// The occupancy asked for.
        occupancy_percent: u32,
    },
    /// A stride of no slot.
    #[error("a stride of 0 slots: it must be at least 1")]
    NoStride,
    /// A window that holds no two fragments.
    #[error(
        "a window of {} holds fewer than two fragments of this density: take at least {}",
        size::exact(*.window_bytes),
        size::exact(*.least_bytes)
    )]
    Window {
        /// The window asked for.
        window_bytes: u64,
        /// The least that would do.
        least_bytes: u64,
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
        "a payload of {payload_bytes} B is not a whole number, at least one, of fragments of {} \
         and of {UNIT_BYTES} B",
        size::exact(*.fragment_bytes)
    )]
    UnevenPayload {
        /// The payload asked for.
        payload_bytes: u64,
        /// The fragment asked for.
        fragment_bytes: u64,
    },
    /// A payload larger than what its footprint holds.
    #[error(
        "a payload of {} does not fit a footprint of {} (density over 1): {} is the most there",
        size::exact(*.payload_bytes),
        size::exact(*.footprint_bytes),
        size::exact(*.most_bytes)
    )]
    PayloadTooLarge {
        /// The payload asked for.
        payload_bytes: u64,
        /// The footprint asked for.
        footprint_bytes: u64,
        /// The largest payload that fits.
        most_bytes: u64,
    },
    /// A payload other than the one that the pattern has.
    #[error(
        "a payload of {} with the pattern `{pattern}`, which says itself how much it holds: {} in \
         this footprint",
        size::exact(*.payload_bytes),
        size::exact(*.most_bytes)
    )]
    PayloadDiffers {
        /// The pattern.
        pattern: PatternName,
        /// The payload asked for.
        payload_bytes: u64,
        /// The payload that the pattern has.
        most_bytes: u64,
    },
    /// Extents without a fragment.
    #[error("there is no fragment: a layout has at least one")]
    NoFragments,
    /// More fragments than [`MAX_FRAGMENTS`].
    #[error("{fragments} fragments: {MAX_FRAGMENTS} is the most")]
    TooManyFragments {
        /// The fragments asked for.
        fragments: u64,
    },
    /// A fragment that is empty or not made of words.
    #[error(
        "fragment {number}, {} B at {} B: it must have at least one byte, and offset and length must \
         be multiples of {LEAST_UNIT_BYTES} B",
        .fragment.bytes,
        .fragment.offset
    )]
    NoWords {
        /// Its number, from 0.
        number: u64,
        /// The fragment.
        fragment: Fragment,
    },
    /// A fragment that ends behind the footprint.
    #[error(
        "fragment {number}, {} B at {} B, ends behind the footprint of {footprint_bytes} B",
        .fragment.bytes,
        .fragment.offset
    )]
    OutsideFootprint {
        /// Its number, from 0.
        number: u64,
        /// The fragment.
        fragment: Fragment,
        /// The footprint asked for.
        footprint_bytes: u64,
    },
    /// Two fragments that share bytes.
    #[error(
        "two fragments overlap: {} B at {} B and {} B at {} B",
        .first.bytes,
        .first.offset,
        .second.bytes,
        .second.offset
    )]
    Overlap {
        /// The one that begins first.
        first: Fragment,
        /// The one that begins in it.
        second: Fragment,
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
