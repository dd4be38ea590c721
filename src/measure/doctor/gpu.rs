//! What would spoil a run on a GPU.

use super::{Finding, finding, those};
use crate::device::Surroundings;
use crate::record::{ComputeMode, DeviceFacts, Health, Virtualization, size};

/// NVML's bits of reasons for lowered clocks (`nvmlClocksThrottleReasons*` in nvml.h).
const APPLICATION_CLOCKS: u64 = 0x2;
const HARDWARE: u64 = 0x8;
const HEAT: u64 = 0x20 | 0x40;
const HARDWARE_HEAT: u64 = 0x40;
const POWER_BRAKE: u64 = 0x80;

/// Variables with which debuggers, profilers and sanitizers put themselves into a CUDA process.
const TOOLS: [&str; 8] = [
    "CUDA_INJECTION32_PATH",
    "CUDA_INJECTION64_PATH",
    "CUDA_DEBUGGER_",
    "COMPUTE_SANITIZER",
    "NSYS_",
    "NV_COMPUTE_PROFILER",
    "NV_SANITIZER",
    "NVTX_INJECTION",
];

pub fn findings(facts: &DeviceFacts, around: &Surroundings) -> Vec<Finding> {
    let health = facts.health.clone().unwrap_or_default();
    let parts = [company(facts), modes(facts), clocks(facts, &health), errors(&health)];
    let mut findings = parts.concat();
    findings.extend(little_memory(facts));
    findings.extend(variables(around));
    findings
}

/// Who else is there, as far as it can be known.
fn company(facts: &DeviceFacts) -> Vec<Finding> {
    use Virtualization::{HostVgpu, HostVsga, Vgpu};
    let others = facts.other_processes.unwrap_or(0);
    let processes = match others {
        1 => "another process uses the device".to_owned(),
        _ => format!("{others} other processes use the device"),
    };
    those([
        (
            !facts.nvml,
            [
                "NVML is absent",
                "clocks, temperature, ECC errors and other processes stay unknown, and half of the free \
             memory is left alone",
                "install the driver's libnvidia-ml.so.1, in a container start it with the capability \
             `utility`",
            ],
        ),
        (
            others > 0,
            [
                &processes,
                "their traffic takes bandwidth and memory",
                "end them (nvidia-smi lists them), or choose another device",
            ],
        ),
        (
            facts.display == Some(true),
            [
                "the device drives a display",
                "drawing takes bandwidth, and long kernels may be cut off",
                "measure on a device without a display, or without a graphical session",
            ],
        ),
        (
            facts.mps == Some(true),
            [
                "an MPS server stands before the device",
                "others may share it without being listed",
                "stop it: echo quit | nvidia-cuda-mps-control",
            ],
        ),
        (
            facts.mig.as_deref() == Some("enabled"),
            [
                "MIG is enabled",
                "only a slice is measured, with a part of the memory's width and of L2",
                "disable it (nvidia-smi -mig 0, as root), or take the figures as the slice's",
            ],
        ),
        (
            matches!(facts.virtualization, Some(Vgpu | HostVgpu | HostVsga)),
            [
                "virtual machines share the device (vGPU)",
                "others' work is not listed, and time is sliced",
                "measure on a device that is passed through whole, or bare",
            ],
        ),
        (
            facts.wsl == Some(true),
            [
                "this is Linux under Windows (WSL)",
                "Windows' driver schedules the device and pages its memory",
                "measure under Linux itself where figures have to be exact",
            ],
        ),
    ])
}

fn modes(facts: &DeviceFacts) -> Vec<Finding> {
    use ComputeMode::{ExclusiveProcess, ExclusiveThread, Prohibited};
    those([
        (
            facts.persistence == Some(false),
            [
                "persistence mode is off",
                "the driver initialises the device anew for each process, which takes seconds, and clocks \
             begin cold",
                "switch it on: nvidia-smi -pm 1, as root",
            ],
        ),
        (
            matches!(facts.compute_mode, Some(ExclusiveProcess | ExclusiveThread)),
            [
                "the compute mode is exclusive",
                "no context can be made while another process has one",
                "see that nothing else uses the device, or set it back: nvidia-smi -c DEFAULT, as root",
            ],
        ),
        (
            facts.compute_mode == Some(Prohibited),
            [
                "the compute mode is prohibited",
                "no context can be made at all",
                "set it back: nvidia-smi -c DEFAULT, as root",
            ],
        ),
    ])
}

