//! Where it runs: CUDA (driver API, loaded at run time) and the host. Buffers, launches, timing
//! and facts. The only module with `unsafe` code.

#![allow(unsafe_code)]

mod allocator;
pub mod bindings;
pub mod cuda;
mod duel;
mod entry;
mod error;
pub mod host;
mod launch;
mod memory;
pub mod modules;
mod nvml;
mod physical;
mod process;
#[cfg_attr(not(test), expect(dead_code, reason = "some faults are for unit tests alone"))]
pub(crate) mod scripted;
mod select;
mod snapshot;
mod system;
mod varied;

pub use allocator::{Chunk, DeviceAllocator, UnknownAllocator};
pub use duel::{DUEL_PAGE_BYTES, DUEL_SCRATCH_BYTES, Duel, Walk};
pub use entry::{Entry, Movement, Mover, SPARSE_STRIDE_BYTES, Variant};
pub use error::DeviceError;
pub use launch::{Launch, SUM_BYTES, Shape, Spans, WINDOW_TABLE_BYTES};
pub use memory::{Buffer, Span};
pub use physical::{MapTimes, Mapped, Physical};
pub use process::{end_with_parent, environment, fail_writes_beyond_limits, pinned};
pub use select::{DeviceRequest, choose, nvidia_hint};
pub use snapshot::Snapshot;
pub use system::Surroundings;
pub use varied::{VariedEntry, VariedMover, VariedShape, VariedSpans};

use std::time::Duration;

use crate::policy::Policy;
use crate::record::DeviceFacts;

/// How long a timed interval took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interval {
    /// It is over, and tells a time.
    Ns {
        /// Nanoseconds between its begin and its end; of an interval in pieces, their sum.
        ns: u64,
        /// The SM clock during the interval in kHz, as counted on one SM; `None` where the device
        /// gives none.
        sm_khz: Option<u32>,
    },
    /// The hold gave up before the launches were queued: the time is worth nothing.
    Void,
}

/// Something that kernels run on: the seam between what is measured and where.
pub trait Device {
    /// What is known about the device.
    fn facts(&self) -> &DeviceFacts;

    /// Free memory now, in bytes.
    ///
    /// # Errors
    ///
    /// Whatever the driver says.
    fn free_bytes(&self) -> Result<u64, DeviceError>;

    /// A plain allocation, aligned to at least 256 B.
    ///
    /// # Errors
    ///
    /// [`DeviceError::OutOfMemory`], or whatever else the driver says.
    fn allocate(&self, bytes: u64) -> Result<Buffer, DeviceError>;

