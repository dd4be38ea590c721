use std::collections::BTreeMap;

use flate2::Compression;
use flate2::write::GzEncoder;
use proptest::prelude::*;
use serde_json::json;
use tempfile::TempDir;

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::super::SCHEMA;
use super::reader::GZIP_MAGIC;
use super::writer::Written;
use super::*;
use crate::record::{Arm, DeviceKind, Order, Refined, Samples, Status};

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

fn line_of(line: &Written) -> Vec<u8> {
    let mut text = serde_json::to_vec(line).unwrap();
    text.push(b'\n');
    text
}

/// A run, a group, a line of an unknown type, and a group.
fn sample_lines() -> [Vec<u8>; 4] {
    [
        line_of(&Written::Run(&sample_run())),
        line_of(&Written::Group(&sample_group("first/größe"))),
        b"{\"type\":\"weather\",\"sky\":\"blue\"}\n".to_vec(),
        line_of(&Written::Group(&sample_group("second"))),
    ]
}

fn sample_text() -> Vec<u8> {
    sample_lines().concat()
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

#[test]
fn lines_begin_with_their_type() {
    let [run, group, ..] = sample_lines();
    assert!(run.starts_with(b"{\"type\":\"run\",\"schema\":0,"));
    assert!(group.starts_with(b"{\"type\":\"group\",\"case\":"));
}

#[test]
fn newer_fields_values_and_line_types_are_kept() {
    let journal = parse(&sample_text()).unwrap();
    assert_eq!(journal.unknown, [json!({"type": "weather", "sky": "blue"})]);
    let folder = Folder::new();
    let mut writer = JournalWriter::create(&folder.path()).unwrap();
    writer.write_run(&journal.run).unwrap();
    writer.write_group(&journal.groups[0]).unwrap();
    let text = fs::read_to_string(folder.path()).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines[0]["weather"], "sunny");
    assert_eq!(lines[0]["host"]["sockets"], 2);
    assert_eq!(lines[0]["device"]["kind"], "quantum");
    assert_eq!(lines[0]["device"]["future"], json!([1, {"x": null}]));
    assert_eq!(lines[1]["pattern"], "zigzag");
    assert_eq!(lines[1]["stop"], "bored");
    assert_eq!(lines[1]["humidity"], json!({"percent": 40}));
    assert_eq!(lines[1]["arms"][0]["order"], "backwards");
    assert_eq!(lines[1]["arms"][0]["energy_uj"], 5);
}

#[test]
fn each_line_is_in_the_file_as_soon_as_it_is_written() {
    let folder = Folder::new();
    let mut writer = JournalWriter::create(&folder.path()).unwrap();
    writer.write_run(&sample_run()).unwrap();
    assert_eq!(Journal::read(&folder.path()).unwrap().groups.len(), 0);
    writer.write_group(&sample_group("a")).unwrap();
    let journal = Journal::read(&folder.path()).unwrap();
    assert_eq!(journal.groups, [sample_group("a")]);
    assert_eq!(journal.whole_bytes, fs::metadata(folder.path()).unwrap().len());
    drop(writer);
    assert!(folder.path().exists());
}

#[test]
fn cut_anywhere_loses_no_whole_line() {
    let lines = sample_lines();
    let text = lines.concat();
    let folder = Folder::new();
    for cut in 0..=text.len() {
        fs::write(folder.path(), &text[..cut]).unwrap();
        let read = Journal::read(&folder.path());
        // A line is whole without its newline too.
        let mut end = 0;
        let mut whole = 0;
        while whole < lines.len() && end + lines[whole].len() - 1 <= cut {
            end += lines[whole].len();
            whole += 1;
        }
        if whole == 0 {
            let expected = match read.unwrap_err() {
                JournalError::Empty { .. } => cut == 0,
                JournalError::NotAJournal { .. } => cut > 0,
                _ => false,
            };
            assert!(expected, "cut at {cut}");
            continue;
        }
        let journal = read.unwrap();
        let kept = parse(&lines[..whole].concat()).unwrap();
        assert_eq!(content(&journal), content(&kept), "cut at {cut}");
        assert_eq!(journal.torn.is_some(), cut > end, "cut at {cut}");
        assert_eq!(journal.whole_bytes, end.min(cut) as u64, "cut at {cut}");

        let mut writer = JournalWriter::resume(&folder.path(), journal.whole_bytes).unwrap();
        writer.write_group(&sample_group("resumed")).unwrap();
        let expected =
            [&lines[..whole].concat()[..], &line_of(&Written::Group(&sample_group("resumed")))];
        assert_eq!(fs::read(folder.path()).unwrap(), expected.concat(), "cut at {cut}");
    }
}

