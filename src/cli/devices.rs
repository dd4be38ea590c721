//! The verb `devices`.

use clap::Args;
use serde::Serialize;

use super::probe::{Probe, probe};
use super::{Failure, Format, print};
use crate::device::{Surroundings, nvidia_hint};
use crate::measure::doctor::{Finding, diagnose};
use crate::record::{DeviceFacts, size};

/// List the devices that can be measured, and what would spoil a run on each.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  fragbench devices\n  fragbench devices --format json")]
pub struct Arguments {
    /// How to print the list: text or json
    #[arg(long, default_value = "text")]
    format: Format,
}

/// A device with what would spoil a run on it.
#[derive(Serialize)]
struct Listed {
    #[serde(flatten)]
    facts: DeviceFacts,
    findings: Vec<Finding>,
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let Probe { devices, error } = probe()?;
    if let Some(error) = error {
        match nvidia_hint() {
            Some(hint) => tell!("fragbench: {hint}, but {error}"),
            None => tell!("fragbench: no GPU is listed: {error}"),
        }
    }
    let gpus = devices.iter().filter(|device| !device.is_host()).count();
    let around = Surroundings::here(gpus as u32);
    let listed = devices.into_iter().map(|facts| {
        let findings = diagnose(&facts, &around);
        Listed { facts, findings }
    });
    let devices: Vec<Listed> = listed.collect();
    match arguments.format {
        Format::Text => print(&devices.iter().map(describe).collect::<Vec<_>>().join("\n")),
        Format::Json => {
            let json = serde_json::to_string_pretty(&devices).map_err(Failure::request)?;
            print(&(json + "\n"))
        }
        Format::Csv | Format::Markdown => {
            Err(Failure::request("devices prints text or json: choose one of them with --format"))
        }
    }
}

/// A device in a few lines, and what would spoil a run on it, a line each.
fn describe(device: &Listed) -> String {
    let findings = match &device.findings[..] {
        [] => "  nothing found that would spoil a run\n".to_owned(),
        some => some.iter().map(|finding| format!("  ! {finding}\n")).collect(),
    };
    facts(&device.facts) + &findings
}

/// What is known of a device; what is not is said.
fn facts(device: &DeviceFacts) -> String {
    let unknown = || "unknown".to_owned();
    let sized = |bytes: Option<u64>| bytes.map_or_else(unknown, size::rounded);
    let peak = device
        .peak_bytes_per_s()
        .map_or_else(unknown, |peak| format!("{:.1} GB/s theoretical", peak / 1e9));
    let mut lines = vec![format!("{}: {}", device.id, device.name)];
    let mut line = |name: &str, value: String| lines.push(format!("  {name:<22}{value}"));
    line("memory", sized(Some(device.memory_bytes)));
    if device.is_host() {
        line("free", sized(device.free_bytes));
        line("last-level cache", sized(device.l2_bytes));
        line("bandwidth", peak);
        line("threads", device.threads.map_or_else(unknown, |n| n.to_string()));
        line("NUMA node", device.numa_node.map_or_else(unknown, |n| n.to_string()));
        line("page", sized(device.page_bytes));
        line("huge pages", device.huge_pages.clone().unwrap_or_else(unknown));
        return lines.join("\n") + "\n";
    }
    line("bandwidth", peak);
    line("L2", sized(device.l2_bytes));
    line("multiprocessors", device.multiprocessors.map_or_else(unknown, |n| n.to_string()));
    line("compute capability", device.compute_capability.clone().unwrap_or_else(unknown));
    line("ECC", device.ecc.map_or_else(unknown, |on| if on { "on" } else { "off" }.to_owned()));
    let mode = device.compute_mode.as_ref().map(ToString::to_string);
    line("compute mode", mode.unwrap_or_else(unknown));
    let virtualization = device.virtualization.as_ref().map(ToString::to_string);
    line("virtualization", virtualization.unwrap_or_else(unknown));
    let watts = device.power_limit_mw.map(|limit| format!("{} W", limit / 1000));
    line("power limit", watts.unwrap_or_else(unknown));
    line("MIG", device.mig.clone().unwrap_or_else(unknown));
    line("UUID", device.uuid.clone().unwrap_or_else(unknown));
    line("PCI", device.pci_bus_id.clone().unwrap_or_else(unknown));
    let driver = device.driver.clone().unwrap_or_else(unknown);
    let cuda = device.cuda_driver.clone().unwrap_or_else(unknown);
    line("driver", format!("{driver}, CUDA {cuda}"));
    line("other processes", device.other_processes.map_or_else(unknown, |n| n.to_string()));
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{ComputeMode, DeviceKind, Health, Virtualization};

    fn listed(facts: DeviceFacts) -> Listed {
        let around = Surroundings {
            variables: [("CUDA_LAUNCH_BLOCKING".to_owned(), "1".to_owned())].into(),
            ..Surroundings::default()
        };
        let findings = diagnose(&facts, &around);
        Listed { facts, findings }
    }

    fn troubled() -> Listed {
        listed(DeviceFacts {
            id: "cuda:1".to_owned(),
            name: "NVIDIA Example".to_owned(),
            uuid: Some("GPU-01234567-89ab-cdef-0123-456789abcdef".to_owned()),
            memory_bytes: 80 << 30,
            l2_bytes: Some(40 << 20),
            multiprocessors: Some(108),
            compute_capability: Some("8.0".to_owned()),
            ecc: Some(true),
            driver: Some("535.1".to_owned()),
            cuda_driver: Some("12.2".to_owned()),
            mig: Some("disabled".to_owned()),
            nvml: true,
            used_at_start_bytes: Some(70 << 30),
            other_processes: Some(2),
            display: Some(false),
            persistence: Some(false),
            compute_mode: Some(ComputeMode::ExclusiveProcess),
            virtualization: Some(Virtualization::None),
            power_limit_mw: Some(300_000),
            health: Some(Health {
                throttle_reasons: Some(0x40 | 0x8),
                default_power_limit_mw: Some(400_000),
                row_remapping_pending: Some(true),
                ..Health::default()
            }),
            ..DeviceFacts::new(DeviceKind::Cuda)
        })
    }

    #[test]
    fn a_troubled_device_says_what_ails_it() {
        insta::assert_snapshot!(describe(&troubled()));
    }

    #[test]
    fn a_device_with_nothing_wrong_says_so_in_a_line() {
        let text = describe(&listed(DeviceFacts::new(DeviceKind::Host)));
        assert_eq!(text.lines().last(), Some("  nothing found that would spoil a run"));
    }

    #[test]
    fn json_has_facts_and_findings_side_by_side() {
        let json = serde_json::to_value(troubled()).unwrap();
        assert_eq!((&json["id"], &json["power_limit_mw"]), (&"cuda:1".into(), &300_000.into()));
        let findings = json["findings"].as_array().unwrap();
        assert_eq!(findings[0]["what"], "2 other processes use the device");
        assert!(
            findings
                .iter()
                .all(|finding| finding["why"].is_string() && finding["cure"].is_string())
        );
    }
}
