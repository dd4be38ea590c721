//! How far a TLB reaches, from random gathers in footprints around it: rows across cases.

use std::collections::BTreeSet;

use super::group_flags::is_memory_case;
use super::row::Row;
use super::{Figure, Flag, Metric, backings, group_flags, sample};
use crate::record::{
    Arm, Experiment, Group, KernelName, Order, PatternName, Refined, Run, Status, size,
};
use crate::stats::{self, Footprint, Interval, NoReach, Reach};

/// Fewest footprints that tell anything.
const LEAST_FOOTPRINTS: usize = 5;

/// A model whose medians lie further off than this is none.
const WORST_RESIDUAL: f64 = 0.05;

/// What lies under the addresses of a plain allocation.
const PLAIN: &str = "plain";

/// The footprints of one curve: the same fragments over the same kind of memory.
struct Curve<'a> {
    fragment_bytes: u64,
    backing: &'a str,
    footprints: Vec<Footprint>,
    flags: BTreeSet<Flag>,
}

/// Reach, knee, and the bandwidth if every read missed, for each order of chunks and for plain
/// allocations, where random gathers of a fragment were measured in enough footprints. `groups` are those
/// of one process, without spoiled rounds, each with how many those were.
pub fn rows(run_id: &str, run: &Run, groups: &[(&Group, u32)]) -> Vec<Row> {
    let mut curves: Vec<Curve<'_>> = Vec::new();
    for &(group, dropped_rounds) in groups {
        // A cache's cliff is none of a TLB.
        let is_memory = |(arm, _): &(&Arm, &str)| is_memory_case(&run.device, group, arm);
        for (arm, backing) in random_reads(group).into_iter().filter(is_memory) {
            let mut flags = group_flags::of_group(&run.device, group);
            flags.extend(group_flags::of_arm(&run.device, group, arm));
            flags.extend((dropped_rounds > 0).then_some(Flag::DroppedRounds));
            add(&mut curves, group, (arm, backing), flags);
        }
    }
    curves.retain(|curve| curve.footprints.len() >= LEAST_FOOTPRINTS);
    curves.iter().flat_map(|curve| of_curve(run_id, run, curve)).collect()
}

/// The arms that read random fragments in random order, and what lies under their addresses.
fn random_reads(group: &Group) -> Vec<(&Arm, &str)> {
    let is_random = group.kernel.base == KernelName::GatherRead
        && group.pattern == Refined::from(PatternName::Random)
        && group.status == Status::Ok
        && group.is_verified()
        && !group.l2_evicted;
    if !is_random {
        return Vec::new();
    }
    match group.kernel.refinement.as_deref() {
        None => group.arm("scattered").map(|arm| (arm, PLAIN)).into_iter().collect(),
        Some(backings::REFINEMENT) => {
            let arms = group.arms.iter().filter(|arm| arm.order == Some(Order::Scattered));
            arms.filter_map(|arm| Some((arm, arm.backing.as_deref()?))).collect()
        }
        Some(_) => Vec::new(),
    }
}

/// Adds what an arm tells to its curve. Rounds of a footprint that is known are more of the same; an arm
/// of which no round is left tells nothing.
fn add<'a>(
    curves: &mut Vec<Curve<'a>>,
    group: &'a Group,
    (arm, backing): (&Arm, &'a str),
    flags: BTreeSet<Flag>,
) {
    let Some(fragment_bytes) = group.fragment_bytes else { return };
    let rates: Vec<f64> = sample::effective(arm).into_values().collect();
    if rates.is_empty() {
        return;
    }
    let is_own =
        |curve: &Curve<'_>| curve.fragment_bytes == fragment_bytes && curve.backing == backing;
    let at = curves.iter().position(is_own).unwrap_or_else(|| {
        let (footprints, flags) = (Vec::new(), BTreeSet::new());
        curves.push(Curve { fragment_bytes, backing, footprints, flags });
        curves.len() - 1
    });
    let curve = &mut curves[at];
    curve.flags.extend(flags);
    let bytes = group.footprint_bytes as f64;
    match curve.footprints.iter_mut().find(|known| known.bytes == bytes) {
        Some(known) => known.rates.extend(rates),
        None => curve.footprints.push(Footprint { bytes, rates }),
    }
}

