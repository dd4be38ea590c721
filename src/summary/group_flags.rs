//! Which flags an arm and a figure carry.

use std::collections::BTreeSet;

use super::{Figure, Flag, sample};
use crate::measure::{CACHE_MULTIPLE, has_drifted, known_l2_bytes};
use crate::record::{Arm, Condition, DeviceFacts, Group, Virtualization};
use crate::stats;

/// Below this share of its stream's rate a packed arm is a weak baseline.
const WEAK_BELOW: f64 = 0.9;
/// A figure wants at least this many samples.
const ENOUGH_SAMPLES: u64 = 30;
/// NVML's reasons that say nothing about a measurement: an idle GPU, and clocks that the user set.
const HARMLESS_REASONS: u64 = 0x1 | 0x2;

/// What holds for every row of the group, with figures or without.
pub fn of_group(device: &DeviceFacts, group: &Group) -> BTreeSet<Flag> {
    let rounds = group.round_throttle_reasons.iter().flatten();
    let reasons = rounds.fold(group.clocks.throttle_reasons.unwrap_or(0), |all, own| all | own);
    let throttled = reasons & !HARMLESS_REASONS != 0;
    let sentinel = group.sentinel.as_ref();
    let unsettled = sentinel.is_some_and(|sentinel| !sentinel.settled);
    let mut stands = sentinel.into_iter().flat_map(|s| &s.attempts).filter(|a| !a.voided);
    chosen([
        (device.is_host(), Flag::Host),
        (group.held == Some(false), Flag::Unheld),
        (device.wsl == Some(true) && !device.is_host(), Flag::Wsl),
        (is_shared(device, group.condition.as_ref()), Flag::SharedDevice),
        (group.condition.as_ref().is_some_and(has_ecc_errors), Flag::EccErrors),
        (throttled, Flag::Throttled),
        (unsettled, Flag::Unsettled),
        (stands.any(has_drifted), Flag::Drift),
        (group.void_samples > 0, Flag::VoidSamples),
    ])
}

/// Whether anybody else is known to have had a part of the device, when the run began or around the
/// group.
pub fn is_shared(device: &DeviceFacts, condition: Option<&Condition>) -> bool {
    use Virtualization::{HostVgpu, Vgpu};
    let around = condition.and_then(|condition| condition.other_processes).into_iter().flatten();
    device.mps == Some(true)
        || matches!(device.virtualization, Some(Vgpu | HostVgpu))
        || device.other_processes.into_iter().chain(around).any(|others| others > 0)
}

/// Whether a count of errors grew around the group. Counts that fell were reset.
fn has_ecc_errors(condition: &Condition) -> bool {
    let counts = [condition.ecc_corrected, condition.ecc_uncorrected];
    counts.into_iter().flatten().any(|[before, after]| after > before)
}

/// What holds for every figure that the arm is part of.
pub fn of_arm(device: &DeviceFacts, group: &Group, arm: &Arm) -> BTreeSet<Flag> {
    chosen([
        (!is_memory_case(device, group, arm), Flag::Cache),
        (is_above_peak(device, arm), Flag::AbovePeak),
        (arm.name == "packed" && is_weak_baseline(group, arm), Flag::WeakBaseline),
    ])
}

/// Whether the arm's figures are memory's, and not in part a cache's.
pub fn is_memory_case(device: &DeviceFacts, group: &Group, arm: &Arm) -> bool {
    // Eviction undoes what earlier reads left in the cache, not what it still has to write.
    let is_evicted = group.l2_evicted && arm.written_bytes == 0;
    let is_small = known_l2_bytes(device)
        .is_some_and(|l2| arm.touched_bytes < l2.saturating_mul(CACHE_MULTIPLE));
    !is_small || is_evicted
}

/// What holds for a figure of these arms with this many values: arms that are compared have to have
/// been timed in the same rounds.
pub fn of_parts(parts: &[&Arm], values: usize) -> BTreeSet<Flag> {
    let lacks = |arm: &&Arm| sample::effective(arm).len() > values;
    chosen([(parts.len() > 1 && parts.iter().any(lacks), Flag::Unpaired)])
}

/// What holds for one figure alone; `target_ppm` where a half-width was aimed at for it.
pub fn of_figure(figure: &Figure, target_ppm: Option<u32>) -> BTreeSet<Flag> {
    let imprecise = target_ppm.is_some_and(|ppm| {
        figure.relative_half_width().is_none_or(|half_width| half_width > f64::from(ppm) / 1e6)
    });
    chosen([
        (figure.is_autocorrelated, Flag::Autocorrelated),
        (imprecise, Flag::Imprecise),
        (figure.samples.is_some_and(|samples| samples < ENOUGH_SAMPLES), Flag::FewSamples),
    ])
}

fn is_above_peak(device: &DeviceFacts, arm: &Arm) -> bool {
    let rates: Vec<f64> = sample::effective(arm).into_values().collect();
    match (stats::median(&rates), peak_gb_per_s(device)) {
        (Some(median), Some(peak)) => median > peak,
        _ => false,
    }
}

fn is_weak_baseline(group: &Group, packed: &Arm) -> bool {
    let Some(stream) = group.arm("stream") else { return false };
    let ratios = sample::paired(&sample::total(packed), &sample::total(stream));
    stats::median(&ratios).is_some_and(|ratio| ratio < WEAK_BELOW)
}

/// Theoretical peak in decimal GB/s, where the device tells a usable one.
pub fn peak_gb_per_s(device: &DeviceFacts) -> Option<f64> {
    device.peak_bytes_per_s().map(|peak| peak / 1e9).filter(|peak| *peak > 0.0)
}

fn chosen<const N: usize>(candidates: [(bool, Flag); N]) -> BTreeSet<Flag> {
    candidates.into_iter().filter_map(|(holds, flag)| holds.then_some(flag)).collect()
}
