//! How turns end: by themselves, because somebody stops them, or because they cannot be saved.

use codex_log::store::StoreError;
use codex_log::{Abort, Body, Failure, Outcome};
use codex_wire::error_info::CodexErrorInfo;
use codex_wire::response::Message;

use super::Session;
use crate::turn::Input;
use codex_thread::HistoryMode;
use codex_tools::full_message;

/// What the model is told when somebody has stopped a turn.
const INTERRUPTED: &str = "<turn_aborted>\nThe person has stopped this turn. What was running may have done part of its \
                           work; look before you do it again.\n</turn_aborted>";

impl Session {
    /// Stops the running turn, if there is one.
    pub(super) async fn stop(&mut self, abort: Abort) -> bool {
        let running = self.running.is_some();
        self.stop_with(Outcome::Aborted(abort)).await;
        running
    }

    pub(super) async fn stop_with(&mut self, outcome: Outcome) {
        let mut outputs: Vec<_> = self.finish_applying().await.into_iter().collect();
        outputs.extend(self.cut_off_calls());
        self.step(Input::Stop(outcome, outputs)).await;
    }

    /// Saves and publishes what has happened. A turn that cannot be saved fails.
    pub(super) async fn publish(&mut self) {
        if let Some(outcome) = unsaved(self.journal.publish()) {
            Box::pin(self.stop_with(outcome)).await;
        }
    }

    /// Saves and publishes what has happened outside of turns, for good. That it could not be saved is told by the journal.
    pub(super) async fn publish_durably(&mut self) {
        let _: Result<(), StoreError> = self.journal.publish_durably().await;
    }

    /// Ends the turn: what it leaves behind is looked after and saved, then its end is told.
    pub(super) async fn end(&mut self, outcome: Outcome) {
        if matches!(outcome, Outcome::Aborted(_)) && self.setup.profile.history == HistoryMode::Brief {
            self.context.forget_unfinished();
        }
        if outcome == Outcome::Aborted(Abort::Interrupted) && self.setup.profile.tells_of_interrupts {
            self.tell_model(Message::user(INTERRUPTED));
        }
        self.look_after_terminals().await;
        // Whoever hears that the turn is over finds the folders as its commands have left them.
        self.inspect_folders().await;
        self.end_turn_of_goal(&outcome);
        let outcome = self.end_review(outcome);
        let outcome = self.bookmark(outcome);
        self.note_result(&outcome).await;
        self.emit(Body::TurnEnded(outcome.clone()));
        match (unsaved(self.journal.publish_durably().await), &outcome) {
            (Some(failed), Outcome::Completed { .. }) => {
                self.journal.withdraw_end();
                self.emit(Body::TurnEnded(failed));
                self.publish_durably().await;
            }
            (Some(_) | None, _) => self.tell_program(&outcome),
        }
        self.running = None;
    }
}

/// How a turn ends that cannot be saved.
pub(super) fn unsaved(saved: Result<(), StoreError>) -> Option<Outcome> {
    let error = saved.err()?;
    let message = format!("this thread could not be saved: {}", full_message(&error));
    Some(Outcome::Failed(Failure { message, hint: None, info: CodexErrorInfo::Other }))
}
