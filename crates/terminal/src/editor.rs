//! The line editor: a state machine from keys to text and cursor.
//!
//! Invariant: nothing is drawn and nothing is read here. The text is bounded, and contains no control character except
//! line breaks.

use std::borrow::Cow;

use unicode_width::UnicodeWidthChar;

use crate::key::Key;
use crate::printable;

/// The maximum number of bytes that can be typed or pasted.
pub const MOST_BYTES: usize = 1024 * 1024;

/// Pastes of more characters or lines than this are shown as a chip.
const CHIP_CHARS: usize = 1000;
const CHIP_LINES: usize = 10;

/// The character that stands for the first paste, and the maximum number of pastes. No script uses these characters.
const FIRST_CHIP: u32 = 0x0010_f000;
const MOST_CHIPS: usize = 1024;

/// The effect of a key, beyond the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edit {
    /// The text or the cursor may have changed.
    Changed,
    /// The text is complete.
    Submit,
    /// Go to an earlier prompt.
    Older,
    /// Go to a later prompt.
    Newer,
    /// End of input: Ctrl-D on an empty line.
    End,
    /// The key has no meaning here.
    Ignored,
    /// The text would be too long.
    Full,
}

/// The text that is being typed. It may have several lines.
#[derive(Debug, Clone, Default)]
pub struct Editor {
    text: String,
    /// The cursor, as a byte offset.
    cursor: usize,
    /// The last cut.
    cut: String,
    /// Large pastes. Each is represented by a single character in the text, so that it is moved over and cut as one.
    pastes: Vec<String>,
}

impl Editor {
    /// The displayed text, with a chip for each large paste, and the cursor position in it.
    #[must_use]
    pub fn shown(&self) -> (String, usize) {
        let (before, after) = self.text.split_at(self.cursor);
        let shown = self.with_pastes(before, |paste| chip(paste).into());
        let cursor = shown.len();
        (shown + &self.with_pastes(after, |paste| chip(paste).into()), cursor)
    }

    /// The text to send.
    #[must_use]
    pub fn text(&self) -> String {
        self.with_pastes(&self.text, Cow::Borrowed)
    }

    fn with_pastes<'a>(&'a self, text: &str, show: impl Fn(&'a str) -> Cow<'a, str>) -> String {
        let mut shown = String::with_capacity(text.len());
        for c in text.chars() {
            match chip_number(c).and_then(|number| self.pastes.get(number)) {
                Some(paste) => shown.push_str(&show(paste)),
                None => shown.push(c),
            }
        }
        shown
    }

    /// Takes the text.
    pub fn take(&mut self) -> String {
        let text = self.text();
        self.cursor = 0;
        self.text.clear();
        self.cut = self.with_pastes(&self.cut, Cow::Borrowed);
        self.pastes.clear();
        text
    }

    /// Replaces the text and puts the cursor at its end.
    pub fn replace(&mut self, text: &str) {
        self.take();
        self.text = without_chips(&printable(text));
        self.cursor = self.text.len();
    }

    /// The word before the cursor.
    #[must_use]
    pub fn word(&self) -> &str {
        let start = self.text[..self.cursor].rfind(char::is_whitespace);
        let start = start.map_or(0, |at| at + self.text[at..].chars().next().map_or(1, char::len_utf8));
        &self.text[start..self.cursor]
    }

    /// Replaces the word before the cursor.
    pub fn put_word(&mut self, text: &str) {
        self.remove(self.cursor - self.word().len(), self.cursor);
        self.insert(text);
    }

