//! `fs/*`: files, for clients that run elsewhere. All paths are absolute.

use std::path::PathBuf;

use codex_wire::forms::base64_bytes;
use serde::{Deserialize, Serialize};

use super::lenient::or_default;

/// The parameters of `fs/readFile`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FsReadFileParams {
    /// The file.
    pub path: PathBuf,
}

/// The answer of `fs/readFile`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FsReadFileResponse {
    /// Its bytes.
    #[serde(rename = "dataBase64", with = "base64_bytes")]
    #[cfg_attr(feature = "schema", schemars(with = "String", extend("contentEncoding" = "base64")))]
    pub data: Vec<u8>,
}

/// The parameters of `fs/writeFile`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FsWriteFileParams {
    /// The file.
    pub path: PathBuf,
    /// Its bytes from now on.
    #[serde(rename = "dataBase64", with = "base64_bytes")]
    #[cfg_attr(feature = "schema", schemars(with = "String", extend("contentEncoding" = "base64")))]
    pub data: Vec<u8>,
}

/// The parameters of `fs/createDirectory`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FsCreateDirectoryParams {
    /// The folder.
    pub path: PathBuf,
    /// Whether missing parent folders are created; true by default.
    #[serde(default)]
    pub recursive: Option<bool>,
}

/// The parameters of `fs/getMetadata`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FsGetMetadataParams {
    pub path: PathBuf,
}

/// The answer of `fs/getMetadata`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct FsGetMetadataResponse {
    /// Whether it is a folder.
    pub is_directory: bool,
    /// Whether it is a file.
    pub is_file: bool,
    /// Whether it is a link to something else.
    #[serde(default)]
    pub is_symlink: bool,
    /// The creation time in Unix milliseconds; 0 if unknown.
    pub created_at_ms: i64,
    /// The modification time in Unix milliseconds; 0 if unknown.
    pub modified_at_ms: i64,
}

/// The parameters of `fs/readDirectory`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FsReadDirectoryParams {
    /// The folder.
    pub path: PathBuf,
}

/// The answer of `fs/readDirectory`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FsReadDirectoryResponse {
    pub entries: Vec<FsReadDirectoryEntry>,
}

/// An entry of a folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct FsReadDirectoryEntry {
    /// Its name.
    pub file_name: String,
    /// Whether it is a folder.
    pub is_directory: bool,
    /// Whether it is a file.
    pub is_file: bool,
}

/// The parameters of `fs/remove`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FsRemoveParams {
    pub path: PathBuf,
    /// Whether a folder is removed with its contents; true by default.
    #[serde(default)]
    pub recursive: Option<bool>,
    /// Whether a missing path is ignored; true by default.
    #[serde(default)]
    pub force: Option<bool>,
}

/// The parameters of `fs/copy`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct FsCopyParams {
    pub source_path: PathBuf,
    pub destination_path: PathBuf,
    /// Whether a folder is copied with its contents; otherwise folders are refused.
    #[serde(default, deserialize_with = "or_default")]
    pub recursive: bool,
}

/// The parameters of `fs/watch`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct FsWatchParams {
    /// The client's id of the watch.
    pub watch_id: String,
    pub path: PathBuf,
}

/// The answer of `fs/watch`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FsWatchResponse {
    /// The watched path with links resolved.
    pub path: PathBuf,
}

/// The parameters of `fs/unwatch`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct FsUnwatchParams {
    pub watch_id: String,
}

/// `fs/changed`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct FsChangedNotification {
    pub watch_id: String,
    pub changed_paths: Vec<PathBuf>,
}
