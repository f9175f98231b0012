//! The keys of vi on the line editor: modes, motions, operators, counts, text objects and repetition.
//!
//! Invariant: pure, like the editor. A key that means nothing here is passed on, so Enter sends, Esc without a pending
//! command stops the turn, and Ctrl keys keep their meaning.

mod change;
mod motion;

use std::ops::Range;

use self::change::{keep_on_line, letter};
use self::motion::{Find, Place, Word};
use crate::cluster;
use crate::editor::{Edit, Editor};
use crate::key::Key;

/// The largest count, and the most keys of a change that are repeated.
const MOST_COUNT: usize = 9999;
const MOST_KEYS: usize = 10_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    #[default]
    Insert,
    Normal,
    Visual {
        /// The place where it began.
        from: usize,
        is_lines: bool,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Delete,
    Change,
    Yank,
}

impl Operator {
    fn of(c: char) -> Option<Self> {
        match c {
            'd' => Some(Self::Delete),
            'c' => Some(Self::Change),
            'y' => Some(Self::Yank),
            _ => None,
        }
    }
}

/// A key that has to follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Awaited {
    Replacement,
    Found(Find),
    /// After `g`.
    Go,
    /// After `i` or `a` of a text object.
    Object {
        is_around: bool,
    },
}

/// The text that was cut or copied last.
#[derive(Debug, Clone, Default)]
struct Register {
    text: String,
    is_lines: bool,
}

/// The state between keys.
#[derive(Debug, Clone, Default)]
pub struct Vim {
    mode: Mode,
    count: Option<usize>,
    operator: Option<(Operator, usize)>,
    awaited: Option<Awaited>,
    register: Register,
    found: Option<(Find, char)>,
    /// The keys of the command that is being given, and of the last change.
    given: Vec<Key>,
    last: Vec<Key>,
    is_repeating: bool,
}

impl Vim {
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// The selected range, in [`Editor::raw`].
    #[must_use]
    pub fn selection(&self, editor: &Editor) -> Option<Range<usize>> {
        let Mode::Visual { from, is_lines } = self.mode else { return None };
        // The text may have been replaced since.
        let from = (0..=from.min(editor.raw().len())).rev().find(|at| editor.raw().is_char_boundary(*at))?;
        let (start, end) = (from.min(editor.cursor()), from.max(editor.cursor()));
        Some(if is_lines {
            editor.line_start(start)..editor.line_end(end)
        } else {
            start..cluster::after(editor.raw(), end)
        })
    }

    /// Returns to the state before the first key, as after a message was sent.
    pub fn reset(&mut self) {
        self.mode = Mode::Insert;
        self.forget();
        self.given.clear();
    }

    fn forget(&mut self) {
        (self.count, self.operator, self.awaited) = (None, None, None);
    }

    fn is_idle(&self) -> bool {
        self.count.is_none() && self.operator.is_none() && self.awaited.is_none()
    }

    /// Handles a key; `None` if it is for the editor.
    pub fn press(&mut self, editor: &mut Editor, key: &Key) -> Option<Edit> {
        if self.mode == Mode::Insert {
            return self.press_insert(editor, key);
        }
        match key {
            Key::Esc if self.mode == Mode::Normal && self.is_idle() => return None,
            Key::Esc | Key::Ctrl('c') if !(self.mode == Mode::Normal && self.is_idle()) => {
                self.mode = Mode::Normal;
                self.forget();
                return Some(Edit::Changed);
            }
            Key::Ctrl('r') if self.mode == Mode::Normal => {
                editor.redo();
                return Some(Edit::Changed);
            }
            Key::Paste(_) => {
                self.mode = Mode::Insert;
                return None;
            }
            _ => {}
        }
        let c = letter(key)?;
        if self.is_idle() {
            self.given.clear();
        }
        self.note(key);
        let done = self.command(editor, c);
        if self.mode == Mode::Normal {
            keep_on_line(editor);
        }
        Some(done)
    }

