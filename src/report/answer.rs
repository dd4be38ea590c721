//! The answer of a run in words.

use std::collections::{BTreeMap, BTreeSet};

use super::allocators;
use super::case::Case;
use super::causes::worst;
use super::grid::spread;
use super::heaps::placement;
use super::scatter;
use super::text::{bytes, clean, listed, percent, rate, ratio, with_interval, wrapped};
use super::threshold::shares;
use crate::record::{Experiment, Run, Status};
use crate::summary::{BracketKey, Flag, Metric, Row, Summary, Times, brackets};

/// The widest line.
const WIDTH: usize = 110;
/// The shares of the packed bandwidth that are asked for.
const SHARES: [f64; 3] = [0.95, 0.8, 0.5];

/// The arms of ceilings, and how they are told.
const CEILINGS: [(&str, &str); 4] = [
    ("read", "read"),
    ("write", "write"),
    ("copy", "copy"),
    ("driver_copy", "the driver's own copy"),
];

/// The answer of a run in words, as plain text for a terminal.
pub fn answer(summary: &Summary) -> String {
    let mut lines = sentences(summary);
    let cases = Case::all(&summary.rows).into_iter().filter(|case| !case.is_curve());
    lines.extend(flagged(&cases.collect::<Vec<_>>()));
    lines.iter().map(|line| wrapped(line, WIDTH, "  ") + "\n").collect()
}

/// The answer, a paragraph an entry.
pub fn sentences(summary: &Summary) -> Vec<String> {
    let Summary { run, rows, times, .. } = summary;
    let cases = Case::all(rows).into_iter().filter(|case| !case.is_curve());
    let (groups, others): (Vec<Case<'_>>, Vec<Case<'_>>) = cases.partition(Case::is_group);
    let is_scatter = |case: &Case<'_>| case.first().experiment == Experiment::Scatter;
    let mut lines = match (groups.is_empty(), others.is_empty()) {
        (true, false) => vec![format!("{}: what its allocators do.", subject(run))],
        (false, _) if groups.iter().all(is_scatter) => {
            vec![format!("{}: what scattered physical memory costs.", subject(run))]
        }
        _ => of_bandwidth(run, rows, &groups),
    };
    lines.extend(scatter::sentences(rows));
    lines.extend(allocators::sentences(rows));
    if !groups.is_empty() || others.is_empty() {
        lines.push(counts(&groups));
    }
    lines.extend(asked(&others));
    lines.extend(spent(times));
    lines
}

