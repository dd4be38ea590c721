//! Where a policy gets its memory from.

use thiserror::Error;

use super::PolicyError;

/// A range of addresses that a source has handed out, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Region {
    /// Its first address.
    pub address: u64,
    /// Its length.
    pub bytes: u64,
}

impl Region {
    /// The address behind its last byte.
    pub fn end(&self) -> u64 {
        self.address + self.bytes
    }
}

/// Why a source gave nothing.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SourceError {
    /// There is not so much left.
    #[error("{requested_bytes} bytes were requested and {free_bytes} are free")]
    OutOfMemory {
        /// Bytes that were requested.
        requested_bytes: u64,
        /// Bytes that are free.
        free_bytes: u64,
    },
    /// The source cannot do that.
    #[error("the source cannot {what}")]
    Unsupported {
        /// What it was asked for.
        what: &'static str,
    },
    /// The region is none that the source handed out, or not in the state that the call needs.
    #[error("{bytes} bytes at {address:#x} are not {what}")]
    Unknown {
        /// First address of the region.
        address: u64,
        /// Its length.
        bytes: u64,
        /// What they would have to be.
        what: &'static str,
    },
    /// An allocator gave a block that no region begins with; it has it back.
    #[error("a block at {address:#x} begins at no multiple of the granule of {granule_bytes} B")]
    Misaligned {
        /// First address of the block.
        address: u64,
        /// The granule that regions begin at multiples of.
        granule_bytes: u64,
    },
    /// The allocator that it stands on refused otherwise than for want of memory.
    #[error("the allocator below refused: {0}")]
    Allocator(Box<PolicyError>),
    /// The device said something else.
    #[error("{0}")]
    Device(String),
}

/// Memory that policies take in large pieces: a simulated one, a driver's allocator, or another
/// policy.
///
/// `allocate` and `release` are what `cudaMalloc` and `cudaFree` are. The four others part addresses
/// from memory, as virtual memory management does; a source may leave them unsupported.
pub trait Source {
    /// The smallest unit that the source hands out, in bytes, a power of two: every region begins at
    /// a multiple of it and is a multiple long.
    fn granule_bytes(&self) -> u64;

    /// A region of at least `bytes` bytes, rounded up to whole granules.
    ///
    /// # Errors
    ///
    /// [`SourceError::OutOfMemory`] where there is none.
    fn allocate(&mut self, bytes: u64) -> Result<Region, SourceError>;

    /// Takes a whole region back.
    ///
    /// # Errors
    ///
    /// [`SourceError::Unknown`] for what was not handed out, or was taken back before.
    fn release(&mut self, region: Region) -> Result<(), SourceError>;

    /// Bytes that are not handed out.
    fn free_bytes(&self) -> u64;

    /// Addresses without memory, of at least `bytes` bytes.
    ///
    /// # Errors
    ///
    /// [`SourceError::Unsupported`] unless the source can.
    fn reserve_addresses(&mut self, _bytes: u64) -> Result<Region, SourceError> {
        Err(SourceError::Unsupported { what: "reserve addresses" })
    }

    /// Puts memory under a part of reserved addresses, of whole granules.
    ///
    /// # Errors
    ///
    /// [`SourceError::OutOfMemory`], in which case nothing of it is mapped, or
    /// [`SourceError::Unsupported`].
    fn map(&mut self, _part: Region) -> Result<(), SourceError> {
        Err(SourceError::Unsupported { what: "map memory" })
    }

    /// Takes the memory under a part of reserved addresses back.
    ///
    /// # Errors
    ///
    /// [`SourceError::Unknown`] where it is not mapped, or [`SourceError::Unsupported`].
    fn unmap(&mut self, _part: Region) -> Result<(), SourceError> {
        Err(SourceError::Unsupported { what: "unmap memory" })
    }

    /// Gives addresses back under which nothing is mapped.
    ///
    /// # Errors
    ///
    /// [`SourceError::Unknown`] where something is, or [`SourceError::Unsupported`].
    fn release_addresses(&mut self, _region: Region) -> Result<(), SourceError> {
        Err(SourceError::Unsupported { what: "release addresses" })
    }
}
