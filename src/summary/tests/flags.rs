//! Flags of the device's state, of sizes that are compared, and of arms that are not.

use super::*;
use crate::record::{Condition, DeviceFacts, Virtualization};

/// The flags that all rows have of a group of a device that was changed.
fn flags_on(change: impl FnOnce(&mut DeviceFacts, &mut Condition)) -> Vec<Flag> {
    let (mut run, mut group) = (fixture::gpu_run(), Shape::default().group());
    let mut condition = Condition::default();
    change(&mut run.device, &mut condition);
    group.condition = Some(condition);
    let rows = crate::summary::rows("r", &run, &[group]);
    assert!(rows.iter().all(|row| row.flags == rows[0].flags));
    rows[0].flags.iter().copied().collect()
}

#[test]
fn a_device_that_others_use_is_shared() {
    let shared = [Flag::SharedDevice];
    assert_eq!(flags_on(|device, _| device.other_processes = Some(1)), shared);
    assert_eq!(flags_on(|device, _| device.mps = Some(true)), shared);
    for (mode, expected) in [
        (Virtualization::Vgpu, &shared[..]),
        (Virtualization::HostVgpu, &shared),
        (Virtualization::Passthrough, &[]),
        (Virtualization::None, &[]),
        ("later".to_owned().into(), &[]),
    ] {
        assert_eq!(flags_on(|device, _| device.virtualization = Some(mode)), expected);
    }
    assert_eq!(flags_on(|_, around| around.other_processes = Some([1, 0])), shared);
    assert_eq!(flags_on(|_, around| around.other_processes = Some([0, 1])), shared);
    let alone = flags_on(|device, around| {
        (device.other_processes, device.mps) = (Some(0), Some(false));
        around.other_processes = Some([0, 0]);
    });
    assert_eq!(alone, []);
    assert_eq!(flags_on(|device, _| device.other_processes = None), []);
}

#[test]
fn only_ecc_errors_that_grew_are_told() {
    assert_eq!(flags_on(|_, around| around.ecc_corrected = Some([3, 4])), [Flag::EccErrors]);
    assert_eq!(flags_on(|_, around| around.ecc_uncorrected = Some([0, 1])), [Flag::EccErrors]);
    // Errors from before, and counters that were reset.
    assert_eq!(flags_on(|_, around| around.ecc_corrected = Some([3, 3])), []);
    assert_eq!(flags_on(|_, around| around.ecc_uncorrected = Some([3, 0])), []);
}

#[test]
fn windows_is_told_of_its_gpus_and_not_of_its_host() {
    assert_eq!(flags_on(|device, _| device.wsl = Some(true)), [Flag::Wsl]);
    assert_eq!(flags_on(|device, _| device.wsl = Some(false)), []);
    let mut run = fixture::host_run();
    run.device.wsl = Some(true);
    let rows = crate::summary::rows("r", &run, &fixture::host_groups());
    assert!(rows.iter().all(|row| !row.flags.contains(&Flag::Wsl)));
}

#[test]
fn a_time_that_does_not_grow_is_told_on_both_sizes() {
    let sized = |gib: u64, scattered| {
        let (footprint, payload) = (gib << 30, gib << 30);
        Shape { footprint, payload, scattered, ..Shape::default() }.group()
    };
    let groups = [sized(1, 2000.0), sized(2, 3900.0), sized(2, 2000.0)];
    let flagged = |groups: &[Group]| -> Vec<(String, Metric)> {
        let rows = crate::summary::rows("r", &fixture::gpu_run(), groups);
        let own = rows.iter().filter(|row| row.flags.contains(&Flag::FlatTime));
        own.map(|row| (row.case.clone(), row.metric)).collect()
    };
    // The arm's own figure and the three ratios that it is part of, in each group.
    let told = flagged(&groups[..2]);
    assert_eq!(told.len(), 8);
    assert!(told.iter().all(|(case, _)| case.ends_with("/arm=scattered")));
    assert!(!told.iter().any(|(_, metric)| *metric == Metric::DensityRatio));
    assert_eq!(flagged(&[groups[0].clone(), groups[2].clone()]), []);
    // The larger one's fast rounds were dropped.
    let mut dropped = groups[1].clone();
    dropped.round_throttle_reasons = vec![Some(0x8); 22];
    for ns in &mut dropped.arms[3].samples.ns[22..] {
        *ns *= 2;
    }
    assert_eq!(flagged(&[groups[0].clone(), dropped]), []);
}

#[test]
fn arms_that_lack_rounds_of_each_other_are_unpaired() {
    let relative = |group: &Group| flags(group, Metric::RelativeBandwidth, "scattered");
    let remove = |group: &mut Group, arm: usize, at: usize| {
        let samples = &mut group.arms[arm].samples;
        for column in [&mut samples.round, &mut samples.position, &mut samples.launches] {
            column.remove(at);
        }
        samples.ns.remove(at);
    };
    for arm in [1, 3] {
        let mut group = Shape::default().group();
        remove(&mut group, arm, 5);
        assert_eq!(relative(&group), [Flag::Unpaired]);
        assert_eq!(flags(&group, Metric::EffectiveBandwidth, "scattered"), []);
        // The other arm lacks that round too.
        remove(&mut group, 4 - arm, 5);
        assert_eq!(relative(&group), []);
    }
    // A round that was dropped is missing from nowhere.
    let mut group = Shape::default().group();
    remove(&mut group, 1, 5);
    group.round_throttle_reasons = vec![Some(0); 32];
    group.round_throttle_reasons[5] = Some(0x8);
    assert_eq!(relative(&group), [Flag::Throttled, Flag::DroppedRounds]);
}
