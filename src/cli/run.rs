//! The verb `run`: plans, lets a worker measure, and writes the journal.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use jiff::Timestamp;

use super::bench::{Bench, DEFAULT_SEED, interruption};
use super::export::render;
use super::groups::{Groups, expected_bytes_per_s};
use super::probe::resolve;
use super::worker::Ready;
use super::{Failure, Format, filter, output, print, resume};
use crate::device::DeviceRequest;
use crate::experiment::{Case, Suite, cases, parse_case};
use crate::record::journal::{Journal, JournalWriter};
use crate::record::{DeviceFacts, DeviceKind, Entry, Run, Selection, Status, size};
use crate::summary::Summary;

/// Measure: what scattered memory costs on this device.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  fragbench run\n  fragbench run --suite standard --out results/\n  \
    fragbench run --device host\n  fragbench run --only latency --suite full\n  fragbench run --processes 5\n  \
    fragbench run --case bandwidth/kernel=scatter_copy/pattern=holes.occupancy_90/fragment=64B/footprint=2GiB\n  fragbench run --filter '*kernel=gather_read*fragment=128B*' --list\n  \
    fragbench run --resume fragbench-nvidia-h200-20261202T030405Z.jsonl\n\n\
    Exit code: 0 all cases were measured, or skipped with a reason; 1 a case failed, a result could \
    not be written, or no usable device was found; 2 a bad request or input; 130 interrupted."
)]
pub struct Arguments {
    /// Which cases, and how much time for them [default: quick]
    #[arg(long)]
    suite: Option<Suite>,
    /// Only this experiment (repeatable)
    #[arg(long, value_name = "EXPERIMENT")]
    only: Vec<String>,
    /// Measure this case id instead of the suite's cases, with the suite's precision (repeatable)
    #[arg(long, value_name = "ID")]
    case: Vec<String>,
    /// Only cases whose id matches this glob (repeatable; a group's baselines come with it)
    #[arg(long, value_name = "GLOB")]
    filter: Vec<String>,
    /// auto, cuda:N, a UUID (GPU-...), or host [default: auto]
    #[arg(long)]
    device: Option<DeviceRequest>,
    /// Seed of layouts, data and round orders [default: 1]
    #[arg(long)]
    seed: Option<u64>,
    /// The most device memory to take, as 16GiB
    #[arg(long, value_name = "SIZE", value_parser = size::parse, allow_hyphen_values = true)]
    memory_limit: Option<u64>,
    /// Let cases fill the device though it is not provably this run's alone
    #[arg(long)]
    allow_fill: bool,
    /// Begin no case after this time, as 90s, 5m or 2h
    #[arg(long, value_name = "TIME", value_parser = seconds, allow_hyphen_values = true)]
    time_limit: Option<u64>,
    /// Measure each case in so many fresh processes; from 3 on, intervals are between processes
    /// [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    processes: Option<u32>,
    /// The journal: a name that ends in .jsonl, or a folder [default: here, named by device and time]
    #[arg(long, value_name = "FILE.jsonl|FOLDER")]
    out: Option<PathBuf>,
    /// Go on with this journal; suite, filters, seed and device come from it
    #[arg(long, value_name = "FILE", conflicts_with = "out")]
    resume: Option<PathBuf>,
    /// List the cases, and measure nothing
    #[arg(long)]
    list: bool,
    /// Show memory and time that the cases would take, and measure nothing
    #[arg(long)]
    dry_run: bool,
    /// Let the GPU fault before the first case, to see that a fault costs that case and no other
    #[arg(long)]
    inject_device_fault: bool,
    /// How long the worker process may take for a case, in seconds: for tests of what then happens
    #[arg(long, hide = true, value_name = "SECONDS")]
    worker_timeout: Option<u64>,
    /// What to print at the end
    #[arg(long, default_value = "text")]
    format: Format,
}

