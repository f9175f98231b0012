//! Sanitizes foreign text, and formats short texts.

use std::borrow::Cow;

/// The width of a title if the terminal's width is unknown.
const TITLE: usize = 72;

/// Removes terminal control sequences: a model or a repository must not move the cursor, hide text or reorder it.
#[must_use]
pub fn printable(text: &str) -> Cow<'_, str> {
    let is_shown = |c: char| is_harmless(c) || matches!(c, '\n' | '\t');
    if text.chars().all(is_shown) {
        return Cow::Borrowed(text);
    }
    text.chars().map(|c| if is_shown(c) { c } else { '\u{fffd}' }).collect::<String>().into()
}

/// Escapes everything invisible, because a person decides by what they see. Only line breaks stay.
#[must_use]
pub fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if c != '\n' && codex_wire::command_line::is_deceptive(c) {
            shown.extend(c.escape_default());
        } else {
            shown.push(c);
        }
    }
    shown
}

/// Shortens a text to one line.
#[must_use]
pub fn one_line(text: &str) -> String {
    let mut line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some((cut, _)) = line.char_indices().nth(TITLE) {
        line.truncate(cut);
        line.push('…');
    }
    line
}

/// Formats an amount of money, with enough digits to be more than zero.
#[must_use]
pub fn amount(cost: f64) -> String {
    if cost > 0.0 && cost < 0.01 { format!("{cost:.6}") } else { format!("{cost:.4}") }
}

fn is_harmless(c: char) -> bool {
    let reorders = matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' | '\u{61c}');
    !c.is_control() && !reorders
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_shown_as_marks() {
        assert_eq!(printable("plain\ttext\n"), "plain\ttext\n");
        assert_eq!(printable("\x1b]0;title\x07 a\rb \u{202e}evil"), "\u{fffd}]0;title\u{fffd} a\u{fffd}b \u{fffd}evil");
    }

    #[test]
    fn a_title_is_one_line() {
        assert_eq!(one_line("a\n b\tc"), "a b c");
        let long = one_line(&"é".repeat(100));
        assert_eq!(long.chars().count(), TITLE + 1);
        assert!(long.ends_with('…'));
    }

    #[test]
    fn small_amounts_are_not_nothing() {
        assert_eq!([amount(0.0), amount(0.000_12), amount(1.5)], ["0.0000", "0.000120", "1.5000"]);
    }

    #[test]
    fn approval_text_hides_nothing() {
        assert_eq!(visible("ls -la\nrm x"), "ls -la\nrm x");
        assert_eq!(visible("ls\r\x1b[2Krm"), r"ls\r\u{1b}[2Krm");
        assert_eq!(visible("a\u{202e}b\u{200b}c\td\u{a0}e\u{2800}"), r"a\u{202e}b\u{200b}c\td\u{a0}e\u{2800}");
        assert_eq!(visible("größe 日本 🦀"), "größe 日本 🦀");
    }
}
