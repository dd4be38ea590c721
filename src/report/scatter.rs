//! Physical memory in disorder: what it costs, how far a TLB reaches, and what helps against its misses.

use super::case::Case;
use super::grid::{Grid, told};
use super::text::{bytes, clean, listed, or_dash, rate, ratio, with_interval};
use crate::record::{Experiment, Order};
use crate::summary::{Flag, Metric, Row};

const GIB: f64 = (1u64 << 30) as f64;

/// The tables of scattered memory, each with its title.
pub fn grids(rows: &[Row]) -> [(&'static str, Grid); 5] {
    [
        ("Reach of the TLB", reaches(rows)),
        ("Against misses of the TLB", mitigations(rows)),
        ("Compaction", compactions(rows)),
        ("Physical memory in disorder", backings(rows)),
        ("Mapping", mappings(rows)),
    ]
}

/// What the run says about it, a paragraph an entry.
pub fn sentences(rows: &[Row]) -> Vec<String> {
    let mut lines: Vec<String> = reach_told(rows).into_iter().collect();
    lines.extend(disorder_told(rows));
    lines.extend(mitigations_told(rows));
    lines.extend(compaction_told(rows));
    lines
}

/// Whether the run measured what scattered physical pages cost.
pub fn is_measured(rows: &[Row]) -> bool {
    rows.iter().any(|row| row.metric == Metric::BackingRatio && row.figure.median.is_some())
}

fn gib(value: f64) -> String {
    format!("{:.1}", value / GIB)
}

fn backing(row: &Row) -> String {
    clean(row.backing.as_deref().unwrap_or_default())
}

/// What a row tells; a dash where there is none.
fn figure(row: Option<&Row>, write: fn(f64) -> String) -> String {
    with_interval(row.and_then(|row| row.figure.median), row.and_then(|row| row.figure.ci()), write)
}

/// The row of another metric of the same curve.
fn beside<'a>(rows: &'a [Row], row: &Row, metric: Metric) -> Option<&'a Row> {
    rows.iter()
        .find(|other| other.metric == metric && other.case == row.case && other.run == row.run)
}

/// The bandwidth within reach that a curve tells.
fn within(row: &Row) -> Option<f64> {
    row.parameter("within")?.parse().ok()
}

fn curves(rows: &[Row]) -> impl Iterator<Item = &Row> {
    rows.iter().filter(|row| row.metric == Metric::TlbReach && row.figure.median.is_some())
}

/// One line for each curve that has a reach.
fn reaches(rows: &[Row]) -> Grid {
    let line = |row: &Row| {
        let knee = beside(rows, row, Metric::TlbKnee);
        let missing = beside(rows, row, Metric::MissBandwidth);
        let points = |key: &str| row.parameter(key).unwrap_or_default().to_owned();
        vec![
            backing(row),
            row.fragment_bytes.map(bytes).unwrap_or_default(),
            with_interval(row.figure.median, row.figure.ci(), gib),
            figure(knee, gib),
            or_dash(within(row), rate),
            or_dash(missing.and_then(|row| row.figure.median), rate),
            points("footprints_within"),
            points("footprints_beyond"),
            told(&row.flags),
        ]
    };
    let head = vec![
        "memory",
        "fragment",
        "reach GiB [95 %]",
        "knee GiB [95 %]",
        "GB/s within",
        "if all missed",
        "within",
        "beyond",
        "flags",
    ];
    Grid { head, texts: 1, body: curves(rows).map(line).collect() }
}

/// The groups of a run that have a figure of this metric.
fn groups(rows: &[Row], metric: Metric) -> Vec<Case<'_>> {
    let has = |case: &Case<'_>| case.of_metric(metric).any(|row| row.figure.median.is_some());
    let all = Case::all(rows).into_iter();
    all.filter(|case| case.first().experiment == Experiment::Scatter && has(case)).collect()
}

/// One line for each arm of each group of mitigations.
fn mitigations(rows: &[Row]) -> Grid {
    let mut body = Vec::new();
    for case in groups(rows, Metric::MitigationRatio) {
        for row in case.of_metric(Metric::EffectiveBandwidth) {
            let arm = row.arm().unwrap_or_default();
            let against = |metric| figure(case.row(metric, arm), ratio);
            body.push(vec![
                clean(arm),
                case.first().footprint_bytes.map(bytes).unwrap_or_default(),
                row.fragment_bytes.map(bytes).unwrap_or_default(),
                with_interval(row.figure.median, row.figure.ci(), rate),
                against(Metric::MitigationRatio),
                against(Metric::ReachShare),
                told(&row.flags),
            ]);
        }
    }
    let head = vec![
        "arm",
        "footprint",
        "fragment",
        "GB/s [95 %]",
        "of scattered [95 %]",
        "of within reach [95 %]",
        "flags",
    ];
    Grid { head, texts: 1, body }
}

