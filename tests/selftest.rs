//! The verb `selftest` on the host: what it shows, what it keeps, and what its journal is exported as.

use std::path::Path;
use std::time::Duration;

use assert_cmd::Command;
use fragbench::record::Selftest;
use fragbench::record::journal::Journal;
use predicates::prelude::*;
use predicates::str::contains;

/// How long one layout for each kernel may take: seconds, on an idle machine.
const PATIENCE: Duration = Duration::from_secs(120);

fn fragbench(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::cargo_bin("fragbench").unwrap();
    command.current_dir(folder).args(arguments);
    command
}

#[test]
fn a_selftest_is_shown_kept_and_exported() {
    let folder = tempfile::tempdir().unwrap();
    let run = ["selftest", "--device", "host", "--layouts", "1", "--out", "x.jsonl"];
    let text = fragbench(folder.path(), &run).timeout(PATIENCE).assert().success();
    let text = text.stderr(contains("driver_copy: ok, ").and(contains("Journal: x.jsonl")));
    let table = contains("not a GPU").and(contains("gather_copy_i8_u4")).and(contains("0 failed"));
    text.stdout(table.and(contains("GPU-only")));
    let journal = Journal::read(&folder.path().join("x.jsonl")).unwrap();
    assert_eq!(journal.run.selection.suite, "selftest");
    assert!(!journal.run.modules.is_empty() && journal.groups.is_empty());
    assert!(journal.selftests.iter().all(|record| record.caught() == record.planted()));

    // The same seed, the same faults.
    let run = ["selftest", "--device", "host", "--layouts", "1", "--seed", "1", "--format", "json"];
    let json = fragbench(folder.path(), &run).timeout(PATIENCE).output().unwrap();
    assert!(json.status.success());
    let records: Vec<Selftest> = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(records.len(), journal.selftests.len());
    for (again, record) in records.iter().zip(&journal.selftests) {
        assert_eq!((&again.kernel, &again.faults), (&record.kernel, &record.faults));
    }

    let export = |format: &str| {
        let run = fragbench(folder.path(), &["export", "x.jsonl", "--format", format]).output();
        let run = run.unwrap();
        assert!(run.status.success(), "{run:?}");
        (String::from_utf8(run.stdout).unwrap(), String::from_utf8(run.stderr).unwrap())
    };
    for format in ["text", "markdown"] {
        let (page, notice) = export(format);
        assert!(page.contains("not a GPU") && page.contains("gather_copy_i8_u4"), "{page}");
        assert!(notice.is_empty());
    }
    let (csv, notice) = export("csv");
    assert_eq!((csv.lines().count(), notice.lines().count()), (1, 1), "{csv}{notice}");
    assert_eq!(export("json").0, "[]\n");
    let resumed = fragbench(folder.path(), &["run", "--resume", "x.jsonl"]).assert();
    resumed.code(2).stderr(contains("no suite `selftest`"));
}
