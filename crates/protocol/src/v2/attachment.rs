//! Attachments of threads: `thread/attachment/*` and `thread/attachmentOwner/list`.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A value that a client has attached to a thread.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ThreadAttachment {
    /// Its name.
    pub id: String,
    /// Its type, chosen by the client.
    pub attachment_type: String,
    pub identity_key: String,
    /// The value.
    pub payload: Value,
    /// The creation time in Unix seconds.
    pub created_at: i64,
}

/// `thread/attachment/add`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ThreadAttachmentAddParams {
    /// The thread.
    pub thread_id: String,
    /// Its type, chosen by the client.
    pub attachment_type: String,
    /// Its key. A thread has at most one attachment of a type and key.
    pub identity_key: String,
    /// The value.
    pub payload: Value,
}

/// The response of `thread/attachment/add`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ThreadAttachmentAddResponse {
    /// The current attachment.
    pub attachment: ThreadAttachment,
    /// Whether it was there before.
    pub outcome: ThreadAttachmentAddOutcome,
}

/// Whether something was attached before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum ThreadAttachmentAddOutcome {
    /// It is new.
    Created,
    /// It existed already, and is unchanged.
    Existing,
}

/// `thread/attachment/list`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ThreadAttachmentListParams {
    /// The thread.
    pub thread_id: String,
    /// The cursor of the page to list.
    #[serde(default)]
    pub cursor: Option<String>,
    /// The maximum number of entries.
    #[serde(default)]
    pub limit: Option<u32>,
}

/// The response of `thread/attachment/list`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ThreadAttachmentListResponse {
    /// The attachments, oldest first.
    pub data: Vec<ThreadAttachment>,
    /// The cursor of the page to list.
    pub next_cursor: Option<String>,
}

/// `thread/attachment/remove`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ThreadAttachmentRemoveParams {
    /// The thread.
    pub thread_id: String,
    pub attachment_type: String,
    pub identity_key: String,
}

/// `thread/attachmentOwner/list`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ThreadAttachmentOwnerListParams {
    pub attachment_type: String,
    pub identity_key: String,
    /// Whether to list only archived threads or only active ones; all if unset.
    #[serde(default)]
    pub archived: Option<bool>,
    /// The cursor of the page to list.
    #[serde(default)]
    pub cursor: Option<String>,
    /// The maximum number of entries.
    #[serde(default)]
    pub limit: Option<u32>,
}

/// The response of `thread/attachmentOwner/list`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ThreadAttachmentOwnerListResponse {
    /// The threads, oldest first.
    pub data: Vec<ThreadAttachmentOwner>,
    /// The cursor of the page to list.
    pub next_cursor: Option<String>,
}

/// A thread that has an attachment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ThreadAttachmentOwner {
    /// The thread.
    pub thread_id: String,
    /// Whether it is archived.
    pub archived: bool,
}

/// `thread/attachment/updated`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ThreadAttachmentUpdatedNotification {
    /// The thread.
    pub thread_id: String,
    /// The attachment.
    pub attachment_id: String,
    pub attachment_type: String,
    pub identity_key: String,
    pub operation: ThreadAttachmentOperation,
}

/// A change of an attachment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum ThreadAttachmentOperation {
    /// It was added.
    Created,
    /// It was removed.
    Deleted,
}
