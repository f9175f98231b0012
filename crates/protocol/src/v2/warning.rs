//! Warnings for the user or the author of a client.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// `warning`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Warning {
    /// The thread, if it is about one.
    pub thread_id: Option<String>,
    pub message: String,
}

/// `configWarning`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ConfigWarning {
    pub summary: String,
    /// Details.
    pub details: Option<String>,
    /// The file.
    pub path: Option<PathBuf>,
}

/// `windows/worldWritableWarning`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct WindowsWorldWritableWarningNotification {
    /// Some of the folders.
    pub sample_paths: Vec<String>,
    /// The number of further entries.
    pub extra_count: usize,
    /// Whether not all could be looked at.
    pub failed_scan: bool,
}

/// `deprecationNotice`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DeprecationNotice {
    pub summary: String,
    /// Details.
    pub details: Option<String>,
}
