//! Where a journal goes.

use std::path::{Path, PathBuf};

use jiff::Timestamp;

use super::Failure;
use crate::record::DeviceFacts;

/// The journal's path: as asked for, or in the folder asked for (default: here) under a name of
/// what it holds, device and time.
pub fn journal_path(
    out: Option<&Path>,
    what: &str,
    device: &DeviceFacts,
    now: Timestamp,
) -> Result<PathBuf, Failure> {
    let time = now.strftime("%Y%m%dT%H%M%SZ");
    let name = format!("{what}-{}-{time}.jsonl", slug(device));
    match out {
        None => Ok(PathBuf::from(name)),
        Some(path) if path.is_dir() => Ok(path.join(name)),
        Some(path) if path.extension().is_some_and(|extension| extension == "jsonl") => {
            Ok(path.to_owned())
        }
        Some(path) => Err(Failure::request(format_args!(
            "--out `{}` is neither a folder that exists nor a name that ends in .jsonl",
            path.display()
        ))),
    }
}

/// The device in a file's name: the product, and the beginning of its UUID to tell units apart.
fn slug(device: &DeviceFacts) -> String {
    if device.is_host() {
        return "host".to_owned();
    }
    let name: String = device
        .name
        .to_lowercase()
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .collect();
    let unit: String = device.uuid.iter().flat_map(|uuid| uuid.chars().skip(4).take(8)).collect();
    format!("{name}-{unit}").trim_matches('-').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::DeviceKind;

    #[test]
    fn names_hold_device_and_time() {
        let mut device = DeviceFacts::new(DeviceKind::Cuda);
        device.name = "NVIDIA H200".to_owned();
        device.uuid = Some("GPU-12345678-9abc".to_owned());
        let now = "2026-12-02T03:04:05Z".parse().unwrap();
        let path = journal_path(None, "fragbench", &device, now).unwrap();
        assert_eq!(path.to_str(), Some("fragbench-nvidia-h200-12345678-20261202T030405Z.jsonl"));
        assert!(journal_path(Some(Path::new("x.csv")), "fragbench", &device, now).is_err());
    }
}
