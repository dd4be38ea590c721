//! A source without a device: pages that are counted, and addresses that are numbers.

mod addresses;
mod mapped;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use thiserror::Error;

use super::{Region, Source, SourceError};
use addresses::{Addresses, FIRST as MAX_GRANULE_BYTES};
use mapped::Mapped;

/// The largest capacity in bytes: far above any memory, far below the addresses there are.
const MAX_CAPACITY_BYTES: u64 = 1 << 50;

/// Where regions come at addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Placement {
    /// At the lowest free addresses that hold them: regions of a fresh source are neighbours.
    Contiguous,
    /// Each at a random free place, never beside another.
    Scattered {
        /// Which random places.
        seed: u64,
    },
}

/// How often each call was served. Refused calls are not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Calls {
    /// [`Source::allocate`].
    pub allocate: u64,
    /// [`Source::release`].
    pub release: u64,
    /// [`Source::reserve_addresses`].
    pub reserve_addresses: u64,
    /// [`Source::map`].
    pub map: u64,
    /// [`Source::unmap`].
    pub unmap: u64,
    /// [`Source::release_addresses`].
    pub release_addresses: u64,
}

/// Why there is no such source.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SimulationError {
    /// A granule that is no power of two, or too long.
    #[error(
        "a granule of {granule_bytes} B: it must be a power of two, at most {MAX_GRANULE_BYTES} B \
         and the capacity of {capacity_bytes} B"
    )]
    Granule {
        /// The granule asked for.
        granule_bytes: u64,
        /// The capacity asked for.
        capacity_bytes: u64,
    },
    /// A capacity that is no whole number of granules, or too large.
    #[error(
        "a capacity of {capacity_bytes} B: it must be a whole number of granules of \
         {granule_bytes} B, at most {MAX_CAPACITY_BYTES} B"
    )]
    Capacity {
        /// The capacity asked for.
        capacity_bytes: u64,
        /// The granule asked for.
        granule_bytes: u64,
    },
}

/// Pages of one granule that any region can be made of, as physical memory under virtual addresses
/// is: only when pages run out is it out of memory.
#[derive(Debug)]
pub struct SimulatedSource {
    granule_bytes: u64,
    capacity_bytes: u64,
    free_bytes: u64,
    placement: Placement,
    addresses: Addresses,
    regions: BTreeMap<u64, Held>,
    calls: Calls,
}

/// A region by its first address.
#[derive(Debug)]
struct Held {
    bytes: u64,
    /// Which of reserved addresses are mapped; none where memory and addresses came together.
    mapped: Option<Mapped>,
}

impl SimulatedSource {
    /// A source of `capacity_bytes` bytes in pages of `granule_bytes`.
    ///
    /// # Errors
    ///
    /// [`SimulationError`] says which size cannot be.
    pub fn new(
        capacity_bytes: u64,
        granule_bytes: u64,
        placement: Placement,
    ) -> Result<Self, SimulationError> {
        let most_bytes = capacity_bytes.min(MAX_GRANULE_BYTES);
        if !granule_bytes.is_power_of_two() || granule_bytes > most_bytes {
            return Err(SimulationError::Granule { granule_bytes, capacity_bytes });
        }
        if !capacity_bytes.is_multiple_of(granule_bytes) || capacity_bytes > MAX_CAPACITY_BYTES {
            return Err(SimulationError::Capacity { capacity_bytes, granule_bytes });
        }
        Ok(Self {
            granule_bytes,
            capacity_bytes,
            free_bytes: capacity_bytes,
            placement,
            addresses: Addresses::new(placement, granule_bytes),
            regions: BTreeMap::new(),
            calls: Calls::default(),
        })
    }

    /// Bytes of all pages.
    pub fn capacity_bytes(&self) -> u64 {
        self.capacity_bytes
    }

    /// Where regions come at addresses.
    pub fn placement(&self) -> Placement {
        self.placement
    }

    /// How often each call was served.
    pub fn calls(&self) -> Calls {
        self.calls
    }

    /// Whether every byte of a part, which may lie in several regions, is memory that is handed out.
    #[cfg(test)]
    pub(in crate::policy) fn is_held(&self, part: Region) -> bool {
        let around = self.regions.range(..=part.address).next_back();
        let Some((&address, held)) = around else { return false };
        let end = part.end().min(address + held.bytes).max(part.address);
        let here = Region { bytes: end - part.address, ..part };
        let rest = Region { address: end, bytes: part.end() - end };
        let is_mapped = held.mapped.as_ref().is_none_or(|mapped| mapped.holds(here));
        here.bytes > 0 && is_mapped && (rest.bytes == 0 || self.is_held(rest))
    }

