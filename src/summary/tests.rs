//! Rows by hand, and whatever a journal may hold.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::record::{Attempt, Group, PatternName, Reading, Samples, Sentinel, Status};
use fixture::Shape;

mod flags;

fn rows_of(group: &Group) -> Vec<Row> {
    rows("r", &fixture::gpu_run(), std::slice::from_ref(group))
}

fn row(rows: &[Row], metric: Metric, arm: &str) -> Row {
    rows.iter().find(|row| row.metric == metric && row.arm() == Some(arm)).cloned().unwrap()
}

fn samples(rounds: impl IntoIterator<Item = (u32, u64)>) -> Samples {
    let mut samples = Samples::default();
    for (round, ns) in rounds {
        samples.push(round, 0, 1, ns);
    }
    samples
}

#[test]
fn a_ratio_and_its_interval_by_hand() {
    // In round r packed takes 100 ns and scattered 100 + 10 r, so the ratio is 100 / (100 + 10 r).
    // Of nine samples the second and the eighth bound the median at 95 % (1 - 2 x 10 / 512).
    let mut group = Shape::default().group();
    group.arms[1].samples = samples((1..=9).map(|round| (round, 100)));
    group.arms[3].samples =
        samples((1..=9).rev().map(|round| (round, 100 + 10 * u64::from(round))));
    let relative = row(&rows_of(&group), Metric::RelativeBandwidth, "scattered");
    let near = |figure: Option<f64>, exact: f64| (figure.unwrap() - exact).abs() < 1e-12;
    assert_eq!(relative.figure.samples, Some(9));
    assert!(near(relative.figure.median, 100.0 / 150.0));
    assert!(near(relative.figure.ci_low, 100.0 / 180.0));
    assert!(near(relative.figure.ci_high, 100.0 / 120.0));
    assert!(near(relative.figure.min, 100.0 / 190.0));
    assert!(near(relative.figure.max, 100.0 / 110.0));
    assert_eq!(relative.figure.interval, Some("within"));
    assert_eq!(relative.figure.p90, None);
    assert_eq!(relative.baseline.as_deref(), Some("packed"));
}

#[test]
fn rounds_that_an_arm_lacks_do_not_shift_the_others() {
    let mut group = Shape::default().group();
    group.arms[1].samples = samples((0..40).map(|round| (round, 100 + u64::from(round))));
    let every_third = (0..40).filter(|round| round % 3 == 0);
    group.arms[3].samples = samples(every_third.map(|round| (round, 200 + 2 * u64::from(round))));
    let figure = row(&rows_of(&group), Metric::RelativeBandwidth, "scattered").figure;
    assert_eq!((figure.samples, figure.min, figure.max), (Some(14), Some(0.5), Some(0.5)));
}

#[test]
fn each_ratio_has_its_own_two_arms() {
    let rows = rows_of(&Shape { rounds: 64, ..Shape::default() }.group());
    let about = |metric, baseline: &str, exact: f64| {
        let row = row(&rows, metric, "scattered");
        assert_eq!(row.baseline.as_deref(), Some(baseline));
        assert!((row.figure.median.unwrap() - exact).abs() < 1e-3, "{metric}");
        assert!(row.figure.ci_low <= row.figure.median && row.figure.median <= row.figure.ci_high);
    };
    about(Metric::RelativeBandwidth, "packed", 4070.0 / 4425.0);
    about(Metric::IndirectionRatio, "stream", 4425.0 / 4600.0);
    about(Metric::DensityRatio, "packed", 4200.0 / 4425.0);
    about(Metric::OrderRatio, "sorted", 4070.0 / 4200.0);
    about(Metric::TotalRatio, "stream", 4070.0 / 4600.0);
}

#[test]
fn arms_without_gaps_have_no_gaps_in_their_footprint() {
    let rows = rows_of(&Shape::default().group());
    for (arm, footprint) in [("stream", 2 << 30), ("packed", 2 << 30), ("sorted", 64 << 30)] {
        let row = row(&rows, Metric::EffectiveBandwidth, arm);
        assert_eq!(row.footprint_bytes, Some(footprint), "{arm}");
    }
    assert_eq!(
        row(&rows, Metric::EffectiveBandwidth, "packed").pattern.clone().unwrap().base,
        PatternName::Contiguous
    );
}

