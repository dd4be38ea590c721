//! Rows of the ceilings: what the device does when nothing is scattered.

use super::Metric;
use super::access::bandwidths;
use super::group_flags::peak_gb_per_s;
use super::row::Row;
use super::sample;
use super::source::{Finding, Source};

/// A bandwidth row for each arm, its share of the theoretical peak where that is known, the plain
/// copy against the driver's, and how much each arm depends on where the buffers lie.
pub fn rows(source: &Source<'_>) -> Vec<Row> {
    if let Some(why) = source.refusal() {
        return vec![source.without_figures(Metric::EffectiveBandwidth, None, why)];
    }
    let peak = peak_gb_per_s(&source.run.device);
    let shares = peak.into_iter().flat_map(|peak| peak_shares(source, peak));
    let findings = bandwidths(source.group).chain(shares).chain(driver_copy_ratio(source));
    let rows = findings.map(|finding| source.found(&finding));
    let spreads = bandwidths(source.group).filter_map(|finding| source.placement_spread(&finding));
    rows.chain(spreads).collect()
}

fn peak_shares<'a>(source: &Source<'a>, peak: f64) -> impl Iterator<Item = Finding<'a>> {
    bandwidths(source.group).map(move |bandwidth| Finding {
        metric: Metric::PeakShare,
        baseline: Some("peak"),
        values: bandwidth.values.iter().map(|rate| rate / peak).collect(),
        placement_medians: bandwidth.placement_medians.iter().map(|rate| rate / peak).collect(),
        ..bandwidth
    })
}

fn driver_copy_ratio<'a>(source: &Source<'a>) -> Option<Finding<'a>> {
    let (copy, driver) = (source.group.arm("copy")?, source.group.arm("driver_copy")?);
    Some(Finding {
        metric: Metric::DriverCopyRatio,
        arm: copy,
        baseline: Some("driver_copy"),
        parts: vec![copy, driver],
        values: sample::paired_arms(source.group, "copy", "driver_copy"),
        placement_medians: Vec::new(),
        target_ppm: source.group.target_half_width_ppm,
    })
}
