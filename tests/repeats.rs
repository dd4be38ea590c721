//! `run --processes`: the program measures each case in several fresh processes.

use std::path::Path;

use assert_cmd::Command;
use fragbench::record::journal::Journal;
use serde_json::Value;

const CASE: &str = "bandwidth/kernel=gather_copy/pattern=shuffled/fragment=64B/footprint=256MiB";

fn fragbench(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::cargo_bin("fragbench").unwrap();
    command.current_dir(folder).args(arguments);
    command
}

#[test]
fn each_of_several_processes_measures_each_case_and_intervals_lie_between_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.jsonl");
    let run = ["run", "--device=host", "--memory-limit=1GiB", "--case", CASE, "--processes=3"];
    let run = [&run[..], &["--out=run.jsonl", "--format=json"]].concat();
    let output = fragbench(folder.path(), &run).output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{error}");
    let journal = Journal::read(&path).unwrap();
    let lines: Vec<(u32, &str)> =
        journal.groups.iter().map(|group| (group.process, group.case.as_str())).collect();
    assert_eq!(lines, [(0, CASE), (1, CASE), (2, CASE)]);
    let rows: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    assert!(rows.iter().all(|row| row["processes"] == 3 && row["interval"] == "between"));
    let ratio = rows.iter().find(|row| row["metric"] == "relative_bandwidth").unwrap();
    let number = |name: &str| ratio[name].as_f64().unwrap();
    assert!(
        number("process_low") <= number("median") && number("median") <= number("process_high")
    );
    // What is complete is resumed to the same, and may not become another run.
    let resume = ["run", "--resume", "run.jsonl", "--format", "json"];
    let again = fragbench(folder.path(), &resume).output().unwrap();
    assert!(again.stdout == output.stdout, "{}", String::from_utf8_lossy(&again.stdout));
    for (wrong, part) in [
        (&["--resume=run.jsonl", "--processes=4"][..], "processes is `3`"),
        (&["--processes=0"], "--processes"),
    ] {
        let output = fragbench(folder.path(), &["run"]).args(wrong).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        assert!(String::from_utf8(output.stderr).unwrap().contains(part));
    }
}
