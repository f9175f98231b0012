//! Reading along with a thread's log.

use std::sync::Arc;

use codex_log::settings::Settings;
use codex_log::{Event, LogName, Question, Seq, TurnId};
use codex_wire::tokens::TokenUsageInfo;

use crate::feed::Feed;

/// A place in a thread's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cursor {
    /// Which log, see [`LogName`]. Without it, the one that is loaded is meant.
    pub log: Option<String>,
    /// The number of the event that was read last.
    pub seq: Seq,
}

/// A place to read a thread's log from now on, and what is going on at that moment.
#[derive(Debug)]
pub struct Subscription {
    /// The log from here on.
    pub feed: Feed,
    /// What turns run under now.
    pub settings: Arc<Settings>,
    /// The turn that runs.
    pub running: Option<TurnId>,
    /// The questions that wait for an answer.
    pub asked: Vec<Arc<Question>>,
    /// What the thread has used; none before the first answer.
    pub tokens: Option<TokenUsageInfo>,
    /// The events of a running turn before the feed that its events refer to: how the turn began, which items are not
    /// whole, what was said last. A projection takes them in before the feed, and tells nobody.
    pub standing: Vec<Arc<Event>>,
    /// Where the feed begins.
    pub begins: FeedStart,
}

/// Where a feed begins in its log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FeedStart {
    /// The name of the log.
    pub log: LogName,
    /// The number of the event that had been published last.
    pub last: Seq,
    /// Whether the feed begins where the reader stopped. If not, it begins now, and what came before must be read from
    /// the thread's file.
    pub is_unbroken: bool,
    /// Where the feed begins after all, if the reader first reads the thread's lines from where it stopped up to there.
    pub lines_upto: Option<Seq>,
}