#[test]
fn compressed_and_cut_anywhere_reads_or_is_refused() {
    let text = sample_text();
    let bytes = gzip(&text);
    let whole = parse(&text).unwrap();
    assert_eq!(parse(&bytes).unwrap(), whole);
    let mut notices = 0;
    for cut in 0..bytes.len() {
        match parse(&bytes[..cut]) {
            Ok(journal) => {
                assert!(journal.torn.is_some(), "cut at {cut}");
                assert_eq!(journal.run, whole.run);
                assert!(whole.groups.starts_with(&journal.groups));
                notices += 1;
            }
            Err(JournalError::Empty { .. } | JournalError::NotAJournal { .. }) => {}
            Err(error) => panic!("cut at {cut}: {error}"),
        }
    }
    assert!(notices >= 8, "the checksum at the end may be cut without loss");
}

#[test]
fn damaged_compression_is_reported() {
    let mut bytes = gzip(&sample_text());
    let checksum = bytes.len() - 8;
    bytes[checksum] ^= 1;
    assert!(matches!(parse(&bytes), Err(JournalError::Gzip { .. })));
}

#[test]
fn bad_line_before_the_last_is_an_error_with_its_number() {
    let [run, group, ..] = sample_lines();
    let half = [&group[..group.len() / 2], b"\n"].concat();
    // A blank line is counted.
    let error = parse(&[&run[..], b"\n", &half, &group].concat()).unwrap_err();
    assert!(matches!(error, JournalError::BadLine { line: 3, .. }), "{error}");
    assert!(error.to_string().starts_with("x.jsonl, line 3: "), "{error}");

    // The same as the last line is torn, even with a newline (zeros after a power failure).
    let journal = parse(&[&run[..], b"\n", &group, b"\0\0\0\n"].concat()).unwrap();
    assert_eq!(journal.groups.len(), 1);
    assert!(journal.torn.unwrap().starts_with("x.jsonl, line 4: "));
    assert_eq!(journal.whole_bytes, (run.len() + 1 + group.len()) as u64);
}

#[test]
fn whole_lines_that_make_no_sense_are_errors_even_at_the_end() {
    // Dropping them would lose what somebody wrote in full.
    let run = serde_json::from_slice(&sample_lines()[0]).unwrap();
    for (line, reason) in [
        ("[1]", "no JSON object"),
        ("{}", "does not say its `type`"),
        ("{\"type\":7}", "does not say its `type`"),
        ("{\"type\":\"group\"}", "missing field `case`"),
        ("{\"type\":\"run\"}", "a second run"),
    ] {
        let error = parse_with(&run, line).unwrap_err();
        assert!(matches!(error, JournalError::BadLine { line: 2, .. }), "{error}");
        assert!(error.to_string().contains(reason), "{error}");
    }
}

#[test]
fn foreign_files_are_told_apart() {
    for text in ["{\"a\":1}\n", "a,b\n1,2\n", "[]", "{\"type\":\"run\"}", "{\"type\":\"group\"}"] {
        let error = parse(text.as_bytes()).unwrap_err();
        assert!(matches!(error, JournalError::NotAJournal { .. }), "{text}: {error}");
    }
    for text in ["", "\n", " \r\n\n"] {
        let error = parse(text.as_bytes()).unwrap_err();
        assert!(matches!(error, JournalError::Empty { .. }), "{text:?}: {error}");
    }
    let missing = Journal::read(Path::new("no-such-folder/x.jsonl")).unwrap_err();
    assert!(matches!(missing, JournalError::Read { .. }), "{missing}");
}

#[test]
fn another_schema_is_reported_before_anything_else_of_its_line() {
    let run = json!({"type": "run", "schema": 9, "tool": "3.1.4", "device": "reshaped"});
    let error = parse_with(&run, "").unwrap_err().to_string();
    assert!(error.contains("has schema 9, but this fragbench reads schema 0"), "{error}");
    assert!(error.contains("version 3.1.4"), "{error}");
    let run = json!({"type": "run", "schema": SCHEMA, "tool": "3.1.4"});
    let error = parse_with(&run, "").unwrap_err();
    assert!(matches!(error, JournalError::BadLine { line: 1, .. }), "{error}");
}

