//! Virtual memory management: addresses, physical chunks, and the maps between them.

use cudarc::driver::sys;

use super::super::DeviceError;
use super::home::{Failure, Home, Told};
use crate::policy::Region;
use crate::record::size;

/// A physical chunk.
pub(super) type Handle = sys::CUmemGenericAllocationHandle;

/// The device's virtual memory. Keeps no books: whoever calls has them.
pub(super) struct VirtualMemory {
    home: Home,
    granule_bytes: u64,
}

impl VirtualMemory {
    /// `allocator` is who wants it, for the sentence where there is none.
    pub fn create(allocator: &'static str, ordinal: u32) -> Result<VirtualMemory, DeviceError> {
        let home = Home::retain(ordinal)?;
        let what = sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED;
        if !home.has(what) {
            let why = "the device has no virtual memory management here; update the NVIDIA driver \
                       (CUDA 10.2 or newer), or choose cu_mem_alloc";
            return Err(DeviceError::NoAllocator { allocator, why: why.to_owned() });
        }
        let mut memory = VirtualMemory { home, granule_bytes: 0 };
        memory.granule_bytes = memory.ask_granule().map_err(Failure::device_error)?;
        Ok(memory)
    }

    /// Refuses `what` (chunks or pieces) of a length that is not whole granules of the driver.
    pub fn check_granules(
        &self,
        allocator: &'static str,
        what: &str,
        bytes: u64,
    ) -> Result<(), DeviceError> {
        whole_granules(allocator, what, bytes, self.granule_bytes)
    }

    pub fn granule_bytes(&self) -> u64 {
        self.granule_bytes
    }

    /// The driver's free bytes, and all that the device has.
    pub fn memory_bytes(&self) -> Result<(u64, u64), Failure> {
        self.home.memory_bytes()
    }

    fn ask_granule(&self) -> Result<u64, Failure> {
        let mut bytes = 0;
        let least = sys::CUmemAllocationGranularity_flags::CU_MEM_ALLOC_GRANULARITY_MINIMUM;
        // SAFETY: writes one integer; the properties live during the call.
        unsafe { sys::cuMemGetAllocationGranularity(&mut bytes, &self.properties(), least) }
            .result()
            .told("cuMemGetAllocationGranularity")?;
        Ok(bytes as u64)
    }

    fn location(&self) -> sys::CUmemLocation {
        sys::CUmemLocation {
            type_: sys::CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE,
            id: self.home.device(),
        }
    }

    /// Plain memory of this device, shared with nobody.
    fn properties(&self) -> sys::CUmemAllocationProp {
        sys::CUmemAllocationProp {
            type_: sys::CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED,
            requestedHandleTypes: sys::CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_NONE,
            location: self.location(),
            win32HandleMetaData: std::ptr::null_mut(),
            allocFlags: sys::CUmemAllocationProp_st__bindgen_ty_1 {
                compressionType: 0,
                gpuDirectRDMACapable: 0,
                usage: 0,
                reserved: [0; 4],
            },
        }
    }

    /// Addresses without memory.
    pub fn reserve(&self, bytes: u64) -> Result<Region, Failure> {
        self.home.enter()?;
        let mut address = 0;
        let (length, alignment) = (bytes as usize, self.granule_bytes as usize);
        // SAFETY: writes one address; nothing lies under it yet.
        unsafe { sys::cuMemAddressReserve(&mut address, length, alignment, 0, 0) }
            .result()
            .told("cuMemAddressReserve")?;
        Ok(Region { address, bytes })
    }

    /// Gives addresses back under which nothing is mapped.
    pub fn free_addresses(&self, region: Region) -> Result<(), Failure> {
        self.home.enter()?;
        // SAFETY: the region came from `reserve` and is freed once, by whoever keeps the books.
        unsafe { sys::cuMemAddressFree(region.address, region.bytes as usize) }
            .result()
            .told("cuMemAddressFree")
    }

    /// A physical chunk, under no addresses yet.
    pub fn create_chunk(&self, bytes: u64) -> Result<Handle, Failure> {
        self.home.enter()?;
        let mut handle = 0;
        // SAFETY: writes one handle; the properties live during the call.
        unsafe { sys::cuMemCreate(&mut handle, bytes as usize, &self.properties(), 0) }
            .result()
            .told("cuMemCreate")?;
        Ok(handle)
    }

