//! Subscriptions to a thread's log.

use std::sync::Arc;

use codex_log::settings::Settings;
use codex_log::{Event, LogId, Question, Seq, TurnId};
use codex_wire::tokens::TokenUsageInfo;

use crate::feed::Feed;

/// A position in a thread's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cursor {
    /// The log, see [`LogId`]. Defaults to the one that is loaded.
    pub log: Option<String>,
    /// The number of the last event that was read.
    pub seq: Seq,
}

/// A feed of a thread's log from now on, and the thread's current state.
#[derive(Debug)]
pub struct Subscription {
    pub feed: Feed,
    /// The current settings.
    pub settings: Arc<Settings>,
    /// The running turn.
    pub running: Option<TurnId>,
    /// The open questions.
    pub asked: Vec<Arc<Question>>,
    /// The thread's token usage; `None` before the first answer.
    pub tokens: Option<TokenUsageInfo>,
    /// Earlier events of a running turn that later ones refer to: the start of the turn, incomplete items, the latest
    /// message. A projection processes them before the feed, without sending anything.
    pub open_items: Vec<Arc<Event>>,
    pub begins: FeedStart,
}

/// The start of a feed in its log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FeedStart {
    pub log: LogId,
    /// The number of the last published event.
    pub last: Seq,
    /// Whether the feed starts where the reader stopped. If not, it starts now, and earlier events must be read from
    /// the thread's file.
    pub is_unbroken: bool,
    /// The start of the feed instead, if the subscriber first reads the thread's lines from where it stopped up to this
    /// number.
    pub lines_upto: Option<Seq>,
}