/// Reads a time: a whole number of seconds, or with `s`, `m` or `h`.
fn seconds(text: &str) -> Result<u64, String> {
    let wrong = || format!("`{text}` is no time: write a number above 0 with s, m or h, as in 90s");
    let (number, factor) = match text.strip_suffix(['s', 'm', 'h']) {
        Some(number) if text.ends_with('m') => (number, 60),
        Some(number) if text.ends_with('h') => (number, 3_600),
        Some(number) => (number, 1),
        None => (text, 1),
    };
    let number: u64 = number.parse().map_err(|_| wrong())?;
    number.checked_mul(factor).filter(|seconds| *seconds > 0).ok_or_else(wrong)
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let earlier = arguments.resume.as_deref().map(read_earlier).transpose()?;
    let selection = select(arguments, earlier.as_ref())?;
    let request = match &earlier {
        Some(journal) => resume::device_request(&journal.run),
        None => selection.device.clone(),
    };
    let device = resolve(&request)?;
    if arguments.inject_device_fault {
        may_fault(&device)?;
    }
    let suite = Suite::named(&selection.suite).ok_or_else(|| {
        Failure::request(format_args!("this version has no suite `{}`", selection.suite))
    })?;
    let asked = match &selection.cases[..] {
        [] => cases(suite, &device.kind),
        ids => named(ids, suite, &device.kind)?,
    };
    let cases = filter::select(asked, &selection.only, &selection.filters)?;
    if arguments.inject_device_fault && !cases.iter().any(|case| matches!(case, Case::Bandwidth(_)))
    {
        return Err(Failure::request(
            "--inject-device-fault needs a case of the bandwidth, and none is selected: select one, or leave the option out",
        ));
    }
    if arguments.list {
        return print(&cases.iter().map(|case| case.id() + "\n").collect::<String>());
    }

    let interrupted = interruption()?;
    let mut bench = Bench { device: device.id, selection, worker: None, interrupted };
    let (worker, ready) = bench.open()?;
    bench.worker = Some(worker);
    warn(&ready);
    let run = bench.describe(ready);
    any_case_fits(&cases, &run)?;
    if arguments.dry_run {
        return print(&dry_run(&cases, &run));
    }
    // The figures of a resumed journal are those of the run that it began with.
    let told = earlier.as_ref().map_or(&run, |journal| &journal.run).clone();
    let (writer, done, path) = match (earlier, &arguments.resume) {
        (Some(journal), Some(path)) => {
            resume::same_ground(&journal.run, env!("CARGO_PKG_VERSION"), &run)?;
            let writer =
                JournalWriter::resume(path, journal.whole_bytes).map_err(Failure::request)?;
            (writer, journal.into_entries(), path.clone())
        }
        _ => {
            let out = arguments.out.as_deref();
            let path = output::journal_path(out, "fragbench", &run.device, Timestamp::now())?;
            let mut writer = JournalWriter::create(&path).map_err(Failure::request)?;
            writer.write_run(&run).map_err(Failure::request)?;
            (writer, Vec::new(), path)
        }
    };
    let groups = Groups {
        run: &run,
        path: &path,
        patience: arguments.worker_timeout.map(Duration::from_secs),
        inject_fault: arguments.inject_device_fault,
    };
    let entries = groups.measure(&mut bench, &cases, writer, done)?;
    finish(told, entries, arguments.format, &path)
}

/// Refuses a fault where there is nothing that could fault, and where it would end the work of others.
fn may_fault(device: &DeviceFacts) -> Result<(), Failure> {
    if device.is_host() {
        return Err(Failure::request(
            "--inject-device-fault needs a GPU, and the host is none: name one with --device, or leave the option out",
        ));
    }
    if device.mps == Some(true) {
        return Err(Failure::request(
            "--inject-device-fault is refused while an MPS server shares the device, for a fault would end the work of its other clients: stop the server, or leave the option out",
        ));
    }
    Ok(())
}

/// The cases of ids; one that is named twice is measured once.
fn named(ids: &[String], suite: Suite, kind: &DeviceKind) -> Result<Vec<Case>, Failure> {
    let mut cases: Vec<Case> = Vec::new();
    for id in ids {
        let case = parse_case(id, suite, kind).map_err(Failure::request)?;
        if !cases.iter().any(|known| known.id() == case.id()) {
            cases.push(case);
        }
    }
    Ok(cases)
}

fn read_earlier(path: &Path) -> Result<Journal, Failure> {
    let journal = Journal::read(path).map_err(Failure::request)?;
    if let Some(notice) = &journal.torn {
        tell!("fragbench: {notice}");
    }
    Ok(journal)
}

fn select(arguments: &Arguments, earlier: Option<&Journal>) -> Result<Selection, Failure> {
    let given = resume::Given {
        suite: arguments.suite.map(|suite| suite.name().to_owned()),
        only: arguments.only.clone(),
        cases: arguments.case.clone(),
        filters: arguments.filter.clone(),
        device: arguments.device.as_ref().map(DeviceRequest::to_string),
        seed: arguments.seed,
        memory_limit_bytes: arguments.memory_limit,
        time_limit_s: arguments.time_limit,
        processes: arguments.processes,
        allow_fill: arguments.allow_fill,
    };
    if let Some(journal) = earlier {
        return resume::selection(&journal.run, &given);
    }
    Ok(Selection {
        suite: given.suite.unwrap_or_else(|| Suite::Quick.name().to_owned()),
        only: given.only,
        cases: given.cases,
        filters: given.filters,
        device: given.device.unwrap_or_else(|| DeviceRequest::Auto.to_string()),
        seed: given.seed.unwrap_or(DEFAULT_SEED).to_string(),
        memory_limit_bytes: given.memory_limit_bytes,
        time_limit_s: given.time_limit_s,
        processes: given.processes.unwrap_or(1),
        allow_fill: given.allow_fill,
    })
}

