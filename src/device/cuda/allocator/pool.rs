//! A memory pool of its own, ordered by a stream of its own.

use std::ffi::c_void;

use cudarc::driver::{result, sys};

use super::super::DeviceError;
use super::super::driver::Check;
use super::super::stream::Stream;
use super::Calls;
use super::home::{Failure, Home, Told};
use crate::device::DeviceAllocator;
use crate::policy::Block;

/// A pool. Its calls only queue: a block is there, and its memory free again, in the order of the
/// stream. What is free goes back to the driver, down to the threshold, when the stream is next
/// synchronised, which no call here does but `trim`.
pub(super) struct Pool {
    pool: sys::CUmemoryPool,
    stream: Stream,
    // Last, so that it is released after what lives in it.
    home: Home,
}

// SAFETY: the driver lets every thread use a pool and a stream, and `&mut` keeps them apart.
unsafe impl Send for Pool {}

impl Pool {
    pub fn create(
        which: DeviceAllocator,
        ordinal: u32,
        release_threshold_bytes: u64,
    ) -> Result<Pool, DeviceError> {
        let home = Home::retain(ordinal)?;
        if !home.has(sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED) {
            let why = "the device has no memory pools here; update the NVIDIA driver (CUDA 11.2 or \
                       newer), or choose cu_mem_alloc";
            return Err(DeviceError::NoAllocator { allocator: which.name(), why: why.to_owned() });
        }
        let stream = Stream::create()?;
        let properties = sys::CUmemPoolProps {
            allocType: sys::CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED,
            handleTypes: sys::CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_NONE,
            location: sys::CUmemLocation {
                type_: sys::CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE,
                id: home.device(),
            },
            win32SecurityAttributes: std::ptr::null_mut(),
            maxSize: 0,
            usage: 0,
            reserved: [0; 54],
        };
        // SAFETY: the properties live during the call.
        let pool = unsafe { result::mem_pool::create(&properties) }.check("cuMemPoolCreate")?;
        let pool = Pool { pool, stream, home };
        let mut threshold_bytes: sys::cuuint64_t = release_threshold_bytes;
        let value = (&raw mut threshold_bytes).cast::<c_void>();
        let what = sys::CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
        // SAFETY: the pool is live, and this attribute is of 64 bits.
        unsafe { result::mem_pool::set_attribute(pool.pool, what, value) }
            .check("cuMemPoolSetAttribute")?;
        Ok(pool)
    }

    /// Bytes that the pool holds of the driver.
    fn reserved_bytes(&self) -> Result<u64, Failure> {
        let mut bytes: sys::cuuint64_t = 0;
        let value = (&raw mut bytes).cast::<c_void>();
        let what = sys::CUmemPool_attribute::CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT;
        // SAFETY: the pool is live, and this attribute is of 64 bits.
        unsafe { result::mem_pool::get_attribute(self.pool, what, value) }
            .told("cuMemPoolGetAttribute")?;
        Ok(bytes)
    }

    fn synchronize(&self) -> Result<(), Failure> {
        // SAFETY: the stream lives as long as `self`.
        unsafe { result::stream::synchronize(self.stream.raw()) }.told("cuStreamSynchronize")
    }
}

impl Calls for Pool {
    type Held = ();

    fn take(&mut self, bytes: u64, _rounded_bytes: u64) -> Result<(u64, ()), Failure> {
        self.home.enter()?;
        // SAFETY: pool and stream are live; the books own the allocation.
        let taken =
            unsafe { result::mem_pool::alloc_async(self.pool, bytes as usize, self.stream.raw()) };
        taken.told("cuMemAllocFromPoolAsync").map(|address| (address, ()))
    }

    fn give(&mut self, block: &Block, _held: &()) -> Result<(), Failure> {
        self.home.enter()?;
        // SAFETY: the address came from this pool and was live in the books until now.
        unsafe { result::free_async(block.address, self.stream.raw()) }.told("cuMemFreeAsync")
    }

    fn trim(&mut self) -> Result<u64, Failure> {
        self.home.enter()?;
        // Before the stream is synchronised: that alone may give memory back.
        let before = self.reserved_bytes()?;
        self.synchronize()?;
        // SAFETY: the pool is live.
        unsafe { result::mem_pool::trim_to(self.pool, 0) }.told("cuMemPoolTrimTo")?;
        Ok(before.saturating_sub(self.reserved_bytes()?))
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        // The books have queued their frees before.
        let _ = self.home.enter();
        let _ = self.synchronize();
        // SAFETY: created once, destroyed once.
        let _ = unsafe { result::mem_pool::destroy(self.pool) };
    }
}
