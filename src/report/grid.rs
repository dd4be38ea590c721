//! The figures of a run as two compact tables, in cells: the ceilings, and a line for each group.

use std::collections::BTreeSet;

use super::case::Case;
use super::text::{bytes, clean, or_dash, percent, rate, ratio, with_interval};
use crate::summary::{Flag, Metric, Row};

/// A table in cells; the first `texts` columns hold texts, the rest figures, the last texts again.
pub struct Grid {
    pub head: Vec<&'static str>,
    pub texts: usize,
    pub body: Vec<Vec<String>>,
}

/// One line for each arm of each ceiling that has figures.
pub fn ceilings(rows: &[Row]) -> Grid {
    let mut body = Vec::new();
    for case in Case::all(rows).iter().filter(|case| case.is_ceiling()) {
        for arm in ["read", "write", "copy", "driver_copy"] {
            let Some(row) = case.row(Metric::EffectiveBandwidth, arm) else { continue };
            let share = case.row(Metric::PeakShare, arm).and_then(|row| row.figure.median);
            body.push(vec![
                arm.to_owned(),
                row.footprint_bytes.map(bytes).unwrap_or_default(),
                with_interval(row.figure.median, row.figure.ci(), rate),
                or_dash(share, ratio),
                or_dash(spread(case, arm), percent),
                told(&row.flags),
            ]);
        }
    }
    let head = vec!["ceiling", "array", "GB/s [95 %]", "of peak", "spread", "flags"];
    Grid { head, texts: 2, body }
}

/// How far the medians of single placements of an arm's buffers lie apart, relative.
pub fn spread(case: &Case<'_>, arm: &str) -> Option<f64> {
    case.row(Metric::PlacementSpread, arm)?.figure.median
}

/// One line for each arm of each group that compares a kernel with its competitors.
pub fn variants(rows: &[Row]) -> Grid {
    let mut body = Vec::new();
    for case in Case::all(rows).iter().filter(|case| case.is_variants()) {
        for row in case.of_metric(Metric::EffectiveBandwidth) {
            let arm = row.arm().unwrap_or_default();
            let ratio_row = case.row(Metric::VariantRatio, arm);
            body.push(vec![
                clean(&row.kernel_text()),
                clean(&row.pattern_text()),
                row.order.as_ref().map(|order| clean(order.as_str())).unwrap_or_default(),
                row.fragment_bytes.map(bytes).unwrap_or_default(),
                or_dash(row.figure.median, rate),
                with_interval(
                    ratio_row.and_then(|row| row.figure.median),
                    ratio_row.and_then(|row| row.figure.ci()),
                    ratio,
                ),
                told(&row.flags),
            ]);
        }
    }
    let head =
        vec!["variant", "pattern", "order", "fragment", "GB/s", "of the default [95 %]", "flags"];
    Grid { head, texts: 3, body }
}

/// One line for each group of a layout that has figures.
pub fn accesses(rows: &[Row]) -> Grid {
    let measured = |case: &&Case<'_>| case.is_access() && case.rate("scattered").is_some();
    let body = Case::all(rows).iter().filter(measured).map(line).collect();
    let (what, parts) = (
        ["kernel", "pattern", "footprint", "fragment"],
        ["indirect.", "density", "order", "flags"],
    );
    let head = [&what[..], &RATES, &parts].concat();
    Grid { head, texts: 2, body }
}

/// What columns of rates and of the relative bandwidth are called.
pub(super) const RATES: [&str; 5] = ["stream", "packed", "sorted", "scattered", "relative [95 %]"];

/// The cells of these columns.
pub(super) fn rates(case: &Case<'_>) -> Vec<String> {
    let relative = case.ratio(Metric::RelativeBandwidth);
    let arms = RATES[..4].iter().map(|arm| or_dash(case.rate(arm), rate));
    let relative = with_interval(
        relative.and_then(|row| row.figure.median),
        relative.and_then(|row| row.figure.ci()),
        ratio,
    );
    arms.chain([relative]).collect()
}

fn line(case: &Case<'_>) -> Vec<String> {
    let row = case.ratio(Metric::RelativeBandwidth).unwrap_or(case.first());
    let part = |metric| or_dash(case.ratio(metric).and_then(|row| row.figure.median), ratio);
    let what = vec![
        clean(&row.kernel_text()),
        clean(&row.pattern_text()),
        row.footprint_bytes.map(bytes).unwrap_or_default(),
        row.fragment_bytes.map(bytes).unwrap_or_default(),
    ];
    let parts = vec![
        part(Metric::IndirectionRatio),
        part(Metric::DensityRatio),
        part(Metric::OrderRatio),
        told(&case.flags()),
    ];
    [what, rates(case), parts].concat()
}

/// The flags in one cell, `host` apart: a host's page says so above its tables.
pub(super) fn told(flags: &BTreeSet<Flag>) -> String {
    let told = flags.iter().filter(|flag| **flag != Flag::Host);
    told.map(|flag| flag.as_str()).collect::<Vec<_>>().join(";")
}

/// Groups without figures: case, how it ended, and why.
pub fn unmeasured(rows: &[Row]) -> Vec<[String; 3]> {
    Case::all(rows)
        .iter()
        .filter_map(|case| {
            let reason = case.reason()?;
            Some([clean(case.first().group_case()), clean(case.status().as_str()), clean(reason)])
        })
        .collect()
}
