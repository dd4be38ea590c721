//! The cases of a run, one after the other: each is asked of the worker and becomes a journal line.

use std::collections::HashSet;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::Failure;
use super::bench::{Bench, OUT_OF_TURN};
use super::progress::Progress;
use super::worker::{Message, Request};
use crate::experiment::{Case, Heap};
use crate::record::journal::{JournalError, JournalWriter};
use crate::record::{Entry, Run, Status, size};

/// Aged heaps of groups to come that a worker is told of.
const HEAPS_AHEAD: usize = 8;

/// What any group may take, whatever is planned: ageing a heap and waiting for the device are in no
/// estimate.
const LEAST_PATIENCE: Duration = Duration::from_secs(300);

/// How many times its estimate a group may take on top of that: a shared device, a sanitizer, and a
/// bandwidth that was only guessed.
const PATIENCE_FACTOR: u32 = 20;

/// How the cases of a run are measured, beside what their plans say.
pub struct Groups<'a> {
    /// The run.
    pub run: &'a Run,
    /// The journal's path, for what is said of it.
    pub path: &'a Path,
    /// How long a worker may take for a group, in place of what follows from its plan.
    pub patience: Option<Duration>,
    /// Whether the device has to fault before the first group.
    pub inject_fault: bool,
}

impl Groups<'_> {
    /// Measures what is not done yet, a journal line each: all cases in one process, and then in the
    /// next, so that what changes with time is between processes too.
    pub fn measure(
        &self,
        bench: &mut Bench,
        cases: &[Case],
        mut journal: JournalWriter,
        done: Vec<Entry>,
    ) -> Result<Vec<Entry>, Failure> {
        let begin = Instant::now();
        // What was lost has a line, which another one will stand in place of.
        let mut entries: Vec<Entry> = done.into_iter().filter(|e| e.lost().is_none()).collect();
        let known: HashSet<(u32, String)> =
            entries.iter().map(|entry| (entry.process(), entry.case().to_owned())).collect();
        let processes = bench.selection.processes;
        let mut progress = Progress::new(cases.len() * processes as usize);
        let mut inject_fault = self.inject_fault;
        let turns =
            (0..processes).flat_map(|process| (0..cases.len()).map(move |at| (process, at)));
        for (process, at) in turns {
            let case = &cases[at];
            let id = case.id();
            if at == 0 && process > 0 {
                bench.worker = None;
            }
            if known.contains(&(process, id.clone())) {
                progress.end(&id, "in the journal already");
                continue;
            }
            progress.begin(&id);
            let answer = match self.without_asking(case, begin.elapsed()) {
                Some(entry) => Ok(entry),
                None => {
                    let can_fault = matches!(case, Case::Bandwidth(_));
                    let after_fault = can_fault && std::mem::take(&mut inject_fault);
                    self.ask(bench, case, &request(case, &cases[at..], after_fault))
                }
            };
            if bench.interrupted.load(Ordering::SeqCst) {
                let message = format!("interrupted; what was measured is kept: {}", self.go_on());
                return Err(Failure { code: Failure::INTERRUPTED, message });
            }
            let entry = answer.map_err(|failure| self.no_worker(failure))?.with_process(process);
            journal.write_entry(&entry).map_err(|error| self.not_kept(error))?;
            progress.end(&id, &ending(&entry));
            entries.push(entry);
        }
        Ok(entries)
    }

    /// The record of a case that is skipped without asking the worker.
    fn without_asking(&self, case: &Case, elapsed: Duration) -> Option<Entry> {
        let late = self.run.selection.time_limit_s.filter(|limit_s| elapsed.as_secs() >= *limit_s);
        let limit_bytes = self.run.memory_limit_bytes;
        let selection = &self.run.selection;
        let reason = if case.fills_device()
            && selection.memory_limit_bytes.is_some()
            && !selection.allow_fill
        {
            "it would fill the device, and --memory-limit forbids that: give --allow-fill to have \
             it done all the same"
                .to_owned()
        } else if case.memory_bytes() > limit_bytes {
            let (needs, limit) = (size::rounded(case.memory_bytes()), size::rounded(limit_bytes));
            format!("needs {needs} of memory, over the limit of {limit}")
        } else {
            format!("the time limit of {} s was over before its turn came", late?)
        };
        Some(case.skipped(reason))
    }

    /// Has one case measured. A worker that fails costs its case, and the next case gets a fresh one.
    pub fn ask(&self, bench: &mut Bench, case: &Case, request: &Request) -> Result<Entry, Failure> {
        let patience = self.patience.unwrap_or_else(|| patience(case, self.run));
        if case.needs_fresh_process() {
            bench.worker = None;
        }
        let why = match bench.ask(request, patience)? {
            Ok(Message::Measured(group)) => {
                if group.lost.is_some() {
                    bench.worker = None;
                }
                return Ok(Entry::Group(group));
            }
            Ok(Message::Allocated(allocation)) => {
                if allocation.lost.is_some() || case.needs_fresh_process() {
                    bench.worker = None;
                }
                return Ok(Entry::Allocation(allocation));
            }
            Ok(_) => {
                bench.worker = None;
                OUT_OF_TURN.to_owned()
            }
            // An interruption among them: the caller sees the flag as well, and drops the record.
            Err(error) => error.to_string(),
        };
        Ok(case.lost(why))
    }

    fn go_on(&self) -> String {
        format!("go on with --resume {}", self.path.display())
    }

    /// No worker can be started in place of one that was lost. That is no bad request: it could be
    /// when the run began.
    fn no_worker(&self, failure: Failure) -> Failure {
        let message = format!("{}; what was measured is kept: {}", failure.message, self.go_on());
        Failure { code: Failure::CASE, message }
    }

    /// A result that is nowhere is as good as none, and so are all that would follow.
    fn not_kept(&self, error: JournalError) -> Failure {
        let message = match error {
            JournalError::Write { path, reason } => format!(
                "a result cannot be written to {}: {reason}; what was written before is kept: make room there, and {}",
                path.display(),
                self.go_on()
            ),
            other => other.to_string(),
        };
        Failure { code: Failure::CASE, message }
    }
}

