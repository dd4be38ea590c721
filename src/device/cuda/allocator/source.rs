//! The device's virtual memory as a [`Source`], for policies that map and unmap by the page.

use super::super::DeviceError;
use super::books::whole;
use super::home::Failure;
use super::ranges::{Kind, Ranges, pieces};
use super::virtual_memory::{Handle, VirtualMemory};
use crate::policy::{Region, Source, SourceError};

/// Who asks, where there is no virtual memory management.
const NAME: &str = "vmm";

/// Addresses of the device with physical memory under parts of them.
///
/// Memory lies under addresses in pieces, each a physical chunk of its own. A call of
/// [`map`](Source::map) cuts its part into pieces of `piece_bytes` from the part's beginning on, the
/// last being what is left. A piece is taken back whole or not at all: [`unmap`](Source::unmap)
/// takes a part that one or more pieces make up exactly, and refuses any other with
/// [`SourceError::Unknown`]. A policy that maps several of its pages at once, and unmaps them one by
/// one, needs pieces that are no longer than a page of it: for the caching policy those of its large
/// segments, 20 MiB unless configured otherwise (its small pages are mapped one at a time).
///
/// Whatever is left is unmapped and given back when the source is dropped.
pub struct VmmSource {
    memory: VirtualMemory,
    piece_bytes: u64,
    /// All that the device has.
    device_bytes: u64,
    ranges: Ranges<Handle>,
}

impl VmmSource {
    /// A source of the device `ordinal` that holds nothing yet.
    pub(in crate::device) fn create(
        ordinal: u32,
        piece_bytes: u64,
    ) -> Result<VmmSource, DeviceError> {
        let memory = VirtualMemory::create(NAME, ordinal)?;
        let granule_bytes = memory.granule_bytes();
        memory.check_granules(NAME, "pieces", piece_bytes)?;
        let (_, device_bytes) = memory.memory_bytes().map_err(Failure::device_error)?;
        Ok(VmmSource { memory, piece_bytes, device_bytes, ranges: Ranges::new(granule_bytes) })
    }

    /// How long the pieces are that mapped parts are cut into.
    pub fn piece_bytes(&self) -> u64 {
        self.piece_bytes
    }

    fn failed(&self, failure: Failure, requested_bytes: u64) -> SourceError {
        match failure {
            Failure::OutOfMemory => {
                SourceError::OutOfMemory { requested_bytes, free_bytes: self.free_bytes() }
            }
            other => other.into(),
        }
    }

    /// Addresses of whole granules.
    fn reserve(&self, bytes: u64) -> Result<Region, SourceError> {
        let granule_bytes = self.memory.granule_bytes();
        let reserved = whole(bytes, granule_bytes)
            .ok_or(Failure::OutOfMemory)
            .and_then(|whole_bytes| self.memory.reserve(whole_bytes));
        reserved.map_err(|failure| self.failed(failure, bytes))
    }

    fn map_pieces(&mut self, part: Region) -> Result<(), SourceError> {
        // What can never be is not tried piece by piece until the device is full.
        let mapped = match part.bytes <= self.device_bytes {
            true => self.memory.map(pieces(part, self.piece_bytes)),
            false => Err(Failure::OutOfMemory),
        };
        let handles = mapped.map_err(|failure| self.failed(failure, part.bytes))?;
        self.ranges.map(pieces(part, self.piece_bytes), &handles);
        Ok(())
    }
}

impl Source for VmmSource {
    /// The driver's granularity of physical memory.
    fn granule_bytes(&self) -> u64 {
        self.memory.granule_bytes()
    }

    fn allocate(&mut self, bytes: u64) -> Result<Region, SourceError> {
        let region = self.reserve(bytes)?;
        if let Err(error) = self.map_pieces(region) {
            let _ = self.memory.free_addresses(region);
            return Err(error);
        }
        self.ranges.add(region, Kind::Region);
        Ok(region)
    }

    fn release(&mut self, region: Region) -> Result<(), SourceError> {
        let handles = self.ranges.region(region)?;
        self.memory.unmap(region, &handles)?;
        self.ranges.unmap(region);
        self.ranges.remove(region);
        Ok(self.memory.free_addresses(region)?)
    }

    /// The driver's free bytes; 0 where it does not tell.
    fn free_bytes(&self) -> u64 {
        self.memory.memory_bytes().map_or(0, |(free, _)| free)
    }

    fn reserve_addresses(&mut self, bytes: u64) -> Result<Region, SourceError> {
        let region = self.reserve(bytes)?;
        self.ranges.add(region, Kind::Addresses);
        Ok(region)
    }

    fn map(&mut self, part: Region) -> Result<(), SourceError> {
        self.ranges.check_unmapped(part)?;
        self.map_pieces(part)
    }

    fn unmap(&mut self, part: Region) -> Result<(), SourceError> {
        let handles = self.ranges.mapped_in(part)?;
        self.memory.unmap(part, &handles)?;
        self.ranges.unmap(part);
        Ok(())
    }

    fn release_addresses(&mut self, region: Region) -> Result<(), SourceError> {
        self.ranges.check_empty(region)?;
        self.memory.free_addresses(region)?;
        self.ranges.remove(region);
        Ok(())
    }
}

impl Drop for VmmSource {
    fn drop(&mut self) {
        let (mapped, ranges) = self.ranges.clear();
        // Nobody is left to tell; the others are given back all the same.
        for (piece, handle) in mapped {
            let _ = self.memory.unmap(piece, &[handle]);
        }
        for range in ranges {
            let _ = self.memory.free_addresses(range);
        }
    }
}