fn of_curve(run_id: &str, run: &Run, curve: &Curve<'_>) -> Vec<Row> {
    let fragment = size::exact(curve.fragment_bytes);
    let row = |metric: Metric| Row {
        case: format!(
            "scatter/kernel=gather_read/pattern=random/fragment={fragment}/backing={}",
            curve.backing
        ),
        kernel: Some(KernelName::GatherRead.into()),
        pattern: Some(PatternName::Random.into()),
        order: Some(Order::Scattered),
        backing: Some(curve.backing.to_owned()),
        fragment_bytes: Some(curve.fragment_bytes),
        verified: true,
        ..Row::of_run(run_id, run, Experiment::Scatter, metric)
    };
    let reach = match stats::reach(&curve.footprints) {
        Ok(reach) => reach,
        Err(why) => {
            let row = row(Metric::TlbReach);
            let reason = Some(reason(why, &curve.footprints));
            return vec![Row { status: Status::Skipped, reason, verified: false, ..row }];
        }
    };
    let figure = |value: f64, interval: Option<Interval>| Figure {
        samples: Some(curve.footprints.len() as u64),
        median: Some(value),
        ci_low: interval.map(|interval| interval.low),
        ci_high: interval.map(|interval| interval.high),
        interval: interval.map(|_| "within"),
        ..Figure::default()
    };
    let found = [
        (Metric::TlbReach, figure(reach.bytes, reach.interval)),
        (Metric::TlbKnee, figure(reach.knee_bytes, reach.knee_interval)),
        (Metric::MissBandwidth, figure(reach.missing, None)),
    ];
    found
        .map(|(metric, figure)| {
            let mut row = row(metric);
            row.parameters = parameters(&reach);
            row.flags.extend(curve.flags.iter().copied());
            let is_poor = reach.largest_residual > WORST_RESIDUAL;
            row.flags.extend(is_poor.then_some(Flag::PoorFit));
            row.figure = figure;
            row
        })
        .into()
}

/// Why there is no reach. That of a flat curve says how far was looked: beyond it there may be one.
fn reason(why: NoReach, footprints: &[Footprint]) -> String {
    let longest = footprints.iter().map(|one| one.bytes).fold(0.0, f64::max);
    let longest = size::exact(longest as u64);
    match why {
        NoReach::Flat => format!("no fall by a quarter was found in footprints up to {longest}"),
        NoReach::Unclear => format!(
            "it falls in footprints up to {longest}, but the model needs two within the knee and three \
             beyond it"
        ),
    }
}

