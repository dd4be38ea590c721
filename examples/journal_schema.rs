//! Prints the JSON Schema of a journal's lines:
//! `cargo run --example journal_schema > docs/journal.schema.json`.

use fragbench::record::journal::schema;

fn main() -> serde_json::Result<()> {
    println!("{}", serde_json::to_string_pretty(&schema())?);
    Ok(())
}
