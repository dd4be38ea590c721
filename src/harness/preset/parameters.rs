//! Parameters of situations, as users write them: `layers=32,heads=8`.

use crate::harness::HarnessError;
use crate::harness::names::{list, nearest};
use crate::record::size;

/// One parameter of a situation: its name, its place and what it may be.
pub(super) struct Parameter<'a> {
    pub(super) key: &'static str,
    pub(super) value: &'a mut u64,
    pub(super) least: u64,
    pub(super) most: u64,
    pub(super) unit: Unit,
}

/// How a parameter is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    /// A whole number.
    Count,
    /// A size: `512B`, `4KiB`.
    Bytes,
}

/// A parameter that counts.
pub(super) fn count<'a>(key: &'static str, value: &'a mut u64, most: u64) -> Parameter<'a> {
    Parameter { key, value, least: 1, most, unit: Unit::Count }
}

impl Parameter<'_> {
    fn set(&mut self, preset: &'static str, text: &str) -> Result<(), HarnessError> {
        let refused = |reason: String| HarnessError::Parameter {
            preset,
            key: self.key,
            text: text.to_owned(),
            reason,
        };
        let value = match self.unit {
            // Below, a size of 0 is out of range as well.
            Unit::Count => text.parse().map_err(|_| refused("write a whole number".to_owned()))?,
            Unit::Bytes => size::parse(text).map_err(|error| refused(error.to_string()))?,
        };
        *self.value = value;
        self.check(preset)
    }

    fn check(&self, preset: &'static str) -> Result<(), HarnessError> {
        let Parameter { key, ref value, least, most, .. } = *self;
        if (least..=most).contains(value) {
            return Ok(());
        }
        let [value, least, most] = [**value, least, most].map(|number| self.write(number));
        Err(HarnessError::OutOfRange { preset, key, value, least, most })
    }

    fn write(&self, number: u64) -> String {
        match self.unit {
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
) -> Result<(), HarnessError> {
    let mut named: Vec<&'static str> = Vec::new();
    for part in text.split(',').filter(|part| !part.is_empty()) {
        let (key, value) = part.split_once('=').unwrap_or((part, ""));
        let Some(parameter) = parameters.iter_mut().find(|known| known.key == key) else {
            let keys = || parameters.iter().map(|known| known.key);
            return Err(HarnessError::UnknownParameter {
                preset,
                text: part.to_owned(),
                nearest: nearest(key, keys()),
                known: list(keys()),
            });
        };
        if named.contains(&parameter.key) {
            return Err(HarnessError::ParameterTwice { preset, key: parameter.key });
        }
        named.push(parameter.key);
        parameter.set(preset, value)?;
    }
    Ok(())
}

/// Checks every parameter's range.
pub(super) fn check(
    preset: &'static str,
    parameters: &[Parameter<'_>],
) -> Result<(), HarnessError> {
    parameters.iter().try_for_each(|parameter| parameter.check(preset))
}

/// All parameters as [`read`] takes them.
pub(super) fn write(parameters: &[Parameter<'_>]) -> String {
    let pair = |known: &Parameter<'_>| format!("{}={}", known.key, known.write(*known.value));
    parameters.iter().map(pair).collect::<Vec<_>>().join(",")
}