#[test]
fn every_message_is_one_sentence_that_names_the_file() {
    let path = || PathBuf::from("folder/x.jsonl");
    let reason = || io::Error::other("no luck");
    let errors = [
        JournalError::Read { path: path(), reason: reason() },
        JournalError::Write { path: path(), reason: reason() },
        JournalError::Exists { path: path() },
        JournalError::Busy { path: path() },
        JournalError::Empty { path: path() },
        JournalError::NotAJournal { path: path() },
        JournalError::Schema { path: path(), found: "9".into(), tool: "version 9".into() },
        JournalError::BadLine { path: path(), line: 3, reason: "no JSON".into() },
        JournalError::Gzip { path: path(), reason: reason() },
        JournalError::Compressed { path: path() },
        JournalError::Changed { path: path() },
    ];
    for error in errors {
        let text = error.to_string();
        assert!(text.contains("folder/x.jsonl"), "{text}");
        assert!(!text.contains("  ") && !text.contains('\n'), "{text}");
        // What is wrong, then what to do.
        assert!(text.contains([':', ';']) && !text.ends_with('.'), "{text}");
    }
}

#[test]
fn nothing_is_replaced() {
    let folder = Folder::with(b"precious");
    let error = JournalWriter::create(&folder.path()).unwrap_err();
    assert!(matches!(error, JournalError::Exists { .. }), "{error}");
    assert!(error.to_string().contains("--resume"), "{error}");
    assert!(error.to_string().contains("--out"), "{error}");
    assert_eq!(fs::read(folder.path()).unwrap(), b"precious");
}

#[test]
fn only_a_journal_without_a_line_is_removed() {
    let folder = Folder::new();
    let writer = JournalWriter::create(&folder.path()).unwrap();
    assert!(folder.path().exists());
    writer.abandon();
    assert!(!folder.path().exists());

    let mut writer = JournalWriter::create(&folder.path()).unwrap();
    writer.write_run(&sample_run()).unwrap();
    writer.abandon();
    let journal = Journal::read(&folder.path()).unwrap();
    JournalWriter::resume(&folder.path(), journal.whole_bytes).unwrap().abandon();
    assert_eq!(Journal::read(&folder.path()).unwrap(), journal);
}

#[test]
fn compressed_journal_is_not_resumed() {
    let bytes = gzip(&sample_text());
    let folder = Folder::with(&bytes);
    let whole_bytes = Journal::read(&folder.path()).unwrap().whole_bytes;
    let error = JournalWriter::resume(&folder.path(), whole_bytes).unwrap_err();
    assert!(matches!(error, JournalError::Compressed { .. }), "{error}");
    assert_eq!(fs::read(folder.path()).unwrap(), bytes);
}

#[test]
fn file_that_changed_since_it_was_read_is_not_touched() {
    let [run, group, ..] = sample_lines();
    let torn = [&run[..], b"{\"type\":\"gro"].concat();
    let whole_bytes = parse(&torn).unwrap().whole_bytes;
    for now in [[&run[..], &group].concat(), run[..run.len() - 5].to_vec(), Vec::new()] {
        let folder = Folder::with(&now);
        let error = JournalWriter::resume(&folder.path(), whole_bytes).unwrap_err();
        assert!(matches!(error, JournalError::Changed { .. }), "{error}");
        assert_eq!(fs::read(folder.path()).unwrap(), now);
    }
}

