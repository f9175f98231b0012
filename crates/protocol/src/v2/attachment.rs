//! What clients attach to threads: `thread/attachment/*` and `thread/attachmentOwner/list`.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Something that a client has attached to a thread.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ThreadAttachment {
    /// Its name.
    pub id: String,
    /// What it is, in a word of the client's.
    pub attachment_type: String,
    /// What it is about.
    pub identity_key: String,
    /// The value.
    pub payload: Value,
    /// When it was attached, in seconds of Unix time.
    pub created_at: i64,
}

/// `thread/attachment/add`.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ThreadAttachmentAddParams {
    /// The thread.
    pub thread_id: String,
    /// What it is, in a word of the client's.
    pub attachment_type: String,
    /// What it is about. A thread has one attachment of a type and a key.
    pub identity_key: String,
    /// The value.
    pub payload: Value,
}

/// What `thread/attachment/add` answers.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ThreadAttachmentAddResponse {
    /// What is attached now.
    pub attachment: ThreadAttachment,
    /// Whether it was there before.
    pub outcome: ThreadAttachmentAddOutcome,
}

/// Whether something was attached before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum ThreadAttachmentAddOutcome {
    /// It was not.
    Created,
    /// It was, and stays as it was.
    Existing,
}

/// `thread/attachment/list`.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ThreadAttachmentListParams {
    /// The thread.
    pub thread_id: String,
    /// Where to go on.
    #[serde(default)]
    pub cursor: Option<String>,
    /// How many at most.
    #[serde(default)]
    pub limit: Option<u32>,
}

/// What `thread/attachment/list` answers.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ThreadAttachmentListResponse {
    /// The attachments, oldest first.
    pub data: Vec<ThreadAttachment>,
    /// Where to go on.
    pub next_cursor: Option<String>,
}

/// `thread/attachment/remove`.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ThreadAttachmentRemoveParams {
    /// The thread.
    pub thread_id: String,
    /// What it is.
    pub attachment_type: String,
    /// What it is about.
    pub identity_key: String,
}

/// `thread/attachmentOwner/list`.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ThreadAttachmentOwnerListParams {
    /// What is attached.
    pub attachment_type: String,
    /// What it is about.
    pub identity_key: String,
    /// Whether only threads that were put away are wanted, or only the others; all if unset.
    #[serde(default)]
    pub archived: Option<bool>,
    /// Where to go on.
    #[serde(default)]
    pub cursor: Option<String>,
    /// How many at most.
    #[serde(default)]
    pub limit: Option<u32>,
}

/// What `thread/attachmentOwner/list` answers.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ThreadAttachmentOwnerListResponse {
    /// The threads, oldest first.
    pub data: Vec<ThreadAttachmentOwner>,
    /// Where to go on.
    pub next_cursor: Option<String>,
}

/// A thread that has an attachment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ThreadAttachmentOwner {
    /// The thread.
    pub thread_id: String,
    /// Whether it was put away.
    pub archived: bool,
}

/// `thread/attachment/updated`.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ThreadAttachmentUpdatedNotification {
    /// The thread.
    pub thread_id: String,
    /// The attachment.
    pub attachment_id: String,
    /// What it is.
    pub attachment_type: String,
    /// What it is about.
    pub identity_key: String,
    /// What became of it.
    pub operation: ThreadAttachmentOperation,
}

/// What became of an attachment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum ThreadAttachmentOperation {
    /// It was attached.
    Created,
    /// It was taken away.
    Deleted,
}
