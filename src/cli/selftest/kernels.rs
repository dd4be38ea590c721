//! The part `kernels`: plants faults in every kernel of a device, and sees that each is caught.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::super::bench::{Bench, OUT_OF_TURN};
use super::super::progress::Progress;
use super::super::worker::{Message, Request};
use super::super::{Failure, filter};
use super::{Arguments, Ground, interrupted_after, not_kept, unsound};
use crate::record::journal::JournalWriter;
use crate::record::{Selftest, Status};
use crate::report;
use crate::selftest::{Subject, Tested};

/// How long a worker may take for one kernel, a sanitizer's slowness included.
const KERNEL: Duration = Duration::from_secs(600);

pub fn run(arguments: &Arguments, layouts: u64) -> Result<(), Failure> {
    let subjects = select(&arguments.filter)?;
    let mut ground = Ground::open(arguments)?;
    let journal = ground.journal.take();
    let records = ground.bench.selftest(subjects, layouts, journal)?;
    ground.show(arguments.format, &records, || report::selftest_table(&ground.run, &records))?;
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
    Err(unsound(message))
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
                return Err(interrupted_after(records.len(), "kernels"));
            }
            if let Some(journal) = &mut journal {
                journal.write_selftest(&record).map_err(not_kept)?;
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
