//! The line editor: a state machine from keys to text and cursor.
//!
//! Invariant: nothing is drawn and nothing is read here. The text is bounded, and contains no control character except
//! line breaks. The cursor is always between two clusters.

mod chip;

use std::ops::Range;
use std::path::{Path, PathBuf};

use self::chip::{Chip, chip_number, grouped, nth_chip, without_chips};
use crate::cluster;
use crate::key::Key;
use crate::printable;

/// The maximum number of bytes that can be typed or pasted.
pub const MOST_BYTES: usize = 1024 * 1024;

/// The most bytes of pastes that are kept until the text is taken, so that they can be brought back.
const KEPT_BYTES: usize = 4 * MOST_BYTES;

/// Pastes of more characters or lines than this are shown as a chip.
const CHIP_CHARS: usize = 1000;
const CHIP_LINES: usize = 10;

/// The most steps that can be undone, and the most bytes of text that they may hold.
const MOST_UNDO: usize = 200;
const UNDO_BYTES: usize = 4 * 1024 * 1024;

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

/// A part of a text, so that it can be kept and brought back with its chips.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    Typed(String),
    Pasted(String),
    Picture(PathBuf),
}

/// A state to go back to.
#[derive(Debug, Clone)]
struct Step {
    text: String,
    cursor: usize,
}

/// The text that is being typed. It may have several lines.
#[derive(Debug, Clone, Default)]
pub struct Editor {
    text: String,
    /// The cursor, as a byte offset.
    cursor: usize,
    /// The last cut.
    cut: String,
    /// Large pastes and pictures. Each is represented by a single character in the text. They stay until the text is
    /// taken, so that a cut and a step back still have them.
    chips: Vec<Chip>,
    undo: Vec<Step>,
    redo: Vec<Step>,
    /// The end of what is being typed, which is undone as one.
    typed_to: Option<usize>,
    /// The number of changes of the text.
    changes: u64,
}

impl Editor {
    /// The displayed text, with a few words for each chip, and the cursor position in it.
    #[must_use]
    pub fn shown(&self) -> (String, usize) {
        let (before, after) = self.text.split_at(self.cursor);
        let shown = self.with_chips(before, Chip::label);
        let cursor = shown.len();
        (shown + &self.with_chips(after, Chip::label), cursor)
    }

    /// A range of [`Self::raw`] as a range of the displayed text.
    #[must_use]
    pub fn shown_range(&self, range: Range<usize>) -> Range<usize> {
        let start = self.with_chips(&self.text[..range.start], Chip::label).len();
        start..start + self.with_chips(&self.text[range], Chip::label).len()
    }

    /// The text to send.
    #[must_use]
    pub fn text(&self) -> String {
        self.with_chips(&self.text, Chip::text)
    }

    /// The pictures in the text, in their order.
    #[must_use]
    pub fn pictures(&self) -> Vec<PathBuf> {
        let chips = self.text.chars().filter_map(|c| self.chips.get(chip_number(c)?));
        let picture = |chip: &Chip| match chip {
            Chip::Picture { path, .. } => Some(path.clone()),
            Chip::Text { .. } => None,
        };
        chips.filter_map(picture).collect()
    }

    /// The text with one character for each chip.
    #[must_use]
    pub fn raw(&self) -> &str {
        &self.text
    }

