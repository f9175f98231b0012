//! `fuzzyFileSearch`, its sessions and their notifications.
//!
//! Results are spelled in snake case in every release.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// The parameters of `fuzzyFileSearch`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct FuzzyFileSearchParams {
    /// The search text.
    pub query: String,
    /// The folders to look in.
    #[serde(default)]
    pub roots: Vec<PathBuf>,
    /// The folder to look in if there are no `roots`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<PathBuf>,
    /// A search with the same token ends when this one begins.
    #[serde(default, alias = "cancellation_token")]
    pub cancellation_token: Option<String>,
}

/// The answer of `fuzzyFileSearch`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FuzzyFileSearchResponse {
    /// The results, best first.
    pub files: Vec<FuzzyFileSearchResult>,
}

/// A file or folder that matches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FuzzyFileSearchResult {
    /// The folder it was found in, as it was given.
    pub root: PathBuf,
    /// Its path below that.
    pub path: String,
    /// The kind of entry; 0.77 lists only files and omits it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub match_type: Option<FuzzyFileSearchMatchType>,
    /// The last part of its path.
    pub file_name: String,
    /// The score; higher is better.
    pub score: u32,
    /// The matching characters of the path, counted from 0.
    #[serde(default)]
    pub indices: Option<Vec<u32>>,
}

spelled! {
    /// The kind of a result.
    #[derive(Default)]
    pub open enum FuzzyFileSearchMatchType {
        #[default]
        "file" => File,
        "directory" => Directory,
    }
}

/// The parameters of `fuzzyFileSearch/sessionStart`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct FuzzyFileSearchSessionStartParams {
    /// The client's id of the session.
    pub session_id: String,
    /// The folders to look in.
    pub roots: Vec<PathBuf>,
}

/// The parameters of `fuzzyFileSearch/sessionUpdate`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct FuzzyFileSearchSessionUpdateParams {
    pub session_id: String,
    /// The new search text.
    pub query: String,
}

/// The parameters of `fuzzyFileSearch/sessionStop`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct FuzzyFileSearchSessionStopParams {
    pub session_id: String,
}

/// `fuzzyFileSearch/sessionUpdated`: the matches so far.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct FuzzyFileSearchSessionUpdatedNotification {
    pub session_id: String,
    /// The search text.
    pub query: String,
    /// The results, best first.
    pub files: Vec<FuzzyFileSearchResult>,
}

/// `fuzzyFileSearch/sessionCompleted`: the search is complete.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct FuzzyFileSearchSessionCompletedNotification {
    pub session_id: String,
}
