//! `permissionProfile/list`: the sets of permissions that can be chosen.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// The parameters of `permissionProfile/list`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PermissionProfileListParams {
    /// The cursor of the previous page.
    #[serde(default)]
    pub cursor: Option<String>,
    /// The maximum number of entries.
    #[serde(default)]
    pub limit: Option<u32>,
    /// The folder whose configuration counts too.
    #[serde(default)]
    pub cwd: Option<PathBuf>,
}

/// The answer of `permissionProfile/list`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PermissionProfileListResponse {
    /// The sets.
    pub data: Vec<PermissionProfileSummary>,
    /// The cursor of the next page, if there is one.
    #[serde(default)]
    pub next_cursor: Option<String>,
}

/// One set of permissions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PermissionProfileSummary {
    /// Its name for requests.
    pub id: String,
    #[serde(default)]
    pub description: Option<String>,
    /// Whether it may be chosen.
    pub allowed: bool,
}