#[test]
fn ceilings_are_held_against_peak_and_driver() {
    let ceiling = Shape::default().ceiling([4621.0, 4262.0, 4290.0]);
    let rows = rows_of(&ceiling);
    let share = row(&rows, Metric::PeakShare, "read");
    assert!((share.figure.median.unwrap() - 4621.0 / 4814.304).abs() < 1e-4);
    let ratio = row(&rows, Metric::DriverCopyRatio, "copy");
    assert!((ratio.figure.median.unwrap() - 4262.0 / 4290.0).abs() < 1e-3);
    assert_eq!(ratio.baseline.as_deref(), Some("driver_copy"));
    let host = super::rows("r", &fixture::host_run(), &[ceiling]);
    assert!(host.iter().all(|row| row.metric != Metric::PeakShare));
}

#[test]
fn placements_of_ceilings_have_a_range_and_a_spread() {
    let mut group = fixture::placed(Shape::default().ceiling([4000.0; 3]), 4);
    // 2 GiB at 100, 101, 102 and 103 ns a byte, but for one round that is dropped.
    let arm = &mut group.arms[0];
    for (ns, placement) in arm.samples.ns.iter_mut().zip(&arm.samples.placement) {
        *ns = 2 * (2 << 30) * (100 + u64::from(*placement));
    }
    arm.samples.ns[31] = 1;
    group.round_throttle_reasons = vec![Some(0); 31];
    group.round_throttle_reasons.push(Some(0x8));
    let rows = rows_of(&group);
    let near = |figure: Option<f64>, exact: f64| (figure.unwrap() / exact - 1.0).abs() < 1e-9;
    let read = row(&rows, Metric::EffectiveBandwidth, "read");
    assert_eq!((read.placements, read.figure.samples), (Some(4), Some(31)));
    assert!(near(read.placement_low, 1.0 / 103.0) && near(read.placement_high, 0.01));
    let share = row(&rows, Metric::PeakShare, "read");
    assert!(near(share.placement_high, 0.01 / 4814.304));
    let spread = row(&rows, Metric::PlacementSpread, "read");
    assert!(near(spread.figure.median, (0.01 - 1.0 / 103.0) * 101.0), "{:?}", spread.figure);
    assert_eq!((spread.figure.samples, spread.figure.ci()), (Some(4), None));
    // Placements that lie apart make neighbouring rounds alike.
    let mut expected = read.flags.clone();
    assert!(expected.remove(&Flag::Autocorrelated));
    assert_eq!(spread.flags, expected);
    let spreads = rows.iter().filter(|row| row.metric == Metric::PlacementSpread);
    assert_eq!(spreads.count(), group.arms.len());

    // One placement has no spread, and its number is known where it was recorded.
    let one = fixture::placed(Shape::default().ceiling([4000.0; 3]), 1);
    let rows = rows_of(&one);
    assert!(rows.iter().all(|row| row.metric != Metric::PlacementSpread));
    assert!(rows.iter().all(|row| row.placements == Some(1)));
    let unknown = rows_of(&Shape::default().ceiling([4000.0; 3]));
    assert!(unknown.iter().all(|row| row.placements.is_none() && row.placement_low.is_none()));
}

#[test]
fn a_failed_or_unverified_group_has_one_row_and_no_number() {
    let mut failed = Shape::default().group();
    failed.status = Status::Failed;
    failed.reason = Some("3 bytes differ".into());
    let mut unverified = Shape::default().group();
    unverified.checks.pop();
    let unknown = Group { status: "later".to_owned().into(), ..Shape::default().group() };
    for (group, status) in [(failed, "failed"), (unverified, "failed"), (unknown, "later")] {
        let rows = rows_of(&group);
        assert_eq!(rows.len(), 1);
        assert_eq!(rows[0].figure, Figure::default());
        assert_eq!(rows[0].status.as_str(), status);
        assert!(rows[0].reason.is_some());
        assert_eq!(rows[0].case, format!("{}/arm=scattered", group.case));
    }
}

