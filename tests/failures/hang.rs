//! Workers that hang, and interruptions in the middle of one long step.

use std::thread::sleep;
use std::time::{Duration, Instant};

use fragbench::record::journal::Journal;
use fragbench::record::{Lost, Status};

use super::process::{PATIENCE, cases, lines, signal, wait_until, workers_of};
use super::{AGES, ended, fragbench, quick, run_of, start};

#[test]
fn a_hung_worker_costs_its_group_and_the_next_gets_a_fresh_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.jsonl");
    let both = [AGES.to_owned(), quick("256B")];
    let arguments = [run_of(&both), vec!["--worker-timeout=4".to_owned()]].concat();
    let child = start(folder.path(), &fragbench(), &arguments);
    let parent = child.id();
    wait_until(PATIENCE, "the run's line", || lines(&path) == 1);
    let hung = workers_of(parent);
    assert_eq!(hung.len(), 1);
    assert!(signal(hung[0], "STOP"));
    let output = ended(child);
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(error.contains("1 of 2 cases failed"), "{error}");
    assert!(error.contains("measured again by --resume run.jsonl"), "{error}");
    assert!(!signal(hung[0], "CONT"), "the hung worker is still there");
    wait_until(PATIENCE, "the fresh worker's end", || workers_of(parent).is_empty());

    let statuses = [Status::Failed, Status::Ok];
    assert_eq!(cases(&path), both.into_iter().zip(statuses).collect::<Vec<_>>());
    let journal = Journal::read(&path).unwrap();
    let group = &journal.groups[0];
    assert_eq!(group.lost, Some(Lost::Worker));
    let reason = group.reason.as_deref().unwrap();
    assert_eq!(reason, "the worker process did not answer within 4 s, and was killed");
    assert_eq!(journal.groups[1].lost, None);
}

#[test]
fn ctrl_c_does_not_wait_for_a_heap_to_age() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.jsonl");
    let child = start(folder.path(), &fragbench(), &run_of(&[quick("256B"), AGES.to_owned()]));
    let parent = child.id();
    wait_until(PATIENCE, "the first group's line", || lines(&path) == 2);
    // In the middle of the ageing, which takes far longer.
    sleep(Duration::from_secs(1));
    let worker = workers_of(parent);
    assert_eq!(worker.len(), 1);
    let begin = Instant::now();
    assert!(signal(parent, "INT"));
    let output = ended(child);
    assert!(begin.elapsed() < Duration::from_secs(2), "{:?}", begin.elapsed());
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(130), "{error}");
    assert!(error.contains("go on with --resume run.jsonl"), "{error}");
    assert!(workers_of(parent).is_empty(), "the worker, and what it holds, is still there");
    assert_eq!(cases(&path), [(quick("256B"), Status::Ok)]);
}
