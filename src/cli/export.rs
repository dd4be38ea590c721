//! The verb `export`.

use std::path::PathBuf;

use clap::Args;

use super::{Failure, Format, print};
use crate::record::Run;
use crate::record::journal::Journal;
use crate::report;
use crate::summary::{self, Row};

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
    let mut runs: Vec<(Run, Vec<Row>)> = Vec::new();
    for path in &arguments.runs {
        let journal = Journal::read(path).map_err(Failure::request)?;
        if let Some(notice) = &journal.torn {
            eprintln!("fragbench: {notice}");
        }
        let rows = summary::rows(&summary::run_id(&journal.run), &journal.run, &journal.groups);
        runs.push((journal.run, rows));
    }
    print(&render(&runs, arguments.format))
}

/// Runs in a format.
pub(super) fn render(runs: &[(Run, Vec<Row>)], format: Format) -> String {
    let all = || runs.iter().flat_map(|(_, rows)| rows.iter().cloned()).collect::<Vec<Row>>();
    match format {
        Format::Csv => report::csv(&all()),
        Format::Json => report::json(&all()),
        Format::Markdown => report::markdown(runs),
        Format::Text => {
            let texts = runs.iter().map(|(run, rows)| {
                format!("{}\n{}", report::answer(run, rows), report::table(run, rows))
            });
            texts.collect::<Vec<_>>().join("\n")
        }
    }
}
