//! How far a TLB reaches, from random gathers in footprints around it: rows across cases.

use std::collections::BTreeSet;

use super::row::Row;
use super::{Figure, Flag, Metric, backings, group_flags, sample};
use crate::record::{Arm, Experiment, Group, KernelName, Order, PatternName, Refined, Run, Status};
use crate::stats::{self, Footprint, Interval, Reach};

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
/// of one process, without spoiled rounds.
pub fn rows(run_id: &str, run: &Run, groups: &[&Group]) -> Vec<Row> {
    let mut curves: Vec<Curve<'_>> = Vec::new();
    for group in groups {
        for (arm, backing) in random_reads(group) {
            add(&mut curves, run, group, (arm, backing));
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

fn add<'a>(
    curves: &mut Vec<Curve<'a>>,
    run: &Run,
    group: &'a Group,
    (arm, backing): (&Arm, &'a str),
) {
    let Some(fragment_bytes) = group.fragment_bytes else { return };
    let is_own =
        |curve: &&mut Curve<'_>| curve.fragment_bytes == fragment_bytes && curve.backing == backing;
    let rates = sample::effective(arm).into_values().collect();
    let footprint = Footprint { bytes: group.footprint_bytes as f64, rates };
    let flags = group_flags::of_group(&run.device, group);
    match curves.iter_mut().find(is_own) {
        Some(curve) => {
            curve.footprints.push(footprint);
            curve.flags.extend(flags);
        }
        None => curves.push(Curve { fragment_bytes, backing, footprints: vec![footprint], flags }),
    }
}

fn of_curve(run_id: &str, run: &Run, curve: &Curve<'_>) -> Vec<Row> {
    let fragment = crate::record::size::exact(curve.fragment_bytes);
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
    let longest = curve.footprints.iter().map(|one| one.bytes).fold(0.0, f64::max);
    let Some(reach) = stats::reach(&curve.footprints) else {
        let longest = crate::record::size::exact(longest as u64);
        let reason = format!("no fall by a quarter was found in footprints up to {longest}");
        return vec![Row {
            status: Status::Skipped,
            reason: Some(reason),
            verified: false,
            ..row(Metric::TlbReach)
        }];
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
        assert!(rows[0].reason.as_ref().unwrap().contains("up to 72GiB"));
        assert!(found(&groups(&[4, 64, 80, 96], 64.0)).is_empty());
    }
}
