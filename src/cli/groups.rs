//! The groups of a run, one after the other: each is asked of the worker and becomes a journal line.

use std::collections::HashSet;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::Failure;
use super::bench::{Bench, OUT_OF_TURN};
use super::progress::Progress;
use super::worker::{Message, Request};
use crate::experiment::{Heap, Plan};
use crate::record::journal::{JournalError, JournalWriter};
use crate::record::{Group, Lost, Run, Status, size};

/// Aged heaps of groups to come that a worker is told of.
const HEAPS_AHEAD: usize = 8;

/// What any group may take, whatever is planned: ageing a heap and waiting for the device are in no
/// estimate.
const LEAST_PATIENCE: Duration = Duration::from_secs(300);

/// How many times its estimate a group may take on top of that: a shared device, a sanitizer, and a
/// bandwidth that was only guessed.
const PATIENCE_FACTOR: u32 = 20;

/// How the groups of a run are measured, beside what their plans say.
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
        plans: &[Plan],
        mut journal: JournalWriter,
        done: Vec<Group>,
    ) -> Result<Vec<Group>, Failure> {
        let begin = Instant::now();
        // What was lost has a line, which another one will stand in place of.
        let mut groups: Vec<Group> = done.into_iter().filter(|g| g.lost.is_none()).collect();
        let known: HashSet<(u32, String)> =
            groups.iter().map(|group| (group.process, group.case.clone())).collect();
        let processes = bench.selection.processes;
        let mut progress = Progress::new(plans.len() * processes as usize);
        let mut inject_fault = self.inject_fault;
        let turns =
            (0..processes).flat_map(|process| (0..plans.len()).map(move |at| (process, at)));
        for (process, at) in turns {
            let plan = &plans[at];
            let case = plan.case();
            if at == 0 && process > 0 {
                bench.worker = None;
            }
            if known.contains(&(process, case.clone())) {
                progress.end(&case, "in the journal already");
                continue;
            }
            progress.begin(&case);
            let answer = match self.without_asking(plan, begin.elapsed()) {
                Some(group) => Ok(group),
                None => {
                    let request = Request::Measure {
                        plan: Box::new(plan.clone()),
                        ahead: upcoming(&plans[at..]),
                        after_fault: std::mem::take(&mut inject_fault),
                    };
                    self.ask(bench, plan, &request)
                }
            };
            if bench.interrupted.load(Ordering::SeqCst) {
                let message = format!("interrupted; what was measured is kept: {}", self.go_on());
                return Err(Failure { code: Failure::INTERRUPTED, message });
            }
            let group = answer.map_err(|failure| self.no_worker(failure))?;
            let group = Group { process, ..group };
            journal.write_group(&group).map_err(|error| self.not_kept(error))?;
            progress.end(&case, &ending(&group));
            groups.push(group);
        }
        Ok(groups)
    }

    /// The record of a group that is skipped without asking the worker.
    fn without_asking(&self, plan: &Plan, elapsed: Duration) -> Option<Group> {
        let late = self.run.selection.time_limit_s.filter(|limit_s| elapsed.as_secs() >= *limit_s);
        let limit_bytes = self.run.memory_limit_bytes;
        let reason = if plan.memory_bytes() > limit_bytes {
            let (needs, limit) = (size::rounded(plan.memory_bytes()), size::rounded(limit_bytes));
            format!("needs {needs} of memory, over the limit of {limit}")
        } else {
            format!("the time limit of {} s was over before its turn came", late?)
        };
        Some(plan.record(Status::Skipped, Some(reason)))
    }

    /// Has one group measured. A worker that fails costs its group, and the next group gets a fresh one.
    pub fn ask(&self, bench: &mut Bench, plan: &Plan, request: &Request) -> Result<Group, Failure> {
        let patience = self.patience.unwrap_or_else(|| patience(plan, self.run));
        let why = match bench.ask(request, patience)? {
            Ok(Message::Measured(group)) => {
                if group.lost.is_some() {
                    bench.worker = None;
                }
                return Ok(*group);
            }
            Ok(_) => {
                bench.worker = None;
                OUT_OF_TURN.to_owned()
            }
            // An interruption among them: the caller sees the flag as well, and drops the record.
            Err(error) => error.to_string(),
        };
        Ok(Group { lost: Some(Lost::Worker), ..plan.record(Status::Failed, Some(why)) })
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

/// How long a worker may take for a group.
fn patience(plan: &Plan, run: &Run) -> Duration {
    LEAST_PATIENCE + PATIENCE_FACTOR * plan.estimate(expected_bytes_per_s(run))
}

/// The device's memory bandwidth, or a guess of it, in bytes a second.
pub fn expected_bytes_per_s(run: &Run) -> f64 {
    // A data-centre GPU of 2020, where the peak is unknown; a desktop's two channels for the host.
    let guess = if run.device.is_host() { 20e9 } else { 1.5e12 };
    run.device.peak_bytes_per_s().unwrap_or(guess)
}

/// The next heaps that are asked for, each once.
fn upcoming(plans: &[Plan]) -> Vec<Heap> {
    let mut heaps: Vec<Heap> = plans.iter().filter_map(Plan::heap).collect();
    heaps.dedup();
    heaps.truncate(HEAPS_AHEAD);
    heaps
}

/// How a group ended, in a few words.
fn ending(group: &Group) -> String {
    let reason = group.reason.as_deref().unwrap_or("");
    match group.status {
        Status::Ok => {
            let rounds = group.arms.first().map_or(0, |arm| arm.samples.len());
            let phases = &group.phases;
            let ns = phases.prepare_ns + phases.wait_ns + phases.verify_ns + phases.measure_ns;
            format!("ok, {rounds} rounds, {:.1} s", ns as f64 / 1e9)
        }
        _ => format!("{}: {reason}", group.status),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::{Suite, plans};
    use crate::record::DeviceKind;
    use crate::summary::fixture;

    #[test]
    fn patience_follows_the_plan_and_the_device() {
        let mut run = fixture::gpu_run();
        (run.device.memory_clock_khz, run.device.bus_width_bits) = (Some(2_619_000), Some(6_144));
        let plans = plans(Suite::Full, &DeviceKind::Cuda);
        let largest = plans.iter().max_by_key(|plan| plan.memory_bytes()).unwrap();
        let smallest = plans.iter().min_by_key(|plan| plan.memory_bytes()).unwrap();
        assert!(patience(smallest, &run) > LEAST_PATIENCE);
        assert!(patience(largest, &run) > patience(smallest, &run));
        // A hang is noticed within minutes on a fast device, and a slow one has the time that it takes.
        assert!(patience(largest, &run) < 3 * LEAST_PATIENCE, "{:?}", patience(largest, &run));
        run.device.bus_width_bits = Some(64);
        let alone = largest.estimate(expected_bytes_per_s(&run));
        assert!(patience(largest, &run) >= LEAST_PATIENCE + 20 * alone);
    }
}
