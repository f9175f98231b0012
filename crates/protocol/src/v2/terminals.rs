//! `thread/backgroundTerminals/*`: terminals that outlive the call that started them.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::item::Nothing;

/// `thread/backgroundTerminals/list`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ThreadBackgroundTerminalsListParams {
    /// The thread.
    pub thread_id: String,
    /// The cursor of the page to list.
    #[serde(default)]
    pub cursor: Option<String>,
    /// The maximum number of entries.
    #[serde(default)]
    pub limit: Option<u32>,
}

/// The response of `thread/backgroundTerminals/list`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ThreadBackgroundTerminalsListResponse {
    /// The terminals, oldest first.
    pub data: Vec<ThreadBackgroundTerminal>,
    /// The cursor of the next page; absent on the last.
    pub next_cursor: Option<String>,
}

/// A terminal whose command runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ThreadBackgroundTerminal {
    /// The item of its command.
    pub item_id: String,
    /// The number that the model uses for it.
    pub process_id: String,
    /// The command line.
    pub command: String,
    /// The working directory.
    pub cwd: PathBuf,
    /// Never known here: the command runs in its own process namespace.
    #[serde(default)]
    pub os_pid: Nothing,
    /// Never known here.
    #[serde(default)]
    pub cpu_percent: Nothing,
    /// Never known here.
    #[serde(default)]
    pub rss_kb: Nothing,
}

/// `thread/backgroundTerminals/terminate`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ThreadBackgroundTerminalsTerminateParams {
    /// The thread.
    pub thread_id: String,
    /// The number that the model uses for the terminal.
    pub process_id: String,
}

/// The response of `thread/backgroundTerminals/terminate`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ThreadBackgroundTerminalsTerminateResponse {
    /// Whether there was such a terminal.
    pub terminated: bool,
}
