//! Allocators: what a request costs them, or that it is refused.

use super::case::Case;
use super::grid::{Grid, told};
use super::text::{bytes, clean};
use crate::summary::{Metric, Row, TRIES};

const PARTS: [Metric; 3] =
    [Metric::FailureProbability, Metric::ShortProbability, Metric::FragmentedProbability];

/// One line for each allocator that every set of freed blocks was tried on.
pub fn classic(rows: &[Row]) -> Grid {
    let body = Case::all(rows).iter().filter_map(line).collect();
    let head = vec![
        "allocator",
        "memory",
        "window",
        "sets",
        "refused",
        "too little free",
        "enough free",
        "after release",
        "flags",
    ];
    Grid { head, texts: 2, body }
}

fn line(case: &Case<'_>) -> Option<Vec<String>> {
    let [first, again] = TRIES.map(|arm| PARTS.map(|metric| count(case, metric, arm)));
    let [refused, short, fragmented] = first;
    let row = case.first();
    let window = row.parameter("window_bytes").and_then(|text| text.parse().ok());
    Some(vec![
        clean(row.allocator.as_deref().unwrap_or_default()),
        clean(row.parameter("memory").unwrap_or_default()),
        window.map(bytes).unwrap_or_default(),
        row.figure.samples?.to_string(),
        refused?.to_string(),
        short?.to_string(),
        fragmented?.to_string(),
        again[0]?.to_string(),
        told(&case.flags()),
    ])
}

/// So many of the sets.
fn count(case: &Case<'_>, metric: Metric, arm: &str) -> Option<u64> {
    let figure = &case.row(metric, arm)?.figure;
    Some((figure.median? * figure.samples? as f64).round() as u64)
}

/// What the run says about a request for 512 MiB among freed blocks.
pub fn refusals(rows: &[Row]) -> Option<String> {
    let cases = Case::all(rows);
    let told: Vec<String> = cases.iter().filter_map(said).collect();
    let row = cases.iter().find(|case| said(case).is_some())?.first();
    let (sets, request) = (row.figure.samples?, bytes(row.request_bytes?));
    let blocks = row.parameter("blocks")?;
    Some(format!(
        "Refused though enough is free: {blocks} blocks fill a window, every set of them is freed, \
         and {request} are asked for, {sets} times. Refused with less free than that, with as much \
         or more, and once the allocator has returned what it can: {}.",
        told.join("; ")
    ))
}

fn said(case: &Case<'_>) -> Option<String> {
    let row = case.first();
    let of = |metric| count(case, metric, TRIES[0]);
    let (short, fragmented) = (of(Metric::ShortProbability)?, of(Metric::FragmentedProbability)?);
    let again = count(case, Metric::FailureProbability, TRIES[1])?;
    let memory = match row.parameter("memory") {
        Some("device") => "on the device",
        _ => "simulated",
    };
    let name = clean(row.allocator.as_deref().unwrap_or_default());
    Some(format!("{name} ({memory}) {short}, {fragmented} and {again}"))
}
