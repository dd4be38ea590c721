//! `fragbench devices` as people run it, on whatever machine this is.

use assert_cmd::Command;
use predicates::str::contains;
use serde_json::Value;

fn devices(arguments: &[&str]) -> Command {
    let mut command = Command::cargo_bin("fragbench").unwrap();
    command.arg("devices").args(arguments);
    command
}

#[test]
fn every_device_says_what_would_spoil_a_run_on_it_or_that_nothing_would() {
    let output = devices(&[]).output().unwrap();
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    let paragraphs: Vec<&str> = text.split("\n\n").collect();
    assert!(paragraphs.last().unwrap().starts_with("host: "), "{text}");
    for device in paragraphs {
        let findings = device.lines().filter(|line| line.starts_with("  ! ")).count();
        let is_sound = device.trim_end().ends_with("\n  nothing found that would spoil a run");
        assert_eq!(is_sound, findings == 0, "{device}");
    }
}

#[test]
fn the_list_as_json_has_findings() {
    let output = devices(&["--format", "json"]).output().unwrap();
    let list: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    let host = list.last().unwrap();
    assert_eq!(host["id"], "host");
    for finding in list.iter().flat_map(|device| device["findings"].as_array().unwrap()) {
        let parts = ["what", "why", "cure"].map(|part| finding[part].as_str().unwrap());
        assert!(parts.iter().all(|part| !part.is_empty()), "{finding}");
    }
}

#[test]
fn formats_of_tables_are_refused() {
    for format in ["csv", "markdown"] {
        let refused = devices(&["--format", format]).assert().code(2).stdout("");
        refused.stderr(contains("choose one of them with --format"));
    }
}
