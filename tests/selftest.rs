//! The verb `selftest` on the host: what it shows, what it keeps, and what its journal is exported as.

use std::path::Path;
use std::time::Duration;

use assert_cmd::Command;
use fragbench::record::journal::Journal;
use fragbench::record::{Check, CheckKind, Selftest};
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

#[test]
fn intervals_are_put_to_the_test() {
    let folder = tempfile::tempdir().unwrap();
    let run = ["selftest", "--part=statistics", "--replications=40", "--out=x.jsonl"];
    // So few replications need not keep what is promised of 5,000; all else has to be there.
    let output = fragbench(folder.path(), &run).timeout(PATIENCE).output().unwrap();
    assert!([Some(0), Some(1)].contains(&output.status.code()), "{output:?}");
    let journal = Journal::read(&folder.path().join("x.jsonl")).unwrap();
    assert_eq!(journal.coverages.len(), 19);
    assert!(journal.coverages.iter().all(|count| count.replications == 40 && count.covered > 25));
    let shown = String::from_utf8(output.stdout).unwrap();
    for format in ["text", "markdown"] {
        let export = fragbench(folder.path(), &["export", "x.jsonl", "--format", format]).output();
        let page = String::from_utf8(export.unwrap().stdout).unwrap();
        assert!(page.contains("heavy_tailed") && page.contains("do not hold"), "{page}");
        assert!(format == "markdown" || page == shown);
    }
    // The same seed, the same noise; another, another.
    let json = |seed: &str| {
        let run = ["selftest", "--part=statistics", "--replications=5", "--format=json", seed];
        let output = fragbench(folder.path(), &run).timeout(PATIENCE).output().unwrap();
        serde_json::from_slice::<Vec<fragbench::record::Coverage>>(&output.stdout).unwrap()
    };
    assert_eq!(json("--seed=3"), json("--seed=3"));
    assert_ne!(json("--seed=3"), json("--seed=4"));
}

#[test]
fn a_clock_is_put_to_the_test() {
    let folder = tempfile::tempdir().unwrap();
    let run = ["selftest", "--part=clock", "--device=host", "--out=x.jsonl"];
    let text = fragbench(folder.path(), &run).timeout(PATIENCE).assert().success();
    text.stdout(contains("not a GPU").and(contains("Steps of ")).and(contains("The host pays")));
    let journal = Journal::read(&folder.path().join("x.jsonl")).unwrap();
    let [clock] = &journal.clocks[..] else { panic!("{:?}", journal.clocks) };
    assert!(clock.short_ns.len() == 2000 && clock.long_ns.len() == clock.long_host_ns.len());
    let export = fragbench(folder.path(), &["export", "x.jsonl", "--format=markdown"]).assert();
    export.success().stdout(contains("# fragbench selftest: the clock"));
}

#[test]
fn kernels_are_compared_with_themselves() {
    let folder = tempfile::tempdir().unwrap();
    let run = ["selftest", "--part=same", "--device=host", "--comparisons=1", "--out=x.jsonl"];
    let output = fragbench(folder.path(), &run).timeout(PATIENCE).output().unwrap();
    let shown = String::from_utf8(output.stdout).unwrap();
    assert!(shown.contains("moved") && shown.contains("called different"), "{shown}");
    let journal = Journal::read(&folder.path().join("x.jsonl")).unwrap();
    let cases: Vec<&str> = journal.groups.iter().map(|group| group.case.as_str()).collect();
    let case = |refinement: &str| {
        format!(
            "bandwidth/kernel=gather_read.{refinement}/pattern=shuffled/fragment=128B/footprint=256MiB"
        )
    };
    assert_eq!(cases, [case("same"), case("moved")]);
    // Each source is checked before and after; where data are moved, each arm has its own.
    for (group, (placements, sources)) in journal.groups.iter().zip([(0, 2), (5, 20)]) {
        assert!(group.is_verified(), "{:?}", group.reason);
        let is_source = |check: &&Check| check.kind == CheckKind::Source;
        assert_eq!(group.checks.iter().filter(is_source).count(), sources);
        assert_eq!((group.arms.len(), group.placements.len()), (2, placements));
    }
    let csv = fragbench(folder.path(), &["export", "x.jsonl"]).assert().success();
    csv.stdout(contains("same_ratio").count(2)).stderr("");
}

#[test]
fn options_of_another_part_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let wrong: [(&[&str], &str); 4] = [
        (&["--part=clock", "--layouts=3"], "--layouts does nothing in `--part clock`"),
        (&["--replications=3"], "take --part statistics"),
        (&["--part=statistics", "--device=cuda:0"], "needs no device"),
        (&["--part=verbs"], "--part"),
    ];
    for (options, part) in wrong {
        let refused = fragbench(folder.path(), &["selftest"]).args(options).assert().code(2);
        refused.stderr(contains(part)).stdout("");
    }
}
