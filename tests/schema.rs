//! The JSON Schema of the journal is what the types give, and what journals hold.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use assert_cmd::Command;
use flate2::read::MultiGzDecoder;
use fragbench::record::journal::schema;
use jsonschema::Validator;
use serde_json::{Value, json};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn validator() -> Validator {
    jsonschema::validator_for(schema().as_value()).expect("the schema is one")
}

fn lines(journal: &Path) -> impl Iterator<Item = Value> {
    let file = fs::File::open(journal).expect("the journal opens");
    let text = BufReader::new(MultiGzDecoder::new(file)).lines();
    text.map(|line| serde_json::from_str(&line.expect("a line")).expect("JSON"))
}

fn journals() -> Vec<PathBuf> {
    let folders = fs::read_dir(root().join("results")).expect("results/").flatten();
    let folders = folders.map(|entry| entry.path()).filter(|path| path.is_dir());
    let files = folders.flat_map(|folder| fs::read_dir(folder).expect("a folder").flatten());
    let files = files.map(|file| file.path());
    files.filter(|path| path.to_string_lossy().ends_with(".jsonl.gz")).collect()
}

#[test]
fn the_schema_that_is_checked_in_is_what_the_types_give() {
    let path = root().join("docs/journal.schema.json");
    let written = fs::read_to_string(&path).unwrap_or_default().replace("\r\n", "\n");
    let given = serde_json::to_string_pretty(&schema()).unwrap() + "\n";
    assert!(
        written == given,
        "docs/journal.schema.json is not what the types give: renew it with `cargo run --example \
         journal_schema > docs/journal.schema.json`"
    );
}

#[test]
fn every_line_of_every_published_journal_conforms() {
    let validator = validator();
    let journals = journals();
    assert!(!journals.is_empty(), "no journal under results/");
    for journal in journals {
        for (number, line) in lines(&journal).enumerate() {
            if let Err(error) = validator.validate(&line) {
                let at = error.instance_path();
                panic!("{}, line {}: {error} at {at}", journal.display(), number + 1);
            }
        }
    }
}

#[test]
fn what_this_build_writes_conforms() {
    let folder = tempfile::tempdir().unwrap();
    let case = "bandwidth/kernel=gather_read/pattern=shuffled/fragment=4KiB/footprint=16MiB";
    let run = ["run", "--device", "host", "--case", case, "--out", "run.jsonl"];
    let mut command = Command::cargo_bin("fragbench").expect("the program is built");
    command.current_dir(folder.path()).args(run).assert().success();
    let text = fs::read_to_string(folder.path().join("run.jsonl")).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((lines.len(), &lines[1]["status"]), (2, &json!("ok")));
    let validator = validator();
    for line in lines {
        assert!(validator.is_valid(&line), "{:?}", validator.validate(&line));
    }
}

/// The first line of this type of the published journals, but those of cases that were skipped.
fn published(kind: &str) -> Value {
    let all = journals();
    let mut all = all.iter().flat_map(|journal| lines(journal));
    all.find(|line| line["type"] == kind && line["status"] != "skipped")
        .expect("a line of the type")
}

#[test]
fn lines_that_are_wrong_do_not_conform() {
    let validator = validator();
    let spoilt: [(&str, &str, Value); 9] = [
        ("run", "/schema", json!("0")),
        ("run", "/device/memory_bytes", json!(-1)),
        ("run", "/device/nvml", Value::Null),
        ("run", "/selection/seed", json!(1)),
        ("group", "/case", Value::Null),
        ("group", "/status", json!(3)),
        ("group", "/arms/0/samples/ns/0", json!(1.5)),
        ("group", "/clocks/sm_mhz", json!([1, 2, 3])),
        ("selftest", "/faults", json!({})),
    ];
    for (kind, field, value) in spoilt {
        let mut line = published(kind);
        assert!(validator.is_valid(&line));
        *line.pointer_mut(field).expect("the field is there") = value;
        assert!(!validator.is_valid(&line), "{kind} with a wrong {field}");
    }
    for kind in ["run", "group", "selftest"] {
        assert!(!validator.is_valid(&json!({"type": kind})), "a {kind} without its fields");
    }
    assert!(!validator.is_valid(&json!({"case": "x"})), "a line without a type");
}

#[test]
fn what_later_versions_add_conforms() {
    let validator = validator();
    assert!(validator.is_valid(&json!({"type": "weather", "humidity": 40})));
    let mut group = published("group");
    group["status"] = json!("postponed");
    group["kernel"] = json!("teleport.twice");
    group["humidity"] = json!(40);
    group["condition"] = json!({"temperature_c": [30, 31], "humidity": [40, 41]});
    assert!(validator.is_valid(&group));
    group["condition"] = json!({"temperature_c": [30]});
    assert!(!validator.is_valid(&group));
}

#[test]
fn open_enums_name_what_they_know() {
    let schema = schema();
    let described = |name: &str| -> String {
        let of = &schema.as_value()["$defs"][name];
        assert_eq!(of["type"], "string", "{name}");
        of["description"].as_str().unwrap().to_owned()
    };
    let status = described("Status");
    assert!(status.starts_with("How a group ended. Known values"), "{status}");
    assert!(
        status.contains("- `skipped`: Not measured, for a reason that is no fault."),
        "{status}"
    );
    assert!(described("RefinedKernelName").contains("- `gather_read`: "));
}
