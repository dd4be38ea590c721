//! Each finding alone, and nothing on a device that is fine.

use std::collections::BTreeMap;

use super::*;
use crate::device::Surroundings;
use crate::record::{ComputeMode, DeviceFacts, DeviceKind, Health, Virtualization};

/// A GPU with nothing wrong, everything known.
fn sound() -> DeviceFacts {
    DeviceFacts {
        memory_bytes: 80 << 30,
        compute_capability: Some("9.0".to_owned()),
        cuda_driver: Some("13.0".to_owned()),
        mig: Some("disabled".to_owned()),
        nvml: true,
        used_at_start_bytes: Some(500 << 20),
        other_processes: Some(0),
        display: Some(false),
        persistence: Some(true),
        compute_mode: Some(ComputeMode::Default),
        virtualization: Some(Virtualization::Passthrough),
        mps: Some(false),
        wsl: Some(false),
        power_limit_mw: Some(700_000),
        health: Some(Health {
            // Idle, and at the power cap: neither is a fault.
            throttle_reasons: Some(0x1 | 0x4),
            application_sm_mhz: Some(1980),
            default_application_sm_mhz: Some(1980),
            application_memory_mhz: Some(2619),
            default_application_memory_mhz: Some(2619),
            default_power_limit_mw: Some(700_000),
            ecc_uncorrected: Some(0),
            retired_pages_pending: Some(false),
            row_remapping_pending: Some(false),
            row_remapping_failed: Some(false),
        }),
        ..DeviceFacts::new(DeviceKind::Cuda)
    }
}

fn sound_host() -> DeviceFacts {
    DeviceFacts {
        free_bytes: Some(64 << 30),
        huge_pages: Some("always".to_owned()),
        ..DeviceFacts::new(DeviceKind::Host)
    }
}

fn quiet() -> Surroundings {
    Surroundings {
        variables: BTreeMap::from([
            ("PATH".to_owned(), "/bin".to_owned()),
            ("CUDA_LAUNCH_BLOCKING".to_owned(), "0".to_owned()),
            ("CUDA_VISIBLE_DEVICES".to_owned(), "0,1".to_owned()),
        ]),
        nvml_devices: Some(2),
        cuda_devices: 2,
        governor: Some("performance".to_owned()),
        load: Some(4.0),
        processors: 8,
        hypervisor: false,
    }
}

fn told(facts: &DeviceFacts, around: &Surroundings) -> Vec<String> {
    diagnose(facts, around).iter().map(Finding::to_string).collect()
}

#[test]
fn nothing_is_found_where_nothing_is_wrong() {
    assert_eq!(told(&sound(), &quiet()), [""; 0]);
    assert_eq!(told(&sound_host(), &quiet()), [""; 0]);
    // Nor where nothing is known, but that.
    let unknown = told(&DeviceFacts::new(DeviceKind::Cuda), &Surroundings::default());
    assert!(matches!(&unknown[..], [one] if one.starts_with("NVML is absent")), "{unknown:?}");
    assert_eq!(told(&DeviceFacts::new(DeviceKind::Host), &Surroundings::default()), [""; 0]);
}

type Spoil = fn(&mut DeviceFacts, &mut Health);

/// What is found on a device that is sound but for one thing.
#[track_caller]
fn alone(spoil: Spoil, what: &str, cure: &str) {
    let mut facts = sound();
    let mut health = facts.health.take().unwrap();
    spoil(&mut facts, &mut health);
    facts.health = Some(health);
    let told = told(&facts, &quiet());
    let [one] = &told[..] else { panic!("{what}: {told:?}") };
    assert!(one.starts_with(&format!("{what}: ")) && one.contains(cure), "{one}");
}

#[test]
fn company_is_found() {
    alone(|f, _| f.nvml = false, "NVML is absent", "libnvidia-ml.so.1");
    alone(|f, _| f.other_processes = Some(1), "another process uses the device", "end them");
    alone(|f, _| f.other_processes = Some(3), "3 other processes use the device", "end them");
    alone(|f, _| f.display = Some(true), "the device drives a display", "graphical session");
    alone(|f, _| f.mps = Some(true), "an MPS server stands before the device", "quit");
    alone(|f, _| f.mig = Some("enabled".to_owned()), "MIG is enabled", "-mig 0");
    for mode in [Virtualization::Vgpu, Virtualization::HostVgpu, Virtualization::HostVsga] {
        let facts = DeviceFacts { virtualization: Some(mode), ..sound() };
        let told = told(&facts, &quiet());
        assert!(matches!(&told[..], [one] if one.contains("(vGPU)")), "{told:?}");
    }
    alone(|f, _| f.wsl = Some(true), "this is Linux under Windows (WSL)", "Linux itself");
}

#[test]
fn modes_are_found() {
    use ComputeMode::{ExclusiveProcess, ExclusiveThread, Prohibited};
    alone(|f, _| f.persistence = Some(false), "persistence mode is off", "nvidia-smi -pm 1");
    let exclusive = "the compute mode is exclusive";
    alone(|f, _| f.compute_mode = Some(ExclusiveProcess), exclusive, "-c DEFAULT");
    alone(|f, _| f.compute_mode = Some(ExclusiveThread), exclusive, "-c DEFAULT");
    let prohibited = "the compute mode is prohibited";
    alone(|f, _| f.compute_mode = Some(Prohibited), prohibited, "-c DEFAULT");
}

