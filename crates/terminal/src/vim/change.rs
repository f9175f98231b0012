//! Changes of the text that are no operator with a motion.

use super::{MOST_COUNT, Mode, Register, Vim, motion};
use crate::cluster;
use crate::editor::{Edit, Editor};
use crate::key::Key;

impl Vim {
    pub(super) fn open_line(&mut self, editor: &mut Editor, is_above: bool) {
        self.forget();
        let at = editor.cursor();
        if is_above {
            editor.go_to(editor.line_start(at));
            editor.insert("\n");
            editor.go_to(editor.cursor() - 1);
        } else {
            editor.go_to(editor.line_end(at));
            editor.insert("\n");
        }
        self.mode = Mode::Insert;
    }

    /// Inserts the register.
    pub(super) fn put(&mut self, editor: &mut Editor, is_before: bool) {
        let times = self.times();
        let Register { text, is_lines } = self.register.clone();
        let at = editor.cursor();
        if is_lines {
            let lines = vec![text; times].join("\n");
            let start = editor.line_start(at);
            let place = if is_before { start } else { editor.line_end(at) };
            editor.go_to(place);
            let put = if is_before { format!("{lines}\n") } else { format!("\n{lines}") };
            if editor.insert_raw(&put) == Edit::Changed {
                editor.go_to(place + usize::from(!is_before));
            }
        } else if !text.is_empty() {
            let place = if is_before { at } else { cluster::after(editor.raw(), at).min(editor.line_end(at)) };
            editor.go_to(place);
            if editor.insert_raw(&text.repeat(times)) == Edit::Changed {
                editor.go_to(cluster::before(editor.raw(), editor.cursor()));
            }
        }
        self.keep_change();
    }

    pub(super) fn replace(&mut self, editor: &mut Editor, c: char, count: usize) {
        let at = editor.cursor();
        let end = motion::right(editor, count);
        if editor.raw()[at..end].chars().count() >= count.min(1) && end > at {
            let put = c.to_string().repeat(count);
            editor.remove(at..end);
            editor.insert(&put);
            editor.go_to(cluster::before(editor.raw(), editor.cursor()));
            self.keep_change();
        }
    }

    /// Joins this line and the next with a blank.
    pub(super) fn join(&mut self, editor: &mut Editor) {
        for _ in 0..self.times().saturating_sub(1).max(1) {
            let end = editor.line_end(editor.cursor());
            let rest = &editor.raw()[end..];
            if rest.is_empty() {
                break;
            }
            let blanks = rest.len() - rest.trim_start_matches(['\n', ' ', '\t']).len();
            editor.remove(end..end + blanks);
            editor.insert(" ");
            editor.go_to(end);
        }
        self.keep_change();
    }

    pub(super) fn swap_case(&mut self, editor: &mut Editor) {
        let times = self.times();
        let range = editor.cursor()..motion::right(editor, times);
        let swap = |c: char| -> String {
            if c.is_uppercase() { c.to_lowercase().collect() } else { c.to_uppercase().collect() }
        };
        let swapped: String = editor.raw()[range.clone()].chars().map(swap).collect();
        editor.remove(range);
        editor.insert_raw(&swapped);
        self.keep_change();
    }

    pub(super) fn repeat(&mut self, editor: &mut Editor) {
        let times = self.times();
        self.given.clear();
        self.is_repeating = true;
        for _ in 0..times.min(MOST_COUNT) {
            for key in self.last.clone() {
                if self.press(editor, &key).is_none() {
                    editor.press(&key);
                }
            }
        }
        self.is_repeating = false;
    }
}

/// The letter that a key stands for.
pub(super) fn letter(key: &Key) -> Option<char> {
    match key {
        Key::Char(c) => Some(*c),
        Key::Left => Some('h'),
        Key::Backspace => Some('\u{8}'),
        Key::Right => Some('l'),
        Key::Up => Some('k'),
        Key::Down => Some('j'),
        Key::Home => Some('0'),
        Key::End => Some('$'),
        Key::Delete => Some('x'),
        Key::WordLeft => Some('b'),
        Key::WordRight => Some('w'),
        _ => None,
    }
}

/// In normal mode the cursor is on a character, not behind the last one of a line.
pub(super) fn keep_on_line(editor: &mut Editor) {
    let (at, start) = (editor.cursor(), editor.line_start(editor.cursor()));
    if at == editor.line_end(at) && at > start {
        editor.go_to(cluster::before(editor.raw(), at));
    }
}