    fn press_insert(&mut self, editor: &mut Editor, key: &Key) -> Option<Edit> {
        // Text typed before any command is nothing to repeat.
        if !self.given.is_empty() && *key != Key::Enter {
            self.note(key);
        }
        if *key != Key::Esc {
            return None;
        }
        self.keep_change();
        self.mode = Mode::Normal;
        let start = editor.line_start(editor.cursor());
        editor.go_to(cluster::before(editor.raw(), editor.cursor()).max(start));
        Some(Edit::Changed)
    }

    /// Notes a key of the command that is being given.
    fn note(&mut self, key: &Key) {
        if !self.is_repeating && self.given.len() < MOST_KEYS {
            self.given.push(key.clone());
        }
    }

    /// The command was a change, which `.` repeats.
    fn keep_change(&mut self) {
        if !self.is_repeating && !self.given.is_empty() && self.given.len() < MOST_KEYS {
            self.last = std::mem::take(&mut self.given);
        }
    }

    fn command(&mut self, editor: &mut Editor, c: char) -> Edit {
        if let Some(awaited) = self.awaited.take() {
            return self.follow(editor, awaited, c);
        }
        if let Some(digit) = c.to_digit(10).filter(|digit| *digit > 0 || self.count.is_some()) {
            let count = self.count.unwrap_or(0) * 10 + digit as usize;
            self.count = Some(count.min(MOST_COUNT));
            return Edit::Changed;
        }
        match c {
            'g' => self.awaited = Some(Awaited::Go),
            'f' | 'F' | 't' | 'T' => self.awaited = Some(Awaited::Found(Find::of(c))),
            'i' | 'a' if self.operator.is_some() || self.mode != Mode::Normal => {
                self.awaited = Some(Awaited::Object { is_around: c == 'a' });
            }
            c => return self.complete(editor, c),
        }
        Edit::Changed
    }

    /// The second key of a command.
    fn follow(&mut self, editor: &mut Editor, awaited: Awaited, c: char) -> Edit {
        match awaited {
            Awaited::Replacement => {
                let count = self.count.take().unwrap_or(1);
                self.replace(editor, c, count);
            }
            Awaited::Found(find) => {
                self.found = Some((find, c));
                let place = motion::find(editor, find, c, self.times());
                self.moved(editor, place);
            }
            Awaited::Go if c == 'g' => {
                let line = self.count.take().unwrap_or(1);
                self.moved(editor, Some(Place::line(motion::nth_line(editor, line))));
            }
            Awaited::Go => self.forget(),
            Awaited::Object { is_around } => {
                let range = motion::object(editor, c, is_around);
                match (range, self.mode) {
                    (Some(range), Mode::Visual { .. }) => {
                        self.mode = Mode::Visual { from: range.start, is_lines: false };
                        editor.go_to(cluster::before(editor.raw(), range.end));
                        self.forget();
                    }
                    (Some(range), _) => self.operate(editor, range, false),
                    (None, _) => self.forget(),
                }
            }
        }
        Edit::Changed
    }

    /// The count of an operator and a motion together.
    fn times(&mut self) -> usize {
        let before = self.operator.map_or(1, |(_, count)| count);
        (before * self.count.take().unwrap_or(1)).min(MOST_COUNT)
    }

    /// A command that is complete with this key.
    fn complete(&mut self, editor: &mut Editor, c: char) -> Edit {
        if let Mode::Visual { from, is_lines } = self.mode
            && let Some(done) = self.visual(editor, c, from, is_lines)
        {
            return done;
        }
        if let Some(operator) = Operator::of(c) {
            return self.begin_operator(editor, operator);
        }
        if let Some(place) = self.motion(editor, c) {
            return match place {
                Moved::To(place) => {
                    self.moved(editor, place);
                    Edit::Changed
                }
                Moved::Prompt(edit) => {
                    self.forget();
                    edit
                }
            };
        }
        if self.operator.is_some() || self.mode != Mode::Normal {
            self.forget();
            return Edit::Changed;
        }
        self.simple(editor, c);
        Edit::Changed
    }

