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
        Monitor::open_from(OsStr::new("libnvidia-ml.so.1"), uuid)
    }

    fn open_from(library: &OsStr, uuid: &str) -> Option<Monitor> {
        let nvml = Nvml::builder().lib_path(library).init().ok()?;
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

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;
    use std::process::Command;

    use super::*;
    use crate::record::DeviceKind;

    /// An NVML that works for `CALLS` calls, and whose GPU is lost from then on (code 15).
    const DYING: &str = "
        static int left = CALLS;
        #define ANSWER(statement) \\
            do { if (left == 0) return 15; left -= 1; statement; return 0; } while (0)
        typedef struct { unsigned version; unsigned long long total, reserved, free, used; } memory;
        int nvmlInit_v2(void) { ANSWER(); }
        int nvmlShutdown(void) { return 0; }
        int nvmlSystemGetDriverVersion(char *text, unsigned n) { ANSWER(text[0] = '5'; text[1] = 0); }
        int nvmlDeviceGetHandleByUUID(const char *uuid, void **d) { ANSWER(*d = &left); }
        int nvmlDeviceGetClockInfo(void *d, int kind, unsigned *mhz) { ANSWER(*mhz = 1980); }
        int nvmlDeviceGetCurrentClocksThrottleReasons(void *d, unsigned long long *r) { ANSWER(*r = 4); }
        int nvmlDeviceGetMemoryInfo_v2(void *d, memory *m) { ANSWER(m->used = 7); }
        int nvmlDeviceGetDisplayActive(void *d, int *on) { ANSWER(*on = 0); }
        int nvmlDeviceGetMigMode(void *d, unsigned *now, unsigned *then) { ANSWER(*now = *then = 0); }
        int nvmlDeviceGetComputeRunningProcesses_v3(void *d, unsigned *n, void *p) { ANSWER(*n = 0); }
        int nvmlDeviceGetGraphicsRunningProcesses_v3(void *d, unsigned *n, void *p) { ANSWER(*n = 0); }
    ";

    fn library(folder: &Path, calls: u32) -> std::path::PathBuf {
        let (source, library) = (folder.join("nvml.c"), folder.join(format!("nvml_{calls}.so")));
        fs::write(&source, DYING).unwrap();
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-w", &format!("-DCALLS={calls}"), "-o"]);
        assert!(compiler.arg(&library).arg(&source).status().unwrap().success());
        library
    }

    /// Which fields are known: of the facts, the memory in use, two clocks, and the reasons.
    fn known(monitor: &Monitor) -> [bool; 8] {
        let mut facts = DeviceFacts::new(DeviceKind::Cuda);
        monitor.complete(&mut facts);
        let used = monitor.used_bytes();
        let clocks = monitor.clocks();
        assert!(used.is_none_or(|bytes| bytes == 7));
        assert!(clocks.sm_mhz.is_none_or(|mhz| mhz == [1980, 1980]));
        [
            facts.driver.is_some(),
            facts.display == Some(false),
            facts.mig.as_deref() == Some("disabled"),
            facts.other_processes == Some(0),
            used.is_some(),
            clocks.sm_mhz.is_some(),
            clocks.memory_mhz.is_some(),
            clocks.throttle_reasons == Some(4),
        ]
    }

    #[test]
    fn an_nvml_that_dies_half_way_leaves_what_it_does_not_say_unknown() {
        if Command::new("cc").arg("--version").output().is_err() {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let mut before = [false; 8];
        let mut opened = 0;
        for calls in 0..24 {
            let library = library(folder.path(), calls);
            let Some(monitor) = Monitor::open_from(library.as_os_str(), "GPU-x") else {
                assert_eq!(opened, 0, "{calls} calls");
                continue;
            };
            opened += 1;
            let now = known(&monitor);
            // In the order in which they are asked for.
            assert!(now.is_sorted_by(|a, b| a >= b), "{calls} calls: {now:?}");
            assert!(now >= before, "{calls} calls: {now:?} after {before:?}");
            before = now;
            if now == [true; 8] {
                // Whatever still worked is soon spent.
                while monitor.throttle_reasons().is_some() {}
                assert_eq!(known(&monitor), [false; 8]);
            }
        }
        assert!(opened > 8 && before == [true; 8], "{opened} opened, at last {before:?}");
    }
}
