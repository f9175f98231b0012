//! Keys, outside of requests and lists: those of the transcript, the composer, Esc and Ctrl-C.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::json;

use super::app::{App, Effect, Overlay};
use super::calls::Pending;
use super::composer::Composed;
use super::views::List;
use crate::Style;
use crate::editor::Edit;
use crate::key::Key;
use crate::picker::Entry;
use crate::reply::reply;

/// The most earlier prompts to pick from.
const MOST_PROMPTS: usize = 500;

/// The time between two presses of Esc that belong together.
const TWICE: Duration = Duration::from_millis(600);

impl App {
    pub(super) fn key(&mut self, key: &Key, at: Instant) {
        if *key == Key::Ctrl('z') {
            return self.effect(Effect::Suspend);
        }
        if !self.panel.is_empty() {
            if let Some((question, decision)) = self.panel.press(key, at, self.size) {
                self.remark(Style::Dim, decision.past());
                let reply = reply(&question, decision);
                self.effect(Effect::Decide(question.id, reply));
                self.is_warned = *key == Key::Ctrl('c');
            }
            return;
        }
        if self.overlay.is_some() {
            return self.overlay_key(key);
        }
        if self.queue_at.is_some() {
            return self.queue_key(key);
        }
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

    /// The path of a picture that is pasted or dropped is attached, and Backspace on an empty line takes it back; whether
    /// it was one of these.
    fn picture_key(&mut self, key: &Key) -> bool {
        match key {
            Key::Paste(text) if !self.settings.context.is_elsewhere() => match picture(text) {
                Some(path) => self.calls.pictures.push(path),
                None => return false,
            },
            Key::Backspace if self.composer.editor.text().is_empty() => return self.calls.pictures.pop().is_some(),
            _ => return false,
        }
        true
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
                if let Some((place, _)) = view.last() {
                    self.transcript.toggle(place.entry);
                }
            }
            Key::Ctrl('r') => self.offer_prompts(),
            Key::Ctrl('s') => self.overlay = Some(Overlay::Search(String::new())),
            Key::Alt('n') => self.search_again(true),
            Key::Alt('c') => self.copy_last(),
            Key::Ctrl('l') => self.effect(Effect::Redraw),
            Key::BackTab if !self.queue.is_empty() => self.queue_at = Some(self.queue.len() - 1),
            _ => return false,
        }
        true
    }

    /// Offers earlier prompts, the latest first.
    fn offer_prompts(&mut self) {
        let entries: Vec<_> = self
            .history
            .latest(MOST_PROMPTS)
            .into_iter()
            .map(|text| (text.clone(), Entry { note: String::new(), title: text }))
            .collect();
        if entries.is_empty() {
            self.hint = Some("There is no earlier prompt".to_owned());
            return;
        }
        self.overlay = Some(Overlay::Prompts(List::new("Earlier prompts", entries)));
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

    pub(super) fn search_again(&mut self, is_back: bool) {
        let (size, sought) = (self.transcript_size(), self.calls.sought.clone());
        let thread = self.thread.as_ref().and_then(|open| self.client.thread(&open.id));
        if !self.transcript.find(thread, size, &sought, is_back) {
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
        if self.running.is_some() {
            self.stop_turn();
        } else {
            self.composer.take();
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