    fn begin_operator(&mut self, editor: &mut Editor, operator: Operator) -> Edit {
        match self.operator {
            None => self.operator = Some((operator, self.count.take().unwrap_or(1))),
            // The same letter twice: whole lines.
            Some((before, _)) if before == operator => {
                let lines = self.times();
                let start = editor.line_start(editor.cursor());
                let end = motion::line_below(editor, start, lines - 1);
                self.operate(editor, start..editor.line_end(end), true);
            }
            Some(_) => self.forget(),
        }
        Edit::Changed
    }

    fn motion(&mut self, editor: &mut Editor, c: char) -> Option<Moved> {
        if matches!(c, 'j' | 'k') && self.operator.is_none() && self.mode == Mode::Normal {
            let times = self.times();
            return Some(vertical(editor, c == 'k', times));
        }
        let word = |c: char| if c.is_uppercase() { Word::Blank } else { Word::Letters };
        let is_change = matches!(self.operator, Some((Operator::Change, _)));
        let at = editor.cursor();
        let place = match c {
            'h' | '\u{8}' => Place::at(motion::left(editor, self.times())),
            'l' | ' ' => Place::at(motion::right(editor, self.times())),
            '0' => Place::at(editor.line_start(at)),
            '^' => Place::at(motion::first_letter(editor)),
            '$' => {
                let line = motion::line_below(editor, at, self.times() - 1);
                Place::at(editor.line_end(line))
            }
            // `cw` on a word changes it and leaves the blank after it.
            'w' | 'W' if is_change && !motion::is_blank_at(editor) => {
                Place::upto(motion::word_end(editor, word(c), self.times()))
            }
            'w' | 'W' => Place::at(motion::word_start(editor, word(c), self.times(), self.operator.is_some())),
            'b' | 'B' => Place::at(motion::word_back(editor, word(c), self.times())),
            'e' | 'E' => Place::upto(motion::word_end(editor, word(c), self.times())),
            'j' => Place::line(motion::line_below(editor, at, self.times())),
            'k' => Place::line(motion::line_above(editor, at, self.times())),
            'G' => {
                let line = self.count.take().unwrap_or(usize::MAX);
                Place::line(motion::nth_line(editor, line))
            }
            ';' | ',' => {
                let (find, sought) = self.found?;
                let find = if c == ',' { find.reversed() } else { find };
                let times = self.times();
                let place = motion::find(editor, find, sought, times);
                // `t` stops before the character, so it would find the same one again.
                let is_same = place.is_some_and(|place| place.at == at);
                let place = if is_same { motion::find(editor, find, sought, times + 1) } else { place };
                return Some(Moved::To(place));
            }
            _ => return None,
        };
        Some(Moved::To(Some(place)))
    }

    /// A motion has led to a place, if there is one.
    fn moved(&mut self, editor: &mut Editor, place: Option<Place>) {
        let Some(place) = place else { return self.forget() };
        if self.operator.is_none() {
            self.forget();
            return editor.go_to(place.at);
        }
        let (start, end) = (editor.cursor().min(place.at), editor.cursor().max(place.at));
        if place.is_line {
            return self.operate(editor, editor.line_start(start)..editor.line_end(end), true);
        }
        let end = if place.is_inclusive { cluster::after(editor.raw(), end) } else { end };
        self.operate(editor, start..end, false);
    }

    /// Applies the pending operator to a range.
    fn operate(&mut self, editor: &mut Editor, range: Range<usize>, is_lines: bool) {
        let Some((operator, _)) = self.operator.take() else { return self.forget() };
        self.apply(editor, operator, range, is_lines);
    }

    fn apply(&mut self, editor: &mut Editor, operator: Operator, range: Range<usize>, is_lines: bool) {
        self.forget();
        self.register = Register { text: editor.raw()[range.clone()].to_owned(), is_lines };
        self.mode = Mode::Normal;
        match operator {
            Operator::Yank => editor.go_to(range.start),
            Operator::Delete if is_lines => {
                // With the line break after it, or the one before the last line.
                let end = range.end + usize::from(range.end < editor.raw().len());
                let start = if end == range.end { range.start.saturating_sub(1) } else { range.start };
                editor.remove(start..end);
                editor.go_to(editor.line_start(editor.cursor().min(editor.raw().len())));
                self.keep_change();
            }
            Operator::Delete => {
                editor.remove(range);
                self.keep_change();
            }
            Operator::Change => {
                if range.is_empty() {
                    editor.go_to(range.start);
                } else {
                    editor.remove(range);
                }
                self.mode = Mode::Insert;
            }
        }
    }

