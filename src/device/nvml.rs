//! What NVML adds about a device: optional as a whole, and each field optional.

use std::ffi::OsStr;

use nvml_wrapper::Nvml;
use nvml_wrapper::enum_wrappers::device::Clock;

use crate::record::{Clocks, DeviceFacts};

/// NVML, bound to one device by its UUID.
pub(super) struct Monitor {
    nvml: Nvml,
    uuid: String,
}

impl Monitor {
    /// `None` where NVML is absent or does not know the device.
    pub fn open(uuid: &str) -> Option<Monitor> {
        let name = OsStr::new("libnvidia-ml.so.1");
        let nvml = Nvml::builder().lib_path(name).init().ok()?;
        nvml.device_by_uuid(uuid).ok()?;
        Some(Monitor { nvml, uuid: uuid.to_owned() })
    }

    fn device(&self) -> Option<nvml_wrapper::Device<'_>> {
        self.nvml.device_by_uuid(self.uuid.as_str()).ok()
    }

    /// Fills in what only NVML knows.
    pub fn complete(&self, facts: &mut DeviceFacts) {
        let Some(device) = self.device() else { return };
        facts.nvml = true;
        facts.driver = self.nvml.sys_driver_version().ok();
        facts.display = device.is_display_active().ok();
        facts.mig = device.mig_mode().ok().map(|mode| {
            let on = mode.current != 0;
            if on { "enabled" } else { "disabled" }.to_owned()
        });
        let own = std::process::id();
        let compute = device.running_compute_processes().ok();
        let graphics = device.running_graphics_processes().ok();
        facts.other_processes = compute.map(|mut processes| {
            processes.extend(graphics.unwrap_or_default());
            processes.iter().filter(|process| process.pid != own).count() as u32
        });
    }

    /// Used memory in bytes.
    pub fn used_bytes(&self) -> Option<u64> {
        Some(self.device()?.memory_info().ok()?.used)
    }

    /// Clocks now, each twice.
    pub fn clocks(&self) -> Clocks {
        let Some(device) = self.device() else { return Clocks::default() };
        let clock = |kind| device.clock_info(kind).ok().map(|mhz| [mhz, mhz]);
        Clocks {
            sm_mhz: clock(Clock::SM),
            memory_mhz: clock(Clock::Memory),
            throttle_reasons: self.throttle_reasons(),
        }
    }

    /// The bits of reasons for lowered clocks now.
    pub fn throttle_reasons(&self) -> Option<u64> {
        self.device()?.current_throttle_reasons().ok().map(|reasons| reasons.bits())
    }
}
