//! Allocation policies over a [`Source`] of memory. No device: addresses are numbers here.
//!
//! A [`Policy`] takes regions from its source and hands out blocks of them. What a program asked
//! for is *requested*, what its block takes *rounded*, what the policy holds of the source
//! *reserved*; free ranges inside what is reserved are *holes*.

mod adaptor;
mod address_map;
mod best_fit;
mod buddy;
mod by_size;
pub mod caching;
mod chain;
mod coalescing;
#[cfg(test)]
pub(crate) mod conformance;
mod first_fit;
mod holes;
mod lists;
mod name;
mod next_fit;
mod params;
mod shared;
mod simulated;
mod size_classes;
mod slab;
mod source;
mod spacing;
#[cfg(test)]
mod tests;
mod tree;

pub use adaptor::{AsSource, Counted, Counts, GranuleError, Limited, Logged};
pub use best_fit::BestFit;
pub use buddy::Buddy;
pub use coalescing::Coalescing;
pub use first_fit::FirstFit;
pub use name::{PolicyName, UnknownPolicy};
pub use next_fit::NextFit;
pub use params::{CUDA_ALIGNMENT_BYTES, Growth, Params, ParamsError};
pub use shared::Shared;
pub use simulated::{Calls, Placement, SimulatedSource, SimulationError};
pub use size_classes::SizeClasses;
pub use slab::Slab;
pub use source::{Region, Source, SourceError};

use address_map::{AddressIndex, AddressMap};
use thiserror::Error;

/// A live block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Block {
    /// Its first address.
    pub address: u64,
    /// Bytes that were requested.
    pub requested_bytes: u64,
    /// Bytes that it takes.
    pub rounded_bytes: u64,
}

/// A free range inside what is reserved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Hole {
    /// Its first address.
    pub address: u64,
    /// Its length in bytes.
    pub bytes: u64,
}

impl Hole {
    /// The address behind its last byte.
    pub fn end(&self) -> u64 {
        self.address + self.bytes
    }
}

/// In which order holes are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HoleOrder {
    /// By address.
    Address,
    /// As the policy keeps them: the order in which its search would meet them.
    FreeList,
}

/// What a policy holds, in bytes and blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Live blocks.
    pub live_blocks: u64,
    /// Bytes that live blocks were requested with.
    pub requested_bytes: u64,
    /// Bytes that live blocks take.
    pub rounded_bytes: u64,
    /// Bytes that the policy holds of its source: those of live blocks, of holes, and of what it can
    /// never hand out: its own books where it keeps them in that memory, ends too short for a block.
    pub reserved_bytes: u64,
}

impl Usage {
    fn out_of_memory(&self, requested_bytes: u64) -> PolicyError {
        let hole_bytes = self.reserved_bytes - self.rounded_bytes;
        PolicyError::OutOfMemory { requested_bytes, hole_bytes }
    }

    fn add(&mut self, requested_bytes: u64, rounded_bytes: u64) {
        self.live_blocks += 1;
        self.requested_bytes += requested_bytes;
        self.rounded_bytes += rounded_bytes;
    }

    fn remove(&mut self, requested_bytes: u64, rounded_bytes: u64) {
        self.live_blocks -= 1;
        self.requested_bytes -= requested_bytes;
        self.rounded_bytes -= rounded_bytes;
    }
}

/// Why a policy refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PolicyError {
    /// Neither a hole nor the source has so much.
    #[error("out of memory: {requested_bytes} bytes were requested, {hole_bytes} lie in holes")]
    OutOfMemory {
        /// Bytes that were requested.
        requested_bytes: u64,
        /// Bytes of all holes together.
        hole_bytes: u64,
    },
    /// The policy hands out no block of that size, however much is free.
    #[error(
        "a block of {requested_bytes} bytes is none that this policy hands out; it takes {takes}"
    )]
    Size {
        /// Bytes that were requested.
        requested_bytes: u64,
        /// What it takes.
        takes: String,
    },
    /// No live block begins there: it was freed before, or never handed out.
    #[error("no live block begins at {address:#x}")]
    NotLive {
        /// The address that was to be freed.
        address: u64,
    },
    /// The source failed otherwise than by being empty.
    #[error("the source failed: {0}")]
    Source(SourceError),
}

/// A way to hand out blocks of a source's memory.
pub trait Policy: Send {
    /// The policy's name in cases and tables: `best_fit`.
    fn name(&self) -> &'static str;

    /// The alignment of every block in bytes, a power of two.
    fn alignment_bytes(&self) -> u64;

    /// A new block of at least `bytes` bytes; 0 bytes are taken for 1.
    ///
    /// # Errors
    ///
    /// [`PolicyError::OutOfMemory`] or [`PolicyError::Size`]; nothing has changed then.
    fn allocate(&mut self, bytes: u64) -> Result<Block, PolicyError>;

    /// Frees the live block that begins at `address`.
    ///
    /// # Errors
    ///
    /// [`PolicyError::NotLive`] where none does; nothing has changed then.
    fn free(&mut self, address: u64) -> Result<(), PolicyError>;

    /// Whether a live block begins at `address`.
    fn is_live(&self, address: u64) -> bool;

    /// What it holds.
    fn usage(&self) -> Usage;

    /// Every hole, in an order. Neighbouring holes that the policy would not merge are two.
    fn holes(&self, order: HoleOrder) -> Vec<Hole>;

    /// The lengths of all holes in bytes, in no order, which costs less than to list them. An ageing
    /// heap is asked for them again and again.
    fn hole_lengths(&self) -> Vec<u64> {
        self.holes(HoleOrder::FreeList).iter().map(|hole| hole.bytes).collect()
    }

    /// Bytes of the regions that hold no live block and could go back to the source, and their
    /// return. A policy that never returns memory returns 0.
    ///
    /// # Errors
    ///
    /// [`PolicyError::Source`] where the source refuses.
    fn release_unused(&mut self) -> Result<u64, PolicyError>;
}
