//! `hooks/list`: programs that run on events.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::lenient::or_default;

/// The parameters of `hooks/list`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct HooksListParams {
    /// The folders; by default, the working directory of the server.
    #[serde(default, deserialize_with = "or_default")]
    pub cwds: Vec<PathBuf>,
    /// The thread whose hooks are meant.
    #[serde(default)]
    pub thread_id: Option<String>,
}

/// The answer of `hooks/list`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HooksListResponse {
    /// The hooks of each folder, in the requested order.
    pub data: Vec<HooksListEntry>,
}

/// The hooks that apply to one folder.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HooksListEntry {
    /// The folder.
    pub cwd: PathBuf,
    /// The hooks.
    #[serde(default)]
    pub hooks: Vec<Value>,
    /// Warnings for the user.
    #[serde(default)]
    pub warnings: Vec<String>,
    /// The files that could not be read as hooks.
    #[serde(default)]
    pub errors: Vec<Value>,
}