/// One line for each group that copies fragments together.
fn compactions(rows: &[Row]) -> Grid {
    let line = |case: &Case<'_>| {
        let row = case.ratio(Metric::BreakEvenPasses)?;
        let of = |arm: &str| or_dash(case.rate(arm), rate);
        Some(vec![
            clean(&row.pattern_text()),
            row.footprint_bytes.map(bytes).unwrap_or_default(),
            row.fragment_bytes.map(bytes).unwrap_or_default(),
            of("scattered"),
            of("packed"),
            of("compaction"),
            figure(Some(row), |passes| format!("{passes:.2}")),
            told(&row.flags),
        ])
    };
    let head = vec![
        "fragments",
        "footprint",
        "fragment",
        "scattered",
        "packed",
        "copy",
        "passes until it has paid [95 %]",
        "flags",
    ];
    Grid { head, texts: 1, body: Case::all(rows).iter().filter_map(line).collect() }
}

/// One line for each order of chunks of each group.
fn backings(rows: &[Row]) -> Grid {
    let mut body = Vec::new();
    for case in groups(rows, Metric::BackingRatio) {
        for row in case.of_metric(Metric::EffectiveBandwidth) {
            let against = case.row(Metric::BackingRatio, row.arm().unwrap_or_default());
            let order = match &row.order {
                Some(Order::Scattered) | None => clean(&row.pattern_text()),
                Some(order) => format!("{}, {}", clean(&row.pattern_text()), clean(order.as_str())),
            };
            body.push(vec![
                backing(row),
                order,
                case.first().footprint_bytes.map(bytes).unwrap_or_default(),
                row.fragment_bytes.map(bytes).unwrap_or_default(),
                with_interval(row.figure.median, row.figure.ci(), rate),
                figure(against, ratio),
                told(&row.flags),
            ]);
        }
    }
    let head = vec![
        "chunks",
        "fragments",
        "footprint",
        "fragment",
        "GB/s [95 %]",
        "of in order [95 %]",
        "flags",
    ];
    Grid { head, texts: 2, body }
}

/// One line for each range that was mapped.
fn mappings(rows: &[Row]) -> Grid {
    let is_range =
        |row: &&Row| row.metric == Metric::MapTime && row.experiment == Experiment::Scatter;
    let line = |row: &Row| {
        let number = |key: &str| row.parameter(key).and_then(|text| text.parse::<f64>().ok());
        let chunks = number("chunks");
        // Chunks of another range that are used again were not made for this one.
        let took = |key: &str| number(key).filter(|ns| *ns > 0.0);
        let each = |key: &str| {
            or_dash(took(key).zip(chunks).map(|(ns, chunks)| ns / chunks / 1e3), |us| {
                format!("{us:.2}")
            })
        };
        vec![
            backing(row),
            number("chunk_bytes").map(|size| bytes(size as u64)).unwrap_or_default(),
            or_dash(chunks, |chunks| format!("{chunks:.0}")),
            or_dash(row.figure.median, |ns| format!("{:.3}", ns / 1e9)),
            each("create_ns"),
            each("map_ns"),
            each("open_ns"),
            told(&row.flags),
        ]
    };
    let head = vec![
        "chunks",
        "of",
        "how many",
        "s in all",
        "us to create one",
        "to map it",
        "to open it",
        "flags",
    ];
    Grid { head, texts: 1, body: rows.iter().filter(is_range).map(line).collect() }
}

fn reach_told(rows: &[Row]) -> Option<String> {
    let of = |row: &&Row| row.metric == Metric::TlbReach;
    let told: Vec<String> =
        rows.iter().filter(of).filter_map(|row| curve_told(rows, row)).collect();
    (!told.is_empty()).then(|| {
        format!(
            "Reach of the TLB, from random reads in footprints around it, by what lies under the \
             addresses: {}.",
            told.join("; ")
        )
    })
}

/// What one curve tells: a reach, that it is doubtful, or why there is none.
fn curve_told(rows: &[Row], row: &Row) -> Option<String> {
    let what = format!("{} ({})", backing(row), row.fragment_bytes.map(bytes)?);
    if row.figure.median.is_none() {
        return Some(format!("{what} none, {}", clean(row.reason.as_deref()?)));
    }
    let knee = beside(rows, row, Metric::TlbKnee)?.figure.median?;
    let missing = beside(rows, row, Metric::MissBandwidth)?.figure.median?;
    let doubt = match row.flags.contains(&Flag::PoorFit) {
        true => ", ambiguous: the curve is not that of the model",
        false => "",
    };
    Some(format!(
        "{what} {} GiB, slower from {} GiB on, {} GB/s within and {} if every read missed{doubt}",
        with_interval(row.figure.median, row.figure.ci(), gib),
        gib(knee),
        rate(within(row)?),
        rate(missing)
    ))
}

