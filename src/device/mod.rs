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

/// Which of the listed devices a request means: `Auto` is the first GPU, or the host where nothing
/// hints at NVIDIA. `error` is what [`list`] said of the driver, `hint` what [`nvidia_hint`] found.
///
/// # Errors
///
/// A sentence that says what is wrong and what to do.
pub fn choose(
    request: &DeviceRequest,
    devices: &[DeviceFacts],
    error: Option<&str>,
    hint: Option<&str>,
) -> Result<DeviceFacts, String> {
    let host = devices.iter().find(|device| device.is_host());
    let gpus: Vec<&DeviceFacts> = devices.iter().filter(|device| !device.is_host()).collect();
    let wants_host = match request {
        DeviceRequest::Host => true,
        DeviceRequest::Auto => gpus.is_empty() && hint.is_none(),
        DeviceRequest::Ordinal(_) | DeviceRequest::Uuid(_) => false,
    };
    if wants_host {
        return host.cloned().ok_or_else(|| DeviceError::NoHostKernels.to_string());
    }
    if let (true, Some(error)) = (gpus.is_empty(), error) {
        return Err(match hint {
            Some(hint) => format!("{hint}, but {error}"),
            None => error.to_owned(),
        });
    }
    let found = gpus.iter().find(|device| match request {
        DeviceRequest::Uuid(uuid) => {
            device.uuid.as_deref().is_some_and(|known| known.starts_with(uuid.as_str()))
        }
        DeviceRequest::Ordinal(number) => device.id == format!("cuda:{number}"),
        DeviceRequest::Auto | DeviceRequest::Host => true,
    });
    found.map(|device| (*device).clone()).ok_or_else(|| {
        let known = gpus.iter().map(|device| describe(device)).collect();
        DeviceError::Unknown { asked: request.to_string(), known }.to_string()
    })
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
    use crate::record::DeviceKind;

    fn gpu(number: u32, uuid: &str) -> DeviceFacts {
        let id = format!("cuda:{number}");
        DeviceFacts { id, uuid: Some(uuid.to_owned()), ..DeviceFacts::new(DeviceKind::Cuda) }
    }

    fn host() -> DeviceFacts {
        DeviceFacts { id: "host".to_owned(), ..DeviceFacts::new(DeviceKind::Host) }
    }

    #[test]
    fn auto_never_falls_back_where_a_gpu_is_hinted_at() {
        let error = DeviceError::NoDriver.to_string();
        let auto = DeviceRequest::Auto;
        let chosen = choose(&auto, &[host()], Some(&error), None).unwrap();
        assert_eq!(chosen.id, "host");
        let refused = choose(&auto, &[host()], Some(&error), Some("/dev/nvidia0 exists"));
        let sentence = refused.unwrap_err();
        assert!(sentence.starts_with("/dev/nvidia0 exists, but "), "{sentence}");
        assert!(sentence.contains("--device host"), "{sentence}");
        let both = [gpu(0, "GPU-a"), host()];
        assert_eq!(choose(&auto, &both, None, Some("hint")).unwrap().id, "cuda:0");
    }

    #[test]
    fn unknown_devices_list_those_that_exist() {
        let devices = [gpu(0, "GPU-aa"), gpu(1, "GPU-bb"), host()];
        for name in ["cuda:2", "GPU-cc"] {
            let request: DeviceRequest = name.parse().unwrap();
            let sentence = choose(&request, &devices, None, None).unwrap_err();
            assert!(sentence.contains("cuda:0 (GPU-aa), cuda:1 (GPU-bb)"), "{sentence}");
        }
        let by_uuid = "GPU-bb".parse().unwrap();
        assert_eq!(choose(&by_uuid, &devices, None, None).unwrap().id, "cuda:1");
    }
}
