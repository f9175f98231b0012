//! The listeners of a conversation, as its subscriber keeps them.

use codex_log::{Abort, Outcome};
use codex_protocol::methods::call;
use codex_protocol::v1::turn::InterruptConversationResponse;
use codex_protocol::v2::notification::{ServerNotification, ThreadNamed, ThreadStatusChanged};
use codex_protocol::v2::thread::ThreadStatus;
use codex_protocol::v2::warning::Warning;
use codex_wire::event::{BackgroundEventEvent, EventMsg, TurnAbortReason};

use crate::app::connection::Client;
use crate::app::now_ms;
use crate::app::questions::Repeat;
use crate::app::subscriber::ThreadSubscriber;
use codex_dialects::event_filter::{EventFilter, Events};

impl ThreadSubscriber {
    /// The number of listeners.
    pub(crate) fn listeners(&self) -> usize {
        self.subscriptions.names().len()
    }

    /// Adds a listener.
    pub(super) async fn add_listener(&mut self, name: String, raw_items: bool) {
        self.subscriptions.add(name, raw_items);
        self.listen().await;
    }

    /// Removes a listener. After the last one, the thread continues without messages to this client.
    pub(super) fn remove_listener(&mut self, name: &str) {
        self.connection.remove_listener(name);
        self.subscriptions.remove(name);
        self.listen_less();
    }

    /// Removes all listeners, because the thread has ended.
    pub(crate) fn remove_listeners(&mut self) {
        let names: Vec<String> = self.subscriptions.names().cloned().collect();
        for name in names {
            self.remove_listener(&name);
        }
    }

    /// Updates the events that the client receives after a listener was added.
    pub(crate) async fn listen(&mut self) {
        let before = self.filter;
        self.filter = EventFilter::of(self.connection.client().map(Client::traits), &self.subscriptions);
        if !before.is_muted() {
            // Open requests of one dialect are sent in the other too.
            if before != self.filter {
                self.ask_again(Repeat::No).await;
            }
            return;
        }
        self.tell_of_loss();
        for (turn, question) in std::mem::take(&mut self.unasked) {
            if !self.backlog.is_settled(&question.id) {
                self.ask(&turn, &question, 0, Repeat::No);
            }
        }
    }

    /// Updates the events that the client receives after a listener was removed.
    pub(crate) fn listen_less(&mut self) {
        self.filter = EventFilter::of(self.connection.client().map(Client::traits), &self.subscriptions);
        if self.filter.events == Events::None {
            // These requests waited for an event that is no longer sent.
            self.answer_all_interrupts(&TurnAbortReason::Interrupted);
        }
    }

    /// Warns the client if events were dropped while it had no listener.
    fn tell_of_loss(&mut self) {
        let lost = self.backlog.take_lost();
        if lost > 0 {
            let message = format!(
                "{lost} events were dropped because the conversation had no listener; they are in the thread's file"
            );
            let event = EventMsg::BackgroundEvent(BackgroundEventEvent { message: message.clone() });
            self.send_event(None, &event, now_ms());
            let warning = Warning { thread_id: Some(self.thread.id().to_string()), message };
            self.notify(&ServerNotification::Warning(warning), now_ms());
        }
    }

    /// Notifies the client that the thread has ended. One that was taken over by another server goes on there, so the
    /// client has to know that it will not hear of that here.
    pub(crate) fn tell_of_end(&mut self) {
        if self.listeners() > 0 {
            self.send_event(None, &EventMsg::ShutdownComplete, now_ms());
        }
        if self.thread.started().meta.lineage.parent_thread_id.is_some() {
            let (thread_id, status) = (self.thread.id().to_string(), ThreadStatus::NotLoaded);
            let unloaded = ThreadStatusChanged { thread_id, status };
            self.notify(&ServerNotification::ThreadStatusChanged(unloaded), now_ms());
        }
        if !self.thread.was_closed() {
            let closed = ThreadNamed { thread_id: self.thread.id().to_string() };
            self.notify(&ServerNotification::ThreadClosed(closed), now_ms());
        }
    }

    /// Answers the interrupt requests of the turn that has ended.
    pub(crate) fn answer_interrupts(&mut self, outcome: &Outcome) {
        self.answer_all_interrupts(&match outcome {
            Outcome::Aborted(Abort::Replaced) => TurnAbortReason::Replaced,
            Outcome::Aborted(Abort::ReviewEnded) => TurnAbortReason::ReviewEnded,
            // A turn that ended at the same moment counts as interrupted for the requester.
            Outcome::Aborted(Abort::Interrupted) | Outcome::Completed { .. } | Outcome::Failed(_) => {
                TurnAbortReason::Interrupted
            }
        });
    }

    fn answer_all_interrupts(&mut self, abort_reason: &TurnAbortReason) {
        for unanswered in std::mem::take(&mut self.interrupts) {
            let result = InterruptConversationResponse { abort_reason: abort_reason.clone() };
            // The answer follows all earlier notifications.
            unanswered.answer_in::<call::InterruptConversation>(&mut self.outgoing, result);
        }
    }
}