fn parameters(reach: &Reach) -> String {
    let (within, beyond) = reach.points;
    format!(
        "footprints_within={within};footprints_beyond={beyond};within={:.1};residual_ppm={:.0}",
        reach.within,
        reach.largest_residual * 1e6
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Samples;
    use crate::summary::fixture::{self, Shape};

    const GIB: u64 = 1 << 30;

    /// Groups of random gathers whose reach is 64 GiB.
    fn groups(gib: &[u64], reach_gib: f64) -> Vec<Group> {
        let of = |gib: &u64| {
            let mut group = Shape::default().group();
            group.pattern = PatternName::Random.into();
            group.footprint_bytes = gib * GIB;
            group.case = format!("bandwidth/kernel=gather_read/footprint={gib}GiB");
            for arm in &mut group.arms {
                let bytes = arm.read_bytes as f64;
                let missing = (1.0 - reach_gib / *gib as f64) / 400.0;
                let time = bytes * missing.max(1.0 / 4000.0);
                arm.samples = Samples::default();
                for round in 0..40 {
                    let ns = time * (1.0 + f64::from(round % 5) * 1e-4);
                    arm.samples.push(round, 0, 1, ns as u64);
                }
            }
            group
        };
        gib.iter().map(of).collect()
    }

    fn found(groups: &[Group]) -> Vec<Row> {
        crate::summary::rows("r", &fixture::gpu_run(), groups)
            .into_iter()
            .filter(|row| row.case.ends_with("backing=plain"))
            .collect()
    }

    #[test]
    fn reach_and_knee_have_rows_of_their_own() {
        let rows = found(&groups(&[4, 16, 32, 64, 72, 80, 96, 120], 64.0));
        let of = |metric| rows.iter().find(|row| row.metric == metric).unwrap();
        let gib = |metric| of(metric).figure.median.unwrap() / GIB as f64;
        assert!((gib(Metric::TlbReach) - 64.0).abs() < 0.1, "{}", gib(Metric::TlbReach));
        assert!((gib(Metric::TlbKnee) - 71.1).abs() < 0.2, "{}", gib(Metric::TlbKnee));
        let missing = of(Metric::MissBandwidth).figure.median.unwrap();
        assert!((missing - 400.0).abs() < 1.0, "{missing}");
        let interval = of(Metric::TlbReach).figure.ci().unwrap();
        assert!(interval.contains(64.0 * GIB as f64) || interval.half_width() < 0.2 * GIB as f64);
        assert!(rows.iter().all(|row| !row.flags.contains(&Flag::PoorFit)));
        assert!(of(Metric::TlbReach).parameters.contains("footprints_beyond=4"));
    }

    #[test]
    fn a_flat_curve_says_so_and_few_footprints_say_nothing() {
        let rows = found(&groups(&[4, 16, 32, 64, 72], 1000.0));
        assert_eq!((rows.len(), &rows[0].status), (1, &Status::Skipped));
        let reason = rows[0].reason.as_ref().unwrap();
        assert!(reason.contains("no fall") && reason.contains("up to 72GiB"), "{reason}");
        assert!(found(&groups(&[4, 64, 80, 96], 64.0)).is_empty());
    }

    #[test]
    fn a_fall_that_is_not_measured_far_enough_is_not_called_flat() {
        let rows = found(&groups(&[4, 16, 32, 64, 80, 96], 64.0));
        assert_eq!((rows.len(), &rows[0].status), (1, &Status::Skipped));
        let reason = rows[0].reason.as_ref().unwrap();
        assert!(reason.starts_with("it falls in footprints up to 96GiB"), "{reason}");
    }

    #[test]
    fn a_footprint_that_was_measured_twice_counts_once() {
        let mut twice = groups(&[4, 64, 80, 96, 96], 64.0);
        twice[4].case.push_str("/payload=1GiB");
        assert!(found(&twice).is_empty());
    }

    #[test]
    fn cache_cases_are_left_out() {
        let mut groups = groups(&[4, 16, 32, 64, 72, 80, 96, 120], 64.0);
        for arm in groups[..2].iter_mut().flat_map(|group| &mut group.arms) {
            arm.touched_bytes = 1 << 20;
        }
        let rows = found(&groups);
        assert!(rows[0].parameters.contains("footprints_within=2"), "{}", rows[0].parameters);
        assert!(rows.iter().all(|row| !row.flags.contains(&Flag::Cache)));
    }

    #[test]
    fn each_order_of_chunks_has_a_reach_of_its_own() {
        let groups = fixture::scatter_groups();
        let rows = crate::summary::rows("r", &fixture::gpu_run(), &groups);
        let missing: Vec<(&str, f64)> = rows
            .iter()
            .filter(|row| row.metric == Metric::MissBandwidth)
            .map(|row| (row.backing.as_deref().unwrap(), row.figure.median.unwrap().round()))
            .collect();
        assert_eq!(missing, [("in_order", 400.0), ("shuffled.1", 200.0), ("reversed", 200.0)]);
    }

    #[test]
    fn dropped_rounds_are_told_and_a_footprint_without_rounds_is_left_out() {
        let mut groups = groups(&[4, 16, 32, 64, 72, 80, 96, 120], 64.0);
        groups[7].round_throttle_reasons = vec![Some(0x40); 40];
        groups[6].round_throttle_reasons = vec![Some(0x40)];
        let rows = found(&groups);
        assert_eq!(rows.len(), 3);
        assert!(rows.iter().all(|row| row.parameters.contains("footprints_beyond=3")));
        assert!(rows.iter().all(|row| row.flags.contains(&Flag::DroppedRounds)));
    }

    #[test]
    fn a_curve_of_another_kind_is_flagged() {
        let mut groups = groups(&[4, 16, 32, 64, 72, 80, 96, 120], 64.0);
        let scattered = groups[6].arms.iter_mut().find(|arm| arm.name == "scattered").unwrap();
        scattered.samples.ns.iter_mut().for_each(|ns| *ns *= 2);
        let rows = found(&groups);
        assert!(!rows.is_empty() && rows.iter().all(|row| row.flags.contains(&Flag::PoorFit)));
    }
}