/// Of the longest footprint that the orders of chunks were compared in, and of streams.
fn disorder_told(rows: &[Row]) -> Vec<String> {
    let cases = groups(rows, Metric::BackingRatio);
    let said = |case: &Case<'_>| {
        let of = |row: &&Row| row.order != Some(Order::Sorted) && row.figure.median.is_some();
        let ratios: Vec<&Row> = case.of_metric(Metric::BackingRatio).filter(of).collect();
        let by_median = |a: &&&Row, b: &&&Row| {
            a.figure.median.unwrap_or(0.0).total_cmp(&b.figure.median.unwrap_or(0.0))
        };
        let (least, most) = (ratios.iter().min_by(by_median)?, ratios.iter().max_by(by_median)?);
        let named = |row: &Row| {
            let figure = with_interval(row.figure.median, row.figure.ci(), ratio);
            format!("{figure} ({})", backing(row))
        };
        let fragment = case.first().fragment_bytes.map(bytes);
        let what = match &fragment {
            Some(fragment) => format!("{} reads of {fragment}", clean(&ratios[0].pattern_text())),
            None => "streams".to_owned(),
        };
        Some(format!(
            "Physical memory in disorder: {what} in {} keep of the bandwidth with the same chunks in \
             order at least {} and at most {}, over {} orders.",
            case.first().footprint_bytes.map(bytes)?,
            named(least),
            named(most),
            ratios.len()
        ))
    };
    let longest = |has_fragment: bool| {
        let own = cases.iter().filter(|case| case.first().fragment_bytes.is_some() == has_fragment);
        // The first of the longest: the fragment that the reach is measured with.
        own.rev().max_by_key(|case| case.first().footprint_bytes).and_then(said)
    };
    [longest(true), longest(false)].into_iter().flatten().collect()
}

fn compaction_told(rows: &[Row]) -> Option<String> {
    let of = |row: &&Row| row.metric == Metric::BreakEvenPasses;
    let told: Vec<String> = rows
        .iter()
        .filter(of)
        .filter_map(|row| {
            let what = format!(
                "{} in {}",
                row.fragment_bytes.map(bytes)?,
                row.footprint_bytes.map(bytes)?
            );
            let passes = row.figure.median.map_or_else(
                || "never".to_owned(),
                |_| {
                    with_interval(row.figure.median, row.figure.ci(), |passes| {
                        format!("{passes:.2}")
                    })
                },
            );
            Some(format!("{what} {passes}"))
        })
        .collect();
    (!told.is_empty()).then(|| {
        format!(
            "A copy that puts scattered fragments together has paid after so many passes over them: {}.",
            told.join("; ")
        )
    })
}

fn mitigations_told(rows: &[Row]) -> Vec<String> {
    let mut lines: Vec<String> = groups(rows, Metric::MitigationRatio)
        .iter()
        .filter_map(|case| {
            let first = case.first();
            let arms: Vec<String> = case
                .of_metric(Metric::EffectiveBandwidth)
                .filter_map(|row| {
                    let arm = row.arm()?;
                    let share = case.row(Metric::ReachShare, arm).and_then(|row| row.figure.median);
                    let share = share.map(|share| format!(" ({share:.3})")).unwrap_or_default();
                    Some(format!("{} {}{share}", clean(arm), rate(row.figure.median?)))
                })
                .collect();
            Some(format!(
                "Against misses of the TLB, random reads of {} in {}, in GB/s (and of what they are \
                 within reach): {}.",
                bytes(first.fragment_bytes?),
                bytes(first.footprint_bytes?),
                listed(&arms)
            ))
        })
        .collect();
    let found = rows.iter().find(|row| row.metric == Metric::TlbGroups);
    lines.extend(found.and_then(|row| {
        let part = |key: &str| clean(row.parameter(key).unwrap_or("-"));
        Some(format!(
            "Groups of multiprocessors that share a TLB: {:.0}. Two of one group slow each other by {} \
             cycles a read or more, two of different ones by {} at most; chance makes up to {}. Groups \
             with members in several GPCs, as clusters tell them: {}.",
            row.figure.median?,
            part("weakest_within_cycles"),
            part("strongest_between_cycles"),
            part("threshold_cycles"),
            part("across_gpcs")
        ))
    }));
    lines
}
