//! A short text that is typed below a list: a query, a name, a command.

use crate::key::Key;
use crate::{Row, Span, Style, printable};

/// Applies a key to the text; `false` if the key does not edit it.
pub fn edit(text: &mut String, key: &Key) -> bool {
    match key {
        Key::Char(c) => text.push(*c),
        Key::Paste(pasted) => text.push_str(pasted.lines().next().unwrap_or_default()),
        Key::Backspace => drop(text.pop()),
        Key::Ctrl('u') => text.clear(),
        _ => return false,
    }
    *text = printable(text).replace(['\n', '\t'], " ");
    true
}

/// The text behind a mark, with a cursor: that of the terminal is hidden in lists.
#[must_use]
pub fn row(mark: &str, text: &str) -> Row {
    vec![Span::new(Style::Bold, mark), Span::new(Style::Plain, printable(text)), Span::new(Style::Dim, "▏")]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_stays_on_one_line() {
        let mut text = "日".to_owned();
        assert!(edit(&mut text, &Key::Paste("a\tb\u{1b}\nc".to_owned())));
        assert_eq!(text, "日a b\u{fffd}");
        assert!(edit(&mut text, &Key::Backspace) && edit(&mut text, &Key::Char('x')));
        assert_eq!(text, "日a bx");
        assert!(edit(&mut text, &Key::Ctrl('u')) && text.is_empty());
        assert!(!edit(&mut text, &Key::Enter) && !edit(&mut text, &Key::Ctrl('x')));
    }
}
