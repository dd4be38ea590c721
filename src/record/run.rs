//! The first line of a journal: where the numbers come from.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::Health;
use super::open_enum::open_enum;

/// The version of the journal's form. Schema 0 promises nothing yet; from 1 on it only grows.
pub const SCHEMA: u32 = 0;

open_enum! {
    /// What kind of device a run was made on.
    DeviceKind {
        /// A CUDA GPU.
        Cuda = "cuda",
        /// The host's processor and memory; never shown as a GPU's figure.
        Host = "host",
    }
}

open_enum! {
    /// Who may make contexts on a device.
    ComputeMode {
        /// Everybody.
        Default = "default",
        /// One process at a time.
        ExclusiveProcess = "exclusive_process",
        /// One thread at a time (old drivers).
        ExclusiveThread = "exclusive_thread",
        /// Nobody.
        Prohibited = "prohibited",
    }
}

open_enum! {
    /// Whether a device is real, or a virtual machine's.
    Virtualization {
        /// Bare metal.
        None = "none",
        /// A whole device, passed through to a virtual machine.
        Passthrough = "passthrough",
        /// A share of a device (vGPU) in a virtual machine.
        Vgpu = "vgpu",
        /// A device that gives shares of itself (vGPU) to virtual machines.
        HostVgpu = "host_vgpu",
        /// The same for graphics (vSGA).
        HostVsga = "host_vsga",
    }
}

/// What the user asked to be measured: the part of a run that `--resume` takes over.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Selection {
    /// The suite's name.
    pub suite: String,
    /// Experiments named by `--only`; empty means all.
    #[serde(default)]
    pub only: Vec<String>,
    /// Case ids named by `--case`, measured instead of the suite's; empty means the suite's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cases: Vec<String>,
    /// Globs over case ids; empty means all.
    #[serde(default)]
    pub filters: Vec<String>,
    /// The device as it was asked for (`auto`, `cuda:N`, a UUID or `host`).
    pub device: String,
    /// The seed of layouts, data and round orders, in decimal.
    pub seed: String,
    /// `--memory-limit`, in bytes, if given.
    pub memory_limit_bytes: Option<u64>,
    /// `--time-limit`, in seconds, if given.
    pub time_limit_s: Option<u64>,
    /// `--processes`: how many fresh processes measure each group.
    #[serde(default = "one_process", skip_serializing_if = "is_one")]
    pub processes: u32,
    /// `--allow-fill`: whether cases may fill a device that is not provably the run's alone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub allow_fill: bool,
}

fn one_process() -> u32 {
    1
}

fn is_one(processes: &u32) -> bool {
    *processes == 1
}

