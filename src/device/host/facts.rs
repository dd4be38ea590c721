//! What the system tells about its processor and memory.

use std::fs;

use crate::record::{DeviceFacts, DeviceKind, HostFacts, size};

/// Facts of the host as a device; none in a build without kernels for it.
pub fn facts() -> Option<DeviceFacts> {
    if !cfg!(fragbench_host) {
        return None;
    }
    let processors = node_processors();
    Some(DeviceFacts {
        id: "host".to_owned(),
        name: processor_name().unwrap_or_else(|| "unknown processor".to_owned()),
        memory_bytes: meminfo("MemTotal").unwrap_or(0),
        free_bytes: Some(free_bytes()),
        l2_bytes: last_level_cache_bytes(),
        page_bytes: Some(rustix::param::page_size() as u64),
        huge_pages: read("/sys/kernel/mm/transparent_hugepage/enabled").as_deref().and_then(chosen),
        numa_node: processors.node,
        threads: Some(processors.ids.len() as u32),
        ..DeviceFacts::new(DeviceKind::Host)
    })
}

/// The machine that a run is made on.
pub fn machine() -> HostFacts {
    HostFacts {
        os: rustix_release(),
        architecture: std::env::consts::ARCH.to_owned(),
        processor: processor_name(),
        logical_processors: std::thread::available_parallelism().map_or(1, |n| n.get() as u32),
        memory_bytes: meminfo("MemTotal"),
        ..HostFacts::default()
    }
}

fn rustix_release() -> String {
    let uname = rustix::system::uname();
    format!("{} {}", uname.sysname().to_string_lossy(), uname.release().to_string_lossy())
}

/// The logical processors that this process may use, of the NUMA node of the first of them.
pub(super) struct Processors {
    pub node: Option<u32>,
    pub ids: Vec<usize>,
}

pub(super) fn node_processors() -> Processors {
    let allowed: Vec<usize> = match rustix::thread::sched_getaffinity(None) {
        Ok(set) => (0..rustix::thread::CpuSet::MAX_CPU).filter(|id| set.is_set(*id)).collect(),
        Err(_) => (0..std::thread::available_parallelism().map_or(1, |n| n.get())).collect(),
    };
    let first = allowed.first().copied().unwrap_or(0);
    let nodes = (0u32..1024).map_while(|node| {
        let list = read(&format!("/sys/devices/system/node/node{node}/cpulist"))?;
        Some((node, parse_list(&list)))
    });
    match nodes.into_iter().find(|(_, ids)| ids.contains(&first)) {
        Some((node, ids)) => Processors {
            node: Some(node),
            ids: allowed.into_iter().filter(|id| ids.contains(id)).collect(),
        },
        None => Processors { node: None, ids: allowed },
    }
}

/// Memory that can still be had: what the kernel calls available, within the cgroup's limit.
pub(super) fn free_bytes() -> u64 {
    let available = meminfo("MemAvailable").unwrap_or(0);
    let number = |path| read(path).and_then(|text| text.trim().parse::<u64>().ok());
    let limit = number("/sys/fs/cgroup/memory.max");
    let used = number("/sys/fs/cgroup/memory.current");
    match (limit, used) {
        (Some(limit), Some(used)) => available.min(limit.saturating_sub(used)),
        _ => available,
    }
}

fn read(path: &str) -> Option<String> {
    fs::read_to_string(path).ok()
}

/// A field of /proc/meminfo, which is in KiB.
fn meminfo(field: &str) -> Option<u64> {
    let text = read("/proc/meminfo")?;
    let line = text.lines().find(|line| line.starts_with(field))?;
    line.split_whitespace().nth(1)?.parse::<u64>().ok().map(|kib| kib << 10)
}

fn processor_name() -> Option<String> {
    let text = read("/proc/cpuinfo")?;
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// The largest cache that the first processor sees.
fn last_level_cache_bytes() -> Option<u64> {
    let folder = fs::read_dir("/sys/devices/system/cpu/cpu0/cache").ok()?;
    let sizes = folder.flatten().filter_map(|entry| {
        let text = fs::read_to_string(entry.path().join("size")).ok()?;
        size::parse(text.trim()).ok()
    });
    sizes.max()
}

/// The bracketed choice of a line like `always [madvise] never`.
fn chosen(text: &str) -> Option<String> {
    let (_, rest) = text.split_once('[')?;
    Some(rest.split_once(']')?.0.to_owned())
}

/// The numbers of a list like `0-3,8,10-11`.
fn parse_list(text: &str) -> Vec<usize> {
    let ranges = text.trim().split(',').filter_map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        Some(first.parse::<usize>().ok()?..=last.parse::<usize>().ok()?)
    });
    ranges.flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_choices_are_read() {
        assert_eq!(parse_list("0-3,8,10-11\n"), [0, 1, 2, 3, 8, 10, 11]);
        assert_eq!(parse_list(""), Vec::<usize>::new());
        assert_eq!(chosen("always [madvise] never").as_deref(), Some("madvise"));
    }

    #[test]
    fn this_machine_has_processors_and_memory() {
        assert!(!node_processors().ids.is_empty());
        let machine = machine();
        assert!(machine.logical_processors > 0);
    }
}
