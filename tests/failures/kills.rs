//! Processes that are killed at random moments, again and again.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use fragbench::layout::draw;
use fragbench::record::Status;
use fragbench::record::journal::Journal;

use super::process::{cases, signal, workers_of};
use super::{fragbench, run_of};

/// Kills that are dealt out; `FRAGBENCH_KILLS` asks for another number.
const KILLS: u64 = 20;

/// The longest time to the next kill: about two cases and the start of a process.
const LONGEST_MS: u64 = 800;

/// Distinct cases, of a fraction of a second each. So many that a run is not complete long before so
/// many kills are dealt out.
fn cases_for(kills: u64) -> Vec<String> {
    const FRAGMENTS: [&str; 10] =
        ["16B", "32B", "64B", "128B", "256B", "512B", "1KiB", "2KiB", "4KiB", "8KiB"];
    let forms = ["read/pattern=shuffled", "read/pattern=strided", "read/pattern=random"]
        .into_iter()
        .chain(["copy/pattern=shuffled", "copy/pattern=strided", "copy/pattern=checkerboard"]);
    let cases = forms.flat_map(|form| {
        FRAGMENTS.map(|fragment| {
            format!("bandwidth/kernel=gather_{form}/fragment={fragment}/footprint=64KiB")
        })
    });
    cases.take((kills as usize * 3 / 5).max(4)).collect()
}

/// A program that is ended with the test.
struct Run(Child);

impl Drop for Run {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Run {
    /// Begins the run of these cases, or goes on with it.
    fn start(folder: &Path, cases: &[String]) -> Run {
        let path = folder.join("run.jsonl");
        // Killed before its first line was whole, a run has left nothing to go on with.
        if Journal::read(&path).is_err() {
            let _ = fs::remove_file(&path);
        }
        let arguments = match path.exists() {
            true => ["run", "--resume", "run.jsonl"].map(str::to_owned).to_vec(),
            false => run_of(cases),
        };
        let mut command = Command::new(fragbench());
        command.current_dir(folder).args(arguments).stdin(Stdio::null());
        Run(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }

    /// Waits so long; true where the program ended by itself.
    fn ends_within(&mut self, time: Duration) -> bool {
        let begin = Instant::now();
        while begin.elapsed() < time {
            if self.0.try_wait().unwrap().is_some() {
                return true;
            }
            thread::sleep(Duration::from_millis(2));
        }
        false
    }
}

/// What the killing came to.
#[derive(Debug, Default)]
struct Toll {
    parents: u64,
    workers: u64,
    /// Runs that were complete before all kills were dealt out.
    complete: u64,
}

/// Deals out kills to a run and its worker until none is left, or the run is complete.
fn kill(folder: &Path, cases: &[String], kills: u64, toll: &mut Toll) {
    let mut run = Run::start(folder, cases);
    let mut hurt = false;
    while toll.parents + toll.workers < kills {
        let dealt = toll.parents + toll.workers;
        let wait = Duration::from_micros(draw(1, dealt) % (LONGEST_MS * 1000));
        if run.ends_within(wait) {
            if run.0.wait().unwrap().code() == Some(0) {
                toll.complete += 1;
                return;
            }
            // What was lost with its worker is left to do, or no worker could be started.
            assert!(std::mem::take(&mut hurt), "a run failed that nobody had hurt");
            run = Run::start(folder, cases);
            continue;
        }
        let parent = run.0.id();
        let worker = workers_of(parent).first().copied();
        match worker.filter(|_| draw(2, dealt).is_multiple_of(2)) {
            Some(worker) if signal(worker, "KILL") => {
                toll.workers += 1;
                hurt = true;
            }
            // It has just ended by itself.
            Some(_) => {}
            None => {
                toll.parents += u64::from(signal(parent, "KILL"));
                run = Run::start(folder, cases);
                hurt = false;
            }
        }
    }
}

/// The case and metric of every row, in order, and whether it is `ok`.
fn rows(folder: &Path) -> Vec<(String, String, bool)> {
    let mut command = Command::new(fragbench());
    let output = command.current_dir(folder).args(["export", "run.jsonl"]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let mut table = csv::Reader::from_reader(&output.stdout[..]);
    let header = table.headers().unwrap().clone();
    let at = |name: &str| header.iter().position(|column| column == name).unwrap();
    let [case, metric, status] = ["case", "metric", "status"].map(at);
    let rows = table.records().map(|row| row.unwrap());
    let row = |row: csv::StringRecord| (row[case].into(), row[metric].into(), &row[status] == "ok");
    rows.map(row).collect()
}

/// Whatever was killed: once the run is complete it holds what an undisturbed one does.
fn is_as_undisturbed(folder: &Path, expected: &[String], undisturbed: &[(String, String, bool)]) {
    let mut found = cases(&folder.join("run.jsonl"));
    found.sort_by_key(|(case, _)| expected.iter().position(|known| known == case));
    let ok = expected.iter().map(|case| (case.clone(), Status::Ok));
    assert_eq!(found, ok.collect::<Vec<_>>());
    let mut rows = rows(folder);
    rows.sort();
    assert_eq!(rows, undisturbed);
}

#[test]
fn kills_at_random_moments_lose_and_double_nothing() {
    let kills = match env::var("FRAGBENCH_KILLS") {
        Ok(number) => number.parse().expect("FRAGBENCH_KILLS is a number"),
        Err(_) => KILLS,
    };
    let cases = cases_for(kills);
    let folder = tempfile::tempdir().unwrap();
    assert!(Run::start(folder.path(), &cases).0.wait().unwrap().success());
    let mut undisturbed = rows(folder.path());
    undisturbed.sort();
    let distinct: BTreeSet<_> = undisturbed.iter().collect();
    assert!(distinct.len() == undisturbed.len() && undisturbed.iter().all(|row| row.2));

    let mut toll = Toll::default();
    while toll.parents + toll.workers < kills {
        let folder = tempfile::tempdir().unwrap();
        kill(folder.path(), &cases, kills, &mut toll);
        // Once more with nobody in its way.
        assert!(Run::start(folder.path(), &cases).0.wait().unwrap().success());
        is_as_undisturbed(folder.path(), &cases, &undisturbed);
    }
    println!("{toll:?}");
    assert!(toll.workers > 0 && toll.parents > 0, "{toll:?}");
}
