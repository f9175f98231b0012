//! The text being typed, with lists of completions, the keys of vi, and a draft that outlives a crash.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::Row;
use crate::editor::{Edit, Editor};
use crate::key::Key;
use crate::vim::{Mode, Vim};
use codex_dialogue::draft;
use codex_dialogue::message::Message;
use codex_views::completions::{Completed, Completions};

/// The time after a change at which the draft is saved.
const DRAFT: Duration = Duration::from_millis(500);

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
        match self.list.as_mut()?.press(key) {
            Completed::Moved => {}
            Completed::Nothing => return None,
            Completed::Closed => {
                self.list = None;
                self.editor.word().clone_into(&mut self.refused);
            }
            Completed::Chosen(word) => {
                self.list = None;
                let is_whole = *key == Key::Enter && self.editor.word() == word.trim_end();
                if !is_whole {
                    self.editor.put_word(&word);
                    self.editor.word().clone_into(&mut self.refused);
                }
                let is_command = *key == Key::Enter && word.starts_with('/') && !word.ends_with(' ');
                if is_whole || is_command {
                    // Nothing has to be added to it, so Enter sends it.
                    return None;
                }
            }
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
        self.list = Completions::offered(self.list.take(), self.editor.word(), entries);
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
        Some(if self.editor.is_empty() { String::new() } else { draft::encode(&self.editor.parts()) })
    }

    /// Brings a saved draft back.
    pub(super) fn restore(&mut self, saved: &str) {
        self.editor.restore(&draft::decode(saved));
        (self.due, self.saved) = (None, self.editor.changes());
    }

    /// The rows of the list.
    pub(super) fn list_rows(&self) -> Vec<Row> {
        self.list.as_ref().map(Completions::rows).unwrap_or_default()
    }
}
