//! The page of one or more runs.

use super::allocators;
use super::answer::{counts, sentences, subject};
use super::case::Case;
use super::distributions::distributions;
use super::escape::{code, escape};
use super::grid::{Grid, accesses, ceilings, unmeasured, variants};
use super::heaps::heaps;
use super::provenance::{facts, hashes};
use super::scatter;
use super::text::{or_dash, rate, ratio, small_ratio};
use crate::summary::{Flag, Metric, Row, Summary};

/// A Markdown page: for each run what, where and when, the answer, how far to trust it, the compact
/// tables, where it comes from, and every row.
pub fn markdown(runs: &[Summary]) -> String {
    let title = match runs {
        [one] => format!("# fragbench: {}\n", escape(&subject(&one.run))),
        _ => format!("# fragbench: {} runs\n", runs.len()),
    };
    let pages = runs.iter().map(|summary| page(summary, runs.len() > 1));
    std::iter::once(title).chain(pages).collect::<Vec<_>>().join("\n")
}

fn page(summary: &Summary, is_one_of_many: bool) -> String {
    let Summary { run, rows, .. } = summary;
    let mut blocks = Vec::new();
    if is_one_of_many {
        blocks.push(format!("# {}, {}", escape(&subject(run)), escape(&run.started)));
    }
    blocks.push(facts(run));
    blocks.push("## The answer".to_owned());
    blocks.push(bullets(sentences(summary).iter().map(|line| escape(line))));
    blocks.push("## How far to trust it".to_owned());
    blocks.extend(trust(rows));
    for (title, grid) in [
        ("Ceilings", ceilings(rows)),
        ("By layout", accesses(rows)),
        ("Aged heaps", heaps(rows)),
        ("Competing kernels", variants(rows)),
    ]
    .into_iter()
    .chain(scatter::grids(rows))
    .chain(allocators::grids(rows))
    {
        if !grid.body.is_empty() {
            blocks.push(format!("## {title}"));
            blocks.push(table(&grid));
        }
    }
    let shown = distributions(&summary.histograms);
    if !shown.is_empty() {
        blocks.push("## How calls are distributed".to_owned());
        blocks.extend(shown.iter().map(|bars| format!("```text\n{bars}```")));
    }
    blocks.push("## Where it comes from".to_owned());
    blocks.push(hashes(run));
    blocks.push("## Every row".to_owned());
    blocks.push(table(&every_row(rows)));
    blocks.join("\n\n") + "\n"
}

fn trust(rows: &[Row]) -> Vec<String> {
    let flagged = Flag::ALL.into_iter().filter_map(|flag| {
        let count = rows.iter().filter(|row| row.flags.contains(&flag)).count();
        let (what, why, cure) = (flag.what(), flag.why(), flag.what_to_do());
        (count > 0).then(|| {
            format!(
                "{} on {count} of {} rows: {what} {why} {cure}",
                code(flag.as_str()),
                rows.len()
            )
        })
    });
    let flags = bullets(flagged);
    let missing =
        bullets(unmeasured(rows).iter().map(|[case, status, why]| {
            format!("{}: {}: {}", escape(status), code(case), escape(why))
        }));
    let flags = if flags.is_empty() { "No row is flagged.".to_owned() } else { flags };
    let cases = Case::all(rows).into_iter().filter(|case| !case.is_curve());
    [escape(&counts(&cases.collect::<Vec<_>>())), flags, missing]
        .into_iter()
        .filter(|block| !block.is_empty())
        .collect()
}

/// What reads well of every row; the rest stands in the CSV and JSON exports.
fn every_row(rows: &[Row]) -> Grid {
    let body = rows.iter().map(|row| {
        let write = match row.metric {
            Metric::EffectiveBandwidth => rate,
            Metric::PlacementSpread => small_ratio,
            _ => ratio,
        };
        let number = |figure| or_dash(figure, write);
        vec![
            row.case.clone(),
            row.metric.to_string(),
            row.unit.to_owned(),
            row.baseline.clone().unwrap_or_default(),
            row.figure.samples.map(|samples| samples.to_string()).unwrap_or_default(),
            number(row.figure.median),
            number(row.figure.ci_low),
            number(row.figure.ci_high),
            row.verified.to_string(),
            row.status.to_string(),
            row.flags_text(),
        ]
    });
    let head = vec![
        "case", "metric", "unit", "baseline", "samples", "median", "ci_low", "ci_high", "verified",
        "status", "flags",
    ];
    Grid { head, texts: 4, body: body.collect() }
}

/// The first columns and the last to the left, figures to the right.
pub(super) fn table(grid: &Grid) -> String {
    let last = grid.head.len() - 1;
    let rule = (0..=last).map(|at| if at < grid.texts || at == last { "---" } else { "---:" });
    let line = |cells: Vec<String>| format!("| {} |", cells.join(" | "));
    let mut lines = vec![
        line(grid.head.iter().map(|cell| escape(cell)).collect()),
        line(rule.map(str::to_owned).collect()),
    ];
    lines.extend(
        grid.body.iter().map(|cells| line(cells.iter().map(|cell| escape(cell)).collect())),
    );
    lines.join("\n")
}

pub(super) fn bullets(items: impl Iterator<Item = String>) -> String {
    items.map(|item| format!("- {item}")).collect::<Vec<_>>().join("\n")
}
