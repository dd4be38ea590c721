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

/// The library as its soname has it.
const LIBRARY: &str = "libnvidia-ml.so.1";

/// NVML, bound to one device by its UUID.
pub(super) struct Monitor {
    nvml: Nvml,
    uuid: String,
    /// What NVML calls this process.
    own: BTreeSet<u32>,
}

/// NVML; none where it is absent.
fn load(library: &OsStr) -> Option<Nvml> {
    Nvml::builder().lib_path(library).init().ok()
}

/// How many devices NVML knows, those included that CUDA is not to see.
pub(super) fn device_count() -> Option<u32> {
    load(OsStr::new(LIBRARY))?.device_count().ok()
}

impl Monitor {
    /// `None` where NVML is absent or does not know the device.
    pub fn open(uuid: &str) -> Option<Monitor> {
        Monitor::open_from(OsStr::new(LIBRARY), uuid)
    }

    fn open_from(library: &OsStr, uuid: &str) -> Option<Monitor> {
        let nvml = load(library)?;
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
    use std::fs;
    use std::path::Path;
    use std::process::Command;

    use super::*;
    use crate::record::DeviceKind;

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
        let used = facts.used_at_start_bytes;
        let clocks = monitor.snapshot();
        assert!(used.is_none_or(|bytes| bytes == 7));
        assert!(clocks.sm_mhz.is_none_or(|mhz| mhz == 1980));
        [
            facts.driver.is_some(),
            facts.display == Some(false),
            facts.mig.as_deref() == Some("disabled"),
            used.is_some(),
            facts.other_processes == Some(0),
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