    /// Handles a key.
    pub fn press(&mut self, key: &Key) -> Edit {
        match key {
            Key::Enter => return Edit::Submit,
            Key::Ctrl('d') if self.text.is_empty() => return Edit::End,
            Key::Up | Key::Ctrl('p') => return self.up(),
            Key::Down | Key::Ctrl('n') => return self.down(),
            Key::Char(c) => return self.insert(c.encode_utf8(&mut [0; 4])),
            Key::NewLine => return self.insert("\n"),
            Key::Paste(text) => return self.paste(&text.replace("\r\n", "\n").replace('\r', "\n")),
            Key::Ctrl('y') => return self.yank(),
            Key::Left | Key::Ctrl('b') => self.cursor = self.before(self.cursor),
            Key::Right | Key::Ctrl('f') => self.cursor = self.after(self.cursor),
            Key::WordLeft | Key::Alt('b') => self.cursor = self.word_before(),
            Key::WordRight | Key::Alt('f') => self.cursor = self.word_after(),
            Key::Home | Key::Ctrl('a') => self.cursor = self.line_start(self.cursor),
            Key::End | Key::Ctrl('e') => self.cursor = self.line_end(self.cursor),
            Key::Backspace | Key::Ctrl('h') => self.remove(self.before(self.cursor), self.cursor),
            Key::Delete | Key::Ctrl('d') => self.remove(self.cursor, self.after(self.cursor)),
            Key::Ctrl('u') => self.cut(self.line_start(self.cursor), self.cursor),
            Key::Ctrl('k') => self.cut(self.cursor, self.line_end(self.cursor)),
            Key::Ctrl('w') => self.cut(self.word_before(), self.cursor),
            Key::Alt('d') => self.cut(self.cursor, self.word_after()),
            Key::Ctrl(_)
            | Key::Alt(_)
            | Key::AltUp
            | Key::AltDown
            | Key::PageUp
            | Key::PageDown
            | Key::BackTab
            | Key::Esc => return Edit::Ignored,
        }
        Edit::Changed
    }

    fn insert(&mut self, text: &str) -> Edit {
        if self.bytes() + text.len() > MOST_BYTES {
            return Edit::Full;
        }
        self.put(&without_chips(&printable(text)));
        Edit::Changed
    }

    fn paste(&mut self, text: &str) -> Edit {
        let is_large = text.chars().nth(CHIP_CHARS).is_some() || text.lines().nth(CHIP_LINES).is_some();
        let chip = u32::try_from(self.pastes.len()).ok().and_then(|number| char::from_u32(FIRST_CHIP + number));
        let Some(chip) = chip.filter(|_| is_large && self.pastes.len() < MOST_CHIPS) else { return self.insert(text) };
        if self.bytes() + text.len() > MOST_BYTES {
            return Edit::Full;
        }
        self.pastes.push(without_chips(&printable(text)));
        self.put(chip.encode_utf8(&mut [0; 4]));
        Edit::Changed
    }

    /// Inserts the last cut, with the pastes in it.
    fn yank(&mut self) -> Edit {
        if self.bytes() + self.with_pastes(&self.cut, Cow::Borrowed).len() > MOST_BYTES {
            return Edit::Full;
        }
        let cut = self.cut.clone();
        self.put(&cut);
        Edit::Changed
    }

    fn put(&mut self, text: &str) {
        self.text.insert_str(self.cursor, text);
        self.cursor += text.len();
    }

    /// The number of bytes kept: a cut paste can be inserted again, so it counts until the text is taken.
    fn bytes(&self) -> usize {
        self.text().len().max(self.text.len() + self.pastes.iter().map(String::len).sum::<usize>())
    }

    fn remove(&mut self, from: usize, to: usize) {
        self.text.replace_range(from..to, "");
        self.cursor = from;
    }

    fn cut(&mut self, from: usize, to: usize) {
        if from < to {
            self.cut = self.text[from..to].to_owned();
            self.remove(from, to);
        }
    }

    /// The position before the grapheme that ends here.
    fn before(&self, place: usize) -> usize {
        let mut characters = self.text[..place].char_indices().rev();
        characters.find(|(_, c)| stands_alone(*c)).map_or(0, |(at, _)| at)
    }

    /// The position after the grapheme that starts here.
    fn after(&self, place: usize) -> usize {
        let mut characters = self.text[place..].char_indices().skip(1);
        characters.find(|(_, c)| stands_alone(*c)).map_or(self.text.len(), |(at, _)| place + at)
    }

    fn word_before(&self) -> usize {
        let before = self.text[..self.cursor].trim_end();
        before.char_indices().rev().find(|(_, c)| c.is_whitespace()).map_or(0, |(at, c)| at + c.len_utf8())
    }

    fn word_after(&self) -> usize {
        let rest = &self.text[self.cursor..];
        let word = rest.len() - rest.trim_start().len();
        let end = rest[word..].find(char::is_whitespace).map_or(rest.len(), |length| word + length);
        self.cursor + end
    }

