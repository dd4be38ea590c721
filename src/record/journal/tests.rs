//! Tests of the journal, by topic, and what they have in common.

mod damage;
mod properties;
mod reading;
mod resuming;
mod writing;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::super::SCHEMA;
use super::writer::Written;
use super::*;

fn sample_run() -> Run {
    serde_json::from_value(json!({
        "schema": SCHEMA,
        "tool": "0.1.0",
        "source_sha256": "00ff",
        "modules": {"access": "aa", "verify": "bb"},
        "arguments": ["run", "--seed", "7"],
        "selection": {"suite": "quick", "device": "auto", "seed": "18446744073709551615"},
        "memory_limit_bytes": u64::MAX,
        "memory_limit_reason": "half of free: “shared”",
        "started": "2026-01-01T00:00:00Z",
        "host": {"os": "Linux", "architecture": "x86_64", "processor": null,
                 "logical_processors": 2, "memory_bytes": null, "sockets": 2},
        "device": {"kind": "quantum", "id": "cuda:0", "name": "Größe", "uuid": null,
                   "memory_bytes": 1, "nvml": false, "future": [1, {"x": null}]},
        "weather": "sunny",
    }))
    .unwrap()
}

fn sample_group(case: &str) -> Group {
    serde_json::from_value(json!({
        "case": case,
        "experiment": "bandwidth",
        "mechanism": "indirect",
        "kernel": "gather_read",
        "pattern": "zigzag",
        "footprint_bytes": 4096,
        "payload_bytes": 2048,
        "status": "ok",
        "arms": [{
            "name": "scattered", "kernel": "gather_read", "pattern": "zigzag",
            "order": "backwards", "read_bytes": 2048, "written_bytes": 0, "index_bytes": 64,
            "touched_bytes": 4096, "energy_uj": 5,
            "samples": {"round": [0], "position": [1], "launches": [2], "ns": [u64::MAX]},
        }],
        "stop": "bored",
        "humidity": {"percent": 40},
    }))
    .unwrap()
}

fn line_of<'a>(line: impl Into<Written<'a>>) -> Vec<u8> {
    line.into().line().unwrap()
}

/// A run, a group, a line of an unknown type, and a group.
fn sample_lines() -> [Vec<u8>; 4] {
    [
        line_of(&sample_run()),
        line_of(&sample_group("first/größe")),
        sealed("{\"type\":\"weather\",\"sky\":\"blue\"}"),
        line_of(&sample_group("second")),
    ]
}

fn sealed(object: &str) -> Vec<u8> {
    [&checksum::seal(object.as_bytes().to_vec())[..], b"\n"].concat()
}

fn sample_text() -> Vec<u8> {
    sample_lines().concat()
}

/// A run's line from before there were checksums.
fn unsealed_run() -> Value {
    let mut line = serde_json::to_value(sample_run()).unwrap();
    line["type"] = "run".into();
    line
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

fn parse(bytes: &[u8]) -> Result<Journal, JournalError> {
    Journal::parse(bytes, Path::new("x.jsonl"))
}

fn parse_with(first: &Value, rest: &str) -> Result<Journal, JournalError> {
    parse(format!("{first}\n{rest}").as_bytes())
}

/// What the journal holds, apart from where it ends.
fn content(journal: &Journal) -> (&Run, Vec<&str>, usize) {
    let cases = journal.groups.iter().map(|group| group.case.as_str()).collect();
    (&journal.run, cases, journal.unknown.len())
}

struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("x.jsonl")
    }

    fn with(bytes: &[u8]) -> Self {
        let folder = Self::new();
        fs::write(folder.path(), bytes).unwrap();
        folder
    }
}