#[test]
fn arms_that_share_no_round_fail_aloud() {
    let mut group = Shape::default().group();
    group.arms[3].samples.round.iter_mut().for_each(|round| *round += 1000);
    let relative = row(&rows_of(&group), Metric::RelativeBandwidth, "scattered");
    assert_eq!(relative.status, Status::Failed);
    assert_eq!(relative.reason.as_deref(), Some("no usable sample is left"));
    assert_eq!(relative.figure, Figure::default());
}

fn flags(group: &Group, metric: Metric, arm: &str) -> Vec<Flag> {
    row(&rows_of(group), metric, arm).flags.into_iter().collect()
}

#[test]
fn flags_stand_on_the_figures_that_they_concern() {
    let (bandwidth, relative) = (Metric::EffectiveBandwidth, Metric::RelativeBandwidth);
    let clean = Shape::default().group();
    assert!(rows_of(&clean).iter().all(|row| row.flags.is_empty()));

    let mut group = clean.clone();
    group.arms[2].touched_bytes = 16 * (60 << 20) - 1;
    assert_eq!(flags(&group, bandwidth, "sorted"), [Flag::Cache]);
    assert_eq!(flags(&group, Metric::DensityRatio, "scattered"), [Flag::Cache]);
    assert_eq!(flags(&group, relative, "scattered"), []);
    group.arms[2].touched_bytes += 1;
    assert_eq!(flags(&group, bandwidth, "sorted"), []);

    // 0.875 of the stream with 1/32 of index on top is 0.902: enough. 0.87 is not.
    let enough = Shape { packed: 0.875 * 4600.0, ..Shape::default() }.group();
    assert_eq!(flags(&enough, bandwidth, "packed"), []);
    let weak = Shape { packed: 0.87 * 4600.0, ..Shape::default() }.group();
    assert_eq!(flags(&weak, bandwidth, "packed"), [Flag::WeakBaseline]);
    assert_eq!(flags(&weak, relative, "scattered"), [Flag::WeakBaseline]);
    assert_eq!(flags(&weak, Metric::TotalRatio, "scattered"), []);

    let fast = Shape { stream: 4830.0, ..Shape::default() }.group();
    assert_eq!(flags(&fast, bandwidth, "stream"), [Flag::AbovePeak]);
    assert_eq!(flags(&fast, relative, "scattered"), []);

    let wide = Shape { spread: 0.05, ..Shape::default() }.group();
    assert_eq!(flags(&wide, relative, "scattered"), [Flag::Imprecise]);
    let untargeted = Group { target_half_width_ppm: None, ..wide };
    assert_eq!(flags(&untargeted, relative, "scattered"), []);

    let mut slow = clean.clone();
    slow.arms[3].samples = samples((0..32).map(|round| (round, 1_000_000 + u64::from(round / 8))));
    assert_eq!(flags(&slow, bandwidth, "scattered"), [Flag::Autocorrelated]);
    assert_eq!(flags(&slow, bandwidth, "packed"), []);

    let few = Shape { rounds: 29, ..Shape::default() }.group();
    assert_eq!(flags(&few, bandwidth, "stream"), [Flag::FewSamples]);
}

#[test]
fn flags_of_a_group_stand_on_every_row() {
    let mut group = Shape::default().group();
    group.held = Some(false);
    group.void_samples = 2;
    for (reasons, throttled) in [(0x0, false), (0x3, false), (0x4, true), (0x21, true)] {
        group.clocks.throttle_reasons = Some(reasons);
        for row in rows_of(&group) {
            assert!(row.flags.is_superset(&BTreeSet::from([Flag::Unheld, Flag::VoidSamples])));
            assert_eq!(row.flags.contains(&Flag::Throttled), throttled, "{reasons:#x}");
        }
    }
}

#[test]
fn a_throttled_round_is_dropped_from_every_figure() {
    let clean = Shape::default().group();
    let mut group = clean.clone();
    // Round 3 took twice as long, and one arm's clock says why; of round 7 NVML says it.
    for arm in &mut group.arms {
        arm.samples.ns[3] *= 2;
        arm.samples.sm_khz = vec![Some(1_980_000); 32];
    }
    group.arms[0].samples.sm_khz[3] = Some(990_000);
    group.round_throttle_reasons = vec![Some(0x4); 32];
    group.round_throttle_reasons[7] = Some(0x44);
    for row in rows_of(&group) {
        assert_eq!(row.figure.samples, Some(30), "{}", row.case);
        assert!(row.flags.is_superset(&[Flag::DroppedRounds, Flag::Throttled].into()));
        assert_eq!(row.parameters, "index_entry_bytes=4;dropped_rounds=2");
        let unthrottled = rows_of(&clean);
        let same =
            unthrottled.iter().find(|other| (&other.case, other.metric) == (&row.case, row.metric));
        assert!(row.figure.min >= same.unwrap().figure.min, "{}", row.case);
    }
}

