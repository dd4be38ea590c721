//! What would spoil a run on the host.

use super::{Finding, those};
use crate::device::Surroundings;
use crate::record::{DeviceFacts, size};

/// With less free memory than this, most cases are skipped: half of it may be taken, and the suite's
/// cases need some 600 MiB.
const LITTLE_MEMORY: u64 = 2 << 30;

pub fn findings(facts: &DeviceFacts, around: &Surroundings) -> Vec<Finding> {
    let governor = around.governor.as_deref();
    let governed = format!("the processors' governor is {}", governor.unwrap_or_default());
    let half = f64::from(around.processors) / 2.0;
    let load = around.load.unwrap_or(0.0);
    let loaded = format!("the load is {load:.1} on {} processors", around.processors);
    let pages = facts.huge_pages.as_deref();
    let paged = format!("transparent huge pages are set to {}", pages.unwrap_or_default());
    let free = facts.free_bytes.unwrap_or(u64::MAX);
    let little = format!("only {} of memory are free", size::rounded(free));
    those([
        (
            governor.is_some_and(|governor| governor != "performance"),
            [
                &governed,
                "clocks change while the host is measured",
                "set it: cpupower frequency-set -g performance, as root",
            ],
        ),
        (
            load > half,
            [
                &loaded,
                "what else runs takes bandwidth and processors",
                "end it, or wait until it has ended",
            ],
        ),
        (
            pages.is_some_and(|choice| choice != "always"),
            [
                &paged,
                "small pages are measured, whose translations miss more often",
                "set it: echo always > /sys/kernel/mm/transparent_hugepage/enabled, as root",
            ],
        ),
        (
            around.hypervisor,
            [
                "this is a virtual machine",
                "neighbours share memory and caches, and pages are translated twice",
                "measure on bare metal where figures have to be exact",
            ],
        ),
        (free < LITTLE_MEMORY, [&little, "larger cases are skipped", "end what holds the memory"]),
    ])
}