/// What is worth knowing before the figures.
fn warn(ready: &Ready) {
    if !ready.held {
        tell!(
            "fragbench: launches cannot be held (CUDA_LAUNCH_BLOCKING, a profiler or a sanitizer?): every row is flagged"
        );
    }
    if !ready.device.is_host() && !ready.device.nvml {
        tell!("fragbench: NVML is absent: clocks, driver version and other processes stay unknown");
    }
}

/// Refuses a run of which no case could be measured that needs memory of the device.
fn any_case_fits(cases: &[Case], run: &Run) -> Result<(), Failure> {
    let needed = cases.iter().map(Case::memory_bytes).filter(|bytes| *bytes > 0);
    let smallest = needed.min().unwrap_or(0);
    if smallest <= run.memory_limit_bytes {
        return Ok(());
    }
    let (smallest, limit) = (size::rounded(smallest), size::rounded(run.memory_limit_bytes));
    if run.selection.memory_limit_bytes.is_some() {
        return Err(Failure::request(format_args!(
            "--memory-limit {limit} is too small for any case: the smallest needs {smallest}"
        )));
    }
    let free = run.device.free_bytes.map_or_else(|| "unknown".to_owned(), size::rounded);
    let total = size::rounded(run.device.memory_bytes);
    Err(Failure::request(format_args!(
        "only {free} of {total} are free on {}, of which the run may take {limit} ({}), and the smallest case needs {smallest}: end the process that holds the memory, choose another device with --device, or raise --memory-limit",
        run.device.id, run.memory_limit_reason
    )))
}

/// Peak memory and time of the cases, a line each.
fn dry_run(cases: &[Case], run: &Run) -> String {
    let bandwidth = expected_bytes_per_s(run);
    let fits = |case: &&Case| case.memory_bytes() <= run.memory_limit_bytes;
    let once: Duration = cases.iter().filter(fits).map(|case| case.estimate(bandwidth)).sum();
    let time = once * run.selection.processes;
    let peak_of = |case: &Case| case.peak_bytes(run.memory_limit_bytes);
    let peak = cases.iter().filter(fits).map(peak_of).max().unwrap_or(0);
    let mut text = String::new();
    for case in cases {
        let memory = size::rounded(case.memory_bytes());
        let fate = match (fits(&case), case.fills_device()) {
            (false, _) => "  (skipped: over the memory limit)",
            (true, true) => "  (and ballast in all other memory of the device)",
            (true, false) => "",
        };
        text += &format!("{memory:>10}  {}{fate}\n", case.id());
    }
    text + &format!(
        "{} on {}; peak memory {} of {} ({}); about {} s\n",
        counted(cases.len()),
        run.device.id,
        size::rounded(peak),
        size::rounded(run.memory_limit_bytes),
        run.memory_limit_reason,
        time.as_secs().max(1)
    )
}

fn counted(cases: usize) -> String {
    if cases == 1 { "1 case".to_owned() } else { format!("{cases} cases") }
}

/// Prints what was found; a failed case makes the exit code 1.
fn finish(run: Run, entries: Vec<Entry>, format: Format, path: &Path) -> Result<(), Failure> {
    let failed = entries.iter().filter(|entry| *entry.status() == Status::Failed).count();
    let (count, is_lost) = (entries.len(), entries.iter().any(|entry| entry.lost().is_some()));
    print(&render(&[Summary::of_entries(run, entries)], format))?;
    tell!("Journal: {}", path.display());
    if failed == 0 {
        return Ok(());
    }
    let mut message = format!("{failed} of {} failed; the journal says why", counted(count));
    if is_lost {
        message += &format!(
            "; what was lost with its worker or device is measured again by --resume {}",
            path.display()
        );
    }
    Err(Failure { code: Failure::CASE, message })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read() {
        assert_eq!(seconds("90"), Ok(90));
        assert_eq!(seconds("90s"), Ok(90));
        assert_eq!(seconds("5m"), Ok(300));
        assert_eq!(seconds("2h"), Ok(7_200));
        for text in ["", "0", "-1s", "1.5h", "s", "99999999999999999h"] {
            assert!(seconds(text).is_err(), "{text}");
        }
    }
    #[test]
    fn a_fault_is_refused_where_it_makes_no_sense_or_harms_others() {
        let gpu = DeviceFacts::new(DeviceKind::Cuda);
        assert_eq!(may_fault(&gpu), Ok(()));
        let shared = may_fault(&DeviceFacts { mps: Some(true), ..gpu }).unwrap_err();
        assert_eq!(shared.code, Failure::REQUEST);
        assert!(shared.message.contains("MPS"), "{}", shared.message);
        let host = may_fault(&DeviceFacts::new(DeviceKind::Host)).unwrap_err();
        assert_eq!(host.code, Failure::REQUEST);
        assert!(host.message.contains("needs a GPU"), "{}", host.message);
    }
}
