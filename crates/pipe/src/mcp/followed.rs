//! The turn that a call follows, in this process or on another server.

use std::sync::Arc;

use codex_dialects::eq::{self, Vocabulary};
use codex_log::{Body, Event, Outcome, Question, QuestionId, TurnId};
use codex_thread::{Children, Closed, Feed, Thread};
use codex_wire::event::EventMsg;
use codex_wire::ids::ThreadId;

use super::asker::Asker;
use super::elsewhere::TurnElsewhere;
use super::tool::ToolResult;

/// A turn and its thread.
pub(super) enum Followed {
    Here(Box<TurnHere>),
    Elsewhere(Box<TurnElsewhere>),
}

/// Something that has arrived and is not processed yet.
pub(super) enum Arrival {
    Event(Option<Arc<Event>>),
    OfChild(Thread, Arc<Event>),
    /// A line of the other server; `None` when it has hung up.
    Line(Option<Vec<u8>>),
}

/// The meaning of something that has arrived.
#[derive(Default)]
pub(super) struct Happening {
    /// Messages for the client, each with its id.
    pub(super) messages: Vec<(String, EventMsg)>,
    pub(super) change: Option<Change>,
}

/// A change that the call has to react to, after its messages.
pub(super) enum Change {
    Asked {
        asker: Asker,
        turn: String,
        question: Arc<Question>,
    },
    Answered {
        thread: ThreadId,
        question: QuestionId,
    },
    /// A turn has ended, and with it all its questions. The result is that of the turn of the call.
    TurnEnded(Option<ToolResult>),
    /// The thread has ended, or cannot be reached any more.
    Lost(ToolResult),
}

impl Followed {
    pub(super) fn thread(&self) -> ThreadId {
        match self {
            Self::Here(turn) => turn.thread.id(),
            Self::Elsewhere(turn) => turn.thread(),
        }
    }

    pub(super) fn turn(&self) -> &str {
        match self {
            Self::Here(turn) => turn.turn.as_str(),
            Self::Elsewhere(turn) => turn.turn(),
        }
    }

    /// Waits for something to happen. Cancelling it loses nothing.
    pub(super) async fn next(&mut self) -> Arrival {
        match self {
            Self::Here(turn) => turn.next().await,
            Self::Elsewhere(turn) => Arrival::Line(turn.next().await),
        }
    }

    /// Processes what has arrived.
    pub(super) async fn take(&mut self, arrival: Arrival) -> Happening {
        match (self, arrival) {
            (Self::Here(turn), Arrival::Event(event)) => turn.take(event).await,
            (Self::Here(turn), Arrival::OfChild(child, event)) => turn.take_child(child, &event).await,
            (Self::Elsewhere(turn), Arrival::Line(line)) => turn.take(line),
            // Each kind of turn takes what it has received.
            (Self::Here(_), Arrival::Line(_)) | (Self::Elsewhere(_), Arrival::Event(_) | Arrival::OfChild(..)) => {
                Happening::default()
            }
        }
    }

    /// Stops the turn, if it is still the one that runs.
    pub(super) async fn interrupt(&mut self) {
        match self {
            Self::Here(turn) => turn.interrupt().await,
            Self::Elsewhere(turn) => turn.interrupt(),
        }
    }
}

/// A turn of a thread in this process.
pub(super) struct TurnHere {
    pub(super) thread: Thread,
    pub(super) turn: TurnId,
    pub(super) feed: Feed,
    pub(super) children: Children,
    pub(super) vocabulary: Vocabulary,
}

impl TurnHere {
    async fn next(&mut self) -> Arrival {
        tokio::select! {
            event = self.feed.next() => Arrival::Event(event),
            (thread, event) = self.children.next() => Arrival::OfChild(thread, event),
        }
    }

    async fn interrupt(&self) {
        let running = self.thread.running().await;
        if running.is_ok_and(|running| running.as_ref() == Some(&self.turn)) {
            // It may have ended at the same moment.
            let _: Result<bool, Closed> = self.thread.interrupt().await;
        }
    }

    async fn take(&mut self, event: Option<Arc<Event>>) -> Happening {
        let Some(event) = event else {
            let lost = ToolResult::error(Some(self.thread.id()), Closed.to_string());
            return Happening { messages: Vec::new(), change: Some(Change::Lost(lost)) };
        };
        let mut messages = Vec::new();
        eq::project(&event, self.vocabulary, &mut messages);
        let id = match (&event.turn, &event.body) {
            (_, Body::ThreadStarted(_)) | (None, _) => "",
            (Some(turn), _) => turn.as_str(),
        };
        let change = match &event.body {
            Body::Asked(question) => Some(Change::Asked {
                asker: Asker::Here(self.thread.clone()),
                turn: id.to_owned(),
                question: Arc::clone(question),
            }),
            Body::Answered { question, .. } => {
                Some(Change::Answered { thread: self.thread.id(), question: question.clone() })
            }
            Body::TurnEnded(outcome) => {
                let is_own = event.turn.as_ref() == Some(&self.turn);
                Some(Change::TurnEnded(is_own.then(|| result(self.thread.id(), outcome))))
            }
            _ => {
                self.children.follow(&event).await;
                None
            }
        };
        let with_id = |msg: EventMsg| {
            // 0.77 uses this id for the items that precede the first turn.
            let id = if id.is_empty() && matches!(msg, EventMsg::RawResponseItem(_)) { "auto-compact-0" } else { id };
            (id.to_owned(), msg)
        };
        Happening { messages: messages.into_iter().map(with_id).collect(), change }
    }

    /// The client sees only the questions of a child agent.
    async fn take_child(&mut self, child: Thread, event: &Event) -> Happening {
        let turn = event.turn.as_ref().map(TurnId::as_str).unwrap_or_default().to_owned();
        let change = match &event.body {
            Body::Asked(question) => {
                Some(Change::Asked { asker: Asker::Here(child), turn, question: Arc::clone(question) })
            }
            Body::Answered { question, .. } => {
                Some(Change::Answered { thread: child.id(), question: question.clone() })
            }
            _ => {
                self.children.follow(event).await;
                None
            }
        };
        Happening { messages: Vec::new(), change }
    }
}

/// The result of a turn.
fn result(thread: ThreadId, outcome: &Outcome) -> ToolResult {
    match outcome {
        Outcome::Completed { last_message, .. } => {
            let text = last_message.as_ref().map(ToString::to_string).unwrap_or_default();
            ToolResult { thread: Some(thread), text, is_error: false }
        }
        Outcome::Aborted(_) => ToolResult::interrupted(thread),
        Outcome::Failed(failure) => {
            let hint = failure.hint.map(|hint| format!("\n{hint}")).unwrap_or_default();
            ToolResult::error(Some(thread), format!("{}{hint}", failure.message))
        }
    }
}
