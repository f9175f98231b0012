//! From the arguments of a tool to a command.

use std::path::{Path, PathBuf};
use std::time::Duration;

use codex_log::{CommandItem, ItemId};
use serde::Deserialize;

use super::OpenTerminal;
use super::terminal::{TerminalPoll, WriteRequest};
use crate::call::{ToolCall, ToolInput};

/// How long a command may take when the model does not say.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);

/// What a sandbox can do for a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Confinement {
    /// The sandbox lets it do its usual work.
    Usual,
    /// The sandbox lets nothing be written, so a person who allows the command means a run outside.
    ReadOnly,
    /// This machine cannot keep the sandbox's promises, so running means running outside.
    Impossible,
}

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
    /// Whether the user runs it, not the model.
    pub(crate) is_users_own: bool,
    /// Whether the model asks to leave the sandbox.
    pub(crate) is_escalated: bool,
    /// What a sandbox can do for it.
    pub(crate) confinement: Confinement,
    /// Why the model asks.
    pub(crate) justification: Option<String>,
    /// How the call looks at the command's terminal; none for a command that ends with its call.
    pub(crate) terminal: Option<TerminalPoll>,
    /// What is typed into a command that runs already, where this is no command but a wish to type.
    pub(crate) typed: Option<Typed>,
}

/// What is typed into a command that runs.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Typed {
    /// As the model wants it.
    pub(crate) write: WriteRequest,
    /// The number of the terminal in the sandbox.
    pub(crate) terminal: u64,
    /// The command that runs there.
    pub(crate) item: ItemId,
}

impl Typed {
    /// What is typed into this terminal.
    pub(crate) fn new(write: WriteRequest, open: &OpenTerminal) -> Self {
        Self { write, terminal: open.id, item: open.item.id.clone() }
    }
}

/// Why there is no command in a call. The text goes to the model.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RequestError {
    #[error("failed to parse function arguments: {0}")]
    Arguments(#[from] serde_json::Error),
    #[error("the command is empty")]
    Empty,
    #[error("this tool takes JSON")]
    NotJson,
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

/// The arguments of `exec_command`.
#[derive(Deserialize)]
struct TerminalArguments {
    cmd: String,
    #[serde(default)]
    shell: Option<String>,
    #[serde(default)]
    login: Option<bool>,
    #[serde(default)]
    yield_time_ms: Option<u64>,
    #[serde(default)]
    max_output_tokens: Option<usize>,
    #[serde(default)]
    tty: Option<bool>,
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

/// What a call may need to become a command.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place<'a> {
    /// Where the turn works.
    pub(crate) cwd: &'a Path,
    /// The user's shell.
    pub(crate) shell: &'a str,
    /// The number of the next terminal.
    pub(crate) next_process: u64,
    /// Whether terminals print as into a file unless the model wants otherwise.
    pub(crate) is_verbatim: bool,
}

/// A command before the call around it is looked at.
struct Parts {
    argv: Vec<String>,
    shared: SharedArguments,
    terminal: Option<TerminalPoll>,
}

impl CommandRequest {
    /// Reads a call of a tool that runs commands; none for other tools.
    pub(crate) fn read(call: &ToolCall, place: Place<'_>) -> Option<Result<Self, RequestError>> {
        let read = match call.tool.as_str() {
            "shell" | "container.exec" | "local_shell" => read_argv,
            "shell_command" => read_script,
            "exec_command" => read_terminal,
            _ => return None,
        };
        let ToolInput::Function(arguments) = &call.input else {
            return Some(Err(RequestError::NotJson));
        };
        Some(read(arguments, place).and_then(|parts| Self::new(call, parts, place.cwd)))
    }

    fn new(call: &ToolCall, parts: Parts, cwd: &Path) -> Result<Self, RequestError> {
        let Parts { argv, shared, terminal } = parts;
        if argv.first().is_none_or(String::is_empty) {
            return Err(RequestError::Empty);
        }
        let asks = shared.sandbox_permissions.as_deref() == Some("require_escalated");
        Ok(Self {
            call: call.id.clone(),
            argv,
            cwd: shared.workdir.map_or_else(|| cwd.to_owned(), |workdir| cwd.join(workdir)),
            timeout: shared.timeout_ms.map_or(DEFAULT_TIMEOUT, Duration::from_millis),
            is_users_own: false,
            is_escalated: asks || shared.with_escalated_permissions == Some(true),
            confinement: Confinement::Usual,
            justification: shared.justification.filter(|text| !text.trim().is_empty()),
            terminal,
            typed: None,
        })
    }

    /// The wish to type something into a command that runs, worded as a command so that a person can be asked about it.
    pub(crate) fn to_type(call: &ItemId, typed: Typed, into: &CommandItem) -> Self {
        let session = typed.write.look().process.to_string();
        let argv = ["write_stdin", "--session", &session, typed.write.chars()].map(str::to_owned).to_vec();
        let into_line = codex_wire::command_line::display(&into.argv);
        Self {
            call: call.clone(),
            argv,
            cwd: into.cwd.clone(),
            timeout: DEFAULT_TIMEOUT,
            is_users_own: false,
            is_escalated: false,
            confinement: Confinement::Usual,
            justification: Some(format!("to type this into `{into_line}`, about which nobody was asked")),
            terminal: None,
            typed: Some(typed),
        }
    }
}

fn read_argv(arguments: &str, _: Place<'_>) -> Result<Parts, RequestError> {
    let ShellArguments { command, shared } = serde_json::from_str(arguments)?;
    Ok(Parts { argv: command, shared, terminal: None })
}

fn read_script(arguments: &str, place: Place<'_>) -> Result<Parts, RequestError> {
    let ScriptArguments { command, shared } = serde_json::from_str(arguments)?;
    Ok(Parts { argv: script(place.shell, true, command)?, shared, terminal: None })
}

fn read_terminal(arguments: &str, place: Place<'_>) -> Result<Parts, RequestError> {
    let TerminalArguments { cmd, shell, login, yield_time_ms, max_output_tokens, tty, shared } =
        serde_json::from_str(arguments)?;
    let shell = shell.as_deref().unwrap_or(place.shell);
    let look = TerminalPoll {
        is_verbatim: place.is_verbatim && !tty.unwrap_or(false),
        ..TerminalPoll::at_start(place.next_process, yield_time_ms, max_output_tokens)
    };
    Ok(Parts { argv: script(shell, login.unwrap_or(true), cmd)?, shared, terminal: Some(look) })
}

fn script(shell: &str, is_login: bool, text: String) -> Result<Vec<String>, RequestError> {
    if text.trim().is_empty() {
        return Err(RequestError::Empty);
    }
    Ok(vec![shell.to_owned(), if is_login { "-lc" } else { "-c" }.to_owned(), text])
}
