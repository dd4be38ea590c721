//! Duels on a CUDA device: one block on each multiprocessor, forced by shared memory.

use std::ffi::c_void;

use cudarc::driver::{result, sys};

use super::driver::Check;
use super::stream::Stream;
use super::{DeviceError, Parameter, b, launch_with};
use crate::device::{DUEL_SCRATCH_BYTES, Duel, Span, Walk};

impl Parameter for b::duel_task {}

/// The kernels of the module `duel`.
pub(super) struct Duels {
    duel: sys::CUfunction,
    who: sys::CUfunction,
    multiprocessors: u32,
    /// More than half of what a multiprocessor has, so that two blocks never share one.
    shared_bytes: u32,
}

/// How long a block stays on its multiprocessor when it tells which that is, in cycles: longer than it
/// takes to start all of them.
const STAY_CYCLES: u32 = 400_000;

/// Launches with clusters of one size: which multiprocessors are put together differs.
const CLUSTER_LAUNCHES: usize = 8;

/// The longest cluster that a device may be asked for; above 8 it need not have it (CUDA C++ Programming
/// Guide, thread block clusters).
const LONGEST_CLUSTER: u32 = 16;

impl Duels {
    pub fn create(
        device: sys::CUdevice,
        multiprocessors: u32,
        [duel, who]: [sys::CUfunction; 2],
    ) -> Result<Duels, DeviceError> {
        let most = sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN;
        // SAFETY: `device` was given by the driver.
        let most = unsafe { result::device::get_attribute(device, most) };
        let shared_bytes = most.check("cuDeviceGetAttribute")?;
        let dynamic =
            sys::CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        for function in [duel, who] {
            // SAFETY: both functions are of loaded modules, which are never unloaded.
            unsafe { result::function::set_function_attribute(function, dynamic, shared_bytes) }
                .check("cuFuncSetAttribute")?;
        }
        Ok(Duels { duel, who, multiprocessors, shared_bytes: shared_bytes.max(0) as u32 })
    }

    pub fn duel(&self, duel: &Duel<'_>, stream: &Stream) -> Result<Vec<Option<Walk>>, DeviceError> {
        let task = duel.task()?;
        clear(duel.scratch, stream)?;
        let blocks = self.multiprocessors;
        let shape = (blocks, b::FRAGBENCH_DUEL_THREADS, self.shared_bytes);
        launch_with(self.duel, shape, stream, &task)?;
        Duel::walks(&words(duel.scratch, stream)?)
    }

    /// Which multiprocessors are put into one cluster, launch after launch; none on devices without
    /// clusters. Those of one cluster share a GPC.
    pub fn clusters(
        &self,
        scratch: Span<'_>,
        stream: &Stream,
    ) -> Result<Vec<Vec<u32>>, DeviceError> {
        let mut found = Vec::new();
        // SAFETY: the function is of a loaded module.
        let allows_more = unsafe {
            result::function::set_function_attribute(
                self.who,
                sys::CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED,
                1,
            )
        };
        let longest = if allows_more.is_ok() { LONGEST_CLUSTER } else { LONGEST_CLUSTER / 2 };
        let mut size = 2;
        while size <= longest {
            for _ in 0..CLUSTER_LAUNCHES {
                let blocks = self.multiprocessors / size * size;
                clear(scratch, stream)?;
                self.launch_clusters(blocks, size, scratch, stream)?;
                let words = words(scratch, stream)?;
                let numbers: &[u32] = bytemuck::cast_slice(&words);
                found.extend(numbers[..blocks as usize].chunks(size as usize).map(<[u32]>::to_vec));
            }
            size *= 2;
        }
        Ok(found)
    }

    fn launch_clusters(
        &self,
        blocks: u32,
        size: u32,
        scratch: Span<'_>,
        stream: &Stream,
    ) -> Result<(), DeviceError> {
        let mut task = b::duel_task {
            results: scratch.address(),
            reads: STAY_CYCLES,
            ..b::duel_task::default()
        };
        let mut parameters = [(&raw mut task).cast::<c_void>()];
        let dimensions = sys::CUlaunchAttributeValue_union__bindgen_ty_1 { x: size, y: 1, z: 1 };
        let mut attribute = sys::CUlaunchAttribute_st {
            id: sys::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
            pad: [0; 4],
            value: sys::CUlaunchAttributeValue_union { clusterDim: dimensions },
        };
        let config = sys::CUlaunchConfig_st {
            gridDimX: blocks,
            gridDimY: 1,
            gridDimZ: 1,
            blockDimX: 32,
            blockDimY: 1,
            blockDimZ: 1,
            sharedMemBytes: self.shared_bytes,
            hStream: stream.raw(),
            attrs: &raw mut attribute,
            numAttrs: 1,
        };
        // SAFETY: the kernel takes one task by value and writes a word for each block, for which the
        // scratch memory has room; configuration and attribute live during the call.
        unsafe {
            sys::cuLaunchKernelEx(&config, self.who, parameters.as_mut_ptr(), std::ptr::null_mut())
        }
        .result()
        .check("cuLaunchKernelEx")
    }
}

/// Zeros, before a launch.
fn clear(scratch: Span<'_>, stream: &Stream) -> Result<(), DeviceError> {
    stream.synchronize()?;
    let bytes = scratch.bytes().min(DUEL_SCRATCH_BYTES) as usize;
    // SAFETY: the span is live and has so many bytes.
    unsafe { result::memset_d8_sync(scratch.address(), 0, bytes) }.check("cuMemsetD8")
}

/// What a launch left there.
fn words(scratch: Span<'_>, stream: &Stream) -> Result<Vec<u64>, DeviceError> {
    stream.synchronize()?;
    let mut words = vec![0u64; scratch.bytes().min(DUEL_SCRATCH_BYTES) as usize / 8];
    // SAFETY: the span is live and at least as long as the words.
    unsafe { result::memcpy_dtoh_sync(&mut words, scratch.address()) }.check("cuMemcpyDtoH")?;
    Ok(words)
}
