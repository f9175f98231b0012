//! Everything that a server tells, as one kind of event, whichever dialect it was told in.

use std::collections::BTreeMap;

use codex_wire::ids::RequestId;
use serde_json::{Map, Value};

/// Members of an item, in the form of v2: `type`, `id`, and those of its kind.
pub type Members = Map<String, Value>;

/// An event.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// A thread, with everything that is known about it; `whole` if its turns replace the known ones.
    Thread { id: String, value: Members, whole: bool },
    /// Something about a thread has changed: `status`, `name`, `archived`, `deleted` or `closed`.
    ThreadChanged { thread: String, member: &'static str, value: Value },
    /// A turn has started.
    TurnStarted { thread: String, turn: String },
    /// A turn is over: `completed`, `interrupted` or `failed`.
    TurnEnded { thread: String, turn: String, status: String, error: Value, duration_ms: Option<i64> },
    /// An item has started, or is known better; and when, in milliseconds of Unix time, if the server tells.
    ItemStarted { thread: String, turn: String, item: Members, teller: Teller, at_ms: Option<i64> },
    /// An item is complete.
    ItemCompleted { thread: String, turn: String, item: Members, teller: Teller, at_ms: Option<i64> },
    /// More of an item.
    Delta(Box<Delta>),
    /// The plan of a turn, with its explanation.
    Plan { thread: String, turn: String, plan: Value },
    /// All changes of a turn so far.
    Diff { thread: String, turn: String, diff: String },
    /// Tokens were used.
    Usage { thread: String, usage: Value },
    /// The limits of the account.
    RateLimits { limits: Value },
    /// An error in a turn, which may be tried again.
    Error { thread: String, turn: String, message: String, will_retry: bool },
    /// A warning for the user.
    Warning { thread: String, message: String },
    /// The server asks something.
    Asked { thread: String, id: RequestId, method: String, params: Value },
    /// A question needs no answer any more.
    Resolved { thread: String, id: RequestId },
    /// A message of a known method that changes nothing of a thread.
    Other { method: String, params: Value },
    /// A message of a method that this library does not know.
    Unknown { method: String, params: Value },
    /// The connection of a link has broken. It is dialled again, and questions that are open are asked again.
    Disconnected,
    /// There is a connection again; the threads that the server does not know any more, with its reasons.
    Reconnected { refused: BTreeMap<String, String> },
    /// A line that is no message, or a reader that was too slow for all deltas.
    Note { text: String },
}

/// More of an item.
#[derive(Debug, Clone, PartialEq)]
pub struct Delta {
    pub thread: String,
    pub turn: String,
    /// The item; empty if the server did not name it, and it is the open one of its kind.
    pub item: String,
    /// The member that grows.
    pub part: Part,
    pub text: String,
    /// Who tells it.
    pub teller: Teller,
}

/// The member of an item that grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The text of a message.
    Message,
    /// The output of a command.
    Output,
    /// A part of a reasoning summary.
    Summary(usize),
    /// A part of raw reasoning.
    Reasoning(usize),
    /// The text of a plan.
    Plan,
}

impl Part {
    /// The kind of the items that have it.
    #[must_use]
    pub const fn kind(self) -> &'static str {
        match self {
            Self::Message => "agentMessage",
            Self::Output => "commandExecution",
            Self::Summary(_) | Self::Reasoning(_) => "reasoning",
            Self::Plan => "plan",
        }
    }
}

/// The dialects that tell items, from the one that says least to the one that says most. A server may use several at
/// once; an item is told by the last of them, and its deltas by the first that has any.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Teller {
    /// Events of the queue that do not name their item.
    OldQueue,
    /// Events of the queue that do.
    Queue,
    /// `item/created` and `item/delta`.
    Created,
    /// `item/started`, `item/completed`, and the deltas of each kind.
    Items,
}

impl Delta {
    /// Whether another delta is more of the same.
    pub(crate) fn continues_with(&self, next: &Self) -> bool {
        self.item == next.item
            && self.part == next.part
            && self.teller == next.teller
            && self.turn == next.turn
            && self.thread == next.thread
    }
}

impl Event {
    /// The thread that it is about, if it is about one.
    #[must_use]
    pub fn thread(&self) -> Option<&str> {
        let thread = match self {
            Self::Thread { id, .. } => id.as_str(),
            Self::Delta(delta) => &delta.thread,
            Self::ThreadChanged { thread, .. }
            | Self::TurnStarted { thread, .. }
            | Self::TurnEnded { thread, .. }
            | Self::ItemStarted { thread, .. }
            | Self::ItemCompleted { thread, .. }
            | Self::Plan { thread, .. }
            | Self::Diff { thread, .. }
            | Self::Usage { thread, .. }
            | Self::Error { thread, .. }
            | Self::Warning { thread, .. }
            | Self::Asked { thread, .. }
            | Self::Resolved { thread, .. } => thread,
            Self::Other { params, .. } | Self::Unknown { params, .. } => crate::router::thread_id(params),
            Self::RateLimits { .. } | Self::Disconnected | Self::Reconnected { .. } | Self::Note { .. } => return None,
        };
        Some(thread).filter(|thread| !thread.is_empty())
    }

    /// Whether another event says the same anew.
    pub(crate) fn is_replaced_by(&self, next: &Self) -> bool {
        match (self, next) {
            (Self::RateLimits { .. }, Self::RateLimits { .. }) => true,
            (Self::Usage { thread, .. }, Self::Usage { thread: next, .. }) => thread == next,
            (Self::Diff { thread, turn, .. }, Self::Diff { thread: next, turn: next_turn, .. })
            | (Self::Plan { thread, turn, .. }, Self::Plan { thread: next, turn: next_turn, .. }) => {
                thread == next && turn == next_turn
            }
            _ => false,
        }
    }
}
