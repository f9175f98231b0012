//! The text being typed, with lists of completions, the keys of vi, and a draft that outlives a crash.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::editor::{Edit, Editor, Part};
use crate::key::Key;
use crate::vim::{Mode, Vim};
use crate::{Row, Span, Style, selection};
use codex_dialogue::message::Message;

/// The number of completions in view.
const LIST_ROWS: usize = 8;
/// The widest word of a list next to which other words are aligned.
const MOST_WORD: usize = 40;
/// The time after a change at which the draft is saved.
const DRAFT: Duration = Duration::from_millis(500);

/// A list of completions for the word before the cursor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Completions {
    pub(super) entries: Vec<(String, String)>,
    /// The word that they complete.
    word: String,
    at: usize,
}

#[derive(Debug, Default)]
pub(super) struct Composer {
    pub(super) editor: Editor,
    pub(super) vim: Option<Vim>,
    pub(super) list: Option<Completions>,
    /// The word for which no list is wanted.
    refused: String,
    /// The change that the saved draft has, and the time at which the next one is due.
    saved: u64,
    due: Option<Instant>,
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
        let by_vim = self.vim.as_mut().and_then(|vim| vim.press(&mut self.editor, key));
        match by_vim.unwrap_or_else(|| self.editor.press(key)) {
            Edit::Changed => Composed::Word,
            edit => Composed::Edit(edit),
        }
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
                if !is_whole {
                    self.editor.put_word(&word);
                    self.editor.word().clone_into(&mut self.refused);
                }
                let is_command = word.starts_with('/') && !word.ends_with(' ');
                if *key == Key::Enter && (is_whole || is_command) {
                    // Nothing has to be added to it, so Enter sends it.
                    return None;
                }
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
        let is_typing = self.vim.as_ref().is_none_or(|vim| vim.mode() == Mode::Insert);
        (is_typing && !word.is_empty() && word != self.refused).then_some(word)
    }

    pub(super) fn offer(&mut self, entries: Vec<(String, String)>) {
        let word = self.editor.word().to_owned();
        // More entries for the same word keep the selected one; another word begins with the best one.
        let before = self.list.take().filter(|list| list.word == word);
        let chosen = before.and_then(|list| list.entries.into_iter().nth(list.at)).map(|(entry, _)| entry);
        let at = chosen.and_then(|chosen| entries.iter().position(|(entry, _)| *entry == chosen)).unwrap_or(0);
        self.list = (!entries.is_empty()).then_some(Completions { entries, word, at });
    }

    /// Takes the text.
    pub(super) fn take(&mut self) -> String {
        self.list = None;
        if let Some(vim) = &mut self.vim {
            vim.reset();
        }
        self.editor.take()
    }

    /// Removes the text, which undo brings back; whether there was any.
    pub(super) fn clear(&mut self) -> bool {
        self.list = None;
        if let Some(vim) = &mut self.vim {
            vim.reset();
        }
        self.editor.clear()
    }

    /// Takes the message, with those skills that its text names.
    pub(super) fn take_message(&mut self, skills: &[(String, PathBuf)]) -> Message {
        let pictures = self.editor.pictures();
        let mut message = Message::with_pictures(self.take(), pictures);
        let is_named = |name: &str| {
            let mention = format!("${name}");
            message.text.split_whitespace().any(|word| word.trim_end_matches([',', '.', ';', ':', ')']) == mention)
        };
        let named: Vec<Value> = skills
            .iter()
            .filter(|(name, _)| is_named(name))
            .map(|(name, path)| json!({"type": "skill", "name": name, "path": path}))
            .collect();
        message.more.extend(named);
        message
    }

    /// Replaces the text.
    pub(super) fn replace(&mut self, text: &str) {
        self.editor.replace(text);
    }

    /// The mark before the text. It tells the mode of vi, if that is used.
    pub(super) fn mark(&self) -> &'static str {
        match self.vim.as_ref().map(Vim::mode) {
            None | Some(Mode::Insert) => "> ",
            Some(Mode::Normal) => ": ",
            Some(Mode::Visual { .. }) => "v ",
        }
    }

    /// The selected part of the displayed text.
    pub(super) fn selection(&self) -> Option<std::ops::Range<usize>> {
        let range = self.vim.as_ref()?.selection(&self.editor)?;
        Some(self.editor.shown_range(range))
    }

    /// The time at which the draft has to be saved.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.due
    }

    /// Notes that the text may have changed.
    pub(super) fn settle(&mut self, now: Instant) {
        if self.editor.changes() == self.saved {
            self.due = None;
        } else if self.editor.is_empty() {
            // A draft that was sent is removed at once.
            self.due = Some(now);
        } else if self.due.is_none() {
            self.due = Some(now + DRAFT);
        }
    }

    /// Lets a change be saved at once.
    pub(super) fn hurry(&mut self, now: Instant) {
        if self.editor.changes() != self.saved {
            self.due = Some(now);
        }
    }

    /// The draft to save, if it is due; an empty one is to be removed.
    pub(super) fn take_draft(&mut self, now: Instant) -> Option<String> {
        self.due.filter(|due| *due <= now)?;
        (self.due, self.saved) = (None, self.editor.changes());
        Some(if self.editor.is_empty() { String::new() } else { encode(&self.editor.parts()) })
    }

    /// Brings a saved draft back.
    pub(super) fn restore(&mut self, draft: &str) {
        self.editor.restore(&decode(draft));
        (self.due, self.saved) = (None, self.editor.changes());
    }

    /// The rows of the list.
    pub(super) fn list_rows(&self) -> Vec<Row> {
        let Some(list) = &self.list else { return Vec::new() };
        let count = list.entries.len();
        let first = selection::first_in_view(list.at, count, LIST_ROWS);
        let shown: Vec<_> = list.entries.iter().enumerate().skip(first).take(LIST_ROWS).collect();
        let widest = shown.iter().map(|(_, (word, _))| word.chars().count()).max().unwrap_or(0).min(MOST_WORD);
        let row = |(at, (word, help)): (usize, &(String, String))| {
            let style = if at == list.at { Style::Selected } else { Style::Plain };
            let (word, help) = (crate::printable(word), crate::printable(help));
            vec![
                Span::new(style, format!(" {:<widest$} ", crate::one_line(&word))),
                Span::new(Style::Dim, format!(" {}", crate::one_line(&help))),
            ]
        };
        let mut rows: Vec<Row> = shown.into_iter().map(row).collect();
        if count > LIST_ROWS {
            rows.push(vec![Span::new(Style::Dim, format!(" {} of {count} · arrows move, Tab completes", list.at + 1))]);
        }
        rows
    }
}

/// A draft as text.
fn encode(parts: &[Part]) -> String {
    let part = |part: &Part| match part {
        Part::Typed(text) => json!({"text": text}),
        Part::Pasted(text) => json!({"paste": text}),
        Part::Picture(path) => json!({"picture": path}),
    };
    Value::from(parts.iter().map(part).collect::<Vec<_>>()).to_string()
}

/// A text as a draft. Parts that are not understood are left out.
fn decode(draft: &str) -> Vec<Part> {
    let parts: Vec<Value> = serde_json::from_str(draft).unwrap_or_default();
    let text = |part: &Value, name: &str| part.get(name)?.as_str().map(str::to_owned);
    let part = |part: &Value| {
        let typed = text(part, "text").map(Part::Typed).or_else(|| text(part, "paste").map(Part::Pasted));
        typed.or_else(|| text(part, "picture").map(|path| Part::Picture(path.into())))
    };
    parts.iter().filter_map(part).collect()
}
