//! From the arguments of a tool to a command.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;

use crate::log::ItemId;
use crate::turn::{Call, CallPayload};

/// How long a command may take when the model does not say.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);

/// A command as the model wants it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CommandRequest {
    /// The call it comes from.
    pub(crate) call: ItemId,
    /// The program and its arguments.
    pub(crate) argv: Vec<String>,
    /// Where it runs.
    pub(crate) cwd: PathBuf,
    /// How long it may take.
    pub(crate) timeout: Duration,
    /// Whether the model asks to leave the sandbox.
    pub(crate) is_escalated: bool,
    /// Whether this machine cannot keep the sandbox's promises, so that running means running outside.
    pub(crate) cannot_be_confined: bool,
    /// Why the model asks.
    pub(crate) justification: Option<String>,
}

/// Why there is no command in a call. The text goes to the model.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RequestError {
    #[error("failed to parse function arguments: {0}")]
    Arguments(#[from] serde_json::Error),
    #[error("the command is empty")]
    Empty,
    #[error("the {0} tool takes JSON")]
    NotJson(&'static str),
}

/// The arguments of `shell` and of the built-in shell tool of some models.
#[derive(Deserialize)]
struct ShellArguments {
    command: Vec<String>,
    #[serde(flatten)]
    shared: SharedArguments,
}

/// The arguments of `shell_command`.
#[derive(Deserialize)]
struct ScriptArguments {
    command: String,
    #[serde(flatten)]
    shared: SharedArguments,
}

/// What all forms have in common. Nothing here can loosen a policy: escalation is a question, not an order.
#[derive(Deserialize)]
struct SharedArguments {
    #[serde(default, alias = "working_directory")]
    workdir: Option<PathBuf>,
    #[serde(default, alias = "timeout")]
    timeout_ms: Option<u64>,
    #[serde(default)]
    sandbox_permissions: Option<String>,
    #[serde(default)]
    with_escalated_permissions: Option<bool>,
    #[serde(default)]
    justification: Option<String>,
}

impl CommandRequest {
    /// Reads a call of `shell`, `shell_command` or the built-in shell tool; none for other tools.
    pub(crate) fn read(call: &Call, cwd: &Path, shell: &str) -> Option<Result<Self, RequestError>> {
        let read = match call.tool.as_str() {
            "shell" | "container.exec" | "local_shell" => read_argv,
            "shell_command" => read_script,
            _ => return None,
        };
        let CallPayload::Function(arguments) = &call.payload else {
            return Some(Err(RequestError::NotJson("shell")));
        };
        Some(read(arguments, shell).and_then(|(argv, shared)| Self::new(call, argv, shared, cwd)))
    }

    fn new(call: &Call, argv: Vec<String>, shared: SharedArguments, cwd: &Path) -> Result<Self, RequestError> {
        if argv.first().is_none_or(String::is_empty) {
            return Err(RequestError::Empty);
        }
        let asks = shared.sandbox_permissions.as_deref() == Some("require_escalated");
        Ok(Self {
            call: ItemId::new(call.id.as_str()),
            argv,
            cwd: shared.workdir.map_or_else(|| cwd.to_owned(), |workdir| cwd.join(workdir)),
            timeout: shared.timeout_ms.map_or(DEFAULT_TIMEOUT, Duration::from_millis),
            is_escalated: asks || shared.with_escalated_permissions == Some(true),
            cannot_be_confined: false,
            justification: shared.justification.filter(|text| !text.trim().is_empty()),
        })
    }
}

fn read_argv(arguments: &str, _: &str) -> Result<(Vec<String>, SharedArguments), RequestError> {
    let ShellArguments { command, shared } = serde_json::from_str(arguments)?;
    Ok((command, shared))
}

fn read_script(arguments: &str, shell: &str) -> Result<(Vec<String>, SharedArguments), RequestError> {
    let ScriptArguments { command, shared } = serde_json::from_str(arguments)?;
    if command.trim().is_empty() {
        return Err(RequestError::Empty);
    }
    Ok((vec![shell.to_owned(), "-lc".to_owned(), command], shared))
}
