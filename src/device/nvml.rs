//! What NVML adds about a device: optional as a whole, and each field optional.

use std::collections::BTreeSet;
use std::ffi::OsStr;

use nvml_wrapper::enum_wrappers::device::{
    Clock, ComputeMode as Mode, EccCounter, MemoryError, TemperatureSensor,
};
use nvml_wrapper::enums::device::SampleValue;
use nvml_wrapper::structs::device::FieldId;
use nvml_wrapper::{Nvml, enum_wrappers::device::GpuVirtualizationMode as Virtual};

use super::Snapshot;
use crate::record::{ComputeMode, DeviceFacts, Health, Virtualization};

/// `NVML_FI_DEV_REMAPPED_PENDING` and `NVML_FI_DEV_REMAPPED_FAILURE` of nvml.h.
const REMAPPING_PENDING: FieldId = FieldId(144);
const REMAPPING_FAILED: FieldId = FieldId(145);

/// NVML, bound to one device by its UUID.
pub(super) struct Monitor {
    nvml: Nvml,
    uuid: String,
    /// What NVML calls this process.
    own: BTreeSet<u32>,
}

/// NVML; none where it is absent.
fn load() -> Option<Nvml> {
    Nvml::builder().lib_path(OsStr::new("libnvidia-ml.so.1")).init().ok()
}

/// How many devices NVML knows, those included that CUDA is not to see.
pub(super) fn device_count() -> Option<u32> {
    load()?.device_count().ok()
}

impl Monitor {
    /// `None` where NVML is absent or does not know the device.
    pub fn open(uuid: &str) -> Option<Monitor> {
        let nvml = load()?;
        nvml.device_by_uuid(uuid).ok()?;
        let own = BTreeSet::from([std::process::id()]);
        Some(Monitor { nvml, uuid: uuid.to_owned(), own })
    }

    fn device(&self) -> Option<nvml_wrapper::Device<'_>> {
        self.nvml.device_by_uuid(self.uuid.as_str()).ok()
    }

    /// Fills in what only NVML knows. To be called before this process uses the device.
    pub fn complete(&self, facts: &mut DeviceFacts) {
        let Some(device) = self.device() else { return };
        facts.nvml = true;
        facts.driver = self.nvml.sys_driver_version().ok();
        facts.display = device.is_display_active().ok();
        facts.mig = device.mig_mode().ok().map(|mode| {
            let on = mode.current != 0;
            if on { "enabled" } else { "disabled" }.to_owned()
        });
        facts.used_at_start_bytes = device.memory_info().ok().map(|memory| memory.used);
        facts.other_processes = self.other_processes();
        facts.persistence = device.is_in_persistent_mode().ok();
        facts.compute_mode = device.compute_mode().ok().map(compute_mode);
        facts.virtualization = device.virtualization_mode().ok().map(virtualization);
        facts.power_limit_mw = device.enforced_power_limit().ok();
        facts.health = Some(health(&device)).filter(|health| *health != Health::default());
    }

    /// Every process on the device by the id that NVML gives it, this one included.
    pub fn processes(&self) -> Option<BTreeSet<u32>> {
        let device = self.device()?;
        let mut processes = device.running_compute_processes().ok()?;
        processes.extend(device.running_graphics_processes().unwrap_or_default());
        Some(processes.into_iter().map(|process| process.pid).collect())
    }

    /// Learns by which id NVML knows this process, from who was there before it made its context and
    /// who is there now: in a container that may be another than the process's own.
    pub fn know_own(&mut self, before: Option<&BTreeSet<u32>>) {
        if let (Some(before), Some(after)) = (before, self.processes()) {
            self.own.extend(alias(std::process::id(), before, &after));
        }
    }

    fn other_processes(&self) -> Option<u32> {
        Some(self.processes()?.difference(&self.own).count() as u32)
    }

    /// The device now.
    pub fn snapshot(&self) -> Snapshot {
        let Some(device) = self.device() else { return Snapshot::default() };
        let errors = |kind| device.total_ecc_errors(kind, EccCounter::Volatile).ok();
        Snapshot {
            sm_mhz: device.clock_info(Clock::SM).ok(),
            memory_mhz: device.clock_info(Clock::Memory).ok(),
            throttle_reasons: self.throttle_reasons(),
            temperature_c: device.temperature(TemperatureSensor::Gpu).ok(),
            power_mw: device.power_usage().ok(),
            ecc_corrected: errors(MemoryError::Corrected),
            ecc_uncorrected: errors(MemoryError::Uncorrected),
            other_processes: self.other_processes(),
        }
    }

    /// The bits of reasons for lowered clocks now.
    pub fn throttle_reasons(&self) -> Option<u64> {
        throttle_reasons(&self.device()?)
    }
}

