//! Where it runs: CUDA (driver API, loaded at run time) and the host. Buffers, launches, timing
//! and facts. The only module with `unsafe` code.

#![allow(unsafe_code)]

pub mod bindings;
pub mod cuda;
mod entry;
mod error;
pub mod host;
mod launch;
mod memory;
pub mod modules;
mod nvml;
mod process;
mod select;

pub use entry::Entry;
pub use error::DeviceError;
pub use launch::{Launch, SUM_BYTES, Shape, Spans};
pub use memory::{Buffer, Span};
pub use process::end_with_parent;
pub use select::{DeviceRequest, choose, nvidia_hint};

use crate::record::{Clocks, DeviceFacts};

/// How long a timed interval took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interval {
    /// Nanoseconds between its begin and its end.
    Ns(u64),
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

    /// Whether launches are queued behind a hold while an interval is prepared (always on the
    /// host, where nothing is queued).
    fn is_held(&self) -> bool;

    /// Clocks now: each pair holds the same value twice.
    fn clocks(&self) -> Clocks;
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
