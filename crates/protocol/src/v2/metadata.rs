//! `thread/metadata/update`: metadata of a thread.

use codex_wire::forms::nullable;
use serde::{Deserialize, Serialize};

/// `thread/metadata/update`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ThreadMetadataUpdateParams {
    /// The thread.
    pub thread_id: String,
    /// Changes of its repository information.
    #[serde(default)]
    pub git_info: Option<ThreadMetadataGitInfoUpdateParams>,
}

/// Changes of a thread's repository information: a missing member is unchanged, and `null` removes one.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ThreadMetadataGitInfoUpdateParams {
    /// The commit.
    #[serde(default, deserialize_with = "nullable")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub sha: Option<Option<String>>,
    /// The branch.
    #[serde(default, deserialize_with = "nullable")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub branch: Option<Option<String>>,
    /// Its source.
    #[serde(default, deserialize_with = "nullable")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub origin_url: Option<Option<String>>,
}
