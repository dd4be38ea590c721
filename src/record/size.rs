//! Binary sizes as people write and read them.

use thiserror::Error;

const UNITS: [(&str, u32); 5] = [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10), ("B", 0)];

/// The size in the largest binary unit that divides it, so that the text is exact: `64GiB`,
/// `1536B`.
///
/// ```
/// assert_eq!(fragbench::record::size::exact(64 << 30), "64GiB");
/// assert_eq!(fragbench::record::size::exact(1025), "1025B");
/// ```
pub fn exact(bytes: u64) -> String {
    let (unit, shift) = UNITS
        .iter()
        .find(|(_, shift)| bytes >> shift << shift == bytes && bytes >> shift > 0)
        .unwrap_or(&("B", 0));
    format!("{}{unit}", bytes >> shift)
}

/// The size to three digits, for sentences: `139.8 GiB`, `64 GiB`, `512 B`.
pub fn rounded(bytes: u64) -> String {
    let (unit, shift) = UNITS.iter().find(|(_, shift)| bytes >> shift > 0).unwrap_or(&("B", 0));
    let value = bytes as f64 / (1u64 << shift) as f64;
    let text = format!("{value:.1}");
    format!("{} {unit}", text.strip_suffix(".0").unwrap_or(&text))
}

/// Why a text is no size.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ParseSizeError {
    /// Not a number with a known unit.
    #[error("`{0}` is no size: write a whole number and a unit, as in 512MiB or 16GiB")]
    Malformed(String),
    /// Zero bytes.
    #[error("`{0}` is zero bytes: give a size above 0")]
    Zero(String),
    /// Below zero.
    #[error("`{0}` is negative: give a size above 0")]
    Negative(String),
    /// More than 2^64 - 1 bytes.
    #[error("`{0}` is more than 64 bits can hold: give a smaller size")]
    Overflow(String),
}

/// Reads a size: a whole number with `B`, `KiB`, `MiB`, `GiB` or `TiB` (also `K`, `M`, `G`, `T`;
/// always powers of 1024; without a unit bytes).
///
/// # Errors
///
/// [`ParseSizeError`] says what is wrong with the text.
pub fn parse(text: &str) -> Result<u64, ParseSizeError> {
    let trimmed = text.trim();
    let malformed = || ParseSizeError::Malformed(text.to_owned());
    if let Some(rest) = trimmed.strip_prefix('-') {
        let negative = rest.starts_with(|c: char| c.is_ascii_digit());
        return Err(if negative { ParseSizeError::Negative(text.to_owned()) } else { malformed() });
    }
    let digits = trimmed.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = trimmed.split_at(digits);
    if number.is_empty() {
        return Err(malformed());
    }
    let shift = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kib" => 10,
        "m" | "mib" => 20,
        "g" | "gib" => 30,
        "t" | "tib" => 40,
        _ => return Err(malformed()),
    };
    let overflow = || ParseSizeError::Overflow(text.to_owned());
    let count: u64 = number.parse().map_err(|_| overflow())?;
    let bytes = count.checked_mul(1u64 << shift).ok_or_else(overflow)?;
    if bytes == 0 { Err(ParseSizeError::Zero(text.to_owned())) } else { Ok(bytes) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn bad_sizes_are_told_apart() {
        assert!(matches!(parse("0"), Err(ParseSizeError::Zero(_))));
        assert!(matches!(parse("-3GiB"), Err(ParseSizeError::Negative(_))));
        assert!(matches!(parse("99999999999999999999"), Err(ParseSizeError::Overflow(_))));
        assert!(matches!(parse("16777216TiB"), Err(ParseSizeError::Overflow(_))));
        for text in ["", "GiB", "1.5GiB", "1 GB", "--", "-", "12x"] {
            assert!(matches!(parse(text), Err(ParseSizeError::Malformed(_))), "{text}");
        }
    }

    #[test]
    fn rounded_sizes_read_well() {
        assert_eq!(rounded(512), "512 B");
        assert_eq!(rounded(64 << 30), "64 GiB");
        assert_eq!(rounded(150_109_618_176), "139.8 GiB");
    }

    proptest! {
        #[test]
        fn exact_round_trips(bytes in 1..=u64::MAX) {
            prop_assert_eq!(parse(&exact(bytes)), Ok(bytes));
        }

        #[test]
        fn parse_never_panics(text in "\\PC*") {
            let _ = parse(&text);
        }
    }
}
