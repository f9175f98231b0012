//! The text being typed, with undo and lists of completions.

use crate::editor::{Edit, Editor};
use crate::key::Key;
use crate::{Row, Span, Style};

/// The most steps that can be undone.
const MOST_UNDO: usize = 200;
/// The most bytes of text that are kept for undo.
const UNDO_BYTES: usize = 4 * 1024 * 1024;
/// The number of completions in view.
const LIST_ROWS: usize = 8;

/// A list of completions for the word before the cursor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Completions {
    pub(super) entries: Vec<(String, String)>,
    at: usize,
}

#[derive(Debug, Default)]
pub(super) struct Composer {
    pub(super) editor: Editor,
    undo: Vec<Editor>,
    redo: Vec<Editor>,
    pub(super) list: Option<Completions>,
    /// The word for which no list is wanted.
    refused: String,
}

/// The effect of a key on the composer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Composed {
    Edit(Edit),
    /// The word before the cursor has changed.
    Word,
}

impl Composer {
    /// Handles a key.
    pub(super) fn press(&mut self, key: &Key) -> Composed {
        if let Some(done) = self.press_list(key) {
            return done;
        }
        match key {
            // Ctrl-_ and Ctrl-/ send the same byte.
            Key::Ctrl('7' | '_' | '/') => return self.step(true),
            Key::Alt('_' | 'z') => return self.step(false),
            _ => {}
        }
        let before = self.editor.clone();
        let edit = self.editor.press(key);
        if self.editor.text() != before.text() {
            self.remember(before);
        }
        match edit {
            Edit::Changed => Composed::Word,
            edit => Composed::Edit(edit),
        }
    }

    fn remember(&mut self, before: Editor) {
        self.redo.clear();
        self.undo.push(before);
        let mut bytes = 0;
        let kept = self.undo.iter().rev().take(MOST_UNDO).take_while(|editor| {
            bytes += editor.text().len();
            bytes <= UNDO_BYTES
        });
        let kept = kept.count();
        self.undo.drain(..self.undo.len() - kept);
    }

    fn step(&mut self, is_back: bool) -> Composed {
        let (from, to) = if is_back { (&mut self.undo, &mut self.redo) } else { (&mut self.redo, &mut self.undo) };
        if let Some(editor) = from.pop() {
            to.push(std::mem::replace(&mut self.editor, editor));
        }
        Composed::Word
    }

    fn press_list(&mut self, key: &Key) -> Option<Composed> {
        let list = self.list.as_mut()?;
        let end = list.entries.len().saturating_sub(1);
        match key {
            Key::Up | Key::Ctrl('p') => list.at = list.at.checked_sub(1).unwrap_or(end),
            Key::Down | Key::Ctrl('n') => list.at = if list.at >= end { 0 } else { list.at + 1 },
            Key::Esc => {
                self.list = None;
                self.editor.word().clone_into(&mut self.refused);
            }
            Key::Char('\t') | Key::Enter => {
                let (word, _) = list.entries.get(list.at)?.clone();
                let is_whole = self.editor.word() == word.trim_end();
                self.list = None;
                if is_whole && *key == Key::Enter {
                    // It is complete already, so Enter sends it.
                    return None;
                }
                let before = self.editor.clone();
                self.editor.put_word(&word);
                self.editor.word().clone_into(&mut self.refused);
                self.remember(before);
            }
            _ => return None,
        }
        Some(Composed::Edit(Edit::Changed))
    }

    /// The word before the cursor, if a list is wanted for it.
    pub(super) fn wanted(&mut self) -> Option<String> {
        let word = self.editor.word().to_owned();
        if word != self.refused {
            self.refused.clear();
        }
        (!word.is_empty() && word != self.refused).then_some(word)
    }

    pub(super) fn offer(&mut self, entries: Vec<(String, String)>) {
        let at = self.list.as_ref().map_or(0, |list| list.at).min(entries.len().saturating_sub(1));
        self.list = (!entries.is_empty()).then_some(Completions { entries, at });
    }

    /// Takes the text.
    pub(super) fn take(&mut self) -> String {
        (self.undo, self.redo, self.list) = Default::default();
        self.editor.take()
    }

    /// Replaces the text.
    pub(super) fn replace(&mut self, text: &str) {
        let before = self.editor.clone();
        self.remember(before);
        self.editor.replace(text);
    }

    /// The rows of the list.
    pub(super) fn list_rows(&self) -> Vec<Row> {
        let Some(list) = &self.list else { return Vec::new() };
        let first = list.at.saturating_sub(LIST_ROWS / 2).min(list.entries.len().saturating_sub(LIST_ROWS));
        let row = |(at, (word, help)): (usize, &(String, String))| {
            let style = if at == list.at { Style::Selected } else { Style::Plain };
            vec![
                Span::new(style, format!(" {} ", crate::one_line(word))),
                Span::new(Style::Dim, format!(" {}", crate::one_line(help))),
            ]
        };
        list.entries.iter().enumerate().skip(first).take(LIST_ROWS).map(row).collect()
    }
}