    /// Copies bytes into the span, and waits.
    ///
    /// # Errors
    ///
    /// [`DeviceError::Refused`] where the lengths differ, or whatever the driver says.
    fn upload(&self, to: Span<'_>, bytes: &[u8]) -> Result<(), DeviceError>;

    /// Copies the span's bytes out, after everything that is queued, and waits.
    ///
    /// # Errors
    ///
    /// [`DeviceError::Refused`] where the lengths differ, or whatever the driver says.
    fn download(&self, from: Span<'_>, bytes: &mut [u8]) -> Result<(), DeviceError>;

    /// Queues one launch.
    ///
    /// # Errors
    ///
    /// Whatever the driver says.
    fn launch(&self, launch: &Launch<'_>) -> Result<(), DeviceError>;

    /// Waits for everything that is queued.
    ///
    /// # Errors
    ///
    /// The error of whatever failed meanwhile.
    fn synchronize(&self) -> Result<(), DeviceError>;

    /// Times `launches` launches back to back as one interval. Each has to have run before.
    ///
    /// # Errors
    ///
    /// Whatever the driver says.
    fn time(&self, launch: &Launch<'_>, launches: u32) -> Result<Interval, DeviceError>;

    /// Whether the device has this kernel. Every device has the defaults and the checks.
    fn has(&self, entry: Entry) -> bool;

    /// The PTX module that the device took this kernel from; none where it is not from one.
    fn module(&self, entry: Entry) -> Option<&'static str> {
        let _ = entry;
        None
    }

    /// Times `launches` launches one by one, and sums their intervals; before each, and outside of
    /// its interval, runs `evict`. Both have to have run before.
    ///
    /// # Errors
    ///
    /// Whatever the driver says.
    fn time_cold(
        &self,
        launch: &Launch<'_>,
        evict: &Launch<'_>,
        launches: u32,
    ) -> Result<Interval, DeviceError> {
        let mut sum = 0;
        for _ in 0..launches {
            self.launch(evict)?;
            match self.time(launch, 1)? {
                Interval::Ns { ns, .. } => sum += ns,
                Interval::Void => return Ok(Interval::Void),
            }
        }
        Ok(Interval::Ns { ns: sum, sm_khz: None })
    }

    /// Whether launches are queued behind a hold while an interval is prepared (always on the
    /// host, where nothing is queued).
    fn is_held(&self) -> bool;

    /// How long the host has waited so far for timed intervals to end, after all of each was queued;
    /// none where nothing is queued and a launch runs on the host itself.
    fn waited(&self) -> Option<Duration> {
        None
    }

    /// Queues a kernel that stores to an illegal address, and does not wait for it: some later call
    /// gives the error, as after a fault in a measured kernel, and the device is lost to the process.
    ///
    /// # Errors
    ///
    /// [`DeviceError::Refused`] where a device has none, or whatever the driver says.
    fn inject_fault(&self) -> Result<(), DeviceError> {
        let what = "this device has no kernel that faults".to_owned();
        Err(DeviceError::Refused { entry: "fault", what })
    }

    /// An allocator of the device itself, holding nothing yet. It may be used on any thread, and may
    /// outlive the device.
    ///
    /// # Errors
    ///
    /// [`DeviceError::NoAllocator`] where the device has it not, or whatever the driver says.
    fn allocator(&self, which: DeviceAllocator) -> Result<Box<dyn Policy>, DeviceError> {
        Err(no_allocator(which.name()))
    }

    /// The device's virtual memory as a source for policies, holding nothing yet; memory lies under
    /// its addresses in pieces of `piece_bytes`, whole granules of the driver.
    ///
    /// # Errors
    ///
    /// [`DeviceError::NoAllocator`] where the device has none or the pieces are no whole granules, or
    /// whatever the driver says.
    fn vmm_source(&self, piece_bytes: u64) -> Result<cuda::VmmSource, DeviceError> {
        let _ = piece_bytes;
        Err(no_allocator("vmm"))
    }

    /// Physical memory apart from addresses: so many chunks, made one after the other.
    ///
    /// # Errors
    ///
    /// [`DeviceError::NoAllocator`] where the device has no virtual memory management or the chunks
    /// are no whole granules of the driver, [`DeviceError::OutOfMemory`] where there is not so much
    /// memory, or whatever else the driver says.
    fn physical(&self, chunk_bytes: u64, count: u32) -> Result<Box<dyn Physical>, DeviceError> {
        let _ = (chunk_bytes, count);
        Err(no_allocator("vmm"))
    }

    /// What following its reads took each multiprocessor in a duel, by its number; none of those that
    /// followed none.
    ///
    /// # Errors
    ///
    /// [`DeviceError::Refused`] where the device has no such kernel, a duel's pages are not there, or its
    /// blocks were not all on the device at once; else whatever the driver says.
    fn duel(&self, duel: &Duel<'_>) -> Result<Vec<Option<Walk>>, DeviceError> {
        let _ = duel;
        let what = "this device has no kernel for duels: only CUDA devices have".to_owned();
        Err(DeviceError::Refused { entry: "duel", what })
    }

    /// Sets of multiprocessors that were put into one cluster of blocks, and so share a GPC; none where
    /// the device has no clusters. Takes [`DUEL_SCRATCH_BYTES`] of scratch memory.
    ///
    /// # Errors
    ///
    /// Whatever the driver says.
    fn clusters(&self, scratch: Span<'_>) -> Result<Vec<Vec<u32>>, DeviceError> {
        let _ = scratch;
        Ok(Vec::new())
    }

    /// What NVML tells about the device now. Takes up to some milliseconds: not to be called between
    /// the intervals of a round.
    fn snapshot(&self) -> Snapshot;

    /// NVML's bits of reasons for lowered clocks now, where they are known.
    fn throttle_reasons(&self) -> Option<u64> {
        self.snapshot().throttle_reasons
    }
}

/// What a device says that has no allocators of its own.
fn no_allocator(allocator: &'static str) -> DeviceError {
    let why = "only CUDA devices have allocators of their own; name one with --device cuda:0, or \
               measure a policy instead";
    DeviceError::NoAllocator { allocator, why: why.to_owned() }
}

/// Facts of every device that can be used here, the host last; an error where a driver is there
/// that does not work.
pub fn list() -> (Vec<DeviceFacts>, Option<DeviceError>) {
    let (mut devices, error) = match cuda::list() {
        Ok(devices) => (devices, None),
        Err(error) => (Vec::new(), Some(error)),
    };
    devices.extend(host::facts());
    (devices, error)
}

/// Opens the device that is meant. `Auto` and UUIDs have to be resolved before; see [`choose`].
///
/// # Errors
///
/// [`DeviceError`] says why it cannot be used.
pub fn open(id: &str) -> Result<Box<dyn Device>, DeviceError> {
    match id.parse() {
        Ok(DeviceRequest::Host) => Ok(Box::new(host::Host::open()?)),
        Ok(DeviceRequest::Ordinal(ordinal)) => Ok(Box::new(cuda::Cuda::open(ordinal)?)),
        _ => Err(DeviceError::Unknown { asked: id.to_owned(), known: Vec::new() }),
    }
}
