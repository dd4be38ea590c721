//! Where the wall time of a run's groups went.

use crate::record::Phases;

type Part = (&'static str, fn(&Phases) -> u64);

/// What is told apart, in the order in which it is told. A journal that does not tell what of the
/// measuring was timed has none of it.
const PARTS: &[Part] = &[
    ("timed", |phases| phases.timed_ns),
    ("measuring", |phases| phases.measure_ns.saturating_sub(phases.timed_ns)),
    ("preparing", |phases| phases.prepare_ns),
    ("verifying", |phases| phases.verify_ns),
    ("waiting", |phases| phases.wait_ns),
];

/// The wall time of a run's groups by what it was spent on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// Each part's name and its nanoseconds.
    pub parts_ns: Vec<(&'static str, u64)>,
    /// Timed intervals, those of pilots and calibrations included; 0 where it was not recorded.
    pub intervals: u64,
    /// What the host took for them while the device did not keep it waiting; 0 where it was not
    /// recorded.
    pub host_ns: u64,
}

impl Times {
    /// The times of cases with these phases, added up.
    pub fn of<'a>(cases: impl Iterator<Item = &'a Phases> + Clone) -> Times {
        let sum = |part: fn(&Phases) -> u64| cases.clone().map(part).fold(0, u64::saturating_add);
        let parts = PARTS.iter().map(|&(name, part)| (name, sum(part)));
        let parts_ns = parts.filter(|(name, ns)| *name != "timed" || *ns > 0).collect();
        let (intervals, host_ns) = (sum(|phases| phases.intervals), sum(|phases| phases.host_ns));
        Times { parts_ns, intervals, host_ns }
    }

    /// What was spent beside each timed interval, by the host and on what is launched without being
    /// timed, in nanoseconds; none where intervals were not recorded.
    pub fn beside_interval_ns(&self) -> Option<u64> {
        let measuring = self.parts_ns.iter().find(|(name, _)| *name == "measuring");
        measuring.and_then(|(_, ns)| ns.checked_div(self.intervals))
    }

    /// What the host took for each timed interval while the device did not keep it waiting, in
    /// nanoseconds; none where it was not recorded.
    pub fn host_interval_ns(&self) -> Option<u64> {
        self.host_ns.checked_div(self.intervals).filter(|_| self.host_ns > 0)
    }

    /// All parts together, in nanoseconds.
    pub fn total_ns(&self) -> u64 {
        self.parts_ns.iter().map(|(_, ns)| *ns).fold(0, u64::saturating_add)
    }

    /// Each part's name and its share of all; none where no time was recorded.
    pub fn shares(&self) -> Vec<(&'static str, f64)> {
        let total = self.total_ns() as f64;
        let parts = self.parts_ns.iter().filter(|_| total > 0.0);
        parts.map(|&(name, ns)| (name, ns as f64 / total)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Group;
    use crate::summary::fixture::Shape;

    fn times_of(groups: &[Group]) -> Times {
        Times::of(groups.iter().map(|group| &group.phases))
    }

    fn group(prepare_ns: u64, verify_ns: u64, measure_ns: u64) -> Group {
        let mut group = Shape::default().group();
        group.phases.prepare_ns = prepare_ns;
        group.phases.verify_ns = verify_ns;
        group.phases.measure_ns = measure_ns;
        group
    }

    #[test]
    fn parts_add_up_over_groups() {
        let waited = |mut group: Group| {
            group.phases.wait_ns = 100;
            group
        };
        let times = times_of(&[group(100, 30, 200), group(50, 20, 400)].map(waited));
        let parts = [("measuring", 600), ("preparing", 150), ("verifying", 50), ("waiting", 200)];
        assert_eq!((&times.parts_ns[..], times.total_ns()), (&parts[..], 1000));
        let shares =
            [("measuring", 0.6), ("preparing", 0.15), ("verifying", 0.05), ("waiting", 0.2)];
        assert_eq!(times.shares(), shares);
    }

    #[test]
    fn what_was_timed_is_told_apart_where_it_is_known() {
        let mut group = group(100, 30, 600);
        let times = times_of(std::slice::from_ref(&group));
        assert_eq!((times.beside_interval_ns(), times.host_interval_ns()), (None, None));
        (group.phases.timed_ns, group.phases.intervals) = (400, 8);
        group.phases.host_ns = 80;
        let times = times_of(&[group.clone(), group]);
        assert_eq!(times.parts_ns[..2], [("timed", 800), ("measuring", 400)]);
        assert_eq!((times.total_ns(), times.beside_interval_ns()), (1460, Some(25)));
        assert_eq!(times.host_interval_ns(), Some(10));
    }

    #[test]
    fn no_time_has_no_shares() {
        assert_eq!(times_of(&[]).shares(), []);
        assert_eq!(times_of(&[group(0, 0, 0)]).shares(), []);
    }

    #[test]
    fn absurd_times_do_not_overflow() {
        let times = times_of(&[group(u64::MAX, 1, u64::MAX), group(1, 1, 1)]);
        assert!(times.shares().iter().all(|(_, share)| (0.0..=1.0).contains(share)));
    }
}
