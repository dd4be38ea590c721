//! The condition of a device: around a group, and when the run began.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The device around a group, as NVML tells it. Each pair holds what was seen before and after; it is
/// none where either was not told. Clocks are in [`Clocks`](super::Clocks).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Condition {
    /// Temperature of the GPU, in degrees Celsius.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature_c: Option<[u32; 2]>,
    /// Power draw, in mW.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power_mw: Option<[u32; 2]>,
    /// ECC errors that were corrected since the driver was loaded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ecc_corrected: Option<[u64; 2]>,
    /// ECC errors that were not corrected, likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ecc_uncorrected: Option<[u64; 2]>,
    /// Other processes on the device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other_processes: Option<[u32; 2]>,
}

/// What NVML tells about a device when it is listed that has to do with how well it can be measured.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Health {
    /// The bits of reasons for lowered clocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throttle_reasons: Option<u64>,
    /// The SM clock that applications are set to, in MHz.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub application_sm_mhz: Option<u32>,
    /// What it is set to unless somebody changes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_application_sm_mhz: Option<u32>,
    /// The memory clock that applications are set to, in MHz.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub application_memory_mhz: Option<u32>,
    /// What it is set to unless somebody changes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_application_memory_mhz: Option<u32>,
    /// The power limit unless somebody changes it, in mW.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_power_limit_mw: Option<u32>,
    /// ECC errors that were not corrected since the driver was loaded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ecc_uncorrected: Option<u64>,
    /// Whether pages wait for the driver to retire them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retired_pages_pending: Option<bool>,
    /// Whether rows wait for a reset to be remapped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub row_remapping_pending: Option<bool>,
    /// Whether rows could not be remapped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub row_remapping_failed: Option<bool>,
}
