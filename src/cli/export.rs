//! The verb `export`.

use std::path::PathBuf;

use clap::Args;

use super::{Failure, Format, print};
use crate::record::journal::Journal;
use crate::record::{Run, Selftest};
use crate::report;
use crate::summary::{Row, Summary};

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
    let mut selftests: Vec<(Run, Vec<Selftest>)> = Vec::new();
    for path in &arguments.runs {
        let journal = Journal::read(path).map_err(Failure::request)?;
        if let Some(notice) = &journal.torn {
            tell!("fragbench: {notice}");
        }
        // A selftest has kernels and no groups.
        if !journal.selftests.is_empty() {
            selftests.push((journal.run.clone(), journal.selftests));
            if journal.groups.is_empty() {
                continue;
            }
        }
        runs.push(Summary::of(journal.run, &journal.groups));
    }
    let show: fn(&Run, &[Selftest]) -> String = match arguments.format {
        Format::Text => report::selftest_table,
        Format::Markdown => report::selftest_page,
        Format::Csv | Format::Json => {
            if !selftests.is_empty() {
                tell!(
                    "fragbench: a selftest has no rows in the table: export it as text or markdown"
                );
            }
            return print(&render(&runs, arguments.format));
        }
    };
    let measured = (!runs.is_empty()).then(|| render(&runs, arguments.format));
    let tested = selftests.iter().map(|(run, records)| show(run, records));
    print(&measured.into_iter().chain(tested).collect::<Vec<_>>().join("\n"))
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