#[test]
fn two_runs_do_not_write_to_one_file() {
    let folder = Folder::new();
    let mut writer = JournalWriter::create(&folder.path()).unwrap();
    writer.write_run(&sample_run()).unwrap();
    let whole_bytes = Journal::read(&folder.path()).unwrap().whole_bytes;
    let error = JournalWriter::resume(&folder.path(), whole_bytes).unwrap_err();
    assert!(matches!(error, JournalError::Busy { .. }), "{error}");
    drop(writer);
    JournalWriter::resume(&folder.path(), whole_bytes).unwrap();
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(any::<String>(), inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn any_extra() -> impl Strategy<Value = Map<String, Value>> {
    // No field has such a name.
    prop::collection::btree_map("new_\\PC{0,6}", any_json(), 0..3)
        .prop_map(|map| map.into_iter().collect())
}

fn any_run() -> impl Strategy<Value = Run> {
    (
        any_extra(),
        any_extra(),
        any_extra(),
        any::<String>(),
        any::<[Option<u64>; 2]>(),
        prop::collection::btree_map(any::<String>(), any::<String>(), 0..3),
    )
        .prop_map(|(of_run, of_host, of_device, text, numbers, modules)| {
            let mut run = sample_run();
            run.extra = of_run;
            run.host.extra = of_host;
            run.device.extra = of_device;
            run.device.kind = DeviceKind::from(text.clone());
            run.device.uuid = numbers[0].map(|_| text.clone());
            run.device.l2_bytes = numbers[1];
            run.selection.filters = vec![text];
            run.selection.memory_limit_bytes = numbers[0];
            run.modules = BTreeMap::from_iter(modules);
            run
        })
}

fn any_arm() -> impl Strategy<Value = Arm> {
    let samples = prop::collection::vec(any::<(u32, u32, u32, u64)>(), 0..5);
    (any::<String>(), any::<Option<String>>(), any::<[u64; 4]>(), samples, any_extra()).prop_map(
        |(name, order, bytes, rows, extra)| {
            let mut samples = Samples::default();
            for (round, position, launches, ns) in rows {
                samples.push(round, position, launches, ns);
            }
            Arm {
                kernel: Refined::parse(&name),
                pattern: Refined::parse(&name),
                name,
                order: order.map(Order::from),
                read_bytes: bytes[0],
                written_bytes: bytes[1],
                index_bytes: bytes[2],
                touched_bytes: bytes[3],
                samples,
                extra,
            }
        },
    )
}

fn any_group() -> impl Strategy<Value = Group> {
    (
        any::<String>(),
        prop_oneof!["ok|skipped|failed", any::<String>()],
        any::<Option<String>>(),
        any::<[Option<u64>; 2]>(),
        prop::collection::vec(any_arm(), 0..3),
        any_extra(),
    )
        .prop_map(|(case, status, reason, bytes, arms, extra)| {
            let mut group = sample_group(&case);
            group.status = Status::from(status);
            group.reason = reason;
            group.fragment_bytes = bytes[0];
            group.alignment_bytes = bytes[1];
            group.arms = arms;
            group.extra = extra;
            group
        })
}

proptest! {
    #[test]
    fn what_is_written_is_read(
        run in any_run(),
        groups in prop::collection::vec(any_group(), 0..4),
        resumed in any_group(),
    ) {
        let folder = Folder::new();
        let mut writer = JournalWriter::create(&folder.path()).unwrap();
        writer.write_run(&run).unwrap();
        for group in &groups {
            writer.write_group(group).unwrap();
        }
        drop(writer);
        let journal = Journal::read(&folder.path()).unwrap();
        prop_assert_eq!(&journal.run, &run);
        prop_assert_eq!(&journal.groups, &groups);
        prop_assert_eq!(&journal.torn, &None);

        let mut writer = JournalWriter::resume(&folder.path(), journal.whole_bytes).unwrap();
        writer.write_group(&resumed).unwrap();
        let mut all = groups;
        all.push(resumed);
        prop_assert_eq!(Journal::read(&folder.path()).unwrap().groups, all);
    }

    #[test]
    fn unknown_lines_are_kept(kind in "[a-z]{1,8}", body in any_extra()) {
        prop_assume!(!["run", "group", "selftest"].contains(&kind.as_str()));
        let mut line = body;
        line.insert("type".into(), kind.into());
        let line = Value::Object(line);
        let run = serde_json::from_slice(&sample_lines()[0]).unwrap();
        prop_assert_eq!(parse_with(&run, &line.to_string()).unwrap().unknown, [line]);
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in any::<Vec<u8>>(), at in any::<prop::sample::Index>()) {
        let _ = parse(&bytes);
        let _ = parse(&[&GZIP_MAGIC[..], &bytes].concat());
        for mut damaged in [sample_text(), gzip(&sample_text())] {
            let at = at.index(damaged.len());
            let end = damaged.len().min(at + bytes.len());
            damaged.splice(at..end, bytes.iter().copied());
            let _ = parse(&damaged);
        }
    }
}
