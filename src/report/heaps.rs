//! Aged heaps: what the places cost that an allocator gave to whole blocks.

use super::case::Case;
use super::grid::{Grid, RATES, rates, told};
use super::text::{bytes, clean, ratio, with_interval};
use crate::summary::{Metric, Row};

/// A loss that has been claimed for fragmented memory: 10 to 20 % of the bandwidth.
const CLAIMED: f64 = 0.9;

/// One line for each group over an aged heap that has figures.
pub fn heaps(rows: &[Row]) -> Grid {
    let measured = |case: &&Case<'_>| case.is_aged() && case.rate("scattered").is_some();
    let body = Case::all(rows).iter().filter(measured).map(line).collect();
    let what = ["kernel", "pattern", "policy", "sizes", "hole", "reached", "blocks"];
    let head = [&what[..], &RATES, &["flags"]].concat();
    Grid { head, texts: 4, body }
}

fn line(case: &Case<'_>) -> Vec<String> {
    let row = case.ratio(Metric::RelativeBandwidth).unwrap_or(case.first());
    let reached = row.parameter("median_hole_bytes").and_then(|text| text.parse().ok());
    let what = vec![
        clean(&row.kernel_text()),
        clean(&row.pattern_text()),
        clean(row.allocator.as_deref().unwrap_or_default()),
        clean(row.parameter("sizes").unwrap_or_default()),
        clean(row.state.as_deref().unwrap_or_default().trim_start_matches("hole=")),
        reached.map(bytes).unwrap_or_default(),
        row.live_blocks.map(|blocks| blocks.to_string()).unwrap_or_default(),
    ];
    [what, rates(case), vec![told(&case.flags())]].concat()
}

/// What the run says about placement, for each part of a heap that was measured.
pub fn placement(rows: &[Row]) -> Vec<String> {
    let cases = Case::all(rows);
    let parts = [
        ("aged.live", "all live blocks of an aged heap, each read whole through a table"),
        ("aged.holes", "a payload in the holes of an aged heap, in the order of the free list"),
    ];
    parts.iter().filter_map(|(pattern, what)| said(&cases, pattern, what)).collect()
}

fn said(cases: &[Case<'_>], pattern: &str, what: &str) -> Option<String> {
    let ratios = cases.iter().filter(|case| case.is_aged()).filter_map(|case| {
        let row = case.ratio(Metric::RelativeBandwidth)?;
        row.figure.median.filter(|_| row.pattern_text() == pattern).map(|median| (median, row))
    });
    let ratios: Vec<(f64, &Row)> = ratios.collect();
    let by_median = |a: &&(f64, &Row), b: &&(f64, &Row)| a.0.total_cmp(&b.0);
    let (least, most) = (ratios.iter().min_by(by_median)?, ratios.iter().max_by(by_median)?);
    let named = |(median, row): &(f64, &Row)| {
        format!(
            "{} ({}, {}, {})",
            with_interval(Some(*median), row.figure.ci(), ratio),
            clean(row.allocator.as_deref().unwrap_or_default()),
            clean(row.parameter("sizes").unwrap_or_default()),
            clean(row.state.as_deref().unwrap_or_default())
        )
    };
    // An interval that holds the bound tells neither.
    let lost = |row: &Row| row.figure.ci().is_some_and(|ci| ci.high <= CLAIMED);
    let kept = |row: &Row| row.figure.ci().is_some_and(|ci| ci.low > CLAIMED);
    let count = |holds: &dyn Fn(&Row) -> bool| ratios.iter().filter(|(_, row)| holds(row)).count();
    let (lost, kept) = (count(&lost), count(&kept));
    let rest = ratios.len() - lost - kept;
    let unclear = if rest > 0 { format!(", ambiguous in {rest}") } else { String::new() };
    Some(format!(
        "Placement, {pattern}: {what}, keeps of the bandwidth of the same sizes packed at least {} \
         and at most {}, over {} heaps. A loss of 10 % or more: in {lost} of them, less in \
         {kept}{unclear}.",
        named(least),
        named(most),
        ratios.len()
    ))
}
