//! The whole table for programs: CSV and JSON with the same fields.

use serde_json::Value;

use crate::summary::{COLUMNS, Row};

/// The table as CSV: a header, then a line per row. What does not apply is empty.
///
/// # Panics
///
/// Never: a row is a flat set of texts, numbers and truth values.
pub fn csv(rows: &[Row]) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(COLUMNS).expect("a record is written to memory");
    for row in rows {
        // The cells are those of the JSON form, so that the two exports cannot tell two stories.
        let fields = serde_json::to_value(row).expect("a row has a JSON form");
        writer
            .write_record(COLUMNS.map(|column| cell(&fields[column])))
            .expect("a record is written to memory");
    }
    let bytes = writer.into_inner().expect("memory is flushed");
    String::from_utf8(bytes).expect("cells are UTF-8")
}

/// The table as a JSON array with an object for each row. What does not apply is `null`.
///
/// # Panics
///
/// Never: a row is a flat set of texts, numbers and truth values.
pub fn json(rows: &[Row]) -> String {
    let mut text = serde_json::to_string_pretty(rows).expect("rows have a JSON form");
    text.push('\n');
    text
}

fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
