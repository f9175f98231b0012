//! A call of an MCP tool, for clients that can only approve commands.

use codex_log::{Elicitation, ElicitationForm};
use codex_wire::command::{ParsedCommand, UnknownCommand};
use codex_wire::mcp::McpInvocation;

/// The call in the form of a command that no shell has.
pub(crate) fn argv(invocation: &McpInvocation) -> Vec<String> {
    let arguments = invocation.arguments.as_ref().map(ToString::to_string).unwrap_or_default();
    vec!["mcp-tool".to_owned(), format!("{}.{}", invocation.server, invocation.tool), arguments]
}

/// A question of a server in the same form.
pub(crate) fn question_argv(asked: &Elicitation) -> Vec<String> {
    let shown = match &asked.form {
        ElicitationForm::Schema(_) => asked.message.clone(),
        ElicitationForm::Url { url, .. } => url.clone(),
    };
    vec!["mcp-server".to_owned(), asked.server.clone(), shown]
}

/// The same for display.
pub(crate) fn parsed(invocation: &McpInvocation) -> Vec<ParsedCommand> {
    vec![ParsedCommand::Unknown(UnknownCommand { cmd: codex_wire::command_line::join(&argv(invocation)) })]
}