/// The first line of a journal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Run {
    /// The version of the journal's form; see [`SCHEMA`].
    pub schema: u32,
    /// The version of fragbench.
    pub tool: String,
    /// SHA-256 over `src/` and `cuda/` of the build.
    pub source_sha256: String,
    /// SHA-256 of each PTX module, by the module's name.
    pub modules: BTreeMap<String, String>,
    /// The command line, without the program's path.
    pub arguments: Vec<String>,
    /// What was asked for.
    pub selection: Selection,
    /// The memory limit in force, in bytes.
    pub memory_limit_bytes: u64,
    /// Why the memory limit is what it is.
    pub memory_limit_reason: String,
    /// When the run began: RFC 3339, UTC.
    pub started: String,
    /// The machine.
    pub host: HostFacts,
    /// The device.
    pub device: DeviceFacts,
    /// Fields of newer versions.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// The machine that a run was made on; without its name, unless that was asked for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostFacts {
    /// Operating system and kernel release.
    pub os: String,
    /// The processor's architecture.
    pub architecture: String,
    /// The processor's model, where the system says it.
    pub processor: Option<String>,
    /// Logical processors that this process may use.
    pub logical_processors: u32,
    /// Memory of the machine, in bytes.
    pub memory_bytes: Option<u64>,
    /// Fields of newer versions.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// Facts of a device as its driver and NVML tell them. `None` is `unknown`, never zero.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DeviceFacts {
    /// The kind of device.
    pub kind: DeviceKind,
    /// How it is named on the command line: `cuda:N` or `host`.
    pub id: String,
    /// The product's name.
    pub name: String,
    /// The device's UUID (`GPU-…`), or none for the host.
    pub uuid: Option<String>,
    /// Memory of the device, in bytes.
    pub memory_bytes: u64,
    /// Free memory when the run began, in bytes.
    pub free_bytes: Option<u64>,
    /// L2 (on the host: last-level) cache, in bytes.
    pub l2_bytes: Option<u64>,
    /// Streaming multiprocessors.
    pub multiprocessors: Option<u32>,
    /// Compute capability, as `9.0`.
    pub compute_capability: Option<String>,
    /// Peak memory clock in kHz (of the clock, not of the double data rate).
    pub memory_clock_khz: Option<u64>,
    /// Width of the memory bus in bits.
    pub bus_width_bits: Option<u64>,
    /// Peak SM clock in kHz.
    pub sm_clock_khz: Option<u64>,
    /// Whether ECC is on.
    pub ecc: Option<bool>,
    /// The version of the display driver, as `580.159.04` (from NVML).
    pub driver: Option<String>,
    /// The CUDA version that the driver implements, as `13.0`.
    pub cuda_driver: Option<String>,
    /// The PCI address.
    pub pci_bus_id: Option<String>,
    /// Whether the device shares the host's memory.
    pub integrated: Option<bool>,
    /// The MIG mode or instance, where there is one.
    pub mig: Option<String>,
    /// Whether NVML answered for this device.
    pub nvml: bool,
    /// Memory in use before this process opened the device, in bytes (from NVML).
    pub used_at_start_bytes: Option<u64>,
    /// Other processes that NVML sees on the device.
    pub other_processes: Option<u32>,
    /// Whether a display is driven by the device.
    pub display: Option<bool>,
    /// Whether the driver keeps the device initialised while nobody uses it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub persistence: Option<bool>,
    /// Who may make contexts on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compute_mode: Option<ComputeMode>,
    /// Whether it is real, or a virtual machine's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub virtualization: Option<Virtualization>,
    /// Whether an MPS server seems to stand before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mps: Option<bool>,
    /// Whether the system is Linux under Windows (WSL).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wsl: Option<bool>,
    /// The power limit in force, in mW.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power_limit_mw: Option<u32>,
    /// What spoils figures, as NVML told when the device was listed; none where it told nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health: Option<Health>,
    /// Maximal L2 fetch granularity of the context, in bytes (a hint to the hardware).
    pub l2_fetch_granularity_bytes: Option<u64>,
    /// Page size of the measured memory, on the host.
    pub page_bytes: Option<u64>,
    /// The system's choice for transparent huge pages, on the host.
    pub huge_pages: Option<String>,
    /// NUMA node of the measuring threads, on the host.
    pub numa_node: Option<u32>,
    /// Measuring threads, on the host.
    pub threads: Option<u32>,
    /// Fields of newer versions.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl DeviceFacts {
    /// Facts of a device of which nothing is known yet.
    pub fn new(kind: DeviceKind) -> DeviceFacts {
        DeviceFacts {
            kind,
            id: String::new(),
            name: String::new(),
            uuid: None,
            memory_bytes: 0,
            free_bytes: None,
            l2_bytes: None,
            multiprocessors: None,
            compute_capability: None,
            memory_clock_khz: None,
            bus_width_bits: None,
            sm_clock_khz: None,
            ecc: None,
            driver: None,
            cuda_driver: None,
            pci_bus_id: None,
            integrated: None,
            mig: None,
            nvml: false,
            used_at_start_bytes: None,
            other_processes: None,
            display: None,
            persistence: None,
            compute_mode: None,
            virtualization: None,
            mps: None,
            wsl: None,
            power_limit_mw: None,
            health: None,
            l2_fetch_granularity_bytes: None,
            page_bytes: None,
            huge_pages: None,
            numa_node: None,
            threads: None,
            extra: Map::new(),
        }
    }

    /// Theoretical bandwidth in bytes a second: 2 x memory clock x bus width / 8 (double data
    /// rate, as in NVIDIA's CUDA C++ Best Practices Guide, "Theoretical Bandwidth Calculation").
    /// `None` where the driver does not tell clock or width.
    pub fn peak_bytes_per_s(&self) -> Option<f64> {
        let clock_hz = self.memory_clock_khz? as f64 * 1e3;
        let width_bytes = self.bus_width_bits? as f64 / 8.0;
        Some(2.0 * clock_hz * width_bytes)
    }

    /// Whether this is the host and not a GPU.
    pub fn is_host(&self) -> bool {
        self.kind == DeviceKind::Host
    }
}
