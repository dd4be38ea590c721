//! Blocks of whole physical chunks, each block at addresses of its own.

use super::super::DeviceError;
use super::home::Failure;
use super::ranges::pieces;
use super::virtual_memory::{Handle, VirtualMemory};
use super::{Calls, books};
use crate::device::DeviceAllocator;
use crate::policy::{Block, Region};
use crate::record::size;

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
        check_chunk(which, chunk_bytes, memory.granule_bytes())?;
        let (_, device_bytes) = memory.memory_bytes().map_err(Failure::device_error)?;
        Ok(WholeChunks { memory, chunk_bytes, device_bytes })
    }
}

/// Refuses chunks that are not whole granules of the driver.
fn check_chunk(
    which: DeviceAllocator,
    chunk_bytes: u64,
    granule_bytes: u64,
) -> Result<(), DeviceError> {
    if granule_bytes > 0 && chunk_bytes.is_multiple_of(granule_bytes) {
        return Ok(());
    }
    let why = format!(
        "its chunks of {} are not whole granules of the driver, which are {}; choose chunks of a \
         multiple of that",
        size::exact(chunk_bytes),
        size::exact(granule_bytes)
    );
    Err(DeviceError::NoAllocator { allocator: which.name(), why })
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Chunk;

    #[test]
    fn chunks_are_whole_granules() {
        let which = DeviceAllocator::Vmm(Chunk::of(2 << 20).unwrap());
        assert_eq!(check_chunk(which, 2 << 20, 2 << 20), Ok(()));
        assert_eq!(check_chunk(which, 2 << 20, 64 << 10), Ok(()));
        let said = check_chunk(which, 2 << 20, 16 << 20).unwrap_err().to_string();
        assert_eq!(
            said,
            "the device offers no allocator `vmm.chunk_2MiB`: its chunks of 2MiB are not whole \
             granules of the driver, which are 16MiB; choose chunks of a multiple of that"
        );
        assert!(check_chunk(which, 2 << 20, 0).is_err());
    }
}
