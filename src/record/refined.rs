//! A name from the vocabulary with an optional refinement after a dot.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A name and its refinement, as `copy.bulk` or `holes.occupancy_50`: one text in journals, tables
/// and case ids.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Refined<T> {
    /// The name.
    pub base: T,
    /// What stands after the first dot.
    pub refinement: Option<String>,
}

impl<T> Refined<T> {
    /// A name with this refinement.
    pub fn new(base: T, refinement: impl Into<String>) -> Refined<T> {
        Refined { base, refinement: Some(refinement.into()) }
    }
}

impl<T> From<T> for Refined<T> {
    fn from(base: T) -> Self {
        Refined { base, refinement: None }
    }
}

impl<T: From<String>> Refined<T> {
    /// Reads the text of a name.
    pub fn parse(text: &str) -> Refined<T> {
        match text.split_once('.') {
            Some((base, refinement)) => Refined::new(base.to_owned().into(), refinement),
            None => T::from(text.to_owned()).into(),
        }
    }
}

impl<T: fmt::Display> fmt::Display for Refined<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.refinement {
            Some(refinement) => f.pad(&format!("{}.{refinement}", self.base)),
            None => self.base.fmt(f),
        }
    }
}

impl<T: fmt::Display> Serialize for Refined<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de, T: From<String>> Deserialize<'de> for Refined<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Refined::parse(&String::deserialize(deserializer)?))
    }
}

impl<T: JsonSchema> JsonSchema for Refined<T> {
    fn schema_name() -> Cow<'static, str> {
        format!("Refined{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let of_base = T::json_schema(generator);
        let what = of_base.get("description").and_then(|text| text.as_str()).unwrap_or_default();
        json_schema!({
            "type": "string",
            "description": format!("A name and, after a dot, what refines it. {what}"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{KernelName, PatternName};

    #[test]
    fn names_survive_their_text() {
        for text in ["copy", "copy.bulk", "shuffled.window_2MiB.offset_4B", "new.", ".x", ""] {
            let name: Refined<KernelName> = Refined::parse(text);
            assert_eq!(name.to_string(), text);
            let json = serde_json::to_string(&name).unwrap();
            assert_eq!(serde_json::from_str::<Refined<KernelName>>(&json).unwrap(), name);
        }
        let holes: Refined<PatternName> = Refined::parse("holes.occupancy_50");
        assert_eq!(holes, Refined::new(PatternName::Holes, "occupancy_50"));
        assert_eq!(format!("{:<8}|", Refined::from(KernelName::Read)), "read    |");
    }
}
