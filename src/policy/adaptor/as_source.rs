//! An allocator below other allocators.

use std::collections::BTreeMap;

use thiserror::Error;

use crate::policy::{Policy, PolicyError, Region, Source, SourceError};

/// Bytes that an allocator has not handed out.
type FreeBytes<P> = Box<dyn Fn(&P) -> u64 + Send>;

/// Any allocator as the source of policies above it: the caching policy on `cudaMalloc`, or on first
/// fit over one contiguous window, where its segments themselves fragment the memory.
///
/// A request is rounded up to whole granules before the allocator is asked, and that is its region:
/// what the block takes beyond is not the caller's to touch. Addresses without memory it has none.
///
/// ```
/// use fragbench::policy::caching::{Caching, Config};
/// use fragbench::policy::{AsSource, FirstFit, Growth, Params, Placement, SimulatedSource};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let capacity_bytes = 1 << 30;
/// let window = SimulatedSource::new(capacity_bytes, 2 << 20, Placement::Contiguous)?;
/// let below = FirstFit::new(window, &Params::default().with_growth(Growth::Whole))?;
/// let source = AsSource::with_capacity(below, 2 << 20, capacity_bytes)?;
/// let allocator = Caching::new(Config::default(), source)?;
/// # Ok(())
/// # }
/// ```
pub struct AsSource<P> {
    inner: P,
    granule_bytes: u64,
    free_bytes: FreeBytes<P>,
    /// Lengths of regions that are handed out.
    regions: BTreeMap<u64, u64>,
}

/// A granule that is no power of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("a granule of {granule_bytes} B: it must be a power of two")]
pub struct GranuleError {
    /// The granule asked for.
    pub granule_bytes: u64,
}

impl<P: Policy> AsSource<P> {
    /// The allocator as a source of whole granules. `free_bytes` tells what it has not handed out: of
    /// a device, the driver's figure.
    ///
    /// The granule may be longer than the allocator's alignment, where blocks of whole granules come
    /// at multiples of it all the same. A block that does not is given back, and refused.
    ///
    /// # Errors
    ///
    /// [`GranuleError`] unless the granule is a power of two.
    pub fn new(
        inner: P,
        granule_bytes: u64,
        free_bytes: impl Fn(&P) -> u64 + Send + 'static,
    ) -> Result<Self, GranuleError> {
        if !granule_bytes.is_power_of_two() {
            return Err(GranuleError { granule_bytes });
        }
        let free_bytes = Box::new(free_bytes);
        Ok(Self { inner, granule_bytes, free_bytes, regions: BTreeMap::new() })
    }

    /// The same of an allocator over `capacity_bytes` bytes: what its live blocks do not take is
    /// free.
    ///
    /// # Errors
    ///
    /// [`GranuleError`] unless the granule is a power of two.
    pub fn with_capacity(
        inner: P,
        granule_bytes: u64,
        capacity_bytes: u64,
    ) -> Result<Self, GranuleError> {
        let free_bytes =
            move |inner: &P| capacity_bytes.saturating_sub(inner.usage().rounded_bytes);
        Self::new(inner, granule_bytes, free_bytes)
    }

    /// The allocator inside.
    pub fn inner(&self) -> &P {
        &self.inner
    }

    /// The allocator, a source no more. Regions that were not released are its live blocks.
    pub fn into_inner(self) -> P {
        self.inner
    }

    fn out_of_memory(&self, requested_bytes: u64) -> SourceError {
        SourceError::OutOfMemory { requested_bytes, free_bytes: self.free_bytes() }
    }
}

impl<P: Policy> Source for AsSource<P> {
    fn granule_bytes(&self) -> u64 {
        self.granule_bytes
    }

    fn allocate(&mut self, bytes: u64) -> Result<Region, SourceError> {
        let granule_bytes = self.granule_bytes;
        let Some(whole_bytes) = bytes.max(1).checked_next_multiple_of(granule_bytes) else {
            return Err(self.out_of_memory(bytes));
        };
        let address = match self.inner.allocate(whole_bytes) {
            Ok(block) => block.address,
            Err(PolicyError::OutOfMemory { .. }) => return Err(self.out_of_memory(bytes)),
            Err(error) => return Err(refusal(error)),
        };
        if !address.is_multiple_of(granule_bytes) {
            self.inner.free(address).map_err(refusal)?;
            return Err(SourceError::Misaligned { address, granule_bytes });
        }
        self.regions.insert(address, whole_bytes);
        Ok(Region { address, bytes: whole_bytes })
    }

    fn release(&mut self, region: Region) -> Result<(), SourceError> {
        let Region { address, bytes } = region;
        if self.regions.get(&address) != Some(&bytes) {
            let what = "a region that is handed out";
            return Err(SourceError::Unknown { address, bytes, what });
        }
        self.inner.free(address).map_err(refusal)?;
        self.regions.remove(&address);
        Ok(())
    }

    fn free_bytes(&self) -> u64 {
        (self.free_bytes)(&self.inner)
    }
}

/// What the allocator refused for other reasons than want of memory.
fn refusal(error: PolicyError) -> SourceError {
    match error {
        PolicyError::Source(error) => error,
        error => SourceError::Allocator(Box::new(error)),
    }
}

#[cfg(test)]
mod tests;
