//! Processes of the program, as tests start, watch and signal them.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use fragbench::record::Status;
use fragbench::record::journal::Journal;

/// How long a process may take for what takes it no more than moments.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until it holds; panics with `what` where it does not become so in time.
#[track_caller]
pub fn wait_until(patience: Duration, what: &str, mut holds: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < patience, "{what}: not within {patience:?}");
        sleep(Duration::from_millis(20));
    }
}

/// Whole lines of a file.
pub fn lines(path: &Path) -> usize {
    fs::read_to_string(path).map_or(0, |text| text.matches('\n').count())
}

/// The worker processes that this parent started and that have not ended.
pub fn workers_of(parent: u32) -> Vec<u32> {
    let flag = format!("--parent={parent}");
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let is_worker = |pid: &u32| {
        // A process that has ended, waited for or not, has no command line.
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let mut words = line.split(|byte| *byte == 0);
        words.nth(1) == Some(b"worker") && words.any(|word| word == flag.as_bytes())
    };
    pids.filter(is_worker).collect()
}

/// Sends a signal; false where there is no such process any more.
pub fn signal(pid: u32, name: &str) -> bool {
    let sent = Command::new("kill").args([&format!("-{name}"), &pid.to_string()]).output();
    sent.unwrap().status.success()
}

/// The cases of a journal in order, each with its status.
pub fn cases(path: &Path) -> Vec<(String, Status)> {
    let groups = Journal::read(path).unwrap().groups;
    groups.into_iter().map(|group| (group.case, group.status)).collect()
}
