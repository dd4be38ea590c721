//! Parameters of situations, as users write them: `layers=32,heads=8`.

use super::PresetError;
use crate::harness::names::{list, perhaps};
use crate::policy::{PolicyName, UnknownPolicy};
use crate::record::size;

/// One parameter of a situation: its name, its place and what it may be.
pub(super) struct Parameter<'a> {
    pub(super) key: &'static str,
    value: Value<'a>,
}

enum Value<'a> {
    Number { place: &'a mut u64, least: u64, most: u64, unit: Unit },
    Policy(&'a mut PolicyName),
}

/// How a number is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    /// A whole number.
    Count,
    /// A size: `512B`, `4KiB`.
    Bytes,
}

impl<'a> Parameter<'a> {
    /// A number from 1 on.
    pub(super) fn count(key: &'static str, place: &'a mut u64, most: u64) -> Self {
        Self { key, value: Value::Number { place, least: 1, most, unit: Unit::Count } }
    }

    /// A size.
    pub(super) fn bytes(key: &'static str, place: &'a mut u64, least: u64, most: u64) -> Self {
        Self { key, value: Value::Number { place, least, most, unit: Unit::Bytes } }
    }

    /// A policy by its name.
    pub(super) fn policy(key: &'static str, place: &'a mut PolicyName) -> Self {
        Self { key, value: Value::Policy(place) }
    }

    fn set(&mut self, preset: &'static str, text: &str) -> Result<(), PresetError> {
        let key = self.key;
        let refused =
            |reason: String| PresetError::Parameter { preset, key, text: text.to_owned(), reason };
        match &mut self.value {
            Value::Number { place, unit: Unit::Count, .. } => {
                **place = text.parse().map_err(|_| refused("write a whole number".to_owned()))?;
            }
            Value::Number { place, unit: Unit::Bytes, .. } => {
                **place = size::parse(text).map_err(|error| refused(error.to_string()))?;
            }
            Value::Policy(place) => {
                **place =
                    text.parse().map_err(|error: UnknownPolicy| refused(error.to_string()))?;
            }
        }
        self.check(preset)
    }

    fn check(&self, preset: &'static str) -> Result<(), PresetError> {
        match &self.value {
            Value::Number { place, least, most, unit } if !(least..=most).contains(&&**place) => {
                let [value, least, most] =
                    [**place, *least, *most].map(|number| unit.write(number));
                Err(PresetError::OutOfRange { preset, key: self.key, value, least, most })
            }
            _ => Ok(()),
        }
    }

    fn write(&self) -> String {
        match &self.value {
            Value::Number { place, unit, .. } => format!("{}={}", self.key, unit.write(**place)),
            Value::Policy(policy) => format!("{}={policy}", self.key),
        }
    }
}

impl Unit {
    fn write(self, number: u64) -> String {
        match self {
            Unit::Count => number.to_string(),
            Unit::Bytes => size::exact(number),
        }
    }
}

/// Sets the parameters that a text names: `key=value`, parted by commas.
pub(super) fn read(
    preset: &'static str,
    text: &str,
    parameters: &mut [Parameter<'_>],
) -> Result<(), PresetError> {
    let mut named: Vec<&'static str> = Vec::new();
    for part in text.split(',').filter(|part| !part.is_empty()) {
        let (key, value) = part.split_once('=').unwrap_or((part, ""));
        let Some(parameter) = parameters.iter_mut().find(|known| known.key == key) else {
            let keys = || parameters.iter().map(|known| known.key);
            return Err(PresetError::UnknownParameter {
                preset,
                text: part.to_owned(),
                perhaps: perhaps(key, keys()),
                known: list(keys()),
            });
        };
        if named.contains(&parameter.key) {
            return Err(PresetError::ParameterTwice { preset, key: parameter.key });
        }
        named.push(parameter.key);
        parameter.set(preset, value)?;
    }
    Ok(())
}

/// Checks every parameter's range.
pub(super) fn check(preset: &'static str, parameters: &[Parameter<'_>]) -> Result<(), PresetError> {
    parameters.iter().try_for_each(|parameter| parameter.check(preset))
}

/// All parameters as [`read`] takes them.
pub(super) fn write(parameters: &[Parameter<'_>]) -> String {
    parameters.iter().map(Parameter::write).collect::<Vec<_>>().join(",")
}
