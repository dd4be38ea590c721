//! The program as people run it: bad input that is refused before anything happens, and the way of
//! a run through its journal, an interruption, a resumption and the exports.
//!
//! Everything runs on the host, in the cheapest groups of its quick suite.

mod process;

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command as Process, Stdio};
use std::time::{Duration, Instant};

use assert_cmd::Command;
use flate2::Compression;
use flate2::write::GzEncoder;
use fragbench::record::Status;
use fragbench::record::journal::Journal;
use fragbench::summary::COLUMNS;
use predicates::prelude::*;
use predicates::str::contains;
use process::{PATIENCE, cases, lines, signal, wait_until, workers_of};
use serde_json::Value;
use tempfile::TempDir;

/// One case too large for [`SMALL`], and two that fit; of the latter each is measured in seconds.
const FILTERS: [&str; 2] =
    ["*gather_read/pattern=shuffled/fragment=4KiB*", "*gather_copy*fragment=64B/footprint=256MiB"];
const CASES: [&str; 3] = [
    "bandwidth/kernel=gather_read/pattern=shuffled/fragment=4KiB/footprint=2GiB",
    "bandwidth/kernel=gather_read/pattern=shuffled/fragment=4KiB/footprint=256MiB",
    "bandwidth/kernel=gather_copy/pattern=shuffled/fragment=64B/footprint=256MiB",
];
const SMALL: &str = "--memory-limit=440MiB";

fn fragbench(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::cargo_bin("fragbench").unwrap();
    command.current_dir(folder).args(arguments);
    command
}

fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

/// Names and contents of everything in the folder.
fn contents(folder: &Path) -> BTreeSet<(PathBuf, Vec<u8>)> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.map(|path| (path.clone(), fs::read(&path).unwrap_or_default())).collect()
}

/// Exit 2, one line that holds all `parts`, nothing on standard output, nothing written.
#[track_caller]
fn refused(folder: &Path, arguments: &[&str], parts: &[&str]) {
    let before = contents(folder);
    let output = fragbench(folder, arguments).timeout(PATIENCE).output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {error}");
    assert!(output.stdout.is_empty(), "{arguments:?} printed {:?}", output.stdout);
    assert_eq!(error.lines().count(), 1, "{arguments:?}: {error}");
    assert!(error.starts_with("fragbench: ") && error.ends_with('\n'), "{arguments:?}: {error}");
    for part in parts {
        assert!(error.contains(part), "{arguments:?}: `{part}` is not in {error}");
    }
    assert_eq!(contents(folder), before, "{arguments:?} wrote something");
}

#[test]
fn devices_that_do_not_exist_are_refused() {
    let folder = folder();
    for device in ["gpu0", "HOST", "cuda:", "cuda:-1", "cuda:x", ""] {
        let device = format!("--device={device}");
        refused(folder.path(), &["run", &device], &["is no device", "fragbench devices"]);
    }
    // Where there is no driver the sentence is about that; the way out is the same.
    for device in ["cuda:99", "GPU-00000000-dead-beef-0000-000000000000"] {
        refused(folder.path(), &["run", "--device", device], &["host"]);
    }
}

#[test]
fn limits_that_cannot_be_are_refused() {
    let folder = folder();
    let sizes = [
        ("", "is no size"),
        ("lots", "is no size"),
        ("1.5GiB", "is no size"),
        ("1 GB", "is no size"),
        ("0", "zero bytes"),
        ("0GiB", "zero bytes"),
        ("-1GiB", "negative"),
        ("16777216TiB", "64 bits"),
        ("99999999999999999999999", "64 bits"),
    ];
    for (size, why) in sizes {
        let request = ["run", "--device", "host", "--memory-limit", size];
        refused(folder.path(), &request, &[why]);
    }
    for time in ["0", "0s", "-5s", "soon", "1.5h", "99999999999999999h"] {
        let request = ["run", "--device", "host", "--time-limit", time];
        refused(folder.path(), &request, &["is no time"]);
    }
    let request = ["run", "--device", "host", "--memory-limit", "1MiB"];
    refused(folder.path(), &request, &["too small for any case", "1 MiB", "the smallest needs"]);
    let request = ["run", "--device", "host", "--inject-device-fault"];
    refused(
        folder.path(),
        &request,
        &["--inject-device-fault needs a GPU", "leave the option out"],
    );
    for seed in ["-1", "x", "18446744073709551616"] {
        let seed = format!("--seed={seed}");
        refused(folder.path(), &["run", "--device", "host", &seed], &["seed"]);
    }
}

