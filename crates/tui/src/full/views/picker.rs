//! The picker of threads in the chat: its questions, its answers and its keys.

use serde_json::{Value, json};

use super::boards::Wanted;
use crate::Style;
use crate::chat::ThreadToOpen;
use crate::full::app::{App, Effect, Overlay};
use crate::full::calls::Pending;
use crate::key::Key;
use codex_views::threads::{Asked, Picked, Threads};

impl App {
    /// Opens the picker.
    pub(in crate::full) fn list_threads(&mut self, is_fork: bool, is_everywhere: bool) {
        let is_elsewhere = self.settings.context.is_elsewhere();
        let folder = (!is_elsewhere).then(|| self.settings.cwd.clone());
        self.overlay = Some(Overlay::Threads(Threads::new(is_fork, folder, is_everywhere)));
        self.ask_threads();
    }

    fn ask_threads(&mut self) {
        let Some(Overlay::Threads(threads)) = &mut self.overlay else { return };
        if let Some(asked) = threads.question() {
            self.ask_more(asked);
        }
    }

    fn ask_more(&mut self, asked: Asked) {
        self.call(asked.method, asked.params.clone(), Pending::View(Wanted::Threads(asked)));
    }

    pub(super) fn take_threads(&mut self, asked: &Asked, answer: Result<Value, String>) {
        let here = self.thread_id().unwrap_or_default();
        let Some(Overlay::Threads(threads)) = &mut self.overlay else { return };
        let next = match &answer {
            Ok(answer) => threads.take(asked, answer, &here),
            Err(why) => {
                threads.fail(why);
                None
            }
        };
        if threads.is_empty() && answer.is_ok() && next.is_none() {
            self.overlay = None;
            self.remark(Style::Dim, "There is no other thread yet.");
            if self.thread.is_none() {
                self.effect(Effect::Leave);
            }
            return;
        }
        if let Some(asked) = next {
            self.ask_more(asked);
        }
    }

    pub(super) fn thread_changed(&mut self, told: String, error: Option<String>) {
        let Some(Overlay::Threads(threads)) = &mut self.overlay else { return };
        threads.tell(error.unwrap_or(told));
        threads.forget();
        self.ask_threads();
    }

    /// A key for the picker.
    pub(in crate::full) fn threads_key(&mut self, mut threads: Threads, key: &Key) {
        let picked = threads.press(key);
        let changed = |text: &str| Pending::View(Wanted::ThreadChanged(text.to_owned()));
        match picked {
            Picked::Open(id) => return self.effect(Effect::Open(ThreadToOpen::Resume(id))),
            Picked::Fork(id) => return self.effect(Effect::Open(ThreadToOpen::Fork(id))),
            Picked::Cancelled if self.thread.is_none() => return self.effect(Effect::Leave),
            Picked::Cancelled => return,
            Picked::Name(id, name) => {
                self.call("thread/name/set", json!({"threadId": id, "name": name}), changed("Named"));
            }
            Picked::Delete(id) => self.call("thread/delete", json!({"threadId": id}), changed("Deleted")),
            Picked::Archive(id, true) => self.call("thread/archive", json!({"threadId": id}), changed("Archived")),
            Picked::Archive(id, false) => self.call("thread/unarchive", json!({"threadId": id}), changed("Restored")),
            Picked::Nothing => {}
        }
        self.overlay = Some(Overlay::Threads(threads));
        self.ask_threads();
    }
}
