//! Keys, outside of requests and lists: those of the transcript, the composer, Esc and Ctrl-C.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::json;

use super::app::{App, Effect, Overlay};
use super::approval::Answered;
use super::calls::Pending;
use super::composer::Composed;
use crate::Style;
use crate::editor::Edit;
use crate::key::Key;
use crate::keymap::Context;

/// The time between two presses of Esc that belong together.
const TWICE: Duration = Duration::from_millis(600);

impl App {
    pub(super) fn key(&mut self, key: &Key, at: Instant) {
        let chat_key = self.settings.keymap.translate(Context::Chat, key);
        if chat_key == Some(Key::Ctrl('z')) {
            return self.effect(Effect::Suspend);
        }
        if !self.panel.is_empty() {
            return self.request_key(key, at);
        }
        if self.overlay.is_some() {
            return self.overlay_key(key);
        }
        if self.queue.at.is_some() {
            return self.queue_key(key);
        }
        let Some(key) = &chat_key else { return };
        if *key == Key::Ctrl('c') {
            return self.interrupt();
        }
        self.is_warned = false;
        self.hint = None;
        if self.view_key(key) {
            return;
        }
        if *key == Key::Char('\t') && self.composer.list.is_none() && self.enqueue() {
            return;
        }
        if self.picture_key(key) {
            return;
        }
        match self.composer.press(key) {
            Composed::Edit(edit) => self.edited(edit, key, at),
            Composed::Word => self.complete(),
        }
    }

    /// Keys of the request that is shown.
    fn request_key(&mut self, key: &Key, at: Instant) {
        // Letters go into the fields of a form.
        let key = if self.panel.has_form() {
            Some(key.clone())
        } else {
            self.settings.keymap.translate(Context::Request, key)
        };
        let Some(Answered { question, reply, past, is_cancelled, is_accepted }) =
            key.as_ref().and_then(|key| self.panel.press(key, at, self.size))
        else {
            return;
        };
        self.say(Style::Dim, "answered", past);
        if let Some(address) = question.address().filter(|_| is_accepted) {
            self.effect(Effect::Copy(address.to_owned()));
            self.hint = Some("The address is on the clipboard of the terminal".to_owned());
        }
        let has_no_stop = question.is_of_model() || question.permissions().is_some();
        self.effect(Effect::Decide(question.id, reply));
        if is_cancelled && has_no_stop {
            self.stop_turn();
        }
        self.is_warned = key == Some(Key::Ctrl('c'));
    }

    /// The path of a picture that is pasted or dropped is attached; whether it was one.
    fn picture_key(&mut self, key: &Key) -> bool {
        let Key::Paste(text) = key else { return false };
        let found = picture(text).filter(|_| !self.settings.context.is_elsewhere());
        found.is_some_and(|path| self.composer.editor.attach(&path) == Edit::Changed)
    }

    /// Keys of the transcript; whether it was one.
    fn view_key(&mut self, key: &Key) -> bool {
        let size = self.transcript_size();
        let page = isize::try_from(size.1.saturating_sub(2)).unwrap_or(1).max(1);
        match key {
            Key::PageUp => self.scroll(-page),
            Key::PageDown => self.scroll(page),
            Key::AltUp => self.go_by_turn(true),
            Key::AltDown => self.go_by_turn(false),
            Key::Alt('<') => self.scroll(isize::MIN / 2),
            Key::Alt('>' | 'e') => self.transcript.top = None,
            Key::Ctrl('o') => {
                let fold = self.transcript.cycle();
                self.hint = Some(format!("Showing: {}", fold.name()));
            }
            Key::Alt('o') => {
                let view = self.transcript.view(self.open_thread(), size);
                if let Some(fold) = view.last().and_then(|(place, _)| self.transcript.cycle_entry(place.entry)) {
                    self.hint = Some(format!("Showing of this item: {}", fold.name()));
                }
            }
            // In the normal mode of vi it is for redo.
            Key::Ctrl('r') if self.composer.mark() == "> " => self.offer_prompts(),
            Key::Ctrl('g') => {
                let text = self.composer.editor.text();
                self.effect(Effect::Write(text));
            }
            Key::Ctrl('v') if self.composer.mark() == "> " && !self.settings.context.is_elsewhere() => {
                let id = self.expect(Pending::Picture);
                self.effect(Effect::Picture(id));
            }
            Key::Alt('r') => self.go_forward(),
            Key::Ctrl('s') => self.overlay = Some(Overlay::Search(String::new())),
            Key::Alt('n') => self.search_again(),
            Key::Alt('c') => self.copy_last(),
            Key::Ctrl('l') => self.effect(Effect::Redraw),
            Key::BackTab => return self.choose_queued(true),
            _ => return false,
        }
        true
    }

