//! What the end of a turn means to those outside: there is something to read, and the user's program is told.

use std::sync::Arc;

use codex_log::{Body, Outcome};

use super::Session;
use crate::notify::{Notice, notify};

impl Session {
    /// Notes that there is something to read, before anybody hears that the turn is over. Who has stopped a turn knows how
    /// it went, and neither a summary nor a command of the user's own is a result.
    pub(super) async fn note_result(&mut self, outcome: &Outcome) {
        let Some(running) = self.running.as_ref().filter(|_| self.setup.profile.keeps_read_marks) else { return };
        if matches!(outcome, Outcome::Aborted(_)) || !running.machine.is_for_user() || self.journal.is_in_memory() {
            return;
        }
        let (store, thread, turn) = (Arc::clone(&self.setup.store), self.started.meta.id, running.id.clone());
        let noting = tokio::task::spawn_blocking(move || store.turn_ended(thread, turn.as_str()));
        // The thread itself is whole without the note.
        if let Ok(Ok(state)) = noting.await {
            self.emit(Body::Unread(Arc::new(state)));
        }
    }

    /// Tells the user's program that a turn is done.
    pub(super) fn tell_program(&self, outcome: &Outcome) {
        let argv = &self.setup.config.notify;
        let (Outcome::Completed { last_message, .. }, Some(running)) = (outcome, &self.running) else { return };
        notify(
            argv,
            &Notice {
                home: self.setup.home.path(),
                thread: self.started.meta.id,
                turn: &running.id,
                settings: &running.settings,
                said: running.said.clone(),
                last_message: last_message.as_deref(),
            },
        );
    }
}
