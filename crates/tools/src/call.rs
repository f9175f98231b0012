//! A call of a tool, and what may run beside it.

use std::time::Duration;

use codex_log::ItemId;
use codex_wire::response::ResponseItem;

/// A call the model made.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCall {
    /// What the output refers to.
    pub id: ItemId,
    /// The tool.
    pub tool: String,
    /// What the tool is given.
    pub input: ToolInput,
}

/// What a tool is given.
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
        /// How long it may take.
        timeout: Duration,
    },
}

/// What may run beside a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Concurrency {
    /// Nothing: later calls may depend on what it does.
    Alone,
    /// Everything but a call about the same terminal, whose output would be split between the two.
    BesideAllButTerminal(u64),
    /// Everything.
    Beside,
}

/// The call in an item, if it is one that wants an output from us.
#[must_use]
pub fn call_of(item: &ResponseItem) -> Option<ToolCall> {
    let call = |id: &str, tool: &str, input| ToolCall { id: ItemId::new(id), tool: tool.to_owned(), input };
    match item {
        ResponseItem::FunctionCall(made) => {
            Some(call(&made.call_id, &made.name, ToolInput::Function(made.arguments.clone())))
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
