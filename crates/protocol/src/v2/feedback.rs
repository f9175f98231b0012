//! `feedback/upload` and `feedback/save`: feedback on a thread, with its log.

use std::{collections::BTreeMap, path::PathBuf};

use serde::{Deserialize, Serialize};

use super::lenient::or_default;

/// The parameters of `feedback/upload`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct FeedbackUploadParams {
    /// The kind of feedback, such as `bug`.
    pub classification: String,
    /// The user's comment.
    #[serde(default)]
    pub reason: Option<String>,
    /// The thread it is about.
    #[serde(default)]
    pub thread_id: Option<String>,
    /// Whether the log is included.
    #[serde(default, deserialize_with = "or_default")]
    pub include_logs: bool,
    /// Files to include as well.
    #[serde(default)]
    pub extra_log_files: Option<Vec<PathBuf>>,
    /// Additional tags of the client.
    #[serde(default)]
    pub tags: Option<BTreeMap<String, String>>,
}

/// The answer of `feedback/upload`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct FeedbackUploadResponse {
    /// The reference for questions about it: the thread, or a separate id.
    pub thread_id: String,
    /// A hash of the instructions that the model had.
    #[serde(default)]
    pub prompt_hash: Option<String>,
    /// The path of the bundle; an addition of this program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub saved_path: Option<PathBuf>,
}

/// The parameters of `feedback/save`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct FeedbackSaveParams {
    /// The path of the bundle to write.
    pub save_path: PathBuf,
    /// The text; everything else is the same as for an upload.
    #[serde(flatten)]
    pub feedback: FeedbackUploadParams,
}

/// The answer of `feedback/save`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct FeedbackSaveResponse {
    /// The reference for questions about it.
    pub thread_id: String,
    /// The path of the bundle.
    pub saved_path: PathBuf,
    /// A hash of the instructions that the model had.
    #[serde(default)]
    pub prompt_hash: Option<String>,
}