    pub(super) fn scroll(&mut self, by: isize) {
        let size = self.transcript_size();
        let thread = self.thread.as_ref().and_then(|open| self.client.thread(&open.id));
        self.transcript.scroll(thread, size, by);
    }

    fn go_by_turn(&mut self, is_back: bool) {
        let size = self.transcript_size();
        if let Some(thread) = self.thread.as_ref().and_then(|open| self.client.thread(&open.id)) {
            self.transcript.go_by_turn(thread, size, is_back);
        }
    }

    pub(super) fn search_again(&mut self) {
        let (size, sought) = (self.transcript_size(), self.calls.sought.clone());
        let thread = self.thread.as_ref().and_then(|open| self.client.thread(&open.id));
        if !self.transcript.find(thread, size, &sought) {
            self.hint = Some(format!("Not found: {}", crate::one_line(&sought)));
        }
    }

    fn edited(&mut self, edit: Edit, key: &Key, at: Instant) {
        match edit {
            Edit::Submit => self.submit(),
            Edit::End => self.effect(Effect::Leave),
            Edit::Older => {
                if let Some(text) = self.history.older(&self.composer.editor.text()) {
                    self.composer.replace(&text);
                }
            }
            Edit::Newer => {
                if let Some(text) = self.history.newer() {
                    self.composer.replace(&text);
                }
            }
            Edit::Full => self.hint = Some("The text has as many bytes as can be sent".to_owned()),
            Edit::Ignored if *key == Key::Esc => self.escape(at),
            Edit::Changed | Edit::Ignored => {}
        }
    }

    /// Esc stops the turn; twice, without a turn, it goes back to an earlier message.
    fn escape(&mut self, at: Instant) {
        if self.running.is_some() {
            return self.stop_turn();
        }
        match self.calls.escaped.replace(at) {
            Some(before) if at.saturating_duration_since(before) < TWICE => {
                self.calls.escaped = None;
                self.offer_earlier();
            }
            _ => self.hint = Some("Esc again: go back to an earlier message".to_owned()),
        }
    }

    /// Ctrl-C: stops the turn, or clears the input; pressed again, quits.
    fn interrupt(&mut self) {
        if std::mem::replace(&mut self.is_warned, true) {
            return self.effect(Effect::Leave);
        }
        self.hint = None;
        if self.running.is_some() {
            self.stop_turn();
        } else if self.composer.clear() {
            self.hint = Some(format!("{} brings the text back", self.settings.keymap.key_of("undo")));
        }
    }

    fn stop_turn(&mut self) {
        if let (Some(thread), Some(running)) = (&self.thread, &self.running) {
            let params = json!({"threadId": thread.id, "turnId": running.turn});
            self.call("turn/interrupt", params, Pending::Nothing);
        }
    }
}

/// The file of a picture, if that is all that a text names.
fn picture(text: &str) -> Option<PathBuf> {
    let text = text.trim().trim_matches(['\'', '"']);
    let text = text.strip_prefix("file://").unwrap_or(text).replace("\\ ", " ");
    let path = PathBuf::from(text);
    let end = path.extension()?.to_str()?.to_ascii_lowercase();
    let is_picture = matches!(end.as_str(), "png" | "jpg" | "jpeg" | "gif" | "webp");
    (is_picture && path.is_absolute() && path.is_file()).then_some(path)
}