fn clocks(facts: &DeviceFacts, health: &Health) -> Vec<Finding> {
    let reasons = health.throttle_reasons.unwrap_or(0);
    let lowered = |now: Option<u32>, usual: Option<u32>| now.zip(usual).filter(|(a, b)| a < b);
    let sm = lowered(health.application_sm_mhz, health.default_application_sm_mhz);
    let memory = lowered(health.application_memory_mhz, health.default_application_memory_mhz);
    let power = lowered(facts.power_limit_mw, health.default_power_limit_mw);
    let locked = match (sm, memory) {
        (Some((now, usual)), _) => format!("the SM clock is set to {now} of {usual} MHz"),
        (_, Some((now, usual))) => format!("the memory clock is set to {now} of {usual} MHz"),
        _ => "clocks are held down by a setting".to_owned(),
    };
    let is_locked = sm.or(memory).is_some() || reasons & APPLICATION_CLOCKS != 0;
    let limit = power
        .map(|(now, usual)| format!("the power limit is {} of {} W", now / 1000, usual / 1000));
    // Heat and the brake are told as hardware slowdown too.
    let is_hardware = reasons & HARDWARE != 0 && reasons & (HARDWARE_HEAT | POWER_BRAKE) == 0;
    those([
        (
            reasons & HEAT != 0,
            [
                "heat lowers the clocks now",
                "rounds at lowered clocks are dropped",
                "check fans and airflow, and let the device cool down",
            ],
        ),
        (
            reasons & POWER_BRAKE != 0,
            [
                "the power brake lowers the clocks now",
                "rounds at lowered clocks are dropped",
                "check the power supply of the machine and its cables",
            ],
        ),
        (
            is_hardware,
            [
                "the hardware lowers the clocks now",
                "rounds at lowered clocks are dropped",
                "check cooling and power supply (nvidia-smi -q -d PERFORMANCE)",
            ],
        ),
        (
            is_locked,
            [
                &locked,
                "figures are not those of the device as it is sold",
                "reset it: nvidia-smi -rac and nvidia-smi -rgc, as root",
            ],
        ),
        (
            limit.is_some(),
            [
                limit.as_deref().unwrap_or_default(),
                "clocks fall earlier than on other units",
                "raise it: nvidia-smi -pl, as root, or take the figures as this limit's",
            ],
        ),
    ])
}

fn errors(health: &Health) -> Vec<Finding> {
    let count = health.ecc_uncorrected.unwrap_or(0);
    let counted = format!("{count} uncorrected ECC errors since the driver was loaded");
    let memory_fails = "memory is failing, and data may be wrong";
    those([
        (
            count > 0,
            [
                &counted,
                memory_fails,
                "reset the device or restart the machine, and see whether they come back",
            ],
        ),
        (
            health.retired_pages_pending == Some(true),
            [
                "pages of memory wait to be retired",
                "memory that failed is still in use",
                "reset the device (nvidia-smi -r) or restart the machine",
            ],
        ),
        (
            health.row_remapping_pending == Some(true),
            [
                "rows of memory wait to be remapped",
                "memory that failed is still in use",
                "reset the device (nvidia-smi -r) or restart the machine",
            ],
        ),
        (
            health.row_remapping_failed == Some(true),
            [
                "rows of memory could not be remapped",
                memory_fails,
                "have the device replaced (nvidia-smi -q -d ROW_REMAPPER)",
            ],
        ),
    ])
}

fn little_memory(facts: &DeviceFacts) -> Option<Finding> {
    let free = facts.memory_bytes.saturating_sub(facts.used_at_start_bytes?);
    let what =
        format!("only {} of {} are free", size::rounded(free), size::rounded(facts.memory_bytes));
    let why = "larger cases are skipped";
    let cure = "end what holds the memory (nvidia-smi lists it)";
    (free < facts.memory_bytes / 2).then(|| finding([&what, why, cure]))
}

fn variables(around: &Surroundings) -> Vec<Finding> {
    let value = |name: &str| around.variables.get(name).filter(|value| !value.is_empty());
    let blocking = value("CUDA_LAUNCH_BLOCKING").filter(|value| *value != "0");
    let is_tool = |name: &&String| TOOLS.iter().any(|tool| name.starts_with(tool));
    let tools: Vec<&str> = around.variables.keys().filter(is_tool).map(String::as_str).collect();
    let tools_are_set = format!(
        "{} set, as by a debugger or profiler",
        match &tools[..] {
            [one] => format!("{one} is"),
            more => format!("{} are", more.join(", ")),
        }
    );
    let mut findings = those([
        (
            blocking.is_some(),
            [
                "CUDA_LAUNCH_BLOCKING is set",
                "launches cannot be queued behind a hold, so their own cost is part of every interval",
                "unset it",
            ],
        ),
        (
            !tools.is_empty(),
            [
                &tools_are_set,
                "its code runs around every call, and launches may not be held",
                "run without it",
            ],
        ),
    ]);
    findings.extend(value("CUDA_VISIBLE_DEVICES").and_then(|value| hidden(value, around)));
    findings
}

/// Devices that NVML knows and CUDA does not see.
fn hidden(value: &str, around: &Surroundings) -> Option<Finding> {
    let (known, seen) = (around.nvml_devices?, around.cuda_devices);
    let what = format!(
        "CUDA_VISIBLE_DEVICES={value} hides {} of {known} devices",
        known.saturating_sub(seen)
    );
    let why = "they cannot be chosen, and cuda:N counts only those that are left";
    (known > seen).then(|| finding([&what, why, "unset it to choose among all of them"]))
}
