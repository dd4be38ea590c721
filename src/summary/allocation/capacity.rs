//! What memory is worth after holes, and what requests take.

use super::{Source, with_parameters};
use crate::record::{Quantity, size};
use crate::summary::{Figure, Flag, Metric, Row};

/// The lengths of requests that holes are filled with, by that of the freed blocks.
pub const LENGTHS: [&str; 4] = ["half", "same", "double", "any"];

/// Whose free bytes an external fragmentation stands on.
pub const OWNERS: [&str; 2] = ["driver", "allocator"];

/// One reading, or what follows from readings: no sample of anything.
fn exact(value: f64) -> Figure {
    Figure {
        samples: Some(1),
        median: Some(value).filter(|value| value.is_finite()),
        ..Figure::default()
    }
}

pub(super) fn after_holes(source: &Source<'_>) -> Vec<Row> {
    let found = &source.allocation.quantities;
    let of = |metric: &str| found.iter().find(|one| one.metric == metric);
    let bytes = |metric: &str| of(metric).map(|one| one.bytes);
    let Some([full, freed, free, after, largest]) = all([
        bytes("free_full"),
        bytes("freed"),
        bytes("driver_free"),
        bytes("driver_free_after"),
        bytes("largest_allocatable"),
    ]) else {
        return Vec::new();
    };
    let block_bytes = of("freed").and_then(|one| one.request_bytes);
    let blocks = of("free_full").and_then(|one| one.blocks);
    let told = |number: Option<u64>| number.map(|number| number.to_string());
    let rise = free.saturating_sub(full);
    let row = |metric, arm: Option<&str>, request_bytes, value: f64| {
        let more = [
            ("block_bytes", told(block_bytes)),
            ("blocks", told(blocks)),
            ("free_full_bytes", told(Some(full))),
        ];
        let mut row = with_parameters(source.row(metric, arm), more);
        (row.request_bytes, row.figure) = (request_bytes, exact(value));
        // What the holes were filled with is given back, so as much is free as before.
        row.flags.extend((free != after).then_some(Flag::Disturbed));
        row
    };
    let mut rows = vec![
        row(Metric::Freed, None, None, freed as f64),
        row(Metric::DriverFree, None, None, rise as f64),
        row(Metric::Stranded, None, None, freed as f64 - rise as f64),
    ];
    let refills = found.iter().filter(|one| one.metric == "refillable");
    rows.extend(LENGTHS.iter().zip(refills).map(|(&arm, one)| {
        row(Metric::Refillable, Some(arm), one.request_bytes, one.bytes as f64)
    }));
    rows.push(row(Metric::LargestAllocatable, None, None, largest as f64));
    // Blocks take whole pages, so that more may be free than was freed.
    let owners = OWNERS.into_iter().zip([free, free.max(full + freed)]);
    rows.extend(owners.map(|(owner, free)| {
        let share = 1.0 - largest as f64 / free as f64;
        row(Metric::ExternalFragmentation, Some(owner), None, share)
    }));
    rows
}

pub(super) fn granules(source: &Source<'_>) -> Vec<Row> {
    let found = &source.allocation.quantities;
    let taken = found.iter().filter(|one| one.metric == "taken");
    let rows = taken.filter_map(|taken| {
        let request_bytes = taken.request_bytes?;
        let blocks = taken.blocks.filter(|blocks| *blocks > 0)?;
        let step = |one: &&Quantity| {
            one.metric == "address_step" && one.request_bytes == taken.request_bytes
        };
        let step = found.iter().find(step)?.bytes;
        let granule = taken.bytes as f64 / blocks as f64;
        let arm = size::exact(request_bytes);
        let row = |metric, value| {
            let more = [("blocks", Some(blocks.to_string()))];
            let mut row = with_parameters(source.row(metric, Some(&arm)), more);
            (row.request_bytes, row.figure) = (Some(request_bytes), exact(value));
            row
        };
        Some([
            row(Metric::Granule, granule),
            row(Metric::InternalFragmentation, 1.0 - request_bytes as f64 / granule),
            row(Metric::AddressStep, step as f64),
        ])
    });
    rows.flatten().collect()
}

fn all<const N: usize>(values: [Option<u64>; N]) -> Option<[u64; N]> {
    let known: Vec<u64> = values.into_iter().flatten().collect();
    known.try_into().ok()
}
