//! Where the figures of a page come from.

use super::escape::{code, escape, shell_word};
use super::text::{bytes, rate};
use crate::record::Run;

/// What was measured, when, with what, and by which command.
pub fn facts(run: &Run) -> String {
    let (device, host) = (&run.device, &run.host);
    let known = |value: Option<String>| value.unwrap_or_else(|| "unknown".to_owned());
    let peak = device.peak_bytes_per_s().map(|peak| format!("{} GB/s", rate(peak / 1e9)));
    let cache = if device.is_host() { "Last-level cache" } else { "L2 cache" };
    let mut items = vec![
        ("Measured", escape(&run.started)),
        ("Command", code(&command(run))),
        ("Seed", code(&run.selection.seed)),
        ("fragbench", escape(&run.tool)),
        ("Memory", bytes(device.memory_bytes)),
        ("Theoretical peak", known(peak)),
        (cache, known(device.l2_bytes.map(bytes))),
    ];
    if device.is_host() {
        items.push(("Page size", known(device.page_bytes.map(bytes))));
        items.push(("NUMA node", known(device.numa_node.map(|node| node.to_string()))));
        items.push(("Threads", known(device.threads.map(|threads| threads.to_string()))));
    } else {
        let ecc = device.ecc.map(|on| if on { "on" } else { "off" }.to_owned());
        items.push(("ECC", known(ecc)));
        items.push(("Driver", known(device.driver.as_deref().map(escape))));
        items.push(("CUDA of the driver", known(device.cuda_driver.as_deref().map(escape))));
        items.push(("MIG", device.mig.as_deref().map_or("none".to_owned(), escape)));
    }
    let processor = host.processor.as_deref().unwrap_or("unknown processor");
    items.push(("Host", escape(&format!("{}, {}, {processor}", host.os, host.architecture))));
    items.push((
        "Memory limit",
        format!("{} ({})", bytes(run.memory_limit_bytes), escape(&run.memory_limit_reason)),
    ));
    list(items)
}

/// The hashes of the sources and of each kernel module.
pub fn hashes(run: &Run) -> String {
    let mut items = vec![("Sources (SHA-256)".to_owned(), code(&run.source_sha256))];
    let modules = run.modules.iter();
    items.extend(modules.map(|(name, hash)| (format!("Module {}", escape(name)), code(hash))));
    items.push(("Schema of the journal".to_owned(), run.schema.to_string()));
    list(items)
}

fn command(run: &Run) -> String {
    let words = run.arguments.iter().map(|word| shell_word(word));
    std::iter::once("fragbench".to_owned()).chain(words).collect::<Vec<_>>().join(" ")
}

fn list<K: std::fmt::Display>(items: Vec<(K, String)>) -> String {
    let lines = items.into_iter().map(|(key, value)| format!("- {key}: {value}"));
    lines.collect::<Vec<_>>().join("\n")
}
