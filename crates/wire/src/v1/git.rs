//! `gitDiffToRemote` and `userInfo`.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// The parameters of `gitDiffToRemote`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GitDiffToRemoteParams {
    /// A folder of the repository.
    pub cwd: PathBuf,
}

/// The answer of `gitDiffToRemote`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GitDiffToRemoteResponse {
    /// The newest commit that the remote has too.
    pub sha: String,
    /// What has changed since, untracked files included.
    pub diff: String,
}

/// The answer of `userInfo`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UserInfoResponse {
    /// The user's address, as the login says without proof.
    #[serde(default)]
    pub alleged_user_email: Option<String>,
}