    /// Whole granules; 0 bytes are taken for 1.
    fn whole(&self, bytes: u64) -> Option<u64> {
        bytes.max(1).checked_next_multiple_of(self.granule_bytes)
    }

    fn out_of_memory(&self, requested_bytes: u64) -> SourceError {
        SourceError::OutOfMemory { requested_bytes, free_bytes: self.free_bytes }
    }

    /// The reserved addresses around a part, which is whole granules, and whether it may be mapped
    /// or unmapped.
    fn reserved_around(&mut self, part: Region) -> Result<&mut Mapped, SourceError> {
        let unknown = unknown(part, "whole granules of reserved addresses");
        let granule_bytes = self.granule_bytes;
        let is_whole = |bytes: u64| bytes.is_multiple_of(granule_bytes);
        let end = part.address.checked_add(part.bytes);
        let (Some(end), true) = (end, part.bytes > 0) else { return Err(unknown) };
        if !is_whole(part.address) || !is_whole(part.bytes) {
            return Err(unknown);
        }
        match self.regions.range_mut(..=part.address).next_back() {
            Some((address, Held { bytes, mapped: Some(mapped) })) if end <= address + *bytes => {
                Ok(mapped)
            }
            _ => Err(unknown),
        }
    }
}

fn unknown(region: Region, what: &'static str) -> SourceError {
    SourceError::Unknown { address: region.address, bytes: region.bytes, what }
}

impl Source for SimulatedSource {
    fn granule_bytes(&self) -> u64 {
        self.granule_bytes
    }

    fn allocate(&mut self, bytes: u64) -> Result<Region, SourceError> {
        let fitting = self.whole(bytes).filter(|&bytes| bytes <= self.free_bytes);
        let whole_bytes = fitting.ok_or_else(|| self.out_of_memory(bytes))?;
        let address = self.addresses.take(whole_bytes).ok_or_else(|| self.out_of_memory(bytes))?;
        self.free_bytes -= whole_bytes;
        self.regions.insert(address, Held { bytes: whole_bytes, mapped: None });
        self.calls.allocate += 1;
        Ok(Region { address, bytes: whole_bytes })
    }

    fn release(&mut self, region: Region) -> Result<(), SourceError> {
        match self.regions.get(&region.address) {
            Some(Held { bytes, mapped: None }) if *bytes == region.bytes => {}
            _ => return Err(unknown(region, "a region that is handed out")),
        }
        self.regions.remove(&region.address);
        self.addresses.give(region);
        self.free_bytes += region.bytes;
        self.calls.release += 1;
        Ok(())
    }

    fn free_bytes(&self) -> u64 {
        self.free_bytes
    }

    fn reserve_addresses(&mut self, bytes: u64) -> Result<Region, SourceError> {
        let whole_bytes = self.whole(bytes).ok_or_else(|| self.out_of_memory(bytes))?;
        let address = self.addresses.take(whole_bytes).ok_or_else(|| self.out_of_memory(bytes))?;
        let held = Held { bytes: whole_bytes, mapped: Some(Mapped::default()) };
        self.regions.insert(address, held);
        self.calls.reserve_addresses += 1;
        Ok(Region { address, bytes: whole_bytes })
    }

    fn map(&mut self, part: Region) -> Result<(), SourceError> {
        let out_of_memory = self.out_of_memory(part.bytes);
        let has_room = part.bytes <= self.free_bytes;
        let mapped = self.reserved_around(part)?;
        if mapped.meets(part) {
            return Err(unknown(part, "wholly without memory"));
        }
        if !has_room {
            return Err(out_of_memory);
        }
        mapped.add(part);
        self.free_bytes -= part.bytes;
        self.calls.map += 1;
        Ok(())
    }

    fn unmap(&mut self, part: Region) -> Result<(), SourceError> {
        let mapped = self.reserved_around(part)?;
        if !mapped.holds(part) {
            return Err(unknown(part, "wholly mapped"));
        }
        mapped.remove(part);
        self.free_bytes += part.bytes;
        self.calls.unmap += 1;
        Ok(())
    }

    fn release_addresses(&mut self, region: Region) -> Result<(), SourceError> {
        match self.regions.get(&region.address) {
            Some(Held { bytes, mapped: Some(mapped) }) if *bytes == region.bytes => {
                if !mapped.is_empty() {
                    return Err(unknown(region, "wholly without memory"));
                }
            }
            _ => return Err(unknown(region, "reserved addresses")),
        }
        self.regions.remove(&region.address);
        self.addresses.give(region);
        self.calls.release_addresses += 1;
        Ok(())
    }
}
