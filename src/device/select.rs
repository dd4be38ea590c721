//! Which device a user means, and whether anything hints at an NVIDIA GPU.

use std::path::Path;

use super::DeviceError;
use crate::record::DeviceFacts;

/// A device as it is asked for on the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeviceRequest {
    /// The first GPU; the host where nothing hints at NVIDIA.
    Auto,
    /// A CUDA device by its number.
    Ordinal(u32),
    /// A CUDA device by its UUID, or a unique beginning of it.
    Uuid(String),
    /// The host's memory.
    Host,
}

impl std::str::FromStr for DeviceRequest {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(number) = text.strip_prefix("cuda:") {
            return number.parse().map(DeviceRequest::Ordinal).map_err(|_| {
                format!(
                    "`{text}` is no device: write cuda:0, cuda:1, ... (see `fragbench devices`)"
                )
            });
        }
        match text {
            "auto" => Ok(DeviceRequest::Auto),
            "host" => Ok(DeviceRequest::Host),
            _ if text.starts_with("GPU-") => Ok(DeviceRequest::Uuid(text.to_owned())),
            _ => Err(format!(
                "`{text}` is no device: write auto, cuda:N, a UUID that begins with GPU-, or host (see `fragbench devices`)"
            )),
        }
    }
}

impl std::fmt::Display for DeviceRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            DeviceRequest::Auto => f.write_str("auto"),
            DeviceRequest::Ordinal(number) => write!(f, "cuda:{number}"),
            DeviceRequest::Uuid(uuid) => f.write_str(uuid),
            DeviceRequest::Host => f.write_str("host"),
        }
    }
}

/// What on this machine suggests that a GPU is meant to be used; `None` where nothing does.
/// Looks at device files, the PCI bus and the environment; starts no program.
pub fn nvidia_hint() -> Option<String> {
    let files = ["/dev/nvidiactl", "/dev/nvidia0", "/proc/driver/nvidia/version", "/dev/dxg"];
    if let Some(file) = files.iter().find(|file| Path::new(file).exists()) {
        return Some(format!("{file} exists"));
    }
    for variable in ["NVIDIA_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"] {
        match std::env::var(variable) {
            Ok(value) if !["", "void", "none", "-1"].contains(&value.as_str()) => {
                return Some(format!("{variable}={value} is set"));
            }
            _ => {}
        }
    }
    let bus = std::fs::read_dir("/sys/bus/pci/devices").ok()?;
    bus.flatten().map(|entry| entry.path()).find_map(|device| {
        let read = |name| std::fs::read_to_string(device.join(name)).unwrap_or_default();
        // 0x10de is NVIDIA; class 0x03 is a display controller (3D controllers are 0x0302).
        let is_gpu = read("vendor").trim() == "0x10de" && read("class").starts_with("0x03");
        is_gpu.then(|| format!("an NVIDIA GPU is on the PCI bus ({})", device.display()))
    })
}

/// Which of the listed devices a request means: `Auto` is the first GPU, or the host where nothing
/// hints at NVIDIA. `error` is what [`list`](super::list) said of the driver, `hint` what [`nvidia_hint`] found.
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
    let is_meant = |device: &&&DeviceFacts| match request {
        DeviceRequest::Uuid(uuid) => {
            device.uuid.as_deref().is_some_and(|known| known.starts_with(uuid.as_str()))
        }
        DeviceRequest::Ordinal(number) => device.id == format!("cuda:{number}"),
        DeviceRequest::Auto | DeviceRequest::Host => true,
    };
    let meant: Vec<&DeviceFacts> = gpus.iter().filter(is_meant).copied().collect();
    let listed = |devices: &[&DeviceFacts]| devices.iter().map(|device| describe(device)).collect();
    let asked = request.to_string();
    match (request, meant.as_slice()) {
        (_, []) => Err(DeviceError::Unknown { asked, known: listed(&gpus) }.to_string()),
        (DeviceRequest::Uuid(_), [_, _, ..]) => {
            Err(DeviceError::Ambiguous { asked, meant: listed(&meant) }.to_string())
        }
        (_, [first, ..]) => Ok((*first).clone()),
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
    use crate::record::DeviceKind;

    #[test]
    fn device_names_round_trip_and_others_are_refused() {
        for text in ["auto", "cuda:0", "cuda:12", "GPU-12ab", "host"] {
            assert_eq!(text.parse::<DeviceRequest>().unwrap().to_string(), text);
        }
        for text in ["", "cuda:", "cuda:-1", "cuda:x", "gpu0", "HOST"] {
            let message = text.parse::<DeviceRequest>().unwrap_err();
            assert!(message.contains("fragbench devices"), "{message}");
        }
    }

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
    fn the_beginning_of_a_uuid_has_to_be_unique() {
        let devices = [gpu(0, "GPU-12345678-aaaa"), gpu(1, "GPU-12349999-bbbb")];
        let meant = |text: &str| choose(&text.parse().unwrap(), &devices, None, None);
        assert_eq!(meant("GPU-12349").unwrap().id, "cuda:1");
        for text in ["GPU-", "GPU-1234"] {
            let sentence = meant(text).unwrap_err();
            assert!(sentence.contains("cuda:0 (GPU-12345678-aaaa), cuda:1"), "{sentence}");
        }
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
