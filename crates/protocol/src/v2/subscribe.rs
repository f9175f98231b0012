//! Subscriptions to a thread by event numbers, so that a client that was disconnected can continue from where it
//! stopped.

use serde::{Deserialize, Serialize};

use super::thread::Thread;

/// `thread/subscribe`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ThreadSubscribeParams {
    /// The thread.
    #[serde(alias = "thread_id", alias = "conversationId")]
    pub thread_id: String,
    /// The `seq` of the last message that the client has seen, if it has seen any.
    #[serde(default)]
    pub after: Option<u64>,
    /// The log that `after` belongs to, as in the last response.
    #[serde(default, alias = "log_id")]
    pub log_id: Option<String>,
    /// Whether the client has seen everything so far, because it has opened the thread over this connection: events are
    /// numbered from here on, and nothing is sent again.
    #[serde(default, alias = "from_now")]
    pub from_now: bool,
}

/// The response of `thread/subscribe`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ThreadSubscribeResponse {
    /// The thread; with its turns if `reset` is true.
    pub thread: Thread,
    /// The log that numbers belong to. They restart whenever a thread is loaded.
    pub log_id: String,
    /// The number of the last event so far. `thread/caughtUp` follows when the client has received it.
    pub seq: Option<u64>,
    /// Whether `thread` replaces the state of the client: it named no event, or some events since then are not
    /// available.
    pub reset: bool,
}

/// `thread/caughtUp`: later events are new.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ThreadCaughtUp {
    /// The thread.
    pub thread_id: String,
    /// The log that numbers count in.
    pub log_id: String,
    /// The number of the last event that was sent.
    pub seq: Option<u64>,
}
