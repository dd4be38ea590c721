//! What all policies are made with.

use thiserror::Error;

use super::caching::ConfigError;
use super::{PolicyError, Region, Source, SourceError};

/// Alignment of `cudaMalloc` in bytes: "at least 256" (CUDA C++ Programming Guide, device memory
/// accesses).
pub const CUDA_ALIGNMENT_BYTES: u64 = 256;

/// What a policy is made with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Params {
    /// Alignment of every block in bytes, and the unit that sizes are rounded up to: a power of two,
    /// at most the granule of the source.
    pub alignment_bytes: u64,
    /// How much is taken from the source at a time.
    pub growth: Growth,
    /// Length in bytes of the blocks of a policy that has one size only (slab).
    pub block_bytes: u64,
}

impl Default for Params {
    /// The alignment of `cudaMalloc`, regions of 2 MiB, blocks of 64 KiB.
    fn default() -> Self {
        Self {
            alignment_bytes: CUDA_ALIGNMENT_BYTES,
            growth: Growth::Regions { bytes: 2 << 20 },
            block_bytes: 64 << 10,
        }
    }
}

impl Params {
    /// The same with another growth.
    pub fn with_growth(self, growth: Growth) -> Self {
        Self { growth, ..self }
    }

    /// Whether a policy over such a source can be made with them.
    pub(super) fn check(&self, source: &impl Source) -> Result<(), ParamsError> {
        let Params { alignment_bytes, growth, block_bytes } = *self;
        let granule_bytes = source.granule_bytes();
        if !alignment_bytes.is_power_of_two() || alignment_bytes > granule_bytes {
            return Err(ParamsError::Alignment { alignment_bytes, granule_bytes });
        }
        if growth == (Growth::Regions { bytes: 0 }) {
            return Err(ParamsError::Growth);
        }
        if block_bytes == 0 || block_bytes > 1 << 62 {
            return Err(ParamsError::Block { block_bytes });
        }
        Ok(())
    }
}

/// How much a policy takes from its source when no hole fits.
///
/// Where the source has not so much, it takes what the request needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Growth {
    /// All that the source has free.
    Whole,
    /// Regions of so many bytes; longer ones for longer requests.
    Regions {
        /// Bytes of a region.
        bytes: u64,
    },
}

impl Growth {
    /// A region of at least `bytes` bytes; none where the source has not so much.
    pub(super) fn grow(
        self,
        source: &mut impl Source,
        bytes: u64,
    ) -> Result<Option<Region>, PolicyError> {
        let preferred = match self {
            Growth::Whole => source.free_bytes(),
            Growth::Regions { bytes } => bytes,
        };
        if preferred > bytes
            && let Some(region) = try_allocate(source, preferred)?
        {
            return Ok(Some(region));
        }
        try_allocate(source, bytes)
    }
}

fn try_allocate(source: &mut impl Source, bytes: u64) -> Result<Option<Region>, PolicyError> {
    match source.allocate(bytes) {
        Ok(region) => Ok(Some(region)),
        Err(SourceError::OutOfMemory { .. }) => Ok(None),
        Err(error) => Err(PolicyError::Source(error)),
    }
}

/// Why a policy cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ParamsError {
    /// An alignment that the source does not keep.
    #[error(
        "an alignment of {alignment_bytes} B: it must be a power of two, at most the granule of \
         the source, {granule_bytes} B"
    )]
    Alignment {
        /// The alignment asked for.
        alignment_bytes: u64,
        /// The granule of the source.
        granule_bytes: u64,
    },
    /// Regions of nothing.
    #[error("growth by regions of 0 B: they must have at least 1 B")]
    Growth,
    /// Blocks of nothing, or longer than any memory.
    #[error("blocks of {block_bytes} B: they must have from 1 B to 4 EiB")]
    Block {
        /// The block asked for.
        block_bytes: u64,
    },
    /// Settings of the caching allocator.
    #[error(transparent)]
    Caching(#[from] ConfigError),
}
