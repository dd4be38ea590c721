//! The record of what the checked-in files were made from: sections of `key = value` lines.

use std::collections::BTreeMap;
use std::fmt::Write;

/// The name of the manifest's file.
pub const FILE: &str = "manifest.txt";

/// The section of the bindings.
pub const BINDINGS: &str = "bindings";

const HEAD: &str = "\
# What the files in this folder were made from. Made by
# cargo run --features regenerate --example refresh_prebuilt
";

/// Sections by name, each with its values by key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Manifest {
    sections: BTreeMap<String, BTreeMap<String, String>>,
}

impl Manifest {
    /// Reads a manifest. Lines that are neither a section nor a pair say nothing.
    pub fn parse(text: &str) -> Self {
        let mut manifest = Self::default();
        let mut section = String::new();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
                section = name.to_owned();
            } else if let Some((key, value)) = line.split_once(" = ") {
                manifest.set(&section, key, value);
            }
        }
        manifest
    }

    /// The value of a key, where the manifest has it.
    pub fn get(&self, section: &str, key: &str) -> Option<&str> {
        self.sections.get(section)?.get(key).map(String::as_str)
    }

    /// Puts a value in place of an earlier one.
    pub fn set(&mut self, section: &str, key: &str, value: &str) {
        let section = self.sections.entry(section.to_owned()).or_default();
        section.insert(key.to_owned(), value.to_owned());
    }

    /// The text that [`Manifest::parse`] reads.
    pub fn render(&self) -> String {
        let mut text = HEAD.to_owned();
        for (name, values) in &self.sections {
            write!(text, "\n[{name}]\n").expect("a string takes every text");
            for (key, value) in values {
                writeln!(text, "{key} = {value}").expect("a string takes every text");
            }
        }
        text
    }
}