#[test]
fn an_arm_with_a_low_clock_throughout_says_so_on_every_figure_that_it_is_part_of() {
    let other = Shape::default().group();
    let mut hungry = Shape { fragment: 64, ..Shape::default() }.group();
    let with_clocks = |mut group: Group| {
        for arm in &mut group.arms {
            arm.samples.sm_khz = vec![Some(1_980_000); 32];
        }
        group
    };
    hungry = with_clocks(hungry);
    hungry.arms[1].samples.sm_khz = vec![Some(1_700_000); 32];
    let groups = [with_clocks(other), hungry];
    for row in super::rows("r", &fixture::gpu_run(), &groups) {
        let parts = [Metric::IndirectionRatio, Metric::DensityRatio, Metric::RelativeBandwidth];
        let part = row.case.ends_with("/arm=packed") || parts.contains(&row.metric);
        let slow = part && row.case.contains("fragment=64B");
        assert_eq!(row.flags.contains(&Flag::LowClock), slow, "{} {:?}", row.case, row.metric);
        assert_eq!(row.figure.samples, Some(32));
    }
}

#[test]
fn competitors_stand_against_their_default() {
    let group = Shape::default().variants(&[("depth_2", 2035.0), ("plain", 4070.0)]);
    let rows = rows_of(&group);
    let ratios: Vec<_> = rows.iter().filter(|row| row.metric == Metric::VariantRatio).collect();
    let [slow, same] = ratios[..] else { panic!("{} ratios", ratios.len()) };
    assert_eq!(slow.baseline.as_deref(), Some("scattered"));
    assert_eq!(slow.kernel_text(), "gather_read.depth_2");
    assert!((slow.figure.median.unwrap() - 0.5).abs() < 1e-3, "{:?}", slow.figure);
    assert!((same.figure.median.unwrap() - 1.0).abs() < 1e-3, "{:?}", same.figure);
    let rates = rows.iter().filter(|row| row.metric == Metric::EffectiveBandwidth);
    assert_eq!(rates.count(), 3);
}

#[test]
fn a_group_whose_rounds_were_all_dropped_fails_aloud() {
    let mut group = Shape::default().group();
    group.round_throttle_reasons = vec![Some(0x20); 32];
    let rows = rows_of(&group);
    assert_eq!(rows.len(), 9);
    for row in rows {
        assert_eq!((row.status, row.figure), (Status::Failed, Figure::default()));
        let reason = row.reason.unwrap();
        assert!(reason.contains("32 rounds were dropped"), "{reason}");
    }
}

#[test]
fn evicted_reads_are_no_cache_cases_and_an_unknown_l2_is_said() {
    let small = Shape { footprint: 256 << 20, payload: 256 << 20, ..Shape::default() };
    let mut group = small.group();
    assert!(rows_of(&group).iter().all(|row| row.flags.contains(&Flag::Cache)));
    group.l2_evicted = true;
    for row in rows_of(&group) {
        assert!(!row.flags.contains(&Flag::Cache), "{}", row.case);
        assert_eq!(row.parameters, "index_entry_bytes=4;l2=evicted");
    }
    // What is written stays in the cache, whatever was evicted before.
    group.arms[3].written_bytes = 1;
    assert!(flags(&group, Metric::EffectiveBandwidth, "scattered").contains(&Flag::Cache));

    let mut run = fixture::gpu_run();
    for l2_bytes in [None, Some(0)] {
        run.device.l2_bytes = l2_bytes;
        for row in rows("r", &run, &[small.group()]) {
            assert!(!row.flags.contains(&Flag::Cache));
            assert_eq!(row.parameters, "index_entry_bytes=4;l2=unknown");
        }
    }
}

