//! Arms whose time does not grow with their bytes: what was timed is then not the moving of bytes.

use std::collections::{BTreeMap, BTreeSet};

use super::group_flags::is_memory_case;
use crate::record::{Arm, DeviceFacts, Group, Status};
use crate::stats;

/// Sizes are compared where the bytes of a launch are at least so many times as many.
const COMPARED_FROM: f64 = 2.0;
/// For each doubling of its bytes, a launch has to take this many times as long. What each launch
/// costs beside its bytes makes the time of short ones grow less than twofold, by 1.95 in a launch of
/// 70 us on an H200.
const LEAST_GROWTH: f64 = 1.5;

/// The arms of a run whose time does not grow, by group and name.
#[derive(Debug, Default)]
pub struct FlatTimes(BTreeSet<(String, String)>);

/// What an arm did in one launch.
struct Launch<'a> {
    case: &'a str,
    bytes: f64,
    ns: f64,
}

impl FlatTimes {
    /// Compares each arm with the same arm of the same case in other footprints. Only memory cases
    /// count: out of a cache small payloads are faster for a good reason.
    pub fn of<'a>(device: &DeviceFacts, groups: impl Iterator<Item = &'a Group>) -> FlatTimes {
        let mut alike: BTreeMap<(String, &str), Vec<Launch<'_>>> = BTreeMap::new();
        for group in groups.filter(|group| group.status == Status::Ok && group.is_verified()) {
            for arm in group.arms.iter().filter(|arm| is_memory_case(device, group, arm)) {
                let key = (without_footprint(&group.case), arm.name.as_str());
                alike.entry(key).or_default().extend(launch(group, arm));
            }
        }
        let mut flat = BTreeSet::new();
        for ((_, arm), launches) in &alike {
            let larger = |small| launches.iter().map(move |large| (small, large));
            for (small, large) in launches.iter().flat_map(larger) {
                if is_flat(large.bytes / small.bytes, large.ns / small.ns) {
                    flat.extend([small, large].map(|l| (l.case.to_owned(), (*arm).to_owned())));
                }
            }
        }
        FlatTimes(flat)
    }

    /// Whether the arm of the group is one of them.
    pub fn has(&self, group: &Group, arm: &Arm) -> bool {
        self.0.contains(&(group.case.clone(), arm.name.clone()))
    }
}

/// Whether a launch of `bytes` times the bytes that takes `ns` times the time has grown too little.
fn is_flat(bytes: f64, ns: f64) -> bool {
    bytes >= COMPARED_FROM && ns < LEAST_GROWTH.powf(bytes.log2())
}

/// The median launch of an arm, where it has one that took time and moved bytes.
fn launch<'a>(group: &'a Group, arm: &Arm) -> Option<Launch<'a>> {
    let samples = arm.samples.ns.iter().zip(&arm.samples.launches);
    let usable = samples.filter(|(ns, launches)| **ns > 0 && **launches > 0);
    let times: Vec<f64> = usable.map(|(ns, launches)| *ns as f64 / f64::from(*launches)).collect();
    let bytes = arm.read_bytes.saturating_add(arm.written_bytes).saturating_add(arm.index_bytes);
    let ns = stats::median(&times)?;
    (bytes > 0).then_some(Launch { case: &group.case, bytes: bytes as f64, ns })
}

/// What cases that differ in nothing but their size have in common.
fn without_footprint(case: &str) -> String {
    let parts = case.split('/').filter(|part| !part.starts_with("footprint="));
    parts.collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::fixture::{Shape, gpu_run};

    const GIB: u64 = 1 << 30;

    /// A group with this payload, whose scattered arm has this rate.
    fn sized(payload: u64, scattered: f64) -> Group {
        Shape { footprint: payload, payload, scattered, ..Shape::default() }.group()
    }

    /// Names of the flat arms of the n-th group.
    fn flat(groups: &[Group], n: usize) -> Vec<&str> {
        let flat = FlatTimes::of(&gpu_run().device, groups.iter());
        let arms = groups[n].arms.iter().filter(|arm| flat.has(&groups[n], arm));
        arms.map(|arm| arm.name.as_str()).collect()
    }

    #[test]
    fn twice_the_bytes_have_to_take_one_and_a_half_times_as_long() {
        // The rate of the larger grows by 2 / 1.5 where the time grows by 1.5.
        let enough = [sized(GIB, 3000.0), sized(2 * GIB, 3990.0)];
        assert_eq!((flat(&enough, 0), flat(&enough, 1)), (vec![], vec![]));
        let few = [sized(GIB, 3000.0), sized(2 * GIB, 4010.0)];
        assert_eq!((flat(&few, 0), flat(&few, 1)), (vec!["scattered"], vec!["scattered"]));
        // The order of the groups does not matter, and less than twice the bytes tell nothing.
        let [small, large] = few;
        assert_eq!(flat(&[large, small], 0), ["scattered"]);
        assert_eq!(flat(&[sized(GIB, 3000.0), sized(2 * GIB - 128, 6000.0)], 0), [""; 0]);
    }

    #[test]
    fn growth_is_asked_for_each_doubling() {
        assert!(!is_flat(8.0, 3.38) && is_flat(8.0, 3.37));
        assert!(!is_flat(0.5, 0.1) && !is_flat(1.99, 1.0));
    }

    #[test]
    fn only_what_is_alike_is_compared() {
        let other = |change: fn(&mut Group)| {
            let mut groups = [sized(GIB, 3000.0), sized(2 * GIB, 6000.0)];
            assert_eq!(flat(&groups, 1), ["scattered"]);
            change(&mut groups[0]);
            flat(&groups, 1).len()
        };
        assert_eq!(other(|group| group.case = group.case.replace("128B", "256B")), 0);
        assert_eq!(other(|group| group.arms[3].name = "other".to_owned()), 0);
        assert_eq!(other(|group| group.arms[3].samples.ns.clear()), 0);
        assert_eq!(other(|group| group.status = Status::Failed), 0);
        assert_eq!(other(|group| group.checks[0].mismatches = 1), 0);
        // A cache case is fast for a good reason; with L2 evicted it is none.
        assert_eq!(other(|group| group.arms[3].touched_bytes = 1), 0);
        assert_eq!(other(|group| (group.arms[3].touched_bytes, group.l2_evicted) = (1, true)), 1);
    }
}
