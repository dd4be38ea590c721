//! Which cases are the memory's and which the cache's.

use crate::record::DeviceFacts;

/// A memory case touches at least this many times the L2 cache.
pub const CACHE_MULTIPLE: u64 = 16;

/// A read of so many times its size leaves nothing in the L2 cache that was there before.
const EVICTION_MULTIPLE: u64 = 4;

/// The device's L2 cache in bytes, where it tells one.
pub fn known_l2_bytes(device: &DeviceFacts) -> Option<u64> {
    device.l2_bytes.filter(|bytes| *bytes > 0)
}

/// Bytes whose read evicts the L2 cache of the device, where a launch that touches `touched_bytes`
/// would leave part of them there. None on the host, and where the size of L2 is not known.
pub fn eviction_bytes(device: &DeviceFacts, touched_bytes: u64) -> Option<u64> {
    let l2 = known_l2_bytes(device).filter(|_| !device.is_host())?;
    (touched_bytes < l2.saturating_mul(CACHE_MULTIPLE))
        .then(|| l2.saturating_mul(EVICTION_MULTIPLE))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::DeviceKind;

    #[test]
    fn small_cases_of_a_gpu_that_tells_its_l2_are_evicted() {
        let gpu = DeviceFacts { l2_bytes: Some(60 << 20), ..DeviceFacts::new(DeviceKind::Cuda) };
        assert_eq!(eviction_bytes(&gpu, 960 << 20), None);
        assert_eq!(eviction_bytes(&gpu, (960 << 20) - 1), Some(240 << 20));
        for l2_bytes in [None, Some(0)] {
            assert_eq!(eviction_bytes(&DeviceFacts { l2_bytes, ..gpu.clone() }, 1), None);
        }
        let host = DeviceFacts { kind: DeviceKind::Host, ..gpu };
        assert_eq!(eviction_bytes(&host, 1), None);
    }
}
