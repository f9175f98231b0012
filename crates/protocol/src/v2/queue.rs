//! `thread/queue/*`: input that starts a turn when the running one is complete.

use codex_wire::input::UserInput;
use serde::{Deserialize, Serialize};

use super::turn::Turn;

/// Input that waits for its turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct QueuedSubmission {
    /// Its id, which becomes the id of the turn that it starts.
    pub id: String,
    /// The client's id for the message.
    pub client_user_message_id: String,
    /// The user's input.
    #[serde(serialize_with = "super::item::camel_input")]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<super::item::InputItem>"))]
    pub input: Vec<UserInput>,
}

/// `thread/queue/add`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ThreadQueueAddParams {
    /// The thread.
    pub thread_id: String,
    /// The client's id for this message; a repeated id adds nothing.
    pub client_user_message_id: String,
    /// The user's input.
    #[serde(serialize_with = "super::item::camel_input")]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<super::item::InputItem>"))]
    pub input: Vec<UserInput>,
}

/// The response of `thread/queue/add` and `thread/queue/update`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct QueuedSubmissionResponse {
    /// The entry.
    pub queued_submission: QueuedSubmission,
}

/// `thread/queue/list`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ThreadQueueListParams {
    /// The thread.
    pub thread_id: String,
    /// The cursor of the page to list.
    #[serde(default)]
    pub cursor: Option<String>,
    /// The maximum number of entries.
    #[serde(default)]
    pub limit: Option<u32>,
}

/// The response of `thread/queue/list`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ThreadQueueListResponse {
    /// The entries, next first.
    pub data: Vec<QueuedSubmission>,
    /// The cursor of the next page; absent on the last.
    pub next_cursor: Option<String>,
    /// Whether the entries wait for `thread/queue/start`.
    #[serde(default)]
    pub is_paused: bool,
}

/// `thread/queue/update`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ThreadQueueUpdateParams {
    /// The thread.
    pub thread_id: String,
    /// The entry.
    pub queued_submission_id: String,
    /// Its new input.
    #[serde(serialize_with = "super::item::camel_input")]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<super::item::InputItem>"))]
    pub input: Vec<UserInput>,
}

/// `thread/queue/delete`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ThreadQueueDeleteParams {
    /// The thread.
    pub thread_id: String,
    /// The entry.
    pub queued_submission_id: String,
}

/// The response of `thread/queue/delete`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ThreadQueueDeleteResponse {
    /// Whether there was such an entry.
    pub deleted: bool,
}

/// `thread/queue/reorder`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ThreadQueueReorderParams {
    /// The thread.
    pub thread_id: String,
    /// All entries, each once, next first.
    pub queued_submission_ids: Vec<String>,
}

/// `thread/queue/start`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ThreadQueueStartParams {
    /// The thread.
    pub thread_id: String,
    /// The entry to start; the next one by default.
    #[serde(default)]
    pub queued_submission_id: Option<String>,
}

/// The response of `thread/queue/start`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ThreadQueueStartResponse {
    /// The turn that has started.
    pub turn: Turn,
}
