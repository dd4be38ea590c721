//! What is read, and what is refused.

use super::*;

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
fn whole_lines_that_make_no_sense_are_errors_even_at_the_end() {
    // Dropping them would lose what somebody wrote in full.
    let run = unsealed_run();
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
