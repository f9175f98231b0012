//! A connection that has broken and is restored.

use codex_client::Event;

use super::app::{App, Effect};
use super::calls::Pending;
use crate::Style;

impl App {
    /// Shows an event about the connection.
    pub(super) fn connection_changed(&mut self, event: &Event) {
        match event {
            Event::Disconnected => {
                // They are asked again, and an answer to the old ones would reach nobody.
                drop(self.panel.withdraw(self.now, |_| true));
                self.lost = Some("connecting again".to_owned());
                self.say(Style::Yellow, "connection", "lost; connecting again. Messages wait until it is back");
            }
            Event::Reconnected { refused } => {
                self.lost = None;
                self.say(Style::Dim, "connection", "back");
                self.queue_changed();
                if let Some(why) = self.thread.as_ref().and_then(|thread| refused.get(&thread.id)) {
                    self.running = None;
                    self.say(Style::Red, "error", why);
                }
            }
            _ => {}
        }
    }

    /// The number of messages that go out once the connection is back.
    pub(super) fn waiting_messages(&self) -> usize {
        let is_message = |pending: &&Pending| matches!(pending, Pending::Start(_) | Pending::Steer(..));
        if self.lost.is_some() { self.calls.pending.values().filter(is_message).count() } else { 0 }
    }

    /// Follows a thread that was opened. One that it belongs to, or that belongs to it, is heard further.
    pub(super) fn follow(&mut self, thread: String) {
        let before = self.thread_id().filter(|before| !self.calls.is_kin && *before != thread);
        self.effect(Effect::Follow(thread, before));
    }

    /// Takes the turn that runs from a thread that was told as a whole.
    pub(super) fn take_running(&mut self) {
        let last = self.open_thread().and_then(|thread| thread.turns().last());
        let turn = last.filter(|turn| turn.status() == "inProgress").map(|turn| turn.id().to_owned());
        match turn {
            Some(turn) => self.begin_turn(&turn),
            None => self.running = None,
        }
    }
}
