//! Which device a user means, and whether anything hints at an NVIDIA GPU.

use std::path::Path;

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

#[cfg(test)]
mod tests {
    use super::*;

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
}
