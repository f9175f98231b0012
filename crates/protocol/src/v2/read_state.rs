//! What of a thread the user has read: `thread/readState/*`, and what lists and reads say of it.

use serde::{Deserialize, Serialize};

use super::thread::Thread;

/// What of a thread the user has not read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ThreadReadState {
    /// Where it begins; none if everything was read.
    pub first_unread: Option<ThreadUnreadPosition>,
    /// Changes with everything that happens, so that nobody marks as read what they have not seen.
    pub revision: String,
}

/// Where begins what was not read.
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
    /// What they say.
    pub operation: ThreadReadStateOperation,
}

/// What the user says of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum ThreadReadStateOperation {
    /// They have read it.
    Read,
    /// They want to read it again.
    Unread,
}

/// What `thread/readState/update` answers.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ThreadReadStateUpdateResponse {
    /// What holds now.
    pub read_state: ThreadReadState,
}

/// `thread/readState/changed`.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ThreadReadStateChangedNotification {
    /// The thread.
    pub thread_id: String,
    /// What holds now.
    pub read_state: ThreadReadState,
}

/// What `thread/read` answers.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ThreadReadResponse {
    /// The thread.
    pub thread: Thread,
    /// What the user has not read of it; left out for threads that are read with another, or not kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_state: Option<ThreadReadState>,
}