fn of_bandwidth(run: &Run, rows: &[Row], cases: &[Case<'_>]) -> Vec<String> {
    let mut lines = vec![opening(run)];
    lines.extend(ceilings(run, cases));
    lines.extend(curves(rows));
    let placement = placement(rows);
    lines.push(meaning(!placement.is_empty(), scatter::is_measured(rows)));
    lines.extend(placement);
    lines
}

/// How many cases of allocators were measured, failed and skipped.
fn asked(cases: &[Case<'_>]) -> Option<String> {
    let with = |status: Status| cases.iter().filter(|case| *case.status() == status).count();
    let [ok, failed, skipped] = [Status::Ok, Status::Failed, Status::Skipped].map(with);
    (!cases.is_empty())
        .then(|| format!("Cases of allocators: {ok} measured, {failed} failed, {skipped} skipped."))
}

/// `Time: 27.3 s in groups: 60 % measuring, 31 % preparing, 9 % verifying.`
fn spent(times: &Times) -> Option<String> {
    let shares: Vec<String> = times
        .shares()
        .into_iter()
        .map(|(name, share)| format!("{:.0} % {name}", share * 100.0))
        .collect();
    let seconds = times.total_ns() as f64 / 1e9;
    let beside = times.beside_interval_ns().map_or_else(String::new, |ns| {
        let (us, intervals) = (ns as f64 / 1e3, times.intervals);
        let host = times.host_interval_ns().map_or_else(String::new, |ns| {
            format!("; the host took {:.0} us for each", ns as f64 / 1e3)
        });
        format!(" Beside each of {intervals} timed intervals {us:.0} us went by{host}.")
    });
    (!shares.is_empty())
        .then(|| format!("Time: {seconds:.1} s in groups: {}.{beside}", shares.join(", ")))
}

/// Which flags stand on how many groups, with what they mean: nobody should have to look for it.
fn flagged(cases: &[Case<'_>]) -> Option<String> {
    let mut groups: BTreeMap<Flag, usize> = BTreeMap::new();
    for flag in cases.iter().flat_map(Case::flags) {
        *groups.entry(flag).or_default() += 1;
    }
    // A host is named in the first sentence.
    groups.remove(&Flag::Host);
    let items: Vec<String> = groups
        .into_iter()
        .map(|(flag, count)| {
            let what = flag.what().trim_end_matches('.');
            format!("{} in {count} of {} ({what})", flag.as_str(), cases.len())
        })
        .collect();
    (!items.is_empty()).then(|| format!("Flags on groups: {}.", items.join("; ")))
}

/// What was measured, so that nobody takes a host for a GPU: the beginning of every page.
pub fn subject(run: &Run) -> String {
    let name = clean(&run.device.name);
    if run.device.is_host() {
        let name = if name.starts_with("host") { String::new() } else { format!(" ({name})") };
        return format!("The memory of this host{name}, not a GPU");
    }
    let uuid = run.device.uuid.as_deref().map(|uuid| format!(", {uuid}")).unwrap_or_default();
    format!("{name} ({})", clean(&format!("{}{uuid}", run.device.id)))
}

fn opening(run: &Run) -> String {
    let subject = subject(run);
    let caution =
        if run.device.is_host() { " These figures say nothing about any GPU." } else { "" };
    format!(
        "{subject}: what fragments behind an index keep of the bandwidth that the same fragments \
         have when packed. Below: the share that stays, by fragment size.{caution}"
    )
}

/// Ceilings beside the theoretical peak, and how to hold them against a data sheet.
fn ceilings(run: &Run, cases: &[Case<'_>]) -> Vec<String> {
    let peak = run.device.peak_bytes_per_s().map(|peak| format!("{} GB/s", rate(peak / 1e9)));
    let peak = peak.unwrap_or_else(|| "unknown".to_owned());
    let mut lines: Vec<String> = cases
        .iter()
        .filter(|case| case.is_ceiling())
        .filter_map(|case| ceiling(case, &peak))
        .collect();
    if lines.is_empty() {
        lines.push(format!("Ceilings: not measured; theoretical peak {peak}."));
    }
    lines.push(
        "Hold the contiguous read against the data sheet; copies count bytes read plus bytes \
         written."
            .to_owned(),
    );
    lines
}

fn ceiling(case: &Case<'_>, peak: &str) -> Option<String> {
    let arms = CEILINGS.iter().filter_map(|(arm, name)| {
        let share = case.row(Metric::PeakShare, arm).and_then(|row| row.figure.median);
        let share = share.map(|share| format!(" ({:.1} %)", share * 100.0)).unwrap_or_default();
        Some(format!("{name} {}{share}", rate(case.rate(arm)?)))
    });
    let arms: Vec<String> = arms.collect();
    if arms.is_empty() {
        return None;
    }
    let against = case.ratio(Metric::DriverCopyRatio).map(|row| {
        format!(
            "; copy / driver's copy {}",
            with_interval(row.figure.median, row.figure.ci(), ratio)
        )
    });
    let placements = placed(case).unwrap_or_default();
    let cache = if case.has(Flag::Cache) { " (cache, not memory)" } else { "" };
    let array = case.first().footprint_bytes.map(|size| format!(" with arrays of {}", bytes(size)));
    Some(format!(
        "Ceilings{}{cache} in GB/s: {}{}.{placements} Theoretical peak: {peak}.",
        array.unwrap_or_default(),
        listed(&arms),
        against.unwrap_or_default()
    ))
}

/// How much it matters where the arrays lie: of all arms the one that it matters to most.
fn placed(case: &Case<'_>) -> Option<String> {
    let spreads = CEILINGS.iter().filter_map(|(arm, name)| Some((spread(case, arm)?, *arm, *name)));
    let (spread, arm, name) = spreads.max_by(|(a, ..), (b, ..)| a.total_cmp(b))?;
    let placements = case.row(Metric::PlacementSpread, arm)?.placements?;
    Some(format!(
        " Over {placements} placements of the arrays medians lie up to {} apart ({name}).",
        percent(spread)
    ))
}

/// For each kernel, pattern and footprint: from which fragment on how much stays, and the worst.
fn curves(rows: &[Row]) -> Vec<String> {
    let mut by_key: BTreeMap<BracketKey, Vec<&Row>> = BTreeMap::new();
    for row in rows {
        if let Some(key) = BracketKey::of(row) {
            by_key.entry(key).or_default().push(row);
        }
    }
    let asked: Vec<_> = SHARES.into_iter().flat_map(|share| brackets(rows, share)).collect();
    by_key
        .iter()
        .map(|(key, curve)| {
            let name = curve_name(key);
            let own: Vec<_> = asked.iter().filter(|bracket| bracket.key == *key).collect();
            if own.is_empty() {
                return format!("{name}: not measured ({}).", why_not(curve));
            }
            let cache = if own[0].cache { " (cache, not memory)" } else { "" };
            let remarks = [worst(rows, curve), weak(curve), gaps(curve)].join("");
            format!("{name}{cache}: {}.{remarks}", shares(&own))
        })
        .collect()
}

fn curve_name(key: &BracketKey) -> String {
    let pattern = clean(&key.pattern.to_string());
    format!("{}, {pattern} in {}", clean(&key.kernel.to_string()), bytes(key.footprint_bytes))
}

/// Where packed is a weak baseline its ratio must not stand alone.
fn weak(curve: &[&Row]) -> String {
    match &sizes(curve, |row| row.flags.contains(&Flag::WeakBaseline))[..] {
        [] => String::new(),
        sizes => format!(
            " Packed is a weak baseline at {}: hold scattered against the stream there.",
            listed(sizes)
        ),
    }
}

/// Sizes that were asked for and about which the brackets say nothing.
fn gaps(curve: &[&Row]) -> String {
    match &sizes(curve, |row| row.figure.median.is_none())[..] {
        [] => String::new(),
        sizes => format!(" No figure at {}: see the reasons.", listed(sizes)),
    }
}

fn sizes(curve: &[&Row], holds: fn(&Row) -> bool) -> Vec<String> {
    let chosen = curve.iter().filter(|row| holds(row));
    let sizes: BTreeSet<u64> = chosen.filter_map(|row| row.fragment_bytes).collect();
    sizes.into_iter().map(bytes).collect()
}

fn why_not(curve: &[&Row]) -> String {
    let row = curve.iter().find(|row| row.reason.is_some());
    row.map_or_else(
        || "no figure is left".to_owned(),
        |row| {
            format!(
                "{}: {}",
                clean(row.status.as_str()),
                clean(row.reason.as_deref().unwrap_or(""))
            )
        },
    )
}

fn meaning(has_placement: bool, has_scatter: bool) -> String {
    let apart = match (has_placement, has_scatter) {
        (true, true) => {
            "What it costs that an allocator places whole tensors apart follows, and then what \
             scattered physical pages cost."
        }
        (true, false) => {
            "What it costs that an allocator places whole tensors apart follows; of scattered \
             physical pages this run has no figure (the suite full has)."
        }
        (false, true) => {
            "What an allocator's fragmentation costs is another question: of whole tensors placed \
             apart this run has no figure; what scattered physical pages cost follows."
        }
        (false, false) => {
            "What an allocator's fragmentation costs is another question: neither of whole tensors \
             placed apart nor of scattered physical pages has this run a figure."
        }
    };
    format!(
        "This is the price of indirect access: of rows behind an index, as in embeddings, sparse \
         matrices and graphs. {apart}"
    )
}

/// How many groups were verified, failed and skipped.
pub fn counts(cases: &[Case<'_>]) -> String {
    let with = |status: Status| cases.iter().filter(|case| *case.status() == status).count();
    let (ok, failed, skipped) = (with(Status::Ok), with(Status::Failed), with(Status::Skipped));
    let other = match cases.len() - ok - failed - skipped {
        0 => String::new(),
        count => format!(", {count} of a status that this version does not know"),
    };
    let processes = cases.iter().filter_map(Case::processes).max();
    let intervals = match processes {
        None => "95 % intervals of the median, within one process".to_owned(),
        Some(count @ ..3) => format!("none: {count} processes are too few for one between them"),
        Some(count) => {
            format!("95 % intervals of the mean of {count} processes' medians, between processes")
        }
    };
    format!(
        "Groups: {ok} measured and verified, {failed} failed, {skipped} skipped{other}. Intervals \
         are {intervals}."
    )
}