/// What the worker is asked.
fn request(case: &Case, coming: &[Case], after_fault: bool) -> Request {
    match case {
        Case::Bandwidth(plan) => {
            Request::Measure { plan: plan.clone(), ahead: upcoming(coming), after_fault }
        }
        Case::Allocation(plan) => Request::Allocate { plan: Box::new(plan.clone()) },
    }
}

/// How long a worker may take for a case.
fn patience(case: &Case, run: &Run) -> Duration {
    LEAST_PATIENCE + PATIENCE_FACTOR * case.estimate(expected_bytes_per_s(run))
}

/// The device's memory bandwidth, or a guess of it, in bytes a second.
pub fn expected_bytes_per_s(run: &Run) -> f64 {
    // A data-centre GPU of 2020, where the peak is unknown; a desktop's two channels for the host.
    let guess = if run.device.is_host() { 20e9 } else { 1.5e12 };
    run.device.peak_bytes_per_s().unwrap_or(guess)
}

/// The next heaps that are asked for, each once.
fn upcoming(cases: &[Case]) -> Vec<Heap> {
    let mut heaps: Vec<Heap> = cases.iter().filter_map(Case::heap).collect();
    heaps.dedup();
    heaps.truncate(HEAPS_AHEAD);
    heaps
}

/// How a case ended, in a few words.
fn ending(entry: &Entry) -> String {
    if *entry.status() != Status::Ok {
        return format!("{}: {}", entry.status(), entry.reason().unwrap_or(""));
    }
    let (phases, what) = match entry {
        Entry::Group(group) => {
            let rounds = group.arms.first().map_or(0, |arm| arm.samples.len());
            (&group.phases, format!("{rounds} rounds, "))
        }
        Entry::Allocation(allocation) => (&allocation.phases, String::new()),
    };
    let ns = phases.prepare_ns + phases.wait_ns + phases.verify_ns + phases.measure_ns;
    format!("ok, {what}{:.1} s", ns as f64 / 1e9)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::{Suite, cases};
    use crate::record::DeviceKind;
    use crate::summary::fixture;

    #[test]
    fn patience_follows_the_plan_and_the_device() {
        let mut run = fixture::gpu_run();
        (run.device.memory_clock_khz, run.device.bus_width_bits) = (Some(2_619_000), Some(6_144));
        let cases = cases(Suite::Full, &DeviceKind::Cuda);
        let largest = cases.iter().max_by_key(|case| case.memory_bytes()).unwrap();
        let smallest = cases.iter().min_by_key(|case| case.memory_bytes()).unwrap();
        assert!(patience(smallest, &run) > LEAST_PATIENCE);
        assert!(patience(largest, &run) > patience(smallest, &run));
        // A hang is noticed within minutes on a fast device, and a slow one has the time that it takes.
        assert!(patience(largest, &run) < 3 * LEAST_PATIENCE, "{:?}", patience(largest, &run));
        run.device.bus_width_bits = Some(64);
        let alone = largest.estimate(expected_bytes_per_s(&run));
        assert!(patience(largest, &run) >= LEAST_PATIENCE + 20 * alone);
    }
}
