//! Blocks of whole physical chunks, each block at addresses of its own.

use super::super::DeviceError;
use super::home::Failure;
use super::ranges::pieces;
use super::virtual_memory::{Handle, VirtualMemory};
use super::{Calls, books};
use crate::device::DeviceAllocator;
use crate::policy::{Block, Region};

pub(super) struct WholeChunks {
    memory: VirtualMemory,
    chunk_bytes: u64,
    /// All that the device has.
    device_bytes: u64,
}

impl WholeChunks {
    pub fn create(
        which: DeviceAllocator,
        ordinal: u32,
        chunk_bytes: u64,
    ) -> Result<WholeChunks, DeviceError> {
        let memory = VirtualMemory::create(which.name(), ordinal)?;
        memory.check_granules(which.name(), "chunks", chunk_bytes)?;
        let (_, device_bytes) = memory.memory_bytes().map_err(Failure::device_error)?;
        Ok(WholeChunks { memory, chunk_bytes, device_bytes })
    }
}

impl Calls for WholeChunks {
    type Held = Vec<Handle>;

    fn alignment_bytes(&self) -> u64 {
        self.memory.granule_bytes()
    }

    fn rounded_bytes(&self, bytes: u64) -> Option<u64> {
        books::whole(bytes, self.chunk_bytes)
    }

    fn take(&mut self, _bytes: u64, rounded_bytes: u64) -> Result<(u64, Vec<Handle>), Failure> {
        // What can never be is not tried chunk by chunk until the device is full.
        if rounded_bytes > self.device_bytes {
            return Err(Failure::OutOfMemory);
        }
        let region = self.memory.reserve(rounded_bytes)?;
        match self.memory.map(pieces(region, self.chunk_bytes)) {
            Ok(handles) => Ok((region.address, handles)),
            Err(failure) => {
                let _ = self.memory.free_addresses(region);
                Err(failure)
            }
        }
    }

    fn give(&mut self, block: &Block, held: &Vec<Handle>) -> Result<(), Failure> {
        let region = Region { address: block.address, bytes: block.rounded_bytes };
        self.memory.unmap(region, held)?;
        self.memory.free_addresses(region)
    }
}
