//! The command line: one file per verb.

/// Tells the user a line on standard error. One that cannot be written, because the disk is full or
/// the reader is gone, is lost, and ends no run.
macro_rules! tell {
    ($($words:tt)*) => {{
        use std::io::Write;
        let _ = writeln!(std::io::stderr(), $($words)*);
    }};
}

mod bench;
mod devices;
mod export;
mod filter;
mod groups;
mod output;
mod probe;
mod progress;
mod resume;
mod run;
mod selftest;
mod worker;

use std::process::ExitCode;

use clap::{Parser, Subcommand, ValueEnum};

use crate::device::fail_writes_beyond_limits;

/// Why a verb failed: the exit code, and one sentence that says what was wrong and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The exit code.
    pub code: u8,
    /// The sentence.
    pub message: String,
}

impl Failure {
    /// A case failed, a result could not be written, or `auto` found no usable device.
    pub const CASE: u8 = 1;
    /// A bad request or input.
    pub const REQUEST: u8 = 2;
    /// Interrupted.
    pub const INTERRUPTED: u8 = 130;

    fn request(message: impl std::fmt::Display) -> Failure {
        Failure { code: Failure::REQUEST, message: message.to_string() }
    }
}

/// What a verb prints its results as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people at a terminal.
    Text,
    /// The summary table as comma-separated values.
    Csv,
    /// The summary table as JSON.
    Json,
    /// A page.
    Markdown,
}

#[derive(Debug, Parser)]
#[command(
    name = "fragbench",
    version,
    about = "Measures what GPU memory fragmentation costs, with verified results and intervals",
    after_help = "Start with `fragbench run`: the quick suite on the first GPU."
)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Measure: what scattered memory costs on this device
    Run(run::Arguments),
    /// List the devices that can be measured, with their facts
    Devices(devices::Arguments),
    /// Plant faults in every kernel, and see that each is caught
    Selftest(selftest::Arguments),
    /// Turn journals into tables or pages
    Export(export::Arguments),
    #[command(hide = true)]
    Probe,
    #[command(hide = true)]
    Worker(worker::Arguments),
}

/// Runs the program with the process's arguments.
pub fn main() -> ExitCode {
    fail_writes_beyond_limits();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) if error.use_stderr() => {
            return fail(&Failure::request(first_paragraph(&error.to_string())));
        }
        Err(help) => {
            let _ = help.print();
            return ExitCode::SUCCESS;
        }
    };
    let result = match cli.verb {
        Verb::Run(arguments) => run::run(&arguments),
        Verb::Devices(arguments) => devices::run(&arguments),
        Verb::Selftest(arguments) => selftest::run(&arguments),
        Verb::Export(arguments) => export::run(&arguments),
        Verb::Probe => probe::run(),
        Verb::Worker(arguments) => worker::run(&arguments),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => fail(&failure),
    }
}

fn fail(failure: &Failure) -> ExitCode {
    tell!("fragbench: {}", failure.message);
    ExitCode::from(failure.code)
}

/// clap's message without its usage and hints, on one line.
fn first_paragraph(text: &str) -> String {
    let text = text.strip_prefix("error: ").unwrap_or(text);
    let lines = text.lines().take_while(|line| !line.trim().is_empty());
    let joined: Vec<&str> = lines.map(str::trim).collect();
    format!("{} (see --help)", joined.join(" "))
}

/// Writes results to standard output. A reader that went away (`| head`) is no error.
fn print(text: &str) -> Result<(), Failure> {
    use std::io::{ErrorKind, Write};
    let mut output = std::io::stdout().lock();
    match output.write_all(text.as_bytes()).and_then(|()| output.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            let message = format!("standard output cannot be written: {error}");
            Err(Failure { code: Failure::CASE, message })
        }
        _ => Ok(()),
    }
}
