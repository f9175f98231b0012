//! The read state of threads: `thread/readState/*`, and its form in lists and reads.

use serde::{Deserialize, Serialize};

use super::thread::Thread;

/// The unread part of a thread.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ThreadReadState {
    /// The first unread turn; none if everything was read.
    pub first_unread: Option<ThreadUnreadPosition>,
    /// Changes with everything that happens, so that nobody marks as read what they have not seen.
    pub revision: String,
}

/// The start of the unread part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum ThreadUnreadPosition {
    /// The user has said that they have not read it.
    ThreadStart,
    /// A turn has ended since.
    Turn {
        /// The first of them.
        turn_id: String,
    },
}

/// `thread/readState/update`.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ThreadReadStateUpdateParams {
    /// The thread.
    pub thread_id: String,
    /// The revision that the user has seen.
    pub expected_revision: String,
    pub operation: ThreadReadStateOperation,
}

/// How the user marks a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum ThreadReadStateOperation {
    /// They have read it.
    Read,
    /// They want to read it again.
    Unread,
}

/// The response of `thread/readState/update`.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ThreadReadStateUpdateResponse {
    /// The current state.
    pub read_state: ThreadReadState,
}

/// `thread/readState/changed`.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ThreadReadStateChangedNotification {
    /// The thread.
    pub thread_id: String,
    /// The current state.
    pub read_state: ThreadReadState,
}

/// The response of `thread/read`.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ThreadReadResponse {
    /// The thread.
    pub thread: Thread,
    /// Its unread part; missing for subagent threads and for threads that are not saved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_state: Option<ThreadReadState>,
}
