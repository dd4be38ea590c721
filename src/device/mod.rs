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
pub use select::{DeviceRequest, nvidia_hint};

use crate::record::{Clocks, DeviceFacts, DeviceKind};

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

/// Opens the device that is meant. `Auto` has to be resolved before; see [`resolve`].
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

/// The id (`cuda:N` or `host`) of the device that a request means.
///
/// # Errors
///
/// [`DeviceError::Unknown`] lists the devices that exist; other variants say why none can be used.
pub fn resolve(request: &DeviceRequest) -> Result<String, DeviceError> {
    if *request == DeviceRequest::Host {
        return Ok("host".to_owned());
    }
    let devices = match cuda::list() {
        Ok(devices) => devices,
        Err(_) if *request == DeviceRequest::Auto && nvidia_hint().is_none() => {
            return Ok("host".to_owned());
        }
        Err(error) => return Err(error),
    };
    choose(request, &devices)
}

/// The id of the device among these that a request means.
fn choose(request: &DeviceRequest, devices: &[DeviceFacts]) -> Result<String, DeviceError> {
    let is_meant = |device: &&DeviceFacts| match request {
        DeviceRequest::Uuid(uuid) => {
            device.uuid.as_deref().is_some_and(|known| known.starts_with(uuid.as_str()))
        }
        DeviceRequest::Ordinal(number) => device.id == format!("cuda:{number}"),
        DeviceRequest::Auto | DeviceRequest::Host => device.kind == DeviceKind::Cuda,
    };
    let meant: Vec<&DeviceFacts> = devices.iter().filter(is_meant).collect();
    let asked = request.to_string();
    match (request, meant.as_slice()) {
        (_, []) => {
            Err(DeviceError::Unknown { asked, known: devices.iter().map(describe).collect() })
        }
        (DeviceRequest::Uuid(_), [_, _, ..]) => {
            Err(DeviceError::Ambiguous { asked, meant: meant.into_iter().map(describe).collect() })
        }
        (_, [first, ..]) => Ok(first.id.clone()),
    }
}

fn describe(device: &DeviceFacts) -> String {
    match &device.uuid {
        Some(uuid) => format!("{} ({uuid})", device.id),
        None => device.id.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two() -> Vec<DeviceFacts> {
        let uuids = ["GPU-12345678-aaaa", "GPU-12349999-bbbb"];
        let device = |(number, uuid): (usize, &str)| DeviceFacts {
            id: format!("cuda:{number}"),
            uuid: Some(uuid.to_owned()),
            ..DeviceFacts::new(DeviceKind::Cuda)
        };
        uuids.into_iter().enumerate().map(device).collect()
    }

    #[test]
    fn a_device_is_meant_by_number_or_by_a_unique_beginning_of_its_uuid() {
        let meant = |text: &str| choose(&text.parse().unwrap(), &two());
        assert_eq!(meant("auto").unwrap(), "cuda:0");
        assert_eq!(meant("cuda:1").unwrap(), "cuda:1");
        assert_eq!(meant("GPU-12349").unwrap(), "cuda:1");
        for text in ["GPU-", "GPU-1234"] {
            let message = meant(text).unwrap_err().to_string();
            assert!(message.contains("cuda:0 (GPU-12345678-aaaa), cuda:1"), "{message}");
            assert!(matches!(meant(text), Err(DeviceError::Ambiguous { .. })));
        }
        for text in ["cuda:2", "GPU-9"] {
            let message = meant(text).unwrap_err().to_string();
            assert!(message.contains("there is no device") && message.contains("cuda:1"));
        }
    }
}
