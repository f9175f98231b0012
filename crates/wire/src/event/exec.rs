//! Commands: approval, start, output and end.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, de::Error as _};
use serde_json::Value;

use crate::command::ParsedCommand;
use crate::forms::base64_bytes;

/// Requests approval of a command.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct ExecApprovalRequestEvent {
    /// The call that wants to run it.
    pub call_id: String,
    /// The turn; absent in 0.42.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn_id: Option<String>,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Its working directory.
    pub cwd: PathBuf,
    /// The model's justification.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// A command prefix that a rule could allow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proposed_execpolicy_amendment: Option<Vec<String>>,
    /// Its parsed form, for display.
    #[serde(default)]
    #[cfg_attr(feature = "arbitrary", proptest(strategy = "crate::forms::few()"))]
    pub parsed_cmd: Vec<ParsedCommand>,
}

/// A command starts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct ExecCommandBeginEvent {
    /// The call that runs it.
    pub call_id: String,
    /// The process, for commands that outlive their call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process_id: Option<String>,
    /// The turn; absent in 0.42.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn_id: Option<String>,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Its working directory.
    pub cwd: PathBuf,
    /// Its parsed form, for display.
    #[serde(default)]
    #[cfg_attr(feature = "arbitrary", proptest(strategy = "crate::forms::few()"))]
    pub parsed_cmd: Vec<ParsedCommand>,
    /// The origin of the command.
    #[serde(default, alias = "is_user_shell_command", deserialize_with = "source")]
    pub source: ExecCommandSource,
    /// The input typed into a running process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interaction_input: Option<String>,
}

/// A command ended. 0.42 wrote neither the command nor its working directory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct ExecCommandEndEvent {
    /// The call that ran it.
    pub call_id: String,
    /// The process, for commands that outlive their call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process_id: Option<String>,
    /// The turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn_id: Option<String>,
    /// The program and its arguments.
    #[serde(default)]
    pub command: Vec<String>,
    /// Its working directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<PathBuf>,
    /// Its parsed form, for display.
    #[serde(default)]
    #[cfg_attr(feature = "arbitrary", proptest(strategy = "crate::forms::few()"))]
    pub parsed_cmd: Vec<ParsedCommand>,
    /// The origin of the command.
    #[serde(default, deserialize_with = "source")]
    pub source: ExecCommandSource,
    /// The input typed into a running process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interaction_input: Option<String>,
    pub stdout: String,
    pub stderr: String,
    /// Both streams, in the order in which they were written.
    #[serde(default)]
    pub aggregated_output: String,
    /// Its exit status; -1 if it never ran.
    pub exit_code: i32,
    /// Its duration.
    pub duration: Duration,
    /// The output as the model sees it.
    #[serde(default)]
    pub formatted_output: String,
}

spelled! {
    /// The origin of a command.
    #[derive(Default)]
    pub open enum ExecCommandSource {
        /// The model.
        #[default]
        "agent" => Agent,
        /// The user.
        "user_shell" => UserShell,
        /// The model, to start a process that outlives the call.
        "unified_exec_startup" => UnifiedExecStartup,
        /// The model, to type into such a process.
        "unified_exec_interaction" => UnifiedExecInteraction,
    }
}

/// Decodes the origin of a command: a word, or as in 0.58 whether it was the user.
fn source<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ExecCommandSource, D::Error> {
    match Value::deserialize(deserializer)? {
        Value::Bool(true) => Ok(ExecCommandSource::UserShell),
        Value::Bool(false) => Ok(ExecCommandSource::Agent),
        word => serde_json::from_value(word).map_err(D::Error::custom),
    }
}

/// Output of a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct ExecCommandOutputDeltaEvent {
    /// The call that runs it.
    pub call_id: String,
    /// The stream.
    pub stream: ExecOutputStream,
    /// A chunk of its output, which need not be text.
    #[serde(with = "base64_bytes")]
    #[cfg_attr(feature = "schema", schemars(with = "String", extend("contentEncoding" = "base64")))]
    pub chunk: Vec<u8>,
}

spelled! {
    /// A stream that a command writes to.
    pub enum ExecOutputStream {
        "stdout" => Stdout,
        "stderr" => Stderr,
    }
}

/// Input was typed into a running command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct TerminalInteractionEvent {
    /// The call that started the command.
    pub call_id: String,
    /// The process.
    pub process_id: String,
    /// The input that was typed.
    pub stdin: String,
}

/// The model views an image file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "arbitrary", derive(proptest_derive::Arbitrary))]
pub struct ViewImageToolCallEvent {
    /// The call.
    pub call_id: String,
    /// The image.
    pub path: PathBuf,
}