/// The id of this process where it is not listed under its own, and one process alone has come.
fn alias(own: u32, before: &BTreeSet<u32>, after: &BTreeSet<u32>) -> Option<u32> {
    let mut new = after.difference(before);
    match (after.contains(&own), new.next(), new.next()) {
        (false, Some(pid), None) => Some(*pid),
        _ => None,
    }
}

fn throttle_reasons(device: &nvml_wrapper::Device<'_>) -> Option<u64> {
    device.current_throttle_reasons().ok().map(|reasons| reasons.bits())
}

fn health(device: &nvml_wrapper::Device<'_>) -> Health {
    let errors = device.total_ecc_errors(MemoryError::Uncorrected, EccCounter::Volatile);
    Health {
        throttle_reasons: throttle_reasons(device),
        application_sm_mhz: device.applications_clock(Clock::SM).ok(),
        default_application_sm_mhz: device.default_applications_clock(Clock::SM).ok(),
        application_memory_mhz: device.applications_clock(Clock::Memory).ok(),
        default_application_memory_mhz: device.default_applications_clock(Clock::Memory).ok(),
        default_power_limit_mw: device.power_management_limit_default().ok(),
        ecc_uncorrected: errors.ok(),
        retired_pages_pending: device.are_pages_pending_retired().ok(),
        row_remapping_pending: is_set(device, REMAPPING_PENDING),
        row_remapping_failed: is_set(device, REMAPPING_FAILED),
    }
}

fn is_set(device: &nvml_wrapper::Device<'_>, field: FieldId) -> Option<bool> {
    let sample = device.field_values_for(&[field]).ok()?.pop()?.ok()?;
    match sample.value.ok()? {
        SampleValue::U32(value) => Some(value != 0),
        SampleValue::U64(value) => Some(value != 0),
        SampleValue::I64(value) => Some(value != 0),
        SampleValue::F64(_) => None,
    }
}

fn compute_mode(mode: Mode) -> ComputeMode {
    match mode {
        Mode::Default => ComputeMode::Default,
        Mode::ExclusiveProcess => ComputeMode::ExclusiveProcess,
        Mode::ExclusiveThread => ComputeMode::ExclusiveThread,
        Mode::Prohibited => ComputeMode::Prohibited,
    }
}

fn virtualization(mode: Virtual) -> Virtualization {
    match mode {
        Virtual::Bare => Virtualization::None,
        Virtual::PassThrough => Virtualization::Passthrough,
        Virtual::Vgpu => Virtualization::Vgpu,
        Virtual::HostVgpu => Virtualization::HostVgpu,
        Virtual::HostVsga => Virtualization::HostVsga,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_alias_is_the_one_process_that_came() {
        let set = |pids: &[u32]| BTreeSet::from_iter(pids.iter().copied());
        let alias = |before: &[u32], after: &[u32]| alias(7, &set(before), &set(after));
        assert_eq!(alias(&[1, 2], &[1, 2, 4007]), Some(4007));
        assert_eq!(alias(&[1], &[4007]), Some(4007));
        // Listed as itself, not listed at all, and two that came.
        assert_eq!(alias(&[1], &[1, 7]), None);
        assert_eq!(alias(&[1], &[1, 7, 8]), None);
        assert_eq!(alias(&[1], &[1]), None);
        assert_eq!(alias(&[1], &[1, 8, 9]), None);
    }
}
