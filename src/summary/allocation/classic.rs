//! How many sets of freed blocks a request fails with.

use super::{Source, with_parameters};
use crate::record::Subsets;
use crate::summary::{Figure, Metric, Row};

/// The tries of a request: at first, and again after the allocator had returned what it could.
pub const TRIES: [&str; 2] = ["first_try", "after_release"];

pub(super) fn rows(source: &Source<'_>) -> Vec<Row> {
    let Some(subsets) = &source.allocation.subsets else { return Vec::new() };
    let tries = TRIES.into_iter().zip([&subsets.failed, &subsets.failed_again]);
    let of_try = |(name, failed): (&'static str, &Vec<u32>)| {
        let short = |set: &&u32| subsets.freed_bytes(**set) < subsets.request_bytes;
        let short = failed.iter().filter(short).count();
        let found = [
            (Metric::FailureProbability, failed.len()),
            (Metric::ShortProbability, short),
            (Metric::FragmentedProbability, failed.len() - short),
        ];
        let told = |number: u64| Some(number.to_string());
        let row = |(metric, count)| Row {
            figure: share(subsets, count),
            ..with_parameters(
                source.row(metric, Some(name)),
                [
                    ("window_bytes", told(subsets.window_bytes)),
                    ("rounded_bytes", told(subsets.rounded_bytes)),
                    ("blocks", told(subsets.blocks_bytes.len() as u64)),
                ],
            )
        };
        found.map(row)
    };
    tries.flat_map(of_try).collect()
}

/// So many of all sets. Every set was tried, so this is no estimate and has no interval.
fn share(subsets: &Subsets, count: usize) -> Figure {
    let tried = u64::from(subsets.tried);
    Figure {
        samples: Some(tried),
        median: Some(count as f64 / tried as f64).filter(|share| share.is_finite()),
        interval: Some("exact"),
        ..Figure::default()
    }
}
