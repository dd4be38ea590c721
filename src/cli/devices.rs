//! The verb `devices`.

use clap::Args;

use super::probe::{Probe, probe};
use super::{Failure, Format, print};
use crate::device::nvidia_hint;
use crate::record::{DeviceFacts, size};

/// List the devices that can be measured.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  fragbench devices\n  fragbench devices --format json")]
pub struct Arguments {
    /// How to print the list: text or json
    #[arg(long, default_value = "text")]
    format: Format,
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let Probe { devices, error } = probe()?;
    if let Some(error) = error {
        match nvidia_hint() {
            Some(hint) => tell!("fragbench: {hint}, but {error}"),
            None => tell!("fragbench: no GPU is listed: {error}"),
        }
    }
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

/// A device in a few lines; what is not known is said.
fn describe(device: &DeviceFacts) -> String {
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
    line("MIG", device.mig.clone().unwrap_or_else(unknown));
    line("UUID", device.uuid.clone().unwrap_or_else(unknown));
    line("PCI", device.pci_bus_id.clone().unwrap_or_else(unknown));
    let driver = device.driver.clone().unwrap_or_else(unknown);
    let cuda = device.cuda_driver.clone().unwrap_or_else(unknown);
    line("driver", format!("{driver}, CUDA {cuda}"));
    line("other processes", device.other_processes.map_or_else(unknown, |n| n.to_string()));
    if !device.nvml {
        line("NVML", "absent: clocks, driver version and other processes stay unknown".to_owned());
    }
    lines.join("\n") + "\n"
}
