//! The aged heaps and situations that suites ask for.

use std::sync::OnceLock;

use super::allocation::Allocator;
use super::scene::{Heap, Part, Staged};
use super::suite::Suite;
use crate::device::DeviceAllocator;
use crate::harness::{Distribution, Preset};
use crate::policy::PolicyName;
use crate::record::DeviceKind;

/// Byte-weighted median holes of the curves, in bytes.
const LEVELS: [u64; 3] = [4 << 10, 64 << 10, 2 << 20];

/// That at which distributions are compared with each other.
const LEVEL: u64 = 64 << 10;

/// Up to this level heaps are shorter: their blocks are as short as their holes.
const SHORT_LEVEL: u64 = 4 << 10;

/// The distribution by which policies are compared with each other.
const SIZES: Distribution = Distribution::LogNormal;

/// Bytes of a heap on a GPU, of one with short holes and of any other: within the reach of every TLB
/// known, so that a layout's cost is its own, and enough for 100,000 blocks wherever holes allow.
const GPU_HEAP_BYTES: [u64; 2] = [2 << 30, 8 << 30];

/// Bytes of a heap on the host.
const HOST_HEAP_BYTES: u64 = 1 << 30;

/// The occupancy that a heap has unless its case says otherwise, in percent of requested bytes: what
/// the policy's own rounding leaves room for with every distribution. With less in use most of what is
/// free stays in one piece, and there are no short holes.
pub(super) fn occupancy_percent(policy: Allocator) -> u32 {
    let policy = match policy {
        Allocator::Policy(policy) => policy,
        Allocator::Device(_) => return 90,
    };
    match policy {
        PolicyName::FirstFit | PolicyName::BestFit | PolicyName::NextFit => 90,
        PolicyName::Caching => 85,
        PolicyName::SizeClasses => 80,
        PolicyName::Buddy => 65,
        PolicyName::Slab => 45,
    }
}

/// The heaps of a suite on a kind of device. Parts of one heap follow each other.
pub(super) fn heaps(suite: Suite, kind: &DeviceKind) -> Vec<Heap> {
    let on_host = *kind == DeviceKind::Host;
    let of = |policy, sizes, hole_bytes, part| Heap {
        part,
        policy,
        sizes,
        occupancy_percent: occupancy_percent(policy),
        hole_bytes,
        heap_bytes: match on_host {
            true => HOST_HEAP_BYTES,
            false => GPU_HEAP_BYTES[usize::from(hole_bytes > SHORT_LEVEL)],
        },
    };
    let heap =
        |policy, sizes, hole_bytes, part| of(Allocator::Policy(policy), sizes, hole_bytes, part);
    use Distribution::{InferenceKv, TrainingStep};
    use Part::{Holes, Live};
    use PolicyName::{BestFit, Caching};
    let mut heaps = Vec::new();
    match (suite, on_host) {
        (Suite::Quick, true) => {}
        (Suite::Quick, false) => heaps.extend([
            heap(Caching, TrainingStep, LEVEL, Live),
            heap(Caching, InferenceKv, LEVEL, Live),
            heap(BestFit, SIZES, LEVEL, Live),
            heap(BestFit, SIZES, LEVEL, Holes),
        ]),
        (Suite::Standard | Suite::Full | Suite::Exhaustive, _) => {
            let parts: &[Part] = if suite >= Suite::Full { &Part::ALL } else { &[Live] };
            let levels = if on_host { &LEVELS[1..2] } else { &LEVELS };
            for policy in PolicyName::ALL.iter().copied() {
                for level in levels {
                    let sizes = sizes_of(policy, SIZES);
                    heaps.extend(parts.iter().map(|part| heap(policy, sizes, *level, *part)));
                }
            }
        }
    }
    if suite >= Suite::Full {
        for policy in PolicyName::ALL.iter().copied() {
            let others = Distribution::ALL.into_iter().filter(|sizes| *sizes != SIZES);
            let others = others.filter(|sizes| sizes_of(policy, *sizes) == *sizes);
            let known = sizes_of(policy, SIZES);
            let others = others.filter(|sizes| *sizes != known);
            heaps.extend(others.map(|sizes| heap(policy, sizes, LEVEL, Live)));
        }
    }
    if suite >= Suite::Exhaustive && !on_host {
        let own = [DeviceAllocator::CuMemAlloc, DeviceAllocator::MemPoolKeep];
        for allocator in own.map(Allocator::Device) {
            heaps.extend([SIZES, TrainingStep].map(|sizes| of(allocator, sizes, LEVEL, Live)));
        }
    }
    heaps
}

/// Every situation with the default's parameters, where a suite has time for them. They are worked out
/// once: their sizes are those of millions of fragments.
pub(super) fn situations(suite: Suite) -> &'static [Staged] {
    static ALL: OnceLock<Vec<Staged>> = OnceLock::new();
    if suite == Suite::Quick {
        return &[];
    }
    // The defaults are situations: nothing in them contradicts anything.
    ALL.get_or_init(|| {
        Preset::all().into_iter().flat_map(|preset| Staged::new(preset, 1)).collect()
    })
}

/// A slab hands out blocks of the largest size: of other distributions than the uniform one most of
/// each block would lie idle.
fn sizes_of(policy: PolicyName, sizes: Distribution) -> Distribution {
    if policy == PolicyName::Slab { Distribution::Uniform } else { sizes }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn full_asks_each_policy_at_three_levels_and_with_every_distribution() {
        let full = heaps(Suite::Full, &DeviceKind::Cuda);
        assert_eq!(full.iter().collect::<HashSet<_>>().len(), full.len());
        for policy in PolicyName::ALL {
            let own = || full.iter().filter(|heap| heap.policy == Allocator::Policy(*policy));
            let levels: HashSet<u64> = own().map(|heap| heap.hole_bytes).collect();
            assert_eq!(levels, LEVELS.into(), "{policy}");
            let sizes: HashSet<Distribution> = own().map(|heap| heap.sizes).collect();
            let all = if *policy == PolicyName::Slab { 1 } else { Distribution::ALL.len() };
            assert_eq!(sizes.len(), all, "{policy}");
        }
        let standard = heaps(Suite::Standard, &DeviceKind::Cuda);
        assert!(standard.iter().all(|heap| full.contains(heap)));
    }

    #[test]
    fn parts_of_one_heap_follow_each_other() {
        let full = heaps(Suite::Full, &DeviceKind::Cuda);
        let whole = |heap: &Heap| Heap { part: Part::Live, ..*heap };
        let changes = full.windows(2).filter(|two| whole(&two[0]) != whole(&two[1])).count();
        assert_eq!(changes + 1, full.iter().map(whole).collect::<HashSet<_>>().len());
    }
}
