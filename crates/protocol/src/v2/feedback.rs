//! `feedback/upload` and `feedback/save`: what the user thinks of a thread, with its log.

use std::{collections::BTreeMap, path::PathBuf};

use serde::{Deserialize, Serialize};

use super::lenient::or_default;

/// The parameters of `feedback/upload`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct FeedbackUploadParams {
    /// What kind of feedback it is, such as `bug`.
    pub classification: String,
    /// What the user says.
    #[serde(default)]
    pub reason: Option<String>,
    /// The thread it is about.
    #[serde(default)]
    pub thread_id: Option<String>,
    /// Whether the log goes with it.
    #[serde(default, deserialize_with = "or_default")]
    pub include_logs: bool,
    /// Files that go with it as well.
    #[serde(default)]
    pub extra_log_files: Option<Vec<PathBuf>>,
    /// What the client adds.
    #[serde(default)]
    pub tags: Option<BTreeMap<String, String>>,
}

/// The answer of `feedback/upload`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct FeedbackUploadResponse {
    /// What to name when asking about it: the thread, or a name of its own.
    pub thread_id: String,
    /// A hash of the instructions that the model had.
    #[serde(default)]
    pub prompt_hash: Option<String>,
    /// Where the bundle was written; only we say so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub saved_path: Option<PathBuf>,
}

/// The parameters of `feedback/save`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct FeedbackSaveParams {
    /// Where to write the bundle.
    pub save_path: PathBuf,
    /// What is written; all the rest is as in an upload.
    #[serde(flatten)]
    pub feedback: FeedbackUploadParams,
}

/// The answer of `feedback/save`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct FeedbackSaveResponse {
    /// What to name when asking about it.
    pub thread_id: String,
    /// Where the bundle is.
    pub saved_path: PathBuf,
    /// A hash of the instructions that the model had.
    #[serde(default)]
    pub prompt_hash: Option<String>,
}
