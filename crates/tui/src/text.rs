//! Sanitizes foreign text.

use std::borrow::Cow;

/// Removes terminal control sequences: a model or a repository must not move the cursor, hide text or reorder it.
#[must_use]
pub fn printable(text: &str) -> Cow<'_, str> {
    let is_shown = |c: char| is_harmless(c) || matches!(c, '\n' | '\t');
    if text.chars().all(is_shown) {
        return Cow::Borrowed(text);
    }
    text.chars().map(|c| if is_shown(c) { c } else { '\u{fffd}' }).collect::<String>().into()
}

/// Escapes everything invisible, because somebody decides by what they see. Only line breaks stay.
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
    fn approval_text_hides_nothing() {
        assert_eq!(visible("ls -la\nrm x"), "ls -la\nrm x");
        assert_eq!(visible("ls\r\x1b[2Krm"), r"ls\r\u{1b}[2Krm");
        assert_eq!(visible("a\u{202e}b\u{200b}c\td\u{a0}e\u{2800}"), r"a\u{202e}b\u{200b}c\td\u{a0}e\u{2800}");
        assert_eq!(visible("größe 日本 🦀"), "größe 日本 🦀");
    }
}