    fn line_start(&self, place: usize) -> usize {
        self.text[..place].rfind('\n').map_or(0, |at| at + 1)
    }

    fn line_end(&self, place: usize) -> usize {
        self.text[place..].find('\n').map_or(self.text.len(), |at| place + at)
    }

    fn up(&mut self) -> Edit {
        let start = self.line_start(self.cursor);
        if start == 0 {
            return Edit::Older;
        }
        let column = self.text[start..self.cursor].chars().count();
        self.go_to(self.line_start(start - 1), column);
        Edit::Changed
    }

    fn down(&mut self) -> Edit {
        let end = self.line_end(self.cursor);
        if end == self.text.len() {
            return Edit::Newer;
        }
        let column = self.text[self.line_start(self.cursor)..self.cursor].chars().count();
        self.go_to(end + 1, column);
        Edit::Changed
    }

    fn go_to(&mut self, start: usize, column: usize) {
        let line = &self.text[start..self.line_end(start)];
        self.cursor = start + line.char_indices().nth(column).map_or(line.len(), |(at, _)| at);
    }
}

/// Whether a character is not combined with the previous one.
fn stands_alone(c: char) -> bool {
    c == '\n' || c.width() != Some(0)
}

/// The displayed form of a large paste.
fn chip(paste: &str) -> String {
    let digits = paste.chars().count().to_string();
    let grouped: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().filter_map(|group| std::str::from_utf8(group).ok()).collect();
    format!("[Pasted {} characters]", grouped.join(","))
}

fn chip_number(c: char) -> Option<usize> {
    let number = usize::try_from(u32::from(c).checked_sub(FIRST_CHIP)?).ok()?;
    (number < MOST_CHIPS).then_some(number)
}