    /// Puts a chunk under a piece that is as long. Nothing may touch it before [`open`](Self::open).
    pub fn map_chunk(&self, piece: Region, chunk: Handle) -> Result<(), Failure> {
        self.home.enter()?;
        // SAFETY: the piece is reserved and nothing is mapped there; the chunk is as long.
        unsafe { sys::cuMemMap(piece.address, piece.bytes as usize, 0, chunk, 0) }
            .result()
            .told("cuMemMap")
    }

    /// Lets the device read and write a part that is wholly mapped.
    pub fn open(&self, part: Region) -> Result<(), Failure> {
        self.home.enter()?;
        let access = sys::CUmemAccessDesc {
            location: self.location(),
            flags: sys::CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
        };
        // SAFETY: all of it is mapped; one description, which lives during the call.
        unsafe { sys::cuMemSetAccess(part.address, part.bytes as usize, &access, 1) }
            .result()
            .told("cuMemSetAccess")
    }

    /// Puts a chunk of its own under each piece; the pieces follow each other without a gap. Nothing
    /// is mapped where that fails.
    pub fn map(&self, pieces: impl Iterator<Item = Region>) -> Result<Vec<Handle>, Failure> {
        let mut mapped = Mapped { memory: self, whole: None, handles: Vec::new() };
        for piece in pieces {
            mapped.add(piece)?;
        }
        if let Some(whole) = mapped.whole {
            self.open(whole)?;
        }
        // Taken out, so that nothing is left for the guard to undo.
        mapped.whole = None;
        Ok(std::mem::take(&mut mapped.handles))
    }

    /// Takes the chunks from under a part, which is exactly theirs.
    pub fn unmap(&self, part: Region, handles: &[Handle]) -> Result<(), Failure> {
        self.home.enter()?;
        // SAFETY: the part is wholly mapped, and whoever keeps the books lets it go.
        unsafe { sys::cuMemUnmap(part.address, part.bytes as usize) }
            .result()
            .told("cuMemUnmap")?;
        let mut released = Ok(());
        for handle in handles {
            // Every one, whatever the others say.
            released = released.and(release(*handle));
        }
        released
    }
}

/// The same by the driver's granule alone.
pub(super) fn whole_granules(
    allocator: &'static str,
    what: &str,
    bytes: u64,
    granule_bytes: u64,
) -> Result<(), DeviceError> {
    if bytes > 0 && granule_bytes > 0 && bytes.is_multiple_of(granule_bytes) {
        return Ok(());
    }
    let why = format!(
        "{what} of {} are not whole granules of the driver, which are {}; choose {what} of a multiple \
         of that",
        size::exact(bytes),
        size::exact(granule_bytes)
    );
    Err(DeviceError::NoAllocator { allocator, why })
}

/// Gives a chunk back; where it is mapped, its memory stays until it is no more.
pub(super) fn release(handle: Handle) -> Result<(), Failure> {
    // SAFETY: came from cuMemCreate and is released once.
    unsafe { sys::cuMemRelease(handle) }.result().told("cuMemRelease")
}

/// What is mapped so far: undone where it is dropped before its end.
struct Mapped<'a> {
    memory: &'a VirtualMemory,
    whole: Option<Region>,
    handles: Vec<Handle>,
}

impl Mapped<'_> {
    fn add(&mut self, piece: Region) -> Result<(), Failure> {
        let handle = self.memory.create_chunk(piece.bytes)?;
        if let Err(failure) = self.memory.map_chunk(piece, handle) {
            let _ = release(handle);
            return Err(failure);
        }
        self.handles.push(handle);
        let whole = self.whole.get_or_insert(Region { bytes: 0, ..piece });
        whole.bytes += piece.bytes;
        Ok(())
    }
}

impl Drop for Mapped<'_> {
    fn drop(&mut self) {
        if let Some(whole) = self.whole {
            let _ = self.memory.unmap(whole, &self.handles);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_whole_granules() {
        let name = "vmm.chunk_2MiB";
        assert_eq!(whole_granules(name, "chunks", 2 << 20, 2 << 20), Ok(()));
        assert_eq!(whole_granules(name, "chunks", 2 << 20, 64 << 10), Ok(()));
        let said = whole_granules(name, "chunks", 2 << 20, 16 << 20).unwrap_err().to_string();
        assert_eq!(
            said,
            "the device offers no allocator `vmm.chunk_2MiB`: chunks of 2MiB are not whole granules \
             of the driver, which are 16MiB; choose chunks of a multiple of that"
        );
        assert!(whole_granules(name, "pieces", 2 << 20, 0).is_err());
        assert!(whole_granules(name, "pieces", 0, 2 << 20).is_err());
    }
}
