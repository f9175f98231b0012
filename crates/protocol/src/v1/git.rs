//! `gitDiffToRemote`.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// The parameters of `gitDiffToRemote`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GitDiffToRemoteParams {
    /// A folder of the repository.
    pub cwd: PathBuf,
}

/// The answer of `gitDiffToRemote`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GitDiffToRemoteResponse {
    /// The newest commit that the remote has too.
    pub sha: String,
    /// The changes since then, including untracked files.
    pub diff: String,
}
