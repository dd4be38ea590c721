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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::record::{ComputeMode, DeviceFacts, DeviceKind, Group, Virtualization};

    #[test]
    fn a_condition_is_read_as_it_was_written_and_its_lack_is_no_field() {
        let mut group: Group = serde_json::from_value(json!({
            "case": "x", "experiment": "bandwidth", "mechanism": "none", "kernel": "read",
            "pattern": "contiguous", "footprint_bytes": 1, "payload_bytes": 1, "status": "ok",
        }))
        .unwrap();
        let bare = serde_json::to_value(&group).unwrap();
        assert!(bare.get("condition").is_none());
        group.condition = Some(Condition {
            temperature_c: Some([31, 40]),
            ecc_corrected: Some([u64::MAX, 0]),
            other_processes: Some([0, 2]),
            ..Condition::default()
        });
        let line = serde_json::to_value(&group).unwrap();
        let expected = json!({
            "temperature_c": [31, 40], "ecc_corrected": [u64::MAX, 0], "other_processes": [0, 2]
        });
        assert_eq!(line["condition"], expected);
        let read: Group = serde_json::from_value(line).unwrap();
        assert_eq!(read, group);
    }

    #[test]
    fn facts_of_older_journals_stay_what_they_are_and_modes_are_open() {
        let old = serde_json::to_value(DeviceFacts::new(DeviceKind::Cuda)).unwrap();
        for field in ["persistence", "compute_mode", "virtualization", "mps", "wsl", "health"] {
            assert!(old.get(field).is_none(), "{field}");
        }
        let mut new = old.clone();
        new["compute_mode"] = json!("exclusive_process");
        new["virtualization"] = json!("nested");
        new["health"] = json!({"ecc_uncorrected": 2});
        let facts: DeviceFacts = serde_json::from_value(new.clone()).unwrap();
        assert_eq!(facts.compute_mode, Some(ComputeMode::ExclusiveProcess));
        assert_eq!(facts.virtualization, Some(Virtualization::Other("nested".to_owned())));
        assert_eq!(facts.health.as_ref().unwrap().ecc_uncorrected, Some(2));
        assert_eq!(serde_json::to_value(facts).unwrap(), new);
    }
}