    /// A key on a selection; `None` if it is a motion.
    fn visual(&mut self, editor: &mut Editor, c: char, from: usize, is_lines: bool) -> Option<Edit> {
        let operator = match c {
            'd' | 'x' | 'X' | 'D' => Operator::Delete,
            'c' | 's' | 'S' | 'C' => Operator::Change,
            'y' | 'Y' => Operator::Yank,
            'v' | 'V' => {
                let wants_lines = c == 'V';
                let is_same = wants_lines == is_lines;
                self.mode = if is_same { Mode::Normal } else { Mode::Visual { from, is_lines: wants_lines } };
                return Some(Edit::Changed);
            }
            'o' => {
                self.mode = Mode::Visual { from: editor.cursor(), is_lines };
                editor.go_to(from);
                return Some(Edit::Changed);
            }
            _ => return None,
        };
        let range = self.selection(editor)?;
        self.apply(editor, operator, range, is_lines);
        Some(Edit::Changed)
    }

    /// Commands without an operator.
    fn simple(&mut self, editor: &mut Editor, c: char) {
        let at = editor.cursor();
        let insert_at = match c {
            'i' => Some(at),
            'a' => Some(cluster::after(editor.raw(), at).min(editor.line_end(at))),
            'I' => Some(motion::first_letter(editor)),
            'A' => Some(editor.line_end(at)),
            _ => None,
        };
        if let Some(place) = insert_at {
            self.forget();
            editor.go_to(place);
            self.mode = Mode::Insert;
            return;
        }
        match c {
            'o' | 'O' => self.open_line(editor, c == 'O'),
            'x' => self.shortcut(editor, Operator::Delete, |editor, times| at..motion::right(editor, times)),
            'X' => self.shortcut(editor, Operator::Delete, |editor, times| motion::left(editor, times)..at),
            's' => self.shortcut(editor, Operator::Change, |editor, times| at..motion::right(editor, times)),
            'D' => self.shortcut(editor, Operator::Delete, |editor, _| at..editor.line_end(at)),
            'C' => self.shortcut(editor, Operator::Change, |editor, _| at..editor.line_end(at)),
            'S' => {
                self.forget();
                let range = editor.line_start(at)..editor.line_end(at);
                self.apply(editor, Operator::Change, range, true);
            }
            'Y' => {
                self.forget();
                self.register = Register {
                    text: editor.raw()[editor.line_start(at)..editor.line_end(at)].to_owned(),
                    is_lines: true,
                };
            }
            'p' | 'P' => self.put(editor, c == 'P'),
            'u' => {
                for _ in 0..self.times() {
                    editor.undo();
                }
            }
            'r' => self.awaited = Some(Awaited::Replacement),
            'J' => self.join(editor),
            '~' => self.swap_case(editor),
            '.' => self.repeat(editor),
            'v' | 'V' => {
                self.forget();
                self.mode = Mode::Visual { from: at, is_lines: c == 'V' };
            }
            _ => self.forget(),
        }
    }

    fn shortcut(&mut self, editor: &mut Editor, operator: Operator, range: impl Fn(&Editor, usize) -> Range<usize>) {
        let times = self.times();
        let range = range(editor, times);
        if !range.is_empty() || operator == Operator::Change {
            self.apply(editor, operator, range, false);
        }
    }
}

/// The outcome of a motion.
enum Moved {
    To(Option<Place>),
    /// It has left the text for an earlier or a later prompt.
    Prompt(Edit),
}

fn vertical(editor: &mut Editor, is_up: bool, times: usize) -> Moved {
    for number in 0..times {
        let edit = if is_up { editor.up() } else { editor.down() };
        if edit != Edit::Changed {
            return if number == 0 { Moved::Prompt(edit) } else { Moved::To(Some(Place::at(editor.cursor()))) };
        }
    }
    Moved::To(Some(Place::at(editor.cursor())))
}

#[cfg(test)]
mod tests;
