//! What stands around a process and its devices: MPS, Windows, the environment, the machine's load.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// What is not a device's own but has to do with how well it can be measured.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Surroundings {
    /// The environment variables, those left out that are no text.
    pub variables: BTreeMap<String, String>,
    /// How many GPUs NVML knows.
    pub nvml_devices: Option<u32>,
    /// How many CUDA sees.
    pub cuda_devices: u32,
    /// What governs the clocks of the first processor.
    pub governor: Option<String>,
    /// The load of the last minute: processes that run or wait for a processor.
    pub load: Option<f64>,
    /// Logical processors that this process may use.
    pub processors: u32,
    /// Whether this is a virtual machine.
    pub hypervisor: bool,
}

impl Surroundings {
    /// Those of this process, where CUDA sees so many devices.
    pub fn here(cuda_devices: u32) -> Surroundings {
        let text = |name: std::ffi::OsString| name.into_string().ok();
        let variables = std::env::vars_os();
        let governor = read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
        let load = read("/proc/loadavg");
        Surroundings {
            variables: variables.filter_map(|(k, v)| Some((text(k)?, text(v)?))).collect(),
            nvml_devices: super::nvml::device_count(),
            cuda_devices,
            governor: governor.map(|governor| governor.trim().to_owned()),
            load: load.and_then(|load| load.split_whitespace().next()?.parse().ok()),
            processors: std::thread::available_parallelism().map_or(1, |n| n.get() as u32),
            hypervisor: read("/proc/cpuinfo").is_some_and(|text| has_hypervisor(&text)),
        }
    }
}

/// Whether the processor says that it is a virtual machine's.
fn has_hypervisor(cpuinfo: &str) -> bool {
    let mut flags = cpuinfo.lines().filter(|line| line.starts_with("flags"));
    flags.any(|line| line.split_whitespace().any(|flag| flag == "hypervisor"))
}

fn read(path: &str) -> Option<String> {
    fs::read_to_string(path).ok()
}

/// Whether anything suggests that an MPS server stands between this process and the device.
pub fn mps_is_running() -> bool {
    let pipe = std::env::var("CUDA_MPS_PIPE_DIRECTORY").unwrap_or("/tmp/nvidia-mps".to_owned());
    Path::new(&pipe).join("control").exists()
}

/// Whether the system is Linux under Windows; none where it does not tell its release.
pub fn is_wsl() -> Option<bool> {
    Some(is_wsl_release(&read("/proc/sys/kernel/osrelease")?))
}

/// The kernel of WSL has releases like `5.15.167.4-microsoft-standard-WSL2`.
fn is_wsl_release(release: &str) -> bool {
    release.to_ascii_lowercase().contains("microsoft")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_of_wsl_are_known_by_their_release() {
        assert!(is_wsl_release("5.15.167.4-microsoft-standard-WSL2\n"));
        assert!(is_wsl_release("4.4.0-19041-Microsoft"));
        assert!(!is_wsl_release("6.8.0-1031-azure\n"));
    }

    #[test]
    fn virtual_machines_are_known_by_their_processors() {
        assert!(has_hypervisor("processor : 0\nflags\t\t: fpu hypervisor lahf_lm\n"));
        assert!(!has_hypervisor("model name : hypervisor\nflags : fpu hypervisor_x\n"));
    }

    #[test]
    fn this_process_has_surroundings() {
        let here = Surroundings::here(3);
        assert!(here.variables.contains_key("PATH") && here.processors > 0);
        assert_eq!((here.cuda_devices, here.load.is_some()), (3, cfg!(target_os = "linux")));
    }
}