#[test]
fn a_sentinel_that_shifted_or_never_settled_flags_every_row() {
    let reading = |ns| Some(Reading { launches: 5, ns, sm_khz: None });
    let attempt = |settled, before, after, voided| Attempt {
        settled: reading(settled),
        before: reading(before),
        after: reading(after),
        voided,
    };
    let shifted = attempt(1_000_000, 1_000_000, 1_030_000, true);
    let quiet = attempt(1_030_000, 1_020_000, 1_030_000, false);
    let moved = attempt(1_000_000, 1_021_000, 1_021_000, false);
    let none = Attempt { settled: None, before: None, after: None, voided: false };
    let flags = |settled, attempts| {
        let settling = Vec::new();
        let sentinel = Some(Sentinel { bytes: 1 << 30, settled, settling, attempts });
        let group = Group { sentinel, ..Shape::default().group() };
        let mut rows = rows_of(&group).into_iter().map(|row| row.flags);
        let first = rows.next().unwrap();
        assert!(rows.all(|flags| flags == first));
        first.into_iter().collect::<Vec<_>>()
    };
    assert_eq!(flags(true, vec![shifted.clone(), quiet.clone()]), []);
    assert_eq!(flags(true, vec![shifted.clone(), moved]), [Flag::Drift]);
    assert_eq!(flags(true, vec![Attempt { voided: false, ..shifted }]), [Flag::Drift]);
    assert_eq!(flags(false, vec![quiet]), [Flag::Unsettled]);
    assert_eq!(flags(true, vec![none]), []);
}

#[test]
fn a_host_is_a_host_on_every_row() {
    let mut groups = fixture::host_groups();
    groups.push(fixture::skipped(Shape::default(), "too large"));
    for row in rows("r", &fixture::host_run(), &groups) {
        assert!(row.flags.contains(&Flag::Host));
        assert_eq!(row.device, "host: Example 9000 64-Core");
        assert!(row.parameters.ends_with("page_bytes=4096;numa_node=0;threads=16"));
    }
}

#[test]
fn a_run_is_named_by_time_and_device() {
    assert_eq!(run_id(&fixture::gpu_run()), "2026-12-02T10-15-00Z-cuda0");
}

fn any_samples() -> impl Strategy<Value = Samples> {
    let edge = |largest| prop_oneof![Just(0), Just(1), Just(largest), 0..=largest];
    let sample = (0u32..12, edge(u64::from(u32::MAX)), edge(u64::MAX));
    prop::collection::vec(sample, 0..40).prop_map(|all| {
        let mut samples = Samples::default();
        for (round, launches, ns) in all {
            samples.push(round, 0, launches as u32, ns);
            samples.sm_khz.push((ns % 3 > 0).then_some(launches as u32));
            samples.placement.push(round / 3);
        }
        samples
    })
}

proptest! {
    #[test]
    fn no_row_ever_holds_a_figure_that_is_not_finite(
        arms in prop::collection::vec((any_samples(), any::<[u64; 4]>()), 4),
        ceiling in any::<bool>(),
        torn in any::<bool>(),
        clock in any::<Option<u64>>(),
        l2 in any::<Option<u64>>(),
        reasons in prop::collection::vec(any::<Option<u64>>(), 0..12),
    ) {
        let mut run = fixture::gpu_run();
        run.device.memory_clock_khz = clock;
        run.device.l2_bytes = l2;
        let shape = Shape::default();
        let mut group = if ceiling { shape.ceiling([1.0; 3]) } else { shape.group() };
        group.round_throttle_reasons = reasons;
        for (arm, (samples, bytes)) in group.arms.iter_mut().zip(arms) {
            arm.samples = samples;
            if torn {
                arm.samples.launches.pop();
            }
            [arm.read_bytes, arm.written_bytes, arm.index_bytes, arm.touched_bytes] = bytes;
        }
        let rows = rows("r", &run, &[group]);
        prop_assert!(!rows.is_empty());
        for row in rows {
            prop_assert!(row.figure.numbers().into_iter().flatten().all(f64::is_finite));
            let range = [row.placement_low, row.placement_high];
            prop_assert!(range.into_iter().flatten().all(f64::is_finite));
            let has_figure = row.figure.median.is_some();
            prop_assert_eq!(has_figure, row.status == Status::Ok);
            prop_assert_eq!(has_figure, row.reason.is_none());
        }
    }
}