/// Removes the characters that stand for pastes.
fn without_chips(text: &str) -> String {
    text.chars().map(|c| if chip_number(c).is_some() { char::REPLACEMENT_CHARACTER } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use proptest::prelude::*;

    use super::*;

    /// Keys by name: a word in angle brackets, or a character.
    fn keys(script: &str) -> Vec<Key> {
        let mut keys = Vec::new();
        let mut rest = script;
        while let Some(c) = rest.chars().next() {
            if let Some((name, after)) = rest.strip_prefix('<').and_then(|rest| rest.split_once('>')) {
                keys.push(named(name));
                rest = after;
            } else {
                keys.push(Key::Char(c));
                rest = &rest[c.len_utf8()..];
            }
        }
        keys
    }

    fn named(name: &str) -> Key {
        match name {
            "enter" => Key::Enter,
            "newline" => Key::NewLine,
            "bs" => Key::Backspace,
            "del" => Key::Delete,
            "left" => Key::Left,
            "right" => Key::Right,
            "wordleft" => Key::WordLeft,
            "wordright" => Key::WordRight,
            "up" => Key::Up,
            "down" => Key::Down,
            "home" => Key::Home,
            "end" => Key::End,
            "esc" => Key::Esc,
            _ => match name.split_once('-') {
                Some(("c", letter)) => Key::Ctrl(letter.chars().next().unwrap_or_default()),
                Some(("m", letter)) => Key::Alt(letter.chars().next().unwrap_or_default()),
                _ => Key::Paste(name.strip_prefix("paste ").unwrap_or_default().replace("\\r", "\r")),
            },
        }
    }

    /// Types a script and prints the text with the cursor in it, and the effect of the last key.
    #[track_caller]
    fn check(script: &str, expected: Expect) {
        let mut editor = Editor::default();
        let mut last = Edit::Ignored;
        for key in keys(script) {
            last = editor.press(&key);
        }
        let (text, cursor) = editor.shown();
        let (before, after) = text.split_at(cursor);
        expected.assert_eq(&format!("{:?} {last:?}", format!("{before}|{after}")));
    }

    #[test]
    fn text_is_typed_and_mended() {
        check("hello<enter>", expect![[r#""hello|" Submit"#]]);
        check("helo<left>l", expect![[r#""hell|o" Changed"#]]);
        check("abc<c-a><del><c-e><bs>", expect![[r#""b|" Changed"#]]);
        check("one two  <c-w>", expect![[r#""one |" Changed"#]]);
        check("one two<c-a><m-f>,<m-d>", expect![[r#""one,|" Changed"#]]);
        check("one two<wordleft><c-u>", expect![[r#""|two" Changed"#]]);
        check("one two<wordleft><c-k><c-a><c-y>", expect![[r#""two|one " Changed"#]]);
    }

    #[test]
    fn lines_are_walked_before_the_history_is() {
        check("ab<newline>c<up>", expect![[r#""a|b\nc" Changed"#]]);
        check("ab<newline>c<up><up>", expect![[r#""a|b\nc" Older"#]]);
        check("a<newline>bcd<home><up><down><end>", expect![[r#""a\nbcd|" Changed"#]]);
        check("a<down>", expect![[r#""a|" Newer"#]]);
        check("a<newline>bc<c-u>", expect![[r#""a\n|" Changed"#]]);
    }

    #[test]
    fn pastes_may_have_lines_and_send_nothing() {
        check("<paste one\\rtwo\\r\nthree>", expect![[r#""one\ntwo\nthree|" Changed"#]]);
        check("<paste \x1b[31mred\x07>", expect![[r#""�[31mred�|" Changed"#]]);
    }

    #[test]
    fn a_large_paste_is_a_chip_and_sent_completely() {
        let large = "x\n".repeat(617);
        let mut editor = Editor::default();
        for key in [Key::Char('a'), Key::Paste(large.clone()), Key::Char('b'), Key::Left, Key::Left] {
            assert_eq!(editor.press(&key), Edit::Changed);
        }
        assert_eq!(editor.shown(), ("a[Pasted 1,234 characters]b".to_owned(), 1));
        assert_eq!(editor.press(&Key::Ctrl('k')), Edit::Changed);
        assert_eq!(editor.text(), "a");
        editor.press(&Key::Ctrl('y'));
        editor.press(&Key::Ctrl('y'));
        assert_eq!(editor.take(), format!("a{large}b{large}b"));
        // A cut can still be inserted.
        editor.press(&Key::Ctrl('y'));
        assert_eq!(editor.text(), format!("{large}b"));
        editor.replace("c\u{10f000}");
        assert_eq!(editor.text(), "c\u{fffd}");
        let half = "y".repeat(MOST_BYTES / 2);
        assert_eq!(editor.press(&Key::Paste(half.clone())), Edit::Changed);
        assert_eq!(editor.press(&Key::Paste(half)), Edit::Full);
    }

    #[test]
    fn ctrl_d_ends_only_an_empty_line() {
        check("<c-d>", expect![[r#""|" End"#]]);
        check("ab<left><c-d>", expect![[r#""a|" Changed"#]]);
        check("ab<c-d>", expect![[r#""ab|" Changed"#]]);
    }

    #[test]
    fn a_character_goes_with_what_is_drawn_on_it() {
        check("e\u{301}x<left><left>", expect![[r#""|e\u{301}x" Changed"#]]);
        check("日本<bs>", expect![[r#""日|" Changed"#]]);
        check("xe\u{301}<bs>", expect![[r#""x|" Changed"#]]);
    }

    #[test]
    fn a_paste_that_is_too_large_is_refused() {
        let mut editor = Editor::default();
        assert_eq!(editor.press(&Key::Paste("x".repeat(MOST_BYTES))), Edit::Changed);
        assert_eq!(editor.press(&Key::Char('y')), Edit::Full);
        assert_eq!(editor.text().len(), MOST_BYTES);
    }

    proptest! {
        /// With any keys, the cursor is between characters and the text contains no control characters.
        #[test]
        fn the_cursor_always_stands_between_characters(script in r"([a-zé日\u{301}\x1b]|<(bs|del|left|right|up|down|home|end|wordleft|wordright|newline|c-u|c-k|c-w|c-y|m-d)>){0,60}") {
            let mut editor = Editor::default();
            for key in keys(&script) {
                editor.press(&key);
                let (text, cursor) = editor.shown();
                prop_assert!(text.is_char_boundary(cursor));
            }
            prop_assert!(!editor.text().contains('\x1b'));
        }
    }
}
