//! Listening to a thread by numbers, so that a client which was cut off can go on where it stopped.

use serde::{Deserialize, Serialize};

use super::thread::Thread;

/// `thread/subscribe`.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ThreadSubscribeParams {
    /// The thread.
    #[serde(alias = "thread_id", alias = "conversationId")]
    pub thread_id: String,
    /// The `seq` of the last message that the client has seen, if it has seen any.
    #[serde(default)]
    pub after: Option<u64>,
    /// The log that `after` counts in, as the last answer named it.
    #[serde(default, alias = "log_id")]
    pub log_id: Option<String>,
}

/// The response of `thread/subscribe`.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ThreadSubscribeResponse {
    /// The thread; with its turns if `reset` is true.
    pub thread: Thread,
    /// The log that numbers count in. They restart whenever a thread is loaded.
    pub log_id: String,
    /// The number of the last event so far. `thread/caughtUp` comes when it has been told.
    pub seq: Option<u64>,
    /// Whether what the client knows is to be replaced by `thread`: it named no event, or not all since is known.
    pub reset: bool,
}

/// `thread/caughtUp`: what follows is new.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ThreadCaughtUp {
    /// The thread.
    pub thread_id: String,
    /// The log that numbers count in.
    pub log_id: String,
    /// The number of the last event that was told.
    pub seq: Option<u64>,
}
