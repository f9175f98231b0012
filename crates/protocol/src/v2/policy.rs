//! The sandbox policy in camel case.

use std::path::PathBuf;

use codex_wire::policy::{NetworkAccess, SandboxPolicy, WorkspaceWrite};
use serde::{Deserialize, Serialize};

/// A sandbox policy as v2 writes it. It is read as [`SandboxPolicy`], in every spelling.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "v2_SandboxPolicy"))]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Sandbox {
    /// No limits at all.
    DangerFullAccess,
    /// Read everything, write nothing.
    ReadOnly {
        /// Whether network access is allowed; always false.
        #[cfg_attr(feature = "schema", schemars(default))]
        network_access: bool,
    },
    /// The caller has already confined this process.
    ExternalSandbox {
        /// Whether the outer sandbox lets traffic out.
        #[cfg_attr(feature = "schema", schemars(default))]
        network_access: NetworkAccess,
    },
    /// Read everything, write below the workspace.
    WorkspaceWrite {
        /// Writable folders in addition to the working directory and the temporary folders.
        #[cfg_attr(feature = "schema", schemars(default))]
        writable_roots: Vec<PathBuf>,
        /// Whether commands may use the network.
        #[cfg_attr(feature = "schema", schemars(default))]
        network_access: bool,
        /// Excludes `$TMPDIR` from the writable folders.
        #[cfg_attr(feature = "schema", schemars(default))]
        exclude_tmpdir_env_var: bool,
        /// Excludes `/tmp` from the writable folders.
        #[cfg_attr(feature = "schema", schemars(default))]
        exclude_slash_tmp: bool,
    },
}

impl From<&SandboxPolicy> for Sandbox {
    fn from(policy: &SandboxPolicy) -> Self {
        match policy {
            SandboxPolicy::DangerFullAccess => Self::DangerFullAccess,
            SandboxPolicy::ReadOnly => Self::ReadOnly { network_access: false },
            SandboxPolicy::ExternalSandbox { network_access } => {
                Self::ExternalSandbox { network_access: *network_access }
            }
            SandboxPolicy::WorkspaceWrite(WorkspaceWrite {
                writable_roots,
                network_access,
                exclude_tmpdir_env_var,
                exclude_slash_tmp,
            }) => Self::WorkspaceWrite {
                writable_roots: writable_roots.clone(),
                network_access: *network_access,
                exclude_tmpdir_env_var: *exclude_tmpdir_env_var,
                exclude_slash_tmp: *exclude_slash_tmp,
            },
        }
    }
}
