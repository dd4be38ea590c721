//! The verb `selftest`: plants faults in every kernel of a device, and sees that each is caught.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::Duration;

use clap::Args;
use jiff::Timestamp;

use super::bench::{Bench, DEFAULT_SEED, OUT_OF_TURN, interruption};
use super::probe::resolve;
use super::progress::Progress;
use super::worker::{Message, Request};
use super::{Failure, Format, filter, output, print};
use crate::device::DeviceRequest;
use crate::record::journal::{JournalError, JournalWriter};
use crate::record::{Selection, Selftest, Status};
use crate::report;
use crate::selftest::{LAYOUTS, Subject, Tested};

/// How long a worker may take for one kernel, a sanitizer's slowness included.
const KERNEL: Duration = Duration::from_secs(600);

/// Plant faults in every kernel, and see that each is caught.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  fragbench selftest\n  fragbench selftest --device host --layouts 10\n  \
    fragbench selftest --filter '*bulk*' --filter 'copy*'\n  fragbench selftest --seed 7 --out selftest.jsonl\n\n\
    Exit code: 0 every kernel that the device has is sound, and every planted fault was caught; \
    1 not so, or no usable device was found; 2 a bad request; 130 interrupted."
)]
pub struct Arguments {
    /// auto, cuda:N, a UUID (GPU-...), or host
    #[arg(long, default_value = "auto")]
    device: DeviceRequest,
    /// Seed of layouts and data
    #[arg(long, default_value_t = DEFAULT_SEED)]
    seed: u64,
    /// Random layouts for each kernel; the default is every pattern in every order
    #[arg(long, value_name = "N", default_value_t = LAYOUTS, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    layouts: u64,
    /// Only kernels whose whole name matches one of these globs (repeatable)
    #[arg(long, value_name = "GLOB")]
    filter: Vec<String>,
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
    let subjects = select(&arguments.filter)?;
    let device = resolve(&arguments.device.to_string())?;
    let path = match &arguments.out {
        Some(out) => {
            let now = Timestamp::now();
            Some(output::journal_path(Some(out), "fragbench-selftest", &device, now)?)
        }
        None => None,
    };
    let selection = Selection {
        suite: "selftest".to_owned(),
        only: Vec::new(),
        cases: Vec::new(),
        filters: arguments.filter.clone(),
        device: arguments.device.to_string(),
        seed: arguments.seed.to_string(),
        memory_limit_bytes: None,
        time_limit_s: None,
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
    let records = bench.selftest(subjects, arguments.layouts, journal)?;
    match arguments.format {
        Format::Json => {
            let json = serde_json::to_string_pretty(&records).map_err(Failure::request)?;
            print(&(json + "\n"))?;
        }
        _ => print(&report::selftest_table(&run, &records))?,
    }
    if let Some(path) = path {
        tell!("Journal: {}", path.display());
    }
    verdict(&records)
}

/// The kernels whose names the globs match; all without any.
fn select(filters: &[String]) -> Result<Vec<Subject>, Failure> {
    let globs = filters.iter().map(|text| filter::glob(text)).collect::<Result<Vec<_>, _>>()?;
    let all = Subject::all();
    for (glob, text) in globs.iter().zip(filters) {
        if !all.iter().any(|subject| glob.is_match(subject.name())) {
            let near = filter::nearest(text, all.iter().map(|subject| subject.name()).collect());
            return Err(Failure::request(format_args!(
                "--filter `{text}` matches no kernel: near it are {near} (it has to match a whole name, so begin and end it with *)"
            )));
        }
    }
    let is_selected = |subject: &Subject| {
        globs.is_empty() || globs.iter().any(|glob| glob.is_match(subject.name()))
    };
    Ok(all.into_iter().filter(is_selected).collect())
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

/// What is not sound is named, the first of it with its reason.
fn verdict(records: &[Selftest]) -> Result<(), Failure> {
    let is_sound = |record: &&Selftest| [Status::Ok, Status::Skipped].contains(&record.status);
    let failed: Vec<&Selftest> = records.iter().filter(|record| !is_sound(record)).collect();
    let Some(first) = failed.first() else { return Ok(()) };
    let reason = first.reason.as_deref().unwrap_or("no reason is given");
    let message = format!(
        "{} of {} kernels failed the selftest: {}: {reason}",
        failed.len(),
        records.len(),
        first.kernel
    );
    Err(Failure { code: Failure::CASE, message })
}

impl Bench {
    /// Tests one kernel after the other, a journal line each.
    fn selftest(
        &mut self,
        subjects: Vec<Subject>,
        layouts: u64,
        mut journal: Option<JournalWriter>,
    ) -> Result<Vec<Selftest>, Failure> {
        let mut progress = Progress::new(subjects.len());
        let mut records = Vec::new();
        for subject in subjects {
            let kernel = subject.name();
            progress.begin(&kernel);
            let record = self.test(subject, layouts)?;
            if self.interrupted.load(Ordering::SeqCst) {
                let message = format!("interrupted after {} kernels", records.len());
                return Err(Failure { code: Failure::INTERRUPTED, message });
            }
            if let Some(journal) = &mut journal {
                journal
                    .write_selftest(&record)
                    .map_err(|error| Failure { code: Failure::CASE, message: error.to_string() })?;
            }
            progress.end(&kernel, &ending(&record));
            records.push(record);
        }
        Ok(records)
    }

    fn test(&mut self, subject: Subject, layouts: u64) -> Result<Selftest, Failure> {
        let failed = |reason: String| Ok(subject.record(Status::Failed, Some(reason)));
        match self.ask(&Request::Selftest { kernel: subject.name(), layouts }, KERNEL)? {
            Ok(Message::Tested(tested)) => {
                let Tested { record, device_lost } = *tested;
                if device_lost {
                    self.worker = None;
                }
                Ok(record)
            }
            Ok(_) => {
                self.worker = None;
                failed(OUT_OF_TURN.to_owned())
            }
            Err(error) => failed(error.to_string()),
        }
    }
}

/// How a kernel's test ended, in a few words.
fn ending(record: &Selftest) -> String {
    match record.status {
        Status::Ok => {
            let seconds = record.wall_ns as f64 / 1e9;
            format!("ok, {} faults caught, {seconds:.1} s", record.caught())
        }
        _ => format!("{}: {}", record.status, record.reason.as_deref().unwrap_or("")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_selects_whole_names() {
        let bulk = select(&["*bulk*".to_owned(), "copy".to_owned()]).unwrap();
        assert!(bulk.len() > 2 && bulk.len() < 10, "{bulk:?}");
        assert_eq!(select(&[]).unwrap(), Subject::all());
        let failure = select(&["bulk".to_owned()]).unwrap_err();
        assert_eq!(failure.code, Failure::REQUEST);
        assert!(failure.message.contains("read_bulk"), "{}", failure.message);
    }

    #[test]
    fn a_verdict_names_what_failed() {
        let [ok, skipped, failed] = [Status::Ok, Status::Skipped, Status::Failed]
            .map(|status| Subject::DriverCopy.record(status, Some("why".to_owned())));
        assert_eq!(verdict(&[ok.clone(), skipped.clone()]), Ok(()));
        let failure = verdict(&[ok, failed, skipped]).unwrap_err();
        assert_eq!(failure.code, Failure::CASE);
        assert_eq!(failure.message, "1 of 3 kernels failed the selftest: driver_copy: why");
        assert!(verdict(&[Subject::DriverCopy.record("melted".to_owned().into(), None)]).is_err());
    }
}