    /// The number of changes of the text so far, to see whether there was another.
    #[must_use]
    pub fn changes(&self) -> u64 {
        self.changes
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// The cursor in [`Self::raw`].
    #[must_use]
    pub fn cursor(&self) -> usize {
        self.cursor
    }

    fn with_chips<'a>(&'a self, text: &str, show: impl Fn(&'a Chip) -> &'a str) -> String {
        let mut shown = String::with_capacity(text.len());
        for c in text.chars() {
            match chip_number(c).and_then(|number| self.chips.get(number)) {
                Some(chip) => shown.push_str(show(chip)),
                None => shown.push(c),
            }
        }
        shown
    }

    /// The parts of the text, to be kept.
    #[must_use]
    pub fn parts(&self) -> Vec<Part> {
        let mut parts = Vec::new();
        for c in self.text.chars() {
            match (chip_number(c).and_then(|number| self.chips.get(number)), parts.last_mut()) {
                (Some(Chip::Text { text, .. }), _) => parts.push(Part::Pasted(text.to_string())),
                (Some(Chip::Picture { path, .. }), _) => parts.push(Part::Picture(path.clone())),
                (None, Some(Part::Typed(typed))) => typed.push(c),
                (None, _) => parts.push(Part::Typed(c.into())),
            }
        }
        parts
    }

    /// Brings kept parts back, with the cursor at their end.
    pub fn restore(&mut self, parts: &[Part]) {
        self.take();
        for part in parts {
            // A part that does not fit any more is left out.
            let _: Edit = match part {
                Part::Typed(text) => self.insert(text),
                Part::Pasted(text) => self.paste(text),
                Part::Picture(path) => self.attach(path),
            };
        }
        self.forget_steps();
    }

    /// Takes the text.
    pub fn take(&mut self) -> String {
        let text = self.text();
        self.changes += 1;
        self.cursor = 0;
        self.text.clear();
        self.cut = self.with_chips(&self.cut, Chip::text);
        self.chips.clear();
        self.forget_steps();
        text
    }

    /// Removes the text, as one step that can be undone; whether there was any.
    pub fn clear(&mut self) -> bool {
        let has_text = !self.text.is_empty();
        if has_text {
            self.remember();
            self.delete(0..self.text.len());
        }
        has_text
    }

    fn forget_steps(&mut self) {
        (self.undo, self.redo, self.typed_to) = Default::default();
    }

    /// Replaces the text and puts the cursor at its end. It can be undone.
    pub fn replace(&mut self, text: &str) {
        self.remember();
        self.changes += 1;
        self.text = without_chips(&printable(text)).into_owned();
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
        self.remember();
        self.delete(self.cursor - self.word().len()..self.cursor);
        self.put(&without_chips(&printable(text)));
    }

    /// Handles a key.
    pub fn press(&mut self, key: &Key) -> Edit {
        match key {
            Key::Enter => return Edit::Submit,
            Key::Ctrl('d') if self.text.is_empty() => return Edit::End,
            Key::Up | Key::Ctrl('p') => return self.up(),
            Key::Down | Key::Ctrl('n') => return self.down(),
            Key::Char(c) => return self.type_char(*c),
            Key::NewLine => return self.type_char('\n'),
            Key::Paste(text) => return self.paste(&text.replace("\r\n", "\n").replace('\r', "\n")),
            Key::Ctrl('y') => return self.yank(),
            // Ctrl-_ and Ctrl-/ send the same byte.
            Key::Ctrl('7' | '_' | '/') => self.undo(),
            Key::Alt('_' | 'z') => self.redo(),
            Key::Left | Key::Ctrl('b') => self.cursor = cluster::before(&self.text, self.cursor),
            Key::Right | Key::Ctrl('f') => self.cursor = cluster::after(&self.text, self.cursor),
            Key::WordLeft | Key::Alt('b') => self.cursor = self.word_before(),
            Key::WordRight | Key::Alt('f') => self.cursor = self.word_after(),
            Key::Home | Key::Ctrl('a') => self.cursor = self.line_start(self.cursor),
            Key::End | Key::Ctrl('e') => self.cursor = self.line_end(self.cursor),
            Key::Backspace | Key::Ctrl('h') => self.remove(cluster::before(&self.text, self.cursor)..self.cursor),
            Key::Delete | Key::Ctrl('d') => self.remove(self.cursor..cluster::after(&self.text, self.cursor)),
            Key::Ctrl('u') => self.cut(self.line_start(self.cursor)..self.cursor),
            Key::Ctrl('k') => self.cut(self.cursor..self.line_end(self.cursor)),
            Key::Ctrl('w') => self.cut(self.word_before()..self.cursor),
            Key::Alt('d') => self.cut(self.cursor..self.word_after()),
            Key::Ctrl(_)
            | Key::Alt(_)
            | Key::F(_)
            | Key::AltUp
            | Key::AltDown
            | Key::PageUp
            | Key::PageDown
            | Key::BackTab
            | Key::Esc => return Edit::Ignored,
        }
        Edit::Changed
    }

    /// Notes the state before a change, so that it can be undone.
    pub fn remember(&mut self) {
        self.typed_to = None;
        self.redo.clear();
        self.undo.push(Step { text: self.text.clone(), cursor: self.cursor });
        let mut bytes = 0;
        let kept = self.undo.iter().rev().take(MOST_UNDO).take_while(|step| {
            bytes += step.text.len();
            bytes <= UNDO_BYTES
        });
        let kept = kept.count();
        self.undo.drain(..self.undo.len() - kept);
    }

    pub fn undo(&mut self) {
        if let Some(step) = self.undo.pop() {
            let now = self.go_to_step(step);
            self.redo.push(now);
        }
    }

    pub fn redo(&mut self) {
        if let Some(step) = self.redo.pop() {
            let now = self.go_to_step(step);
            self.undo.push(now);
        }
    }

    fn go_to_step(&mut self, step: Step) -> Step {
        self.typed_to = None;
        self.changes += 1;
        let text = std::mem::replace(&mut self.text, step.text);
        Step { text, cursor: std::mem::replace(&mut self.cursor, step.cursor) }
    }

    /// Types a character. A word is undone as one.
    fn type_char(&mut self, c: char) -> Edit {
        let mut bytes = [0; 4];
        let text = c.encode_utf8(&mut bytes);
        if self.bytes() + text.len() > MOST_BYTES {
            return Edit::Full;
        }
        let is_word_going_on = self.typed_to == Some(self.cursor) && !c.is_whitespace();
        if !is_word_going_on {
            self.remember();
        }
        self.put(&without_chips(&printable(text)));
        self.typed_to = Some(self.cursor);
        Edit::Changed
    }

    /// Inserts a text at the cursor.
    pub fn insert(&mut self, text: &str) -> Edit {
        if self.bytes() + text.len() > MOST_BYTES {
            return Edit::Full;
        }
        self.remember();
        self.put(&without_chips(&printable(text)));
        Edit::Changed
    }

    fn paste(&mut self, text: &str) -> Edit {
        let is_large = text.chars().nth(CHIP_CHARS).is_some() || text.lines().nth(CHIP_LINES).is_some();
        if !is_large {
            return self.insert(text);
        }
        if self.bytes() + text.len() > MOST_BYTES {
            return Edit::Full;
        }
        let text = printable(text);
        let text = without_chips(&text);
        let label = format!("[Pasted {} characters]", grouped(text.chars().count())).into();
        self.put_chip(Chip::Text { text: text.into(), label })
    }

    /// Attaches a picture at the cursor.
    pub fn attach(&mut self, path: &Path) -> Edit {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let label = format!("[Image {}]", without_chips(&printable(&name)).replace('\n', " ")).into();
        self.put_chip(Chip::Picture { path: path.to_owned(), label })
    }

    fn put_chip(&mut self, chip: Chip) -> Edit {
        let kept: usize = self.chips.iter().map(|chip| chip.text().len()).sum();
        let Some(c) = nth_chip(self.chips.len()) else { return Edit::Full };
        if kept + chip.text().len() > KEPT_BYTES {
            return Edit::Full;
        }
        self.remember();
        self.chips.push(chip);
        self.put(c.encode_utf8(&mut [0; 4]));
        Edit::Changed
    }

    /// Inserts the last cut, with the chips in it.
    fn yank(&mut self) -> Edit {
        let cut = self.cut.clone();
        self.insert_raw(&cut)
    }

    /// Inserts a part of [`Self::raw`].
    pub fn insert_raw(&mut self, raw: &str) -> Edit {
        if self.bytes() + self.with_chips(raw, Chip::text).len() > MOST_BYTES {
            return Edit::Full;
        }
        self.remember();
        self.put(raw);
        Edit::Changed
    }

    fn put(&mut self, text: &str) {
        self.changes += 1;
        self.text.insert_str(self.cursor, text);
        self.cursor += text.len();
    }

    /// The number of bytes to send.
    fn bytes(&self) -> usize {
        let chips = self.text.chars().filter_map(|c| self.chips.get(chip_number(c)?));
        self.text.len() + chips.map(|chip| chip.text().len()).sum::<usize>()
    }

    /// Removes a range of [`Self::raw`]; the cursor is at its start.
    pub fn remove(&mut self, range: Range<usize>) {
        if !range.is_empty() {
            self.remember();
            self.delete(range);
        }
    }

    fn delete(&mut self, range: Range<usize>) {
        self.changes += 1;
        self.cursor = range.start;
        self.text.replace_range(range, "");
    }

    fn cut(&mut self, range: Range<usize>) {
        if !range.is_empty() {
            self.text[range.clone()].clone_into(&mut self.cut);
            self.remove(range);
        }
    }

    /// Moves the cursor to a place in [`Self::raw`], or the last cluster before it.
    pub fn go_to(&mut self, place: usize) {
        let place = (0..=place.min(self.text.len())).rev().find(|at| self.text.is_char_boundary(*at)).unwrap_or(0);
        let start = cluster::before(&self.text, place);
        self.cursor = if cluster::after(&self.text, start) > place { start } else { place };
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

    /// The start of the line that a place in [`Self::raw`] is on.
    #[must_use]
    pub fn line_start(&self, place: usize) -> usize {
        self.text[..place].rfind('\n').map_or(0, |at| at + 1)
    }

    /// The end of that line, before its line break.
    #[must_use]
    pub fn line_end(&self, place: usize) -> usize {
        self.text[place..].find('\n').map_or(self.text.len(), |at| place + at)
    }

    /// Moves the cursor up a line, or asks for an earlier prompt.
    pub fn up(&mut self) -> Edit {
        let start = self.line_start(self.cursor);
        if start == 0 {
            return Edit::Older;
        }
        let column = self.text[start..self.cursor].chars().count();
        self.go_to_column(self.line_start(start - 1), column);
        Edit::Changed
    }

    /// Moves the cursor down a line, or asks for a later prompt.
    pub fn down(&mut self) -> Edit {
        let end = self.line_end(self.cursor);
        if end == self.text.len() {
            return Edit::Newer;
        }
        let column = self.text[self.line_start(self.cursor)..self.cursor].chars().count();
        self.go_to_column(end + 1, column);
        Edit::Changed
    }

    fn go_to_column(&mut self, start: usize, column: usize) {
        let line = &self.text[start..self.line_end(start)];
        self.go_to(start + line.char_indices().nth(column).map_or(line.len(), |(at, _)| at));
    }
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
        check("x👨\u{200d}👩\u{200d}👧<bs>", expect![[r#""x|" Changed"#]]);
        check("🇳🇴🇩🇪<left>|", expect![[r#""🇳🇴||🇩🇪" Changed"#]]);
        check("xe\u{301}<bs>", expect![[r#""x|" Changed"#]]);
    }

    #[test]
    fn words_are_undone_and_done_again() {
        check("one two<c-/>", expect![[r#""one|" Changed"#]]);
        check("one two<c-/><c-/><m-z>", expect![[r#""one|" Changed"#]]);
        check("one two<c-w><c-/>", expect![[r#""one two|" Changed"#]]);
        check("one<c-/><c-/>x<m-z>", expect![[r#""x|" Changed"#]]);
        let mut editor = Editor::default();
        let large = "line\n".repeat(200_000);
        editor.press(&Key::Paste(large.clone()));
        editor.press(&Key::Ctrl('7'));
        assert_eq!(editor.text(), "");
        editor.press(&Key::Alt('z'));
        assert_eq!(editor.text(), large, "a step back and forth keeps the paste");
        editor.replace("from the history");
        editor.press(&Key::Ctrl('7'));
        assert_eq!(editor.text(), large);
    }

    #[test]
    fn pictures_are_chips_and_parts_come_back() {
        let mut editor = Editor::default();
        for c in "see ".chars() {
            editor.press(&Key::Char(c));
        }
        editor.attach(Path::new("/tmp/a\u{1b}b.png"));
        editor.press(&Key::Paste("x\n".repeat(20)));
        assert_eq!(editor.shown().0, "see [Image a\u{fffd}b.png][Pasted 40 characters]");
        assert_eq!(editor.pictures(), [Path::new("/tmp/a\u{1b}b.png")]);
        let parts = editor.parts();
        let mut other = Editor::default();
        other.restore(&parts);
        assert_eq!((other.shown(), other.text()), (editor.shown(), editor.text()));
        other.press(&Key::Backspace);
        other.press(&Key::Backspace);
        assert_eq!((other.text().as_str(), other.pictures().len()), ("see ", 0));
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
