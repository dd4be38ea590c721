//! The worst case of a curve and what it is made of, in words.

use super::case::Case;
use super::text::{bytes, or_dash, ratio, with_interval};
use crate::summary::{Metric, Row};

/// The fragment size that keeps least, with its ratio and the ratio's causes.
pub fn worst(rows: &[Row], curve: &[&Row]) -> String {
    let measured = curve.iter().filter_map(|row| Some((row.figure.median?, *row)));
    let Some((_, worst)) = measured.min_by(|(a, _), (b, _)| a.total_cmp(b)) else {
        return String::new();
    };
    let cases = Case::all(rows);
    let own = |case: &&Case<'_>| {
        case.first().run == worst.run && case.first().group_case() == worst.group_case()
    };
    let case = cases.iter().find(own);
    let part = |metric| or_dash(case.and_then(|case| case.ratio(metric)?.figure.median), ratio);
    format!(
        " Worst at {}: {} of packed; of it density {}, order {}. The index apart: packed is {} of \
         the plain stream, so scattered is {} of it.",
        worst.fragment_bytes.map(bytes).unwrap_or_default(),
        with_interval(worst.figure.median, worst.figure.ci(), ratio),
        part(Metric::DensityRatio),
        part(Metric::OrderRatio),
        part(Metric::IndirectionRatio),
        part(Metric::TotalRatio),
    )
}
