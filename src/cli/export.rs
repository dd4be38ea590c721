//! The verb `export`.

use std::path::PathBuf;

use clap::Args;

use super::selftest::SUITE as SELFTEST;
use super::{Failure, Format, print};
use crate::record::journal::Journal;
use crate::report;
use crate::summary::{Row, Summary, count_same};

/// Turn journals into tables or pages.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  fragbench export run.jsonl --format csv > run.csv\n  \
    fragbench export a.jsonl b.jsonl.gz --format json\n  \
    fragbench export run.jsonl --format markdown > run.md")]
pub struct Arguments {
    /// Journals, plain or gzip
    #[arg(required = true, value_name = "RUN")]
    runs: Vec<PathBuf>,
    /// What to print
    #[arg(long, default_value = "csv")]
    format: Format,
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let mut runs: Vec<Summary> = Vec::new();
    let mut selftests: Vec<Journal> = Vec::new();
    for path in &arguments.runs {
        let journal = Journal::read(path).map_err(Failure::request)?;
        if let Some(notice) = &journal.torn {
            tell!("fragbench: {notice}");
        }
        match is_selftest(&journal) {
            true => selftests.push(journal),
            false => runs.push(Summary::of_entries(journal.run.clone(), journal.into_entries())),
        }
    }
    if matches!(arguments.format, Format::Csv | Format::Json) {
        let compared = selftests.iter().filter(|journal| !journal.groups.is_empty());
        let compared = compared.map(|journal| Summary::of(journal.run.clone(), &journal.groups));
        if compared.clone().count() < selftests.len() {
            tell!("fragbench: a selftest has no rows in the table: export it as text or markdown");
        }
        runs.extend(compared);
        return print(&render(&runs, arguments.format));
    }
    let measured = (!runs.is_empty()).then(|| render(&runs, arguments.format));
    let tested = selftests.iter().map(|journal| selftest(journal, arguments.format));
    print(&measured.into_iter().chain(tested).collect::<Vec<_>>().join("\n"))
}

/// Whether a journal is that of a selftest, whichever of its parts.
fn is_selftest(journal: &Journal) -> bool {
    let Journal { selftests, coverages, clocks, .. } = journal;
    let lines = selftests.len() + coverages.len() + clocks.len();
    lines > 0 || (journal.run.selection.suite == SELFTEST && !journal.groups.is_empty())
}

/// What a selftest shows: the parts that it holds.
fn selftest(journal: &Journal, format: Format) -> String {
    let Journal { run, selftests, coverages, clocks, groups, .. } = journal;
    let is_page = format == Format::Markdown;
    let mut parts = Vec::new();
    if !selftests.is_empty() {
        let show = if is_page { report::selftest_page } else { report::selftest_table };
        parts.push(show(run, selftests));
    }
    if !coverages.is_empty() {
        let show = if is_page { report::coverage_page } else { report::coverage_table };
        parts.push(show(coverages));
    }
    let show = if is_page { report::clock_page } else { report::clock_text };
    parts.extend(clocks.iter().map(|clock| show(run, clock)));
    if !groups.is_empty() {
        let show = if is_page { report::same_page } else { report::same_table };
        parts.push(show(run, &count_same(run, groups)));
    }
    parts.join("\n")
}

/// Runs in a format.
pub(super) fn render(runs: &[Summary], format: Format) -> String {
    let all = || runs.iter().flat_map(|one| one.rows.iter().cloned()).collect::<Vec<Row>>();
    match format {
        Format::Csv => report::csv(&all()),
        Format::Json => report::json(&all()),
        Format::Markdown => report::markdown(runs),
        Format::Text => {
            let texts = runs.iter().map(|one| {
                let blocks = [report::answer(one), report::plot(&one.rows), report::table(one)];
                blocks.into_iter().filter(|block| !block.is_empty()).collect::<Vec<_>>().join("\n")
            });
            texts.collect::<Vec<_>>().join("\n")
        }
    }
}
