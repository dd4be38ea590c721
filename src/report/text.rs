//! How figures and foreign strings are written for people.

use crate::record::size;
use crate::stats::Interval;

/// The text with white space made plain and every control or direction character spelled out, so
/// that a string from a file can neither break a line nor steer a terminal.
pub fn clean(text: &str) -> String {
    let mut cleaned = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\r' | '\t' => cleaned.push(' '),
            _ if c.is_control() || steers(c) => cleaned.extend(c.escape_unicode()),
            _ => cleaned.push(c),
        }
    }
    cleaned
}

/// Characters that take no room, or turn the direction of the text around them.
fn steers(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// A rate in GB/s to four digits: `4621`, `605.2`, `8.013`.
pub fn rate(gb_per_s: f64) -> String {
    let decimals = match gb_per_s.abs() {
        x if x >= 1000.0 => 0,
        x if x >= 100.0 => 1,
        x if x >= 10.0 => 2,
        _ => 3,
    };
    format!("{gb_per_s:.decimals$}")
}

/// A ratio to three decimals.
pub fn ratio(ratio: f64) -> String {
    format!("{ratio:.3}")
}

/// A ratio that lies near zero, to five decimals.
pub fn small_ratio(ratio: f64) -> String {
    format!("{ratio:.5}")
}

/// A share in percent, to two decimals: `0.31 %`.
pub fn percent(share: f64) -> String {
    format!("{:.2} %", share * 100.0)
}

/// A figure and its interval: `0.299 [0.298, 0.300]`; without an interval the figure and `[?]`.
pub fn with_interval(
    figure: Option<f64>,
    interval: Option<Interval>,
    write: fn(f64) -> String,
) -> String {
    match (figure, interval) {
        (Some(figure), Some(Interval { low, high })) => {
            format!("{} [{}, {}]", write(figure), write(low), write(high))
        }
        (Some(figure), None) => format!("{} [?]", write(figure)),
        (None, _) => "-".to_owned(),
    }
}

/// A figure, or a dash.
pub fn or_dash(figure: Option<f64>, write: fn(f64) -> String) -> String {
    figure.map_or_else(|| "-".to_owned(), write)
}

/// A size as people say it: `64 GiB`.
pub fn bytes(bytes: u64) -> String {
    // An exact size that only a rounding could make short stays exact.
    let exact = size::exact(bytes);
    let digits = exact.chars().take_while(char::is_ascii_digit).count();
    let (number, unit) = exact.split_at(digits);
    if number.len() <= 4 { format!("{number} {unit}") } else { size::rounded(bytes) }
}

/// `a`, `a and b`, `a, b and c`.
pub fn listed(items: &[String]) -> String {
    match items {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// The text in at most `width` characters; what is cut is shown as cut.
pub fn fitted(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let kept: String = text.chars().take(width.saturating_sub(1)).collect();
    format!("{kept}…")
}

/// The text in lines of at most `width` characters where its words allow; all but the first line
/// begin with `indent`.
pub fn wrapped(text: &str, width: usize, indent: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    let mut line = String::new();
    for word in unbroken(text) {
        let is_first_word = line.is_empty() || line == indent;
        let grown = line.chars().count() + word.chars().count() + usize::from(!is_first_word);
        if grown > width && !is_first_word {
            lines.push(std::mem::replace(&mut line, indent.to_owned()));
            line.push_str(&word);
        } else {
            if !is_first_word {
                line.push(' ');
            }
            line.push_str(&word);
        }
    }
    lines.push(line);
    lines.join("\n")
}

/// The words of a text; a number stays with its unit, and an interval in one piece.
fn unbroken(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let is_unit = ["B", "KiB", "MiB", "GiB", "TiB", "%", "GB/s"]
            .contains(&word.trim_end_matches([',', ';', ':', '.', ')']));
        let glued = |last: &&mut String| {
            (is_unit && last.ends_with(|c: char| c.is_ascii_digit()))
                || (last.starts_with('[') && !last.contains(']') && last.ends_with(','))
        };
        match words.last_mut().filter(glued) {
            Some(last) => *last = format!("{last} {word}"),
            None => words.push(word.to_owned()),
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn figures_keep_their_digits() {
        assert_eq!([4621.4, 605.25, 21.0, 8.0134].map(rate), ["4621", "605.2", "21.00", "8.013"]);
        let interval = Some(Interval { low: 0.2984, high: 0.3 });
        assert_eq!(with_interval(Some(0.299), interval, ratio), "0.299 [0.298, 0.300]");
        assert_eq!(with_interval(Some(0.299), None, ratio), "0.299 [?]");
    }

    #[test]
    fn sizes_stay_exact_where_that_is_short() {
        assert_eq!(bytes(1536), "1536 B");
        assert_eq!(bytes(64 << 30), "64 GiB");
        assert_eq!(bytes((64 << 30) + 1), "64 GiB");
    }

    #[test]
    fn a_terminal_cannot_be_steered() {
        assert_eq!(clean("a\x1b[31m\nb\u{202e}c"), "a\\u{1b}[31m b\\u{202e}c");
    }

    #[test]
    fn lists_read_as_sentences() {
        let items = ["a", "b", "c"].map(str::to_owned);
        assert_eq!(listed(&items[..1]), "a");
        assert_eq!(listed(&items), "a, b and c");
    }

    #[test]
    fn figures_are_not_torn_apart() {
        let text = "keeps 0.299 [0.298, 0.300] from 128 B, in 64 GiB";
        let lines = "keeps 0.299\n [0.298, 0.300]\n from\n 128 B, in\n 64 GiB";
        assert_eq!(wrapped(text, 11, " "), lines);
    }

    proptest! {
        #[test]
        fn wrapping_loses_no_word_and_keeps_the_width(words in prop::collection::vec("[a-z]{1,9}", 1..40)) {
            let text = words.join(" ");
            let lines = wrapped(&text, 20, "  ");
            prop_assert!(lines.lines().all(|line| line.chars().count() <= 20));
            prop_assert!(lines.lines().skip(1).all(|line| line.starts_with("  ")));
            prop_assert_eq!(lines.split_whitespace().collect::<Vec<_>>(), words);
        }
    }
}
