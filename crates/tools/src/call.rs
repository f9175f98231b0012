//! Tool calls, and which of them may run concurrently.

use std::time::Duration;

use codex_log::ItemId;
use codex_wire::response::ResponseItem;

/// A tool call of the model.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCall {
    /// The id that the output refers to.
    pub id: ItemId,
    pub tool: String,
    pub input: ToolInput,
}

/// The input of a tool.
#[derive(Debug, Clone, PartialEq)]
pub enum ToolInput {
    /// JSON in a string.
    Function(String),
    /// Free text.
    Custom(String),
    /// A command that the user runs, not the model.
    UserShell {
        /// The command, for a shell.
        command: String,
        timeout: Duration,
    },
}

/// The calls that may run concurrently with a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Concurrency {
    /// None: later calls may depend on its effects.
    Alone,
    /// All except a call about the same terminal, whose output would be split between the two.
    BesideAllButTerminal(u64),
    /// All.
    Beside,
}

/// The call in an item, if it needs an output from us.
#[must_use]
pub fn call_of(item: &ResponseItem) -> Option<ToolCall> {
    let call = |id: &str, tool: &str, input| ToolCall { id: ItemId::new(id), tool: tool.to_owned(), input };
    match item {
        ResponseItem::FunctionCall(made) => {
            let name = match &made.namespace {
                Some(namespace) => format!("{namespace}__{}", made.name),
                None => made.name.clone(),
            };
            Some(call(&made.call_id, &name, ToolInput::Function(made.arguments.clone())))
        }
        ResponseItem::CustomToolCall(made) => {
            Some(call(&made.call_id, &made.name, ToolInput::Custom(made.input.clone())))
        }
        ResponseItem::LocalShellCall(made) => {
            let id = made.call_id.as_ref().or(made.id.as_ref())?;
            let arguments = serde_json::to_string(&made.action).ok()?;
            Some(call(id, "local_shell", ToolInput::Function(arguments)))
        }
        _ => None,
    }
}
