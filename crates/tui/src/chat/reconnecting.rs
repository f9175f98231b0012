//! A connection that has broken and is restored: what the person is told, and what goes on afterwards.

use std::io::Write;

use codex_client::Event;
use serde_json::{Map, Value};

use super::session::Chat;
use crate::transcript::Style;

impl<W: Write> Chat<W> {
    /// Takes an event about the connection; `false` if it is about something else.
    pub(crate) fn is_about_connection(&mut self, event: &Event) -> bool {
        match event {
            Event::Disconnected => {
                // They are asked again, and an answer to the old ones would reach nobody.
                drop(self.asking.withdraw(|_| true));
                self.view.note(Style::Yellow, "connection", "lost; connecting again. Messages wait until it is back");
            }
            Event::Reconnected { refused } => {
                self.view.note(Style::Dim, "connection", "back");
                if let Some(why) = self.thread.as_ref().and_then(|thread| refused.get(&thread.id)) {
                    self.view.note(Style::Red, "error", why);
                    self.running = None;
                }
            }
            Event::Thread { id, value, whole: true } if self.connection.is_broken() => self.take_whole(id, value),
            _ => return false,
        }
        true
    }

    /// Too much was missed, so the server tells the whole thread: shows what is new, with all of the turn that was running.
    fn take_whole(&mut self, id: &str, value: &Map<String, Value>) {
        let Some(thread) = self.thread.as_ref().filter(|thread| thread.id == id) else { return };
        let turns = value.get("turns").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let known = turns.iter().position(|turn| turn["id"] == thread.last_turn.as_str());
        let was_running = self.running.take().is_some();
        let from = known.map_or(0, |known| if was_running { known } else { known + 1 });
        self.view.earlier(&turns[from..], false);
        let running = turns.last().filter(|turn| turn["status"] == "inProgress").and_then(|turn| turn["id"].as_str());
        if let Some(turn) = running {
            self.begin_turn(turn.to_owned());
        }
    }
}
