//! The read state of threads: `thread/readState/*`, and its form in lists and reads.

use serde::{Deserialize, Serialize};

use super::thread::Thread;

/// The unread part of a thread.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ThreadReadState {
    /// The first unread turn; absent if everything was read.
    pub first_unread: Option<ThreadUnreadPosition>,
    /// Changes with every event, so that nobody marks entries as read that they have not seen.
    pub revision: String,
}

/// The start of the unread part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum ThreadUnreadPosition {
    /// The user has marked it as unread.
    ThreadStart,
    /// A turn has ended since.
    Turn {
        /// The first of them.
        turn_id: String,
    },
}

/// `thread/readState/update`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ThreadReadStateUpdateParams {
    /// The thread.
    pub thread_id: String,
    /// The revision that the user has seen.
    pub expected_revision: String,
    pub operation: ThreadReadStateOperation,
}

/// A mark of the user on a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum ThreadReadStateOperation {
    /// Read.
    Read,
    /// Unread.
    Unread,
}

/// The response of `thread/readState/update`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ThreadReadStateUpdateResponse {
    /// The current state.
    pub read_state: ThreadReadState,
}

/// `thread/readState/changed`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ThreadReadStateChangedNotification {
    /// The thread.
    pub thread_id: String,
    /// The current state.
    pub read_state: ThreadReadState,
}

/// The response of `thread/read`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ThreadReadResponse {
    /// The thread.
    pub thread: Thread,
    /// Its unread part; missing for subagent threads and for threads that are not saved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_state: Option<ThreadReadState>,
}
