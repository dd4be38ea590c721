//! Text from files on a Markdown page, which must show it and not obey it.

use super::text::clean;

/// The text as plain Markdown text, also inside a table cell.
pub fn escape(text: &str) -> String {
    let text: Vec<char> = clean(text).chars().collect();
    let mut escaped = String::with_capacity(text.len());
    for (at, &c) in text.iter().enumerate() {
        let is_alphanumeric = |at: Option<usize>| {
            at.and_then(|at| text.get(at)).is_some_and(|c: &char| c.is_alphanumeric())
        };
        // An underscore within a word is plain, and identifiers read better without a backslash.
        let is_inner = is_alphanumeric(at.checked_sub(1)) && is_alphanumeric(Some(at + 1));
        let is_active = match c {
            '_' => !is_inner,
            // Brackets alone are plain; a link needs what follows the closing one.
            ']' => matches!(text.get(at + 1), Some('(' | '[' | ':')),
            '\\' | '|' | '`' | '*' | '<' | '>' | '~' | '$' | '&' => true,
            _ => false,
        };
        if is_active {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}

/// The text as code, outside tables: fenced by more backticks than it holds in a row.
pub fn code(text: &str) -> String {
    let text = clean(text);
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    if longest == 0 { format!("`{text}`") } else { format!("{fence} {text} {fence}") }
}

/// A word of a command line as a shell takes it.
pub fn shell_word(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_cannot_be_broken_out_of() {
        assert_eq!(escape("a|b\n<img> *x* [y](z) `q`"), r"a\|b \<img\> \*x\* [y\](z) \`q\`");
        assert_eq!(escape("gather_read _x_"), r"gather_read \_x\_");
        assert_eq!(escape("\x1b[2J"), r"\\u{1b}[2J");
    }

    #[test]
    fn code_keeps_its_backticks_inside() {
        assert_eq!(code("run --suite quick"), "`run --suite quick`");
        assert_eq!(code("a ``b`` c"), "``` a ``b`` c ```");
    }

    #[test]
    fn a_command_can_be_pasted() {
        assert_eq!(shell_word("--suite"), "--suite");
        assert_eq!(shell_word("*/x"), "'*/x'");
        assert_eq!(shell_word("it's"), r"'it'\''s'");
        assert_eq!(shell_word(""), "''");
    }
}