#[test]
fn lowered_clocks_are_found_with_their_reason() {
    let heat = "heat lowers the clocks now";
    alone(|_, h| h.throttle_reasons = Some(0x20), heat, "airflow");
    // Hardware slowdown goes with its reason.
    alone(|_, h| h.throttle_reasons = Some(0x40 | 0x8), heat, "airflow");
    let brake = "the power brake lowers the clocks now";
    alone(|_, h| h.throttle_reasons = Some(0x80 | 0x8), brake, "power supply");
    let hardware = "the hardware lowers the clocks now";
    alone(|_, h| h.throttle_reasons = Some(0x8), hardware, "cooling");
    let held = "clocks are held down by a setting";
    alone(|_, h| h.throttle_reasons = Some(0x2), held, "-rac");
    let sm = "the SM clock is set to 1200 of 1980 MHz";
    alone(|_, h| h.application_sm_mhz = Some(1200), sm, "-rac");
    let memory = "the memory clock is set to 1593 of 2619 MHz";
    alone(|_, h| h.application_memory_mhz = Some(1593), memory, "-rac");
    let power = "the power limit is 400 of 700 W";
    alone(|f, _| f.power_limit_mw = Some(400_000), power, "-pl");
}

#[test]
fn failing_and_little_memory_is_found() {
    let errors = "2 uncorrected ECC errors since the driver was loaded";
    alone(|_, h| h.ecc_uncorrected = Some(2), errors, "restart");
    let retired = "pages of memory wait to be retired";
    alone(|_, h| h.retired_pages_pending = Some(true), retired, "reset");
    let pending = "rows of memory wait to be remapped";
    alone(|_, h| h.row_remapping_pending = Some(true), pending, "reset");
    let failed = "rows of memory could not be remapped";
    alone(|_, h| h.row_remapping_failed = Some(true), failed, "replaced");
    let little = "only 30 GiB of 80 GiB are free";
    alone(|f, _| f.used_at_start_bytes = Some(50 << 30), little, "end what holds");
    let half = DeviceFacts { used_at_start_bytes: Some(40 << 30), ..sound() };
    assert_eq!(told(&half, &quiet()), [""; 0]);
}

#[test]
fn an_old_driver_is_found_by_the_kernels_of_this_build() {
    let old = "the driver (CUDA 9.0) is too old for this build's kernels";
    alone(|f, _| f.cuda_driver = Some("9.0".to_owned()), old, "update the NVIDIA driver");
}

/// What is found on a sound device with one variable more.
fn with_variable(name: &str, value: &str) -> Vec<String> {
    let mut around = quiet();
    around.variables.insert(name.to_owned(), value.to_owned());
    assert_eq!(told(&sound_host(), &around), [""; 0], "the host has no part in it");
    told(&sound(), &around)
}

#[test]
fn variables_that_stand_in_the_way_are_found() {
    let one = |name, value, what: &str| {
        let told = with_variable(name, value);
        assert!(matches!(&told[..], [one] if one.starts_with(what)), "{told:?}");
    };
    one("CUDA_LAUNCH_BLOCKING", "1", "CUDA_LAUNCH_BLOCKING is set: ");
    for name in [
        "CUDA_INJECTION64_PATH",
        "NSYS_PROFILING_SESSION_ID",
        "COMPUTE_SANITIZER_BIN",
        "CUDA_DEBUGGER_SOFTWARE_PREEMPTION",
    ] {
        one(name, "x", &format!("{name} is set, as by a debugger or profiler: "));
    }
    assert_eq!(with_variable("CUDA_LAUNCH_BLOCKING", ""), [""; 0]);
    assert_eq!(with_variable("CUDA_MODULE_LOADING", "EAGER"), [""; 0]);
    let mut around = quiet();
    around.variables.extend(["NSYS_A", "NSYS_B"].map(|name| (name.to_owned(), "1".to_owned())));
    assert!(told(&sound(), &around)[0].starts_with("NSYS_A, NSYS_B are set"));
}

#[test]
fn devices_that_a_variable_hides_are_found() {
    let hides = |nvml_devices, cuda_devices| {
        told(&sound(), &Surroundings { nvml_devices, cuda_devices, ..quiet() })
    };
    let told = hides(Some(8), 2);
    assert!(told[0].starts_with("CUDA_VISIBLE_DEVICES=0,1 hides 6 of 8 devices: "), "{told:?}");
    assert_eq!(hides(None, 2), [""; 0]);
    let mut around = Surroundings { nvml_devices: Some(8), ..quiet() };
    around.variables.clear();
    assert_eq!(self::told(&sound(), &around), [""; 0], "a container may hide them too");
}

#[test]
fn a_host_that_is_busy_or_slow_is_found() {
    let one = |change: fn(&mut DeviceFacts, &mut Surroundings), what: &str| {
        let (mut facts, mut around) = (sound_host(), quiet());
        change(&mut facts, &mut around);
        let told = told(&facts, &around);
        assert!(matches!(&told[..], [one] if one.starts_with(what)), "{what}: {told:?}");
    };
    one(
        |_, around| around.governor = Some("powersave".to_owned()),
        "the processors' governor is powersave: ",
    );
    one(|_, around| around.load = Some(4.1), "the load is 4.1 on 8 processors: ");
    one(
        |facts, _| facts.huge_pages = Some("madvise".to_owned()),
        "transparent huge pages are set to madvise: ",
    );
    one(|_, around| around.hypervisor = true, "this is a virtual machine: ");
    one(|facts, _| facts.free_bytes = Some((2 << 30) - 1), "only 2 GiB of memory are free: ");
}
