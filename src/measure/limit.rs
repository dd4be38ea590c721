//! How much of a device's memory a run may take.

use crate::record::{DeviceFacts, size};

/// Used memory under which a device counts as idle when the run begins.
const IDLE_BYTES: u64 = 1 << 30;

/// A limit, and why it is what it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryLimit {
    /// The limit in bytes.
    pub bytes: u64,
    /// Why: a sentence for people.
    pub reason: String,
}

/// The limit in force on a device, given what `--memory-limit` asks for.
///
/// Without a request: min(95 % of the total, free - max(5 %, 1 GiB)), but only where the device is
/// provably ours (NVML lists no other process, under 1 GiB was in use before the run, no MPS, no
/// display). Else half of what is free.
pub fn memory_limit(facts: &DeviceFacts, requested: Option<u64>) -> MemoryLimit {
    let free = facts.free_bytes.unwrap_or(0);
    if let Some(bytes) = requested {
        return MemoryLimit { bytes, reason: "as asked for by --memory-limit".to_owned() };
    }
    match not_ours(facts) {
        Some(why) => MemoryLimit {
            bytes: free / 2,
            reason: format!("half of the {} that are free, because {why}", size::rounded(free)),
        },
        None => {
            let total = facts.memory_bytes;
            let reserve = (total / 20).max(1 << 30);
            MemoryLimit {
                bytes: (total / 20 * 19).min(free.saturating_sub(reserve)),
                reason: "the device is this run's alone: all but 5 % of it".to_owned(),
            }
        }
    }
}

/// Why the device is not provably ours; `None` where it is.
pub fn not_ours(facts: &DeviceFacts) -> Option<String> {
    if facts.is_host() {
        return Some("the host's memory is shared with everything that runs on it".to_owned());
    }
    if !facts.nvml {
        return Some("NVML is not there to say who else uses the device".to_owned());
    }
    if facts.mps == Some(true) {
        return Some("an MPS server shares the device".to_owned());
    }
    if facts.integrated == Some(true) {
        return Some("the device shares the host's memory".to_owned());
    }
    match facts.display {
        Some(false) => {}
        Some(true) => return Some("the device drives a display".to_owned()),
        None => return Some("NVML does not say whether the device drives a display".to_owned()),
    }
    match facts.other_processes {
        Some(0) => {}
        Some(1) => return Some("another process uses the device".to_owned()),
        Some(count) => return Some(format!("{count} other processes use the device")),
        None => return Some("NVML does not list the device's processes".to_owned()),
    }
    match facts.used_at_start_bytes {
        Some(used) if used < IDLE_BYTES => None,
        Some(used) => Some(format!("{} were in use before the run", size::rounded(used))),
        None => Some("NVML does not say how much memory was in use".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::DeviceKind;

    fn ours() -> DeviceFacts {
        DeviceFacts {
            memory_bytes: 140 << 30,
            free_bytes: Some(139 << 30),
            nvml: true,
            display: Some(false),
            other_processes: Some(0),
            used_at_start_bytes: Some(600 << 20),
            ..DeviceFacts::new(DeviceKind::Cuda)
        }
    }

    #[test]
    fn a_device_of_our_own_is_used_but_for_a_reserve() {
        assert_eq!(memory_limit(&ours(), None).bytes, 132 << 30);
    }

    #[test]
    fn any_doubt_halves_what_is_free() {
        type Spoil = fn(&mut DeviceFacts);
        let doubts: [(Spoil, &str); 6] = [
            (|f| f.nvml = false, "NVML is not there"),
            (|f| f.other_processes = Some(2), "2 other processes"),
            (|f| f.other_processes = None, "does not list"),
            (|f| f.display = Some(true), "display"),
            (|f| f.mps = Some(true), "MPS"),
            (|f| f.used_at_start_bytes = Some(2 << 30), "2 GiB were in use"),
        ];
        for (spoil, why) in doubts {
            let mut facts = ours();
            spoil(&mut facts);
            let limit = memory_limit(&facts, None);
            assert_eq!(limit.bytes, (139 << 30) / 2);
            assert!(limit.reason.contains(why), "{}", limit.reason);
        }
        assert_eq!(memory_limit(&ours(), Some(7)).bytes, 7);
    }
}
