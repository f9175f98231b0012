//! Parses the arguments of a tool into a command.

use std::path::{Path, PathBuf};
use std::time::Duration;

use codex_log::{CommandItem, ItemId};
use serde::Deserialize;

use super::OpenTerminal;
use super::terminal::{TerminalPoll, WriteRequest};
use crate::call::{ToolCall, ToolInput};

/// The default timeout of a command.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);

/// The sandbox that is available for a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Confinement {
    /// The sandbox allows ordinary work.
    Usual,
    /// The sandbox is read-only, so an approval means a run outside.
    ReadOnly,
    /// This machine cannot enforce the sandbox, so running means running outside.
    Impossible,
    /// The policy sets no limits, but this command runs in a read-only sandbox.
    Voluntary,
}

/// A command requested by the model.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CommandRequest {
    pub(crate) call: ItemId,
    /// The program and its arguments.
    pub(crate) argv: Vec<String>,
    pub(crate) cwd: PathBuf,
    pub(crate) timeout: Duration,
    /// Whether the user runs it, not the model.
    pub(crate) is_users_own: bool,
    /// Whether the model asks to leave the sandbox.
    pub(crate) is_escalated: bool,
    pub(crate) confinement: Confinement,
    /// The model's justification.
    pub(crate) justification: Option<String>,
    /// The poll of the command's terminal; `None` for a command that ends with its call.
    pub(crate) terminal: Option<TerminalPoll>,
    /// The text to type into a running command, if this is not a command but a request to type.
    pub(crate) typed: Option<Typed>,
}

/// Text typed into a running command.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Typed {
    pub(crate) write: WriteRequest,
    /// The number of the terminal in the sandbox.
    pub(crate) terminal: u64,
    /// The item of the command that runs there.
    pub(crate) item: ItemId,
}

impl Typed {
    pub(crate) fn new(write: WriteRequest, open: &OpenTerminal) -> Self {
        Self { write, terminal: open.id, item: open.item.id.clone() }
    }
}

/// The reason why a call contains no command. The text goes to the model.
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

/// The common arguments. Nothing here can loosen a policy: escalation is a question, not an order.
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

/// The context for parsing a call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ParseContext<'a> {
    /// The working directory of the turn.
    pub(crate) cwd: &'a Path,
    pub(crate) shell: &'a str,
    /// The number of the next terminal.
    pub(crate) next_process: u64,
    /// Whether terminals pass output on unchanged by default.
    pub(crate) is_verbatim: bool,
}

/// A command before the rest of the call is parsed.
struct Parts {
    argv: Vec<String>,
    shared: SharedArguments,
    terminal: Option<TerminalPoll>,
}

impl CommandRequest {
    /// Parses a call of a tool that runs commands; `None` for other tools.
    pub(crate) fn read(call: &ToolCall, place: ParseContext<'_>) -> Option<Result<Self, RequestError>> {
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

    /// A command line, as `shell_command` would run it.
    pub(crate) fn of_line(line: &str, shell: &str, cwd: &Path) -> Result<Self, RequestError> {
        Ok(Self {
            call: ItemId::new("forecast"),
            argv: script(shell, true, line.to_owned())?,
            cwd: cwd.to_owned(),
            timeout: DEFAULT_TIMEOUT,
            is_users_own: false,
            is_escalated: false,
            confinement: Confinement::Usual,
            justification: None,
            terminal: None,
            typed: None,
        })
    }

    /// The request to type into a running command, phrased as a command so that a person can be asked about it.
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
            justification: Some(format!("to type this into `{into_line}`, which was started without an approval")),
            terminal: None,
            typed: Some(typed),
        }
    }
}

fn read_argv(arguments: &str, _: ParseContext<'_>) -> Result<Parts, RequestError> {
    let ShellArguments { command, shared } = serde_json::from_str(arguments)?;
    Ok(Parts { argv: command, shared, terminal: None })
}

fn read_script(arguments: &str, place: ParseContext<'_>) -> Result<Parts, RequestError> {
    let ScriptArguments { command, shared } = serde_json::from_str(arguments)?;
    Ok(Parts { argv: script(place.shell, true, command)?, shared, terminal: None })
}

fn read_terminal(arguments: &str, place: ParseContext<'_>) -> Result<Parts, RequestError> {
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
