//! The verb `selftest`: whether the tool can be believed, part by part.

mod clock;
mod kernels;
mod same;
mod statistics;

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use jiff::Timestamp;
use serde::Serialize;

use super::bench::{Bench, DEFAULT_SEED, interruption};
use super::probe::resolve;
use super::{Failure, Format, output, print};
use crate::device::DeviceRequest;
use crate::record::journal::{JournalError, JournalWriter};
use crate::record::{Run, Selection};
use crate::selftest::{LAYOUTS, statistics::REPLICATIONS};

/// The suite that a selftest's journal names.
pub const SUITE: &str = "selftest";

/// What is put to the test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// The verification: faults are planted in every kernel, and each has to be caught
    Kernels,
    /// The intervals: they have to hold a known truth as often as they say. Needs no device
    Statistics,
    /// The device's timer: its steps, what an interval costs, and whether the host's clock agrees
    Clock,
    /// The whole: kernels are compared with themselves, and hardly ever found to differ
    Same,
}

/// Put the tool itself to the test: kernels and their verification, intervals, clock, false alarms.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  fragbench selftest\n  fragbench selftest --device host --layouts 10\n  \
    fragbench selftest --filter '*bulk*' --filter 'copy*'\n  fragbench selftest --part statistics\n  \
    fragbench selftest --part clock\n  fragbench selftest --part same --out same.jsonl\n\n\
    Exit code: 0 all is as it should be; 1 not so, or no usable device was found; 2 a bad request; \
    130 interrupted."
)]
pub struct Arguments {
    /// What to test
    #[arg(long, default_value = "kernels")]
    part: Part,
    /// auto, cuda:N, a UUID (GPU-...), or host [default: auto]
    #[arg(long)]
    device: Option<DeviceRequest>,
    /// Seed of layouts, data and simulations
    #[arg(long, default_value_t = DEFAULT_SEED)]
    seed: u64,
    /// Kernels: random layouts for each; the default is every pattern in every order
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100_000))]
    layouts: Option<u64>,
    /// Kernels: only those whose whole name matches one of these globs (repeatable)
    #[arg(long, value_name = "GLOB")]
    filter: Vec<String>,
    /// Statistics: how often each procedure is simulated [default: 5000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    replications: Option<u64>,
    /// Same: how often a kernel is compared with itself, over the same data and over moved ones
    /// [default: 200]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    comparisons: Option<u32>,
    /// Also keep a journal: a name that ends in .jsonl, or a folder
    #[arg(long, value_name = "FILE.jsonl|FOLDER")]
    out: Option<PathBuf>,
    /// What to print at the end: text or json
    #[arg(long, default_value = "text")]
    format: Format,
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    if !matches!(arguments.format, Format::Text | Format::Json) {
        return Err(Failure::request(
            "selftest prints text or json: choose one of them with --format",
        ));
    }
    options_fit(arguments)?;
    match arguments.part {
        Part::Kernels => kernels::run(arguments, arguments.layouts.unwrap_or(LAYOUTS)),
        Part::Statistics => {
            statistics::run(arguments, arguments.replications.unwrap_or(REPLICATIONS))
        }
        Part::Clock => clock::run(arguments),
        Part::Same => same::run(arguments, arguments.comparisons.unwrap_or(same::COMPARISONS)),
    }
}

/// Refuses options of another part: they would do nothing.
fn options_fit(arguments: &Arguments) -> Result<(), Failure> {
    let given = [
        ("--layouts", Part::Kernels, arguments.layouts.is_some()),
        ("--filter", Part::Kernels, !arguments.filter.is_empty()),
        ("--replications", Part::Statistics, arguments.replications.is_some()),
        ("--comparisons", Part::Same, arguments.comparisons.is_some()),
    ];
    let name = |part: Part| part.to_possible_value().map(|value| value.get_name().to_owned());
    let misplaced =
        given.into_iter().find(|(_, part, is_given)| *is_given && *part != arguments.part);
    if let Some((option, part, _)) = misplaced {
        let (own, other) = (name(arguments.part), name(part));
        return Err(Failure::request(format_args!(
            "{option} does nothing in `--part {}`: leave it out, or take --part {}",
            own.unwrap_or_default(),
            other.unwrap_or_default()
        )));
    }
    let is_simulated = arguments.part == Part::Statistics;
    match &arguments.device {
        Some(device) if is_simulated && *device != DeviceRequest::Host => {
            Err(Failure::request("--part statistics needs no device: leave --device out"))
        }
        _ => Ok(()),
    }
}

/// What a part works with: a worker on the device, and the journal where one is kept.
struct Ground {
    bench: Bench,
    run: Run,
    journal: Option<JournalWriter>,
    path: Option<PathBuf>,
}

impl Ground {
    /// Opens the device, and begins the journal.
    fn open(arguments: &Arguments) -> Result<Ground, Failure> {
        let request = match (&arguments.device, arguments.part) {
            (Some(device), _) => device.clone(),
            (None, Part::Statistics) => DeviceRequest::Host,
            (None, _) => DeviceRequest::Auto,
        };
        let device = resolve(&request.to_string())?;
        let path = match &arguments.out {
            Some(out) => {
                let now = Timestamp::now();
                Some(output::journal_path(Some(out), "fragbench-selftest", &device, now)?)
            }
            None => None,
        };
        let selection = Selection {
            suite: SUITE.to_owned(),
            only: Vec::new(),
            cases: Vec::new(),
            filters: arguments.filter.clone(),
            device: request.to_string(),
            seed: arguments.seed.to_string(),
            memory_limit_bytes: None,
            time_limit_s: None,
            processes: 1,
            allow_fill: false,
        };
        let interrupted = interruption()?;
        let mut bench = Bench { device: device.id, selection, worker: None, interrupted };
        let (worker, ready) = bench.open()?;
        bench.worker = Some(worker);
        let run = bench.describe(ready);
        let mut journal = path.as_deref().map(create).transpose()?;
        if let Some(journal) = &mut journal {
            journal.write_run(&run).map_err(Failure::request)?;
        }
        Ok(Ground { bench, run, journal, path })
    }

    /// Shows what was found, in the format that was asked for.
    fn show<T: Serialize>(
        &self,
        format: Format,
        records: &T,
        text: impl FnOnce() -> String,
    ) -> Result<(), Failure> {
        match format {
            Format::Json => {
                let json = serde_json::to_string_pretty(records).map_err(Failure::request)?;
                print(&(json + "\n"))?;
            }
            _ => print(&text())?,
        }
        if let Some(path) = &self.path {
            tell!("Journal: {}", path.display());
        }
        Ok(())
    }
}

/// Begins the journal. A selftest is not resumed: a file in its way stays as it is.
fn create(path: &Path) -> Result<JournalWriter, Failure> {
    JournalWriter::create(path).map_err(|error| match error {
        JournalError::Exists { path } => Failure::request(format_args!(
            "{} exists already: name another file with --out",
            path.display()
        )),
        other => Failure::request(other),
    })
}

/// That it was told to stop, after so many of what.
fn interrupted_after(count: usize, what: &str) -> Failure {
    let message = format!("interrupted after {count} {what}");
    Failure { code: Failure::INTERRUPTED, message }
}

/// That the tool is not what it should be.
fn unsound(message: String) -> Failure {
    Failure { code: Failure::CASE, message }
}

/// That a result could not be kept: no bad request, since the journal could be begun.
fn not_kept(error: JournalError) -> Failure {
    Failure { code: Failure::CASE, message: error.to_string() }
}