#[test]
fn cases_that_do_not_exist_are_refused_with_what_is_near() {
    let folder = folder();
    let run = |more: &[&'static str]| [&["run", "--device", "host"], more].concat();
    let near = ["matches no case", "near it are", "pattern=shuffled"];
    refused(folder.path(), &run(&["--filter", "*pattern=shufled*"]), &near);
    let near = ["matches no case", "fragment=4KiB/footprint=256MiB"];
    refused(folder.path(), &run(&["--filter", "fragment=4KiB/footprint=256MiB"]), &near);
    // One that matches does not hide one that does not.
    let both = ["--filter", "*fragment=4KiB*", "--filter", "*fragment=5KiB*"];
    refused(folder.path(), &run(&both), &["`*fragment=5KiB*` matches no case"]);
    refused(folder.path(), &run(&["--filter", "[z-a]"]), &["is no glob"]);
    refused(folder.path(), &run(&["--filter", "{a"]), &["is no glob"]);
    refused(folder.path(), &run(&["--suite", "huge"]), &["huge", "quick", "standard"]);
    let unknown = ["there is no experiment `latncy`", "bandwidth"];
    refused(folder.path(), &run(&["--only", "latncy"]), &unknown);
    refused(folder.path(), &["rnu"], &["rnu"]);
    refused(folder.path(), &run(&["--fast"]), &["--fast"]);
    refused(folder.path(), &run(&["--format", "xml"]), &["xml", "markdown"]);
}

#[test]
fn outputs_that_cannot_be_written_are_refused() {
    let folder = folder();
    let run = |out: &str| {
        ["run", "--device", "host", "--filter", FILTERS[1], "--out", out].map(str::to_owned)
    };
    let refused = |out: &str, parts: &[&str]| {
        let arguments = run(out);
        refused(folder.path(), &arguments.each_ref().map(String::as_str), parts);
    };
    refused("absent/run.jsonl", &["cannot write absent/run.jsonl", "--out"]);
    refused("absent/", &["absent/"]);
    refused("", &["--out"]);
    refused("run.csv", &["run.csv", ".jsonl"]);
    fs::write(folder.path().join("run.jsonl"), "mine\n").unwrap();
    refused("run.jsonl", &["run.jsonl exists already", "--resume run.jsonl", "--out"]);
    refused("run.jsonl/other.jsonl", &["cannot write run.jsonl/other.jsonl"]);
}

#[test]
fn journals_that_are_none_are_refused() {
    let folder = folder();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    write("empty.jsonl", "");
    write("blank.jsonl", "\n\n");
    write("foreign.jsonl", "{\"level\":\"info\"}\n{\"level\":\"warn\"}\n");
    write("text.jsonl", "case,median\na,1\n");
    write("torn.jsonl", "{\"type\":\"run\",\"schema\":0,\"to");
    write("newer.jsonl", "{\"type\":\"run\",\"schema\":99,\"tool\":\"7.0.0\"}\n");
    fs::write(
        folder.path().join("damaged.jsonl.gz"),
        [0x1f, 0x8b, 8, 0, 1, 2, 3, 4, 5, 6, 255, 255],
    )
    .unwrap();
    let cases: [(&str, &[&str]); 8] = [
        ("absent.jsonl", &["cannot read absent.jsonl"]),
        ("empty.jsonl", &["empty.jsonl is empty"]),
        ("blank.jsonl", &["blank.jsonl is empty"]),
        ("foreign.jsonl", &["no fragbench journal"]),
        ("text.jsonl", &["no fragbench journal"]),
        ("torn.jsonl", &["no fragbench journal"]),
        ("newer.jsonl", &["schema 99", "version 7.0.0"]),
        ("damaged.jsonl.gz", &["damaged.jsonl.gz"]),
    ];
    for (name, parts) in cases {
        refused(folder.path(), &["run", "--resume", name], parts);
        refused(folder.path(), &["export", name], parts);
    }
    refused(folder.path(), &["run", "--resume", "."], &["cannot read ."]);
    let both = ["run", "--resume", "empty.jsonl", "--out", "new.jsonl"];
    refused(folder.path(), &both, &["--resume", "--out"]);
    refused(folder.path(), &["export"], &["RUN"]);
}

#[test]
fn list_and_dry_run_show_the_cases_and_write_nothing() {
    let folder = folder();
    let mut run = vec!["run", "--device", "host", SMALL];
    run.extend(FILTERS.iter().flat_map(|glob| ["--filter", glob]));
    let list = fragbench(folder.path(), &run).arg("--list").assert().success();
    list.stdout(CASES.map(|case| format!("{case}\n")).concat()).stderr("");
    let dry = fragbench(folder.path(), &run).arg("--dry-run").assert().success();
    let sums =
        contains("3 cases on host; peak memory").and(contains("over the memory limit").count(1));
    let dry = dry.stdout(sums);
    CASES.iter().fold(dry, |dry, case| dry.stdout(contains(*case)));
    assert!(contents(folder.path()).is_empty());
    // A journal that a dry run is to resume stays as it is, and so does a file in its way.
    fs::write(folder.path().join("run.jsonl"), "mine\n").unwrap();
    fragbench(folder.path(), &run).args(["--dry-run", "--out", "run.jsonl"]).assert().success();
    assert_eq!(fs::read_to_string(folder.path().join("run.jsonl")).unwrap(), "mine\n");
}

/// Begins a run of [`CASES`] that writes `run.jsonl`.
fn start(folder: &Path, more: &[&str]) -> Child {
    let mut command = Process::new(assert_cmd::cargo::cargo_bin("fragbench"));
    command.current_dir(folder).args(["run", "--device", "host", SMALL, "--out", "run.jsonl"]);
    command.args(FILTERS.iter().flat_map(|glob| ["--filter", glob])).args(more);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

#[test]
fn a_selftest_that_cannot_be_is_refused() {
    let folder = folder();
    let selftest = |more: &[&'static str]| [&["selftest", "--device", "host"], more].concat();
    refused(folder.path(), &["selftest", "--device=gpu0"], &["is no device", "fragbench devices"]);
    refused(folder.path(), &["selftest", "--device", "cuda:99"], &["host"]);
    refused(folder.path(), &selftest(&["--layouts", "0"]), &["layouts", "1..=100000"]);
    refused(folder.path(), &selftest(&["--seed=-1"]), &["seed"]);
    refused(folder.path(), &selftest(&["--format", "csv"]), &["text or json", "--format"]);
    refused(folder.path(), &selftest(&["--out", "x.csv"]), &["x.csv", ".jsonl"]);
    refused(folder.path(), &selftest(&["--suite", "quick"]), &["--suite"]);
    fs::write(folder.path().join("x.jsonl"), "mine\n").unwrap();
    let taken = ["x.jsonl exists already: name another file with --out"];
    refused(folder.path(), &selftest(&["--out", "x.jsonl"]), &taken);
}

#[test]
fn ctrl_c_ends_a_selftest_with_130() {
    let folder = folder();
    let path = folder.path().join("x.jsonl");
    let mut command = Process::new(assert_cmd::cargo::cargo_bin("fragbench"));
    command.args(["selftest", "--device", "host", "--layouts", "100000", "--out"]).arg(&path);
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = child.spawn().unwrap();
    wait_until(PATIENCE, "the run's line", || lines(&path) == 1);
    let parent = child.id();
    assert!(signal(parent, "INT"));
    let output = child.wait_with_output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(130), "{error}");
    assert!(output.stdout.is_empty() && error.contains("interrupted after 0 kernels"), "{error}");
    wait_until(Duration::from_secs(2), "the worker's end", || workers_of(parent).is_empty());
}

fn expected(statuses: [Status; 3]) -> Vec<(String, Status)> {
    CASES.map(str::to_owned).into_iter().zip(statuses).collect()
}

/// One run, killed in its second measured case, torn, resumed, resumed again, and exported: each
/// group takes seconds, so one test has to do.
#[test]
fn a_killed_run_leaves_no_worker_and_resumes_to_the_same_cases() {
    let folder = folder();
    let path = folder.path().join("run.jsonl");
    let mut child = start(folder.path(), &[]);
    // The run, the case that is skipped, and the first that is measured.
    wait_until(4 * PATIENCE, "the first groups' lines", || lines(&path) == 3);
    let workers = workers_of(child.id());
    assert_eq!(workers.len(), 1, "{workers:?}");
    assert!(signal(child.id(), "KILL"));
    let parent = child.id();
    child.wait().unwrap();
    wait_until(Duration::from_secs(2), "the worker's end", || workers_of(parent).is_empty());

    let killed = expected([Status::Skipped, Status::Ok, Status::Ok])[..2].to_vec();
    assert_eq!(cases(&path), killed);
    let run = |more: &[&'static str]| [&["run", "--resume", "run.jsonl"], more].concat();
    // What is also given has to agree.
    let contradictions: [(&[&str], &str); 6] = [
        (&["--seed", "2"], "--resume: seed is `1` in the journal and `2`"),
        (&["--suite", "standard"], "--resume: suite is `quick` in the journal and `standard`"),
        (&["--device", "auto"], "--resume: device is `host` in the journal and `auto`"),
        (&["--filter", "*"], "--resume: filter is "),
        (&["--memory-limit", "1GiB"], "--resume: memory-limit is `461373440` in the journal"),
        (&["--time-limit", "5s"], "--resume: time-limit is `none` in the journal and `5`"),
    ];
    for (given, sentence) in contradictions {
        refused(folder.path(), &run(given), &[sentence]);
    }

    // Another tool, other kernels or another device's figures do not belong into this journal.
    let whole = fs::read_to_string(&path).unwrap();
    let mut first: Value = serde_json::from_str(whole.lines().next().unwrap()).unwrap();
    // Who edits a line takes its checksum out.
    for field in ["checksum", "crc32"] {
        assert!(first.as_object_mut().unwrap().remove(field).is_some());
    }
    let version = env!("CARGO_PKG_VERSION");
    let changes = [("tool", "9.9.9", version), ("source_sha256", "0123abcd", "source")];
    for (field, value, part) in changes {
        let kept = std::mem::replace(&mut first[field], Value::from(value));
        let other = format!("{first}\n{}", whole.split_once('\n').unwrap().1);
        fs::write(folder.path().join("other.jsonl"), other).unwrap();
        let named = field.split('_').next().unwrap();
        let request = ["run", "--resume", "other.jsonl"];
        refused(folder.path(), &request, &[&format!("the {named} differs"), value, part]);
        first[field] = kept;
    }

    // The killed run had begun to write its next line.
    let torn = format!("{whole}{{\"type\":\"group\",\"case\":\"bandw");
    fs::write(&path, torn).unwrap();
    let resumed = fragbench(folder.path(), &run(&["--seed", "1", "--suite", "quick"]))
        .timeout(4 * PATIENCE)
        .assert()
        .success();
    let notice = contains("line 4: the last line is not whole").and(contains("already").count(2));
    resumed.stderr(notice.and(contains("[3/3]")).and(contains("Journal: run.jsonl"))).stdout(
        contains("not a GPU").and(contains("2 measured and verified, 0 failed, 1 skipped")),
    );
    assert_eq!(cases(&path), expected([Status::Skipped, Status::Ok, Status::Ok]));
    let complete = fs::read_to_string(&path).unwrap();
    assert!(complete.starts_with(&whole), "what was measured before the kill is as it was");
    let journal = Journal::read(&path).unwrap();
    let reason = journal.groups[0].reason.as_deref().unwrap();
    assert!(reason.contains("over the limit of 440 MiB"), "{reason}");
    for group in &journal.groups[1..] {
        assert!(group.is_verified() && group.arms.iter().all(|arm| arm.samples.len() >= 30));
        let arms: Vec<&str> = group.arms.iter().map(|arm| arm.name.as_str()).collect();
        assert_eq!(arms, ["stream", "packed", "sorted", "scattered"]);
    }

    // Nothing is left to do: nothing is measured, nothing written.
    let begin = Instant::now();
    let again = fragbench(folder.path(), &run(&[])).timeout(PATIENCE).assert().success();
    again.stderr(contains("in the journal already").count(3));
    assert!(begin.elapsed() < PATIENCE);
    assert_eq!(fs::read_to_string(&path).unwrap(), complete);

    // A compressed journal is read, but not written to.
    let file = fs::File::create(folder.path().join("run.jsonl.gz")).unwrap();
    let mut packed = GzEncoder::new(file, Compression::fast());
    packed.write_all(whole.as_bytes()).unwrap();
    packed.finish().unwrap();
    refused(folder.path(), &["run", "--resume", "run.jsonl.gz"], &["is compressed", "gunzip"]);

    exports(folder.path());
}

/// `run.jsonl` in every form: the same rows, all of them verified but for the skipped case's.
fn exports(folder: &Path) {
    let export = |format: &str| {
        let run = fragbench(folder, &["export", "run.jsonl", "--format", format]).output().unwrap();
        assert!(run.status.success() && run.stderr.is_empty(), "{run:?}");
        String::from_utf8(run.stdout).unwrap()
    };
    let csv = export("csv");
    let mut table = csv::Reader::from_reader(csv.as_bytes());
    let header: Vec<String> = table.headers().unwrap().iter().map(str::to_owned).collect();
    assert_eq!(header, COLUMNS);
    let rows: Vec<std::collections::BTreeMap<String, String>> =
        table.deserialize().map(Result::unwrap).collect();
    let (ok, other): (Vec<_>, Vec<_>) = rows.iter().partition(|row| row["status"] == "ok");
    assert!(ok.iter().all(|row| row["verified"] == "true" && !row["median"].is_empty()));
    assert!(other.iter().all(|row| row["status"] == "skipped" && row["median"].is_empty()));
    assert!(other.iter().all(|row| row["reason"].contains("over the limit")));
    assert!(rows.iter().all(|row| row["device"].starts_with("host")));
    for case in &CASES[1..] {
        // Four arms, the ratio and its four parts.
        let of_case: Vec<_> = ok.iter().filter(|row| row["case"].starts_with(case)).collect();
        let count = |metric: &str| of_case.iter().filter(|row| row["metric"] == metric).count();
        assert_eq!(count("effective_bandwidth"), 4, "{case}");
        let ratios = ["relative_bandwidth", "indirection_ratio", "density_ratio", "order_ratio"];
        for ratio in ratios.iter().chain(&["total_ratio"]) {
            assert_eq!(count(ratio), 1, "{case}: {ratio}");
        }
    }
    assert!(other.iter().all(|row| row["case"].starts_with(CASES[0])) && !other.is_empty());

    let json: Vec<Value> = serde_json::from_str(&export("json")).unwrap();
    assert_eq!(json.len(), rows.len());
    for (object, row) in json.iter().zip(&rows) {
        assert_eq!(object["case"], row["case"].as_str());
        assert_eq!(object["verified"].to_string(), row["verified"]);
    }
    let page = export("markdown");
    assert!(page.contains("not a GPU") && page.contains("gather_copy") && page.contains('|'));
}

#[test]
fn ctrl_c_ends_with_130_and_keeps_the_journal() {
    let folder = folder();
    let path = folder.path().join("run.jsonl");
    let child = start(folder.path(), &[]);
    wait_until(PATIENCE, "the skipped case's line", || lines(&path) == 2);
    let parent = child.id();
    assert_eq!(workers_of(parent).len(), 1);
    assert!(signal(parent, "INT"));
    let output = child.wait_with_output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(130), "{error}");
    assert!(output.stdout.is_empty());
    assert!(error.contains("interrupted") && error.contains("--resume run.jsonl"), "{error}");
    wait_until(Duration::from_secs(2), "the worker's end", || workers_of(parent).is_empty());
    assert_eq!(cases(&path), expected([Status::Skipped, Status::Ok, Status::Ok])[..1]);
}

#[test]
fn a_lost_worker_costs_its_group_and_the_next_gets_a_fresh_one() {
    let folder = folder();
    let path = folder.path().join("run.jsonl");
    let child = start(folder.path(), &[]);
    wait_until(PATIENCE, "the skipped case's line", || lines(&path) == 2);
    let lost = workers_of(child.id());
    assert_eq!(lost.len(), 1);
    assert!(signal(lost[0], "KILL"));
    wait_until(PATIENCE, "the line of the lost group", || lines(&path) == 3);
    wait_until(PATIENCE, "a fresh worker", || {
        workers_of(child.id()).iter().any(|pid| *pid != lost[0])
    });
    // SIGTERM is what a batch system sends.
    assert!(signal(child.id(), "TERM"));
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    assert_eq!(cases(&path), expected([Status::Skipped, Status::Failed, Status::Ok])[..2]);
    let journal = Journal::read(&path).unwrap();
    let reason = journal.groups[1].reason.as_deref().unwrap();
    assert!(reason.contains("the worker process ended"), "{reason}");
}

#[test]
fn a_time_limit_skips_what_is_left_and_says_so() {
    let folder = folder();
    let child = start(folder.path(), &["--time-limit", "1s", "--format", "json"]);
    let output = child.wait_with_output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{error}");
    let path = folder.path().join("run.jsonl");
    assert_eq!(cases(&path), expected([Status::Skipped, Status::Ok, Status::Skipped]));
    let journal = Journal::read(&path).unwrap();
    assert_eq!(journal.run.selection.time_limit_s, Some(1));
    let rows: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    let late =
        |row: &&Value| row["reason"].as_str().is_some_and(|r| r.contains("time limit of 1 s"));
    let late: Vec<&Value> = rows.iter().filter(late).collect();
    assert!(!late.is_empty());
    for row in late {
        assert!(row["case"].as_str().unwrap().starts_with(CASES[2]));
        assert!(row["status"] == "skipped" && row["median"].is_null());
    }
}

#[test]
fn allocators_are_asked_on_the_host_only_in_simulation() {
    let folder = folder();
    let here = folder.path();
    let on_host = |more: [&'static str; 2]| [&["run", "--device", "host"][..], &more[..]].concat();
    refused(here, &on_host(["--only", "latency"]), &["no case of this suite"]);
    let case = "latency/allocator=cuda_malloc/memory=device/state=base/request=1MiB";
    refused(here, &on_host(["--case", case]), &["the host is none"]);
    let case = "capacity/allocator=caching/memory=simulated/block=1MiB/freed=random/window=4GiB";
    refused(here, &on_host(["--case", case]), &["take memory=device"]);
    let arguments = [on_host(["--only", "classic"]), vec!["--out", "classic.jsonl"]].concat();
    let output = fragbench(here, &arguments).timeout(PATIENCE).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let text = text.split_whitespace().collect::<Vec<&str>>().join(" ");
    // Of 1,024 sets, counted by hand: 60 with too little free, 36 with enough.
    assert!(text.contains("first_fit (simulated) 60, 36 and 96"), "{text}");
    assert!(!text.contains("Ceilings"), "{text}");
    let lines = Journal::read(&here.join("classic.jsonl")).unwrap().allocations;
    assert_eq!(lines.len(), 6);
    assert!(lines.iter().all(|line| line.subsets.as_ref().is_some_and(|sets| sets.tried == 1024)));
}
