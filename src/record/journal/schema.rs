//! The JSON Schema of a journal's lines, made from the types that are written and read.

use schemars::{Schema, SchemaGenerator, generate::SchemaSettings, json_schema};
use serde_json::{Value, json};

use super::CHECKSUM;
use super::writer::Written;

/// The schema that every line of a journal conforms to. What this version does not know, types of
/// lines, fields and values of enums, is allowed as it is in reading.
pub fn schema() -> Schema {
    let generator = SchemaGenerator::new(SchemaSettings::draft2020_12());
    let known = generator.into_root_schema_for::<Written<'static>>();
    let mut lines = known.get("oneOf").and_then(Value::as_array).cloned().unwrap_or_default();
    let types: Vec<Value> =
        lines.iter().map(|line| line["properties"]["type"]["const"].clone()).collect();
    let unknown = json!({
        "description": "A line of a type that a later version added.",
        "type": "object",
        "properties": {"type": {"type": "string", "not": {"enum": types}}},
        "required": ["type"],
    });
    lines.push(unknown);
    json_schema!({
        "$schema": known.get("$schema"),
        "title": "A line of a fragbench journal",
        "description": "Journals are JSON Lines: the run first, then a line for each group, or for \
                        each kernel of a selftest. docs/FORMAT.md tells what the fields mean.",
        "properties": {CHECKSUM: {
            "description": "CRC-32 of the line before this field, which is its last; absent in journals \
                            from before there were checksums.",
            "type": "integer",
            "minimum": 0,
            "maximum": u32::MAX,
        }},
        "oneOf": lines,
        "$defs": known.get("$defs"),
    })
}
