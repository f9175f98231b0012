//! `command/exec`: a command outside any thread, and the requests about it while it runs.

use std::{collections::BTreeMap, path::PathBuf};

use codex_wire::{forms::base64_bytes, policy::SandboxPolicy};
use serde::{Deserialize, Serialize};

use super::lenient::{optional_base64, or_default};

/// The parameters of `command/exec`. 0.77 accepts the first four.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own on the wire")]
pub struct CommandExecParams {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// The timeout.
    #[serde(default, alias = "timeout_ms")]
    pub timeout_ms: Option<i64>,
    #[serde(default)]
    pub cwd: Option<PathBuf>,
    /// Its sandbox policy.
    #[serde(default, alias = "sandbox_policy", serialize_with = "camel_policy")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<super::policy::Sandbox>"))]
    pub sandbox_policy: Option<SandboxPolicy>,
    /// The client's id for it, with which it can be written to and ended.
    #[serde(default)]
    pub process_id: Option<String>,
    /// Variables to set, or to remove if the value is `null`.
    #[serde(default)]
    pub env: Option<BTreeMap<String, Option<String>>>,
    /// Whether it gets a terminal.
    #[serde(default, deserialize_with = "or_default")]
    pub tty: bool,
    /// The size of the terminal.
    #[serde(default)]
    pub size: Option<CommandExecTerminalSize>,
    /// Whether its input stays open for `command/exec/write`.
    #[serde(default, deserialize_with = "or_default")]
    pub stream_stdin: bool,
    /// Whether its output is sent while it runs.
    #[serde(default, deserialize_with = "or_default")]
    pub stream_stdout_stderr: bool,
    /// The maximum number of bytes to keep of each stream.
    #[serde(default)]
    pub output_bytes_cap: Option<u64>,
    /// Keeps all output.
    #[serde(default, deserialize_with = "or_default")]
    pub disable_output_cap: bool,
    /// Disables the time limit.
    #[serde(default, deserialize_with = "or_default")]
    pub disable_timeout: bool,
}

/// The size of a terminal in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CommandExecTerminalSize {
    /// The height in characters.
    pub rows: u16,
    /// The width in characters.
    pub cols: u16,
}

/// The answer of `command/exec`, when the command has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CommandExecResponse {
    /// Its result.
    pub exit_code: i32,
    /// Its output; empty if it was sent while the command ran.
    pub stdout: String,
    /// Its error output; empty if it was sent while the command ran.
    pub stderr: String,
}

/// The parameters of `command/exec/write`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CommandExecWriteParams {
    pub process_id: String,
    /// The bytes for its input.
    #[serde(default, rename = "deltaBase64", with = "optional_base64")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>", extend("contentEncoding" = "base64")))]
    pub delta: Option<Vec<u8>>,
    /// Whether its input ends then.
    #[serde(default, deserialize_with = "or_default")]
    pub close_stdin: bool,
}

/// The parameters of `command/exec/terminate`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CommandExecTerminateParams {
    pub process_id: String,
}

/// The parameters of `command/exec/resize`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CommandExecResizeParams {
    pub process_id: String,
    /// The new size of its terminal.
    pub size: CommandExecTerminalSize,
}

spelled! {
    /// An output stream of a command.
    pub enum CommandExecOutputStream {
        "stdout" => Stdout,
        "stderr" => Stderr,
    }
}

/// `command/exec/outputDelta`: a chunk of output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CommandExecOutputDeltaNotification {
    pub process_id: String,
    pub stream: CommandExecOutputStream,
    /// The bytes.
    #[serde(rename = "deltaBase64", with = "base64_bytes")]
    #[cfg_attr(feature = "schema", schemars(with = "String", extend("contentEncoding" = "base64")))]
    pub delta: Vec<u8>,
    /// Whether the stream has been cut off after these.
    pub cap_reached: bool,
}

/// Encodes a policy in the spelling of this dialect, which is camel case.
#[expect(clippy::ref_option, reason = "serde hands over the field as it is")]
pub(crate) fn camel_policy<S: serde::Serializer>(
    policy: &Option<SandboxPolicy>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    #[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
    enum Camel<'a> {
        DangerFullAccess,
        ReadOnly,
        ExternalSandbox {
            network_access: &'a str,
        },
        WorkspaceWrite {
            writable_roots: &'a [PathBuf],
            network_access: bool,
            exclude_tmpdir_env_var: bool,
            exclude_slash_tmp: bool,
        },
    }
    let camel = policy.as_ref().map(|policy| match policy {
        SandboxPolicy::DangerFullAccess => Camel::DangerFullAccess,
        SandboxPolicy::ReadOnly => Camel::ReadOnly,
        SandboxPolicy::ExternalSandbox { network_access } => {
            Camel::ExternalSandbox { network_access: network_access.as_str() }
        }
        SandboxPolicy::WorkspaceWrite(limits) => Camel::WorkspaceWrite {
            writable_roots: &limits.writable_roots,
            network_access: limits.network_access,
            exclude_tmpdir_env_var: limits.exclude_tmpdir_env_var,
            exclude_slash_tmp: limits.exclude_slash_tmp,
        },
    });
    camel.serialize(serializer)
}
