//! Approval and sandbox policies.

use std::path::PathBuf;

use serde::{Deserialize, Deserializer, Serialize, de::Error as _};
use serde_json::{Map, Value};

pub use crate::approval_policy::{ApprovalKind, AskForApproval, GranularApproval};
use crate::forms::take;

spelled! {
    /// The reviewer of approval requests.
    #[derive(Default)]
    pub open enum ApprovalsReviewer {
        /// The person who uses the client.
        #[default]
        "user" => User,
        /// A program, which this release does not have.
        "auto_review" => AutoReview,
        /// The same, with an older name.
        "guardian_subagent" => GuardianSubagent,
    }
}

spelled! {
    /// The short name of a sandbox policy, as in `config.toml`.
    pub enum SandboxMode {
        "read-only" => ReadOnly,
        "workspace-write" => WorkspaceWrite,
        "danger-full-access" => DangerFullAccess,
    }
}

spelled! {
    /// Whether an outer sandbox gives commands network access.
    #[derive(Default)]
    pub enum NetworkAccess {
        #[default]
        "restricted" => Restricted,
        "enabled" => Enabled,
    }
}

/// The sandbox policy: writable folders and network access.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "kebab-case")]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub enum SandboxPolicy {
    /// No limits at all.
    DangerFullAccess,
    /// Read everything, write nothing, no network.
    ReadOnly,
    /// The caller has already confined this process; commands get no second sandbox.
    ExternalSandbox {
        /// Whether the outer sandbox allows network access.
        #[cfg_attr(feature = "schema", schemars(default))]
        network_access: NetworkAccess,
    },
    /// Read everything, write below the workspace.
    WorkspaceWrite(WorkspaceWrite),
}

/// The limits of [`SandboxPolicy::WorkspaceWrite`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct WorkspaceWrite {
    /// Writable folders in addition to the working directory and the temporary folders.
    #[serde(alias = "writableRoots", skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "arbitrary", proptest(strategy = "crate::forms::few()"))]
    pub writable_roots: Vec<PathBuf>,
    /// Whether commands may use the network.
    #[serde(alias = "networkAccess")]
    pub network_access: bool,
    /// Excludes `$TMPDIR` from the writable folders.
    #[serde(alias = "excludeTmpdirEnvVar")]
    pub exclude_tmpdir_env_var: bool,
    /// Excludes `/tmp` from the writable folders.
    #[serde(alias = "excludeSlashTmp")]
    pub exclude_slash_tmp: bool,
}

impl SandboxPolicy {
    /// The stricter combination of both.
    #[must_use]
    pub fn tighter(self, other: &Self) -> Self {
        let rank = |policy: &Self| match policy {
            Self::DangerFullAccess => 0,
            Self::ExternalSandbox { .. } => 1,
            Self::WorkspaceWrite(_) => 2,
            Self::ReadOnly => 3,
        };
        match (self, other) {
            (Self::WorkspaceWrite(one), Self::WorkspaceWrite(other)) => Self::WorkspaceWrite(WorkspaceWrite {
                writable_roots: one.writable_roots.into_iter().filter(|it| other.writable_roots.contains(it)).collect(),
                network_access: one.network_access && other.network_access,
                exclude_tmpdir_env_var: one.exclude_tmpdir_env_var || other.exclude_tmpdir_env_var,
                exclude_slash_tmp: one.exclude_slash_tmp || other.exclude_slash_tmp,
            }),
            (one, other) if rank(other) > rank(&one) => other.clone(),
            (one, _) => one,
        }
    }
}

impl From<SandboxMode> for SandboxPolicy {
    fn from(mode: SandboxMode) -> Self {
        match mode {
            SandboxMode::ReadOnly => Self::ReadOnly,
            SandboxMode::WorkspaceWrite => Self::WorkspaceWrite(WorkspaceWrite::default()),
            SandboxMode::DangerFullAccess => Self::DangerFullAccess,
        }
    }
}

impl<'de> Deserialize<'de> for SandboxPolicy {
    /// Accepts the tags `type` and `mode`, any case of words and members, and a bare word.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut object = match Value::deserialize(deserializer)? {
            Value::String(word) => Map::from_iter([("type".to_owned(), Value::String(word))]),
            Value::Object(object) => object,
            _ => return Err(D::Error::custom("expected a sandbox policy: an object with `type`, or a word")),
        };
        let word = take(&mut object, &["type", "mode"]).ok_or_else(|| D::Error::missing_field("type"))?;
        let word = word.as_str().ok_or_else(|| D::Error::custom("the `type` of a sandbox policy is a string"))?;
        if crate::forms::same_word(word, &["external-sandbox"]) {
            let access = take(&mut object, &["network_access", "networkAccess"]);
            let network_access = access.map_or(Ok(NetworkAccess::Restricted), serde_json::from_value);
            return Ok(Self::ExternalSandbox { network_access: network_access.map_err(D::Error::custom)? });
        }
        match word.parse::<SandboxMode>().map_err(D::Error::custom)? {
            SandboxMode::WorkspaceWrite => {
                serde_json::from_value(Value::Object(object)).map(Self::WorkspaceWrite).map_err(D::Error::custom)
            }
            mode => Ok(mode.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_workspaces_leave_what_both_allow() {
        let roots = |roots: &[&str], network_access| {
            let writable_roots = roots.iter().map(PathBuf::from).collect();
            SandboxPolicy::WorkspaceWrite(WorkspaceWrite { writable_roots, network_access, ..Default::default() })
        };
        assert_eq!(roots(&["/a", "/b"], true).tighter(&roots(&["/b", "/c"], false)), roots(&["/b"], false));
    }
}
