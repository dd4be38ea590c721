//! Allocators: what a request costs them, what it takes, or that it is refused.

use std::cmp::Ordering;

use super::case::Case;
use super::grid::{Grid, told};
use super::text::{bytes, clean, listed, or_dash, ratio, with_interval};
use crate::record::Experiment;
use crate::summary::{LENGTHS, Metric, OWNERS, Row, TRIES};

/// The tables of allocators, each with its title.
pub fn grids(rows: &[Row]) -> [(&'static str, Grid); 4] {
    let cases = Case::all(rows);
    [
        ("How long calls of allocators take", latencies(rows)),
        ("What is left after holes", capacities(&cases)),
        ("What requests take", granules(rows)),
        ("A request among freed blocks", classics(&cases)),
    ]
}

/// What the run says about allocators, a paragraph an entry.
pub fn sentences(rows: &[Row]) -> Vec<String> {
    let cases = Case::all(rows);
    let mut lines = slowed(rows);
    lines.extend(programs(rows));
    lines.extend(stranded(&cases));
    lines.extend(taken(rows));
    lines.extend(refusals(&cases));
    lines
}

fn allocator(row: &Row) -> String {
    clean(row.allocator.as_deref().unwrap_or_default())
}

fn state(row: &Row) -> String {
    clean(row.state.as_deref().unwrap_or_default())
}

/// A duration in microseconds to three digits or whole ones: `0.118`, `37.2`, `1358`.
pub fn us(ns: f64) -> String {
    let us = ns / 1e3;
    let decimals = match us {
        x if x >= 100.0 => 0,
        x if x >= 10.0 => 1,
        x if x >= 1.0 => 2,
        _ => 3,
    };
    format!("{us:.decimals$}")
}

/// One line for each allocator, state, length and call.
fn latencies(rows: &[Row]) -> Grid {
    let line = |row: &Row| {
        let (slower, call) = match row.metric {
            Metric::AllocLatency => (Some(Metric::AllocLatencyRatio), "allocate".to_owned()),
            Metric::FreeLatency => (Some(Metric::FreeLatencyRatio), "free".to_owned()),
            // Ranges of scattered memory have a table of their own.
            Metric::MapTime if row.experiment != Experiment::Scatter => (None, clean(row.arm()?)),
            _ => return None,
        };
        let alike = |other: &&Row| {
            Some(other.metric) == slower && other.case == row.case && other.run == row.run
        };
        let slower = rows.iter().find(alike);
        let figure = &row.figure;
        let heaps = row.parameter("heaps_ns").unwrap_or_default().split(',');
        let heaps: Vec<String> = heaps.filter_map(|ns| Some(us(ns.parse().ok()?))).collect();
        Some(vec![
            allocator(row),
            state(row),
            call,
            row.request_bytes.map(bytes).unwrap_or_default(),
            figure.samples?.to_string(),
            with_interval(figure.median, figure.ci(), us),
            or_dash(figure.p90, us),
            or_dash(figure.p99, us),
            or_dash(figure.p999, us),
            or_dash(figure.max, us),
            with_interval(
                slower.and_then(|row| row.figure.median),
                slower.and_then(|row| row.figure.ci()),
                ratio,
            ),
            heaps.join(", "),
            told(&row.flags),
        ])
    };
    let head = vec![
        "allocator",
        "state",
        "call",
        "request",
        "calls",
        "us [95 %]",
        "p90",
        "p99",
        "p99.9",
        "max",
        "of base [95 %]",
        "heaps",
        "flags",
    ];
    Grid { head, texts: 3, body: rows.iter().filter_map(line).collect() }
}

/// One line for each length of blocks of which half were freed.
fn capacities(cases: &[Case<'_>]) -> Grid {
    let line = |case: &Case<'_>| {
        let one = |metric| case.ratio(metric)?.figure.median;
        let size = |metric| or_dash(one(metric), |value| bytes(value as u64));
        let refill = |arm: &str| {
            let value = case.row(Metric::Refillable, arm).and_then(|row| row.figure.median);
            or_dash(value, |value| bytes(value as u64))
        };
        one(Metric::LargestAllocatable)?;
        let row = case.first();
        let external = |owner: &str| {
            let row = case.row(Metric::ExternalFragmentation, owner);
            or_dash(row.and_then(|row| row.figure.median), ratio)
        };
        let what = vec![allocator(row), state(row), window(row)];
        let found = [Metric::Freed, Metric::DriverFree, Metric::Stranded].map(size);
        let refills = LENGTHS.map(refill);
        let rest = [size(Metric::LargestAllocatable), external(OWNERS[0]), external(OWNERS[1])];
        let flags = [told(&case.flags())];
        Some([what, found.into(), refills.into(), rest.into(), flags.into()].concat())
    };
    let head = vec![
        "allocator",
        "freed",
        "window",
        "freed",
        "driver's",
        "stranded",
        "half",
        "same",
        "double",
        "any",
        "largest",
        "external",
        "of all",
        "flags",
    ];
    Grid { head, texts: 3, body: cases.iter().filter_map(line).collect() }
}

/// The window of a case, which its id tells.
fn window(row: &Row) -> String {
    let window = row.group_case().rsplit_once("/window=").map(|(_, window)| window);
    clean(window.unwrap_or_default())
}

/// A length, to the byte: `100 MiB + 1 B`.
fn length(request_bytes: u64) -> String {
    let rest = request_bytes % (1 << 20);
    match request_bytes >> 20 {
        0 => bytes(request_bytes),
        _ if rest == 0 => bytes(request_bytes),
        whole => format!("{} + {}", bytes(whole << 20), bytes(rest)),
    }
}

/// One line for each length of requests.
fn granules(rows: &[Row]) -> Grid {
    let line = |row: &Row| {
        let other = |metric| {
            let alike = |other: &&Row| other.metric == metric && other.case == row.case;
            rows.iter().find(alike)?.figure.median
        };
        Some(vec![
            allocator(row),
            row.request_bytes.map(length)?,
            row.parameter("blocks").unwrap_or_default().to_owned(),
            bytes(row.figure.median? as u64),
            or_dash(other(Metric::InternalFragmentation), ratio),
            or_dash(other(Metric::AddressStep), |value| bytes(value as u64)),
            told(&row.flags),
        ])
    };
    let is_granule = |row: &&Row| row.metric == Metric::Granule;
    let body = rows.iter().filter(is_granule).filter_map(line).collect();
    let head = vec!["allocator", "request", "blocks", "takes", "internal", "address step", "flags"];
    Grid { head, texts: 1, body }
}

/// One line for each allocator that every set of freed blocks was tried on.
fn classics(cases: &[Case<'_>]) -> Grid {
    let line = |case: &Case<'_>| {
        let row = case.first();
        let [refused, short, fragmented] =
            [Metric::FailureProbability, Metric::ShortProbability, Metric::FragmentedProbability]
                .map(|metric| count(case, metric, TRIES[0]));
        let window = row.parameter("window_bytes").and_then(|text| text.parse().ok());
        Some(vec![
            allocator(row),
            clean(row.parameter("memory").unwrap_or_default()),
            window.map(bytes).unwrap_or_default(),
            row.figure.samples?.to_string(),
            refused?.to_string(),
            short?.to_string(),
            fragmented?.to_string(),
            count(case, Metric::FailureProbability, TRIES[1])?.to_string(),
            told(&case.flags()),
        ])
    };
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
    Grid { head, texts: 2, body: cases.iter().filter_map(line).collect() }
}

/// So many of the sets.
fn count(case: &Case<'_>, metric: Metric, arm: &str) -> Option<u64> {
    let figure = &case.row(metric, arm)?.figure;
    Some((figure.median? * figure.samples? as f64).round() as u64)
}

/// A state that slows allocations down to this many times is told.
const SLOWER: f64 = 1.25;

/// The most states that are told in words: the table has all.
const MOST_SLOWER: usize = 8;

/// How long allocations take in the base state, and by how much states slow them down.
fn slowed(rows: &[Row]) -> Vec<String> {
    let of = |metric| move |row: &&Row| row.metric == metric && row.figure.median.is_some();
    let mut told: Vec<(String, Vec<String>)> = Vec::new();
    for row in rows.iter().filter(of(Metric::AllocLatency)) {
        if row.state.as_deref() != Some("base") {
            continue;
        }
        let tail = row.figure.p99.map(|p99| format!(", p99 {}", us(p99))).unwrap_or_default();
        let length = row.request_bytes.map(bytes).unwrap_or_default();
        let figure = with_interval(row.figure.median, row.figure.ci(), us);
        let text = format!("{length} {figure}{tail}");
        let name = allocator(row);
        match told.iter_mut().find(|(known, _)| *known == name) {
            Some((_, texts)) => texts.push(text),
            None => told.push((name, vec![text])),
        }
    }
    let mut lines: Vec<String> = told
        .into_iter()
        .map(|(name, texts)| {
            format!("An allocation by {name}, nothing else alive, in us: {}.", listed(&texts))
        })
        .collect();
    let all: Vec<&Row> = rows.iter().filter(of(Metric::AllocLatencyRatio)).collect();
    let mut slower: Vec<&&Row> =
        all.iter().filter(|row| row.figure.ci_low.is_some_and(|low| low >= SLOWER)).collect();
    slower.sort_by(|a, b| b.figure.ci_low.partial_cmp(&a.figure.ci_low).unwrap_or(Ordering::Equal));
    let said = |row: &&&Row| {
        format!(
            "{} in {} by {} {}",
            row.request_bytes.map(bytes).unwrap_or_default(),
            state(row),
            allocator(row),
            with_interval(row.figure.median, row.figure.ci(), ratio)
        )
    };
    let said: Vec<String> = slower.iter().take(MOST_SLOWER).map(said).collect();
    if !all.is_empty() {
        let count = format!("{} of {}", slower.len(), all.len());
        let which = if said.is_empty() { String::new() } else { format!(": {}", said.join("; ")) };
        lines.push(format!(
            "In other states, one thing changed at a time, an allocation takes at least {SLOWER} times \
             as long as in the base in {count} cases{which}."
        ));
    }
    lines
}

/// What a call costs in the middle of a program: allocations and frees of all its lengths.
fn programs(rows: &[Row]) -> Option<String> {
    let said = |row: &Row| {
        let number = |key| row.parameter(key)?.parse::<f64>().ok();
        let (calls, ns) = (number("churn_calls")?, number("churn_ns")?);
        let sizes = state(row);
        let sizes = sizes.strip_prefix("churn.").unwrap_or(&sizes);
        Some(format!("{} {} of {sizes}", allocator(row), us(ns / calls)))
    };
    let rows = rows.iter().filter(|row| row.metric == Metric::AllocLatency);
    let all: Vec<String> = rows.filter_map(said).collect();
    (!all.is_empty()).then(|| {
        format!(
            "A call in the middle of a program, over all its allocations and frees, in us on average: \
             {}.",
            listed(&all)
        )
    })
}

/// What freed blocks are worth, by their length: a sentence for each way of freeing them.
fn stranded(cases: &[Case<'_>]) -> Vec<String> {
    let mut told: Vec<(String, Vec<String>)> = Vec::new();
    for case in cases {
        let row = case.first();
        let one = |metric| case.ratio(metric)?.figure.median;
        let all = [Metric::Freed, Metric::Stranded, Metric::LargestAllocatable].map(one);
        let double = case.row(Metric::Refillable, LENGTHS[2]).and_then(|row| row.figure.median);
        let ([Some(freed), Some(stranded), Some(largest)], Some(double)) = (all, double) else {
            continue;
        };
        let state = state(row);
        let (way, block) = state.split_once('.').unwrap_or((&state, ""));
        let share = |bytes: f64| format!("{:.0}", 100.0 * bytes.max(0.0) / freed);
        let text = format!("{block} {}, {}, {}", share(stranded), share(double), share(largest));
        let key = format!("{} (freed: {way}, window {})", allocator(row), window(row));
        match told.iter_mut().find(|(known, _)| *known == key) {
            Some((_, texts)) => texts.push(text),
            None => told.push((key, vec![text])),
        }
    }
    let line = |(key, texts): (String, Vec<String>)| {
        format!(
            "Holes of {key}: half of the blocks are freed. In percent of what was freed, by the blocks' \
             length: what the driver does not count as free; what requests of twice the length get; \
             the longest block that can be had: {}.",
            texts.join("; ")
        )
    };
    told.into_iter().map(line).collect()
}

/// What requests take of each allocator, where that is more than they ask for.
fn taken(rows: &[Row]) -> Vec<String> {
    let mut told: Vec<(String, Vec<String>)> = Vec::new();
    for row in rows.iter().filter(|row| row.metric == Metric::Granule) {
        let (Some(request), Some(taken)) = (row.request_bytes, row.figure.median) else { continue };
        if taken <= request as f64 {
            continue;
        }
        let text = format!("{} takes {}", length(request), length(taken as u64));
        let name = allocator(row);
        match told.iter_mut().find(|(known, _)| *known == name) {
            Some((_, texts)) => texts.push(text),
            None => told.push((name, vec![text])),
        }
    }
    let line = |(name, texts): (String, Vec<String>)| {
        format!("More than it asks for is what a request takes of {name}: {}.", texts.join(", "))
    };
    told.into_iter().map(line).collect()
}

/// What the run says about a request for 512 MiB among freed blocks.
fn refusals(cases: &[Case<'_>]) -> Option<String> {
    let said = |case: &Case<'_>| {
        let of = |metric| count(case, metric, TRIES[0]);
        let (short, apart) = (of(Metric::ShortProbability)?, of(Metric::FragmentedProbability)?);
        let again = count(case, Metric::FailureProbability, TRIES[1])?;
        let memory = match case.first().parameter("memory") {
            Some("device") => "on the device",
            _ => "simulated",
        };
        Some(format!("{} ({memory}) {short}, {apart} and {again}", allocator(case.first())))
    };
    let is_classic = |case: &&Case<'_>| case.first().experiment == Experiment::Classic;
    let all: Vec<String> = cases.iter().filter(is_classic).filter_map(said).collect();
    let row = cases.iter().filter(is_classic).find(|case| said(case).is_some())?.first();
    let (sets, request) = (row.figure.samples?, bytes(row.request_bytes?));
    let blocks = row.parameter("blocks")?;
    Some(format!(
        "Refused though enough is free: {blocks} blocks fill a window, every set of them is freed, \
         and {request} are asked for, {sets} times. Refused with less free than that, with as much \
         or more, and once the allocator has returned what it can: {}.",
        all.join("; ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::Interval;

    #[test]
    fn durations_have_three_digits() {
        let texts = [118.0, 1_234.0, 37_250.0, 1_358_400.0].map(us);
        assert_eq!(texts, ["0.118", "1.23", "37.2", "1358"]);
    }

    #[test]
    fn lengths_are_told_to_the_byte() {
        let texts = [1, 513, 1 << 20, (1 << 20) + 1, 3 << 19, (100 << 20) + 1].map(length);
        assert_eq!(
            texts,
            ["1 B", "513 B", "1 MiB", "1 MiB + 1 B", "1 MiB + 512 KiB", "100 MiB + 1 B"]
        );
    }

    #[test]
    fn an_interval_of_durations_is_written_like_one() {
        let ci = Some(Interval { low: 1_000.0, high: 2_000.0 });
        assert_eq!(with_interval(Some(1_500.0), ci, us), "1.50 [1.00, 2.00]");
    }
}
