//! The two tools: their schemas, their arguments, and their results.

use std::path::PathBuf;

use codex_thread::{ClientAdditions, ClientProfile, InitialHistory, StartThread};
use codex_wire::ids::ThreadId;
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// A parsed call of a tool.
#[derive(Debug)]
pub(super) enum ToolCall {
    /// `codex`: a new thread and its first turn.
    Start { start: Box<StartThread>, prompt: String },
    /// `codex-reply`: another turn of a thread.
    Reply { thread: ThreadId, prompt: String },
}

impl ToolCall {
    /// Decodes the name and the arguments of a call.
    ///
    /// # Errors
    /// The text for the model if there is no such tool, or if the arguments are invalid.
    pub(super) fn read(name: &str, arguments: Option<Value>) -> Result<Self, String> {
        match name {
            "codex" => {
                let missing = "Missing arguments for codex tool-call; the `prompt` field is required.";
                let arguments = arguments.ok_or(missing)?;
                let wrong = |error| format!("Failed to parse configuration for Codex tool: {error}");
                let mut arguments: CodexArguments = serde_json::from_value(arguments).map_err(wrong)?;
                let prompt = std::mem::take(&mut arguments.prompt);
                let start = Box::new(arguments.into());
                Ok(Self::Start { start, prompt })
            }
            "codex-reply" => {
                let missing =
                    "Missing arguments for codex-reply tool-call; the `threadId` and `prompt` fields are required.";
                let arguments = arguments.ok_or(missing)?;
                let wrong = |error| format!("Failed to parse configuration for Codex tool: {error}");
                let ReplyArguments { thread_id, conversation_id, prompt } =
                    serde_json::from_value(arguments).map_err(wrong)?;
                let id = thread_id.or(conversation_id);
                let id = id.ok_or("Failed to parse configuration for Codex tool: missing field `threadId`")?;
                let thread = id.parse().map_err(|error| format!("Failed to parse thread_id: {error}"))?;
                Ok(Self::Reply { thread, prompt })
            }
            other => Err(format!("Unknown tool '{other}'")),
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct CodexArguments {
    prompt: String,
    model: Option<String>,
    profile: Option<String>,
    cwd: Option<PathBuf>,
    approval_policy: Option<String>,
    sandbox: Option<String>,
    config: Option<Map<String, Value>>,
    base_instructions: Option<String>,
    developer_instructions: Option<String>,
    compact_prompt: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ReplyArguments {
    thread_id: Option<String>,
    conversation_id: Option<String>,
    prompt: String,
}

impl From<CodexArguments> for StartThread {
    fn from(arguments: CodexArguments) -> Self {
        let mut overrides = arguments.config.unwrap_or_default();
        let named = [
            ("model", arguments.model),
            ("profile", arguments.profile),
            ("approval_policy", arguments.approval_policy),
            ("sandbox_mode", arguments.sandbox),
            ("developer_instructions", arguments.developer_instructions),
            ("compact_prompt", arguments.compact_prompt),
        ];
        let given = named.into_iter().filter_map(|(key, value)| Some((key.to_owned(), Value::String(value?))));
        overrides.extend(given);
        Self {
            cwd: arguments.cwd,
            overrides,
            base_instructions: arguments.base_instructions,
            originator: None,
            profile: ClientProfile::V077,
            initial_history: InitialHistory::New,
            additions: ClientAdditions::default(),
        }
    }
}

/// The result of `tools/list`.
pub(super) fn list() -> Value {
    json!({"tools": [codex(), codex_reply()]})
}

fn codex() -> Value {
    let text = |description: &str| json!({"type": "string", "description": description});
    let word = |description: &str, words: &[&str]| json!({"type": "string", "description": description, "enum": words});
    json!({
        "name": "codex",
        "title": "Codex",
        "description": "Start a Codex thread, run its first turn, and return the last message of the agent.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "prompt": text("The first user prompt of the thread."),
                "cwd": text("Working directory. A relative one is resolved against the working directory of the server."),
                "model": text("Model to use instead of the configured one."),
                "profile": text("Profile of config.toml to use."),
                "sandbox": word(
                    "Sandbox mode.",
                    &["read-only", "workspace-write", "danger-full-access"],
                ),
                "approval-policy": word(
                    "When the user is asked before a command runs.",
                    &["untrusted", "on-failure", "on-request", "never"],
                ),
                "config": {
                    "type": "object",
                    "description": "Settings that take precedence over config.toml, by key.",
                    "additionalProperties": true,
                },
                "base-instructions": text("Instructions to use instead of the built-in ones."),
                "developer-instructions": text("Instructions that are added as a developer message."),
                "compact-prompt": text("Prompt for the summary when the conversation is compacted."),
            },
            "required": ["prompt"],
        },
        "outputSchema": output_schema(),
    })
}

fn codex_reply() -> Value {
    let text = |description: &str| json!({"type": "string", "description": description});
    json!({
        "name": "codex-reply",
        "title": "Codex Reply",
        "description": "Run another turn of a Codex thread, and return the last message of the agent.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "conversationId": text("The id of the thread."),
                "threadId": text("The id of the thread, under its newer name. One of the two is enough."),
                "prompt": text("The next user prompt of the thread."),
            },
            "required": ["conversationId", "prompt"],
        },
        "outputSchema": output_schema(),
    })
}

fn output_schema() -> Value {
    json!({
        "type": "object",
        "properties": {"threadId": {"type": "string"}, "content": {"type": "string"}},
        "required": ["threadId", "content"],
    })
}

/// The outcome of a call.
#[derive(Debug, PartialEq)]
pub(super) struct ToolResult {
    /// The thread, if there is one.
    pub(super) thread: Option<ThreadId>,
    /// The last message of the agent, or the error.
    pub(super) text: String,
    pub(super) is_error: bool,
}

impl ToolResult {
    pub(super) fn error(thread: Option<ThreadId>, text: impl Into<String>) -> Self {
        Self { thread, text: text.into(), is_error: true }
    }

    /// The result of a turn that did not run to its end.
    pub(super) fn interrupted(thread: ThreadId) -> Self {
        Self::error(Some(thread), "The turn was interrupted")
    }

    pub(super) fn to_json(&self) -> Value {
        let mut result = json!({"content": [{"type": "text", "text": self.text}]});
        if let Some(thread) = self.thread {
            // Clients of 2025 call a thread a conversation.
            result["structuredContent"] = json!({"threadId": thread, "conversationId": thread, "content": self.text});
        }
        if self.is_error {
            result["isError"] = true.into();
            // Clients of 0.77 expect the error here.
            result["error"] = self.text.clone().into();
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_become_overrides() {
        let arguments = json!({
            "prompt": "hi", "model": "m", "profile": "p", "cwd": "sub", "approval-policy": "never",
            "sandbox": "read-only", "config": {"model": "ignored", "a.b": 1}, "base-instructions": "b",
            "developer-instructions": "d", "compact-prompt": "c", "include-plan-tool": true,
        });
        let Ok(ToolCall::Start { start, prompt }) = ToolCall::read("codex", Some(arguments)) else {
            panic!("it is a call of codex");
        };
        assert_eq!((prompt.as_str(), start.base_instructions.as_deref()), ("hi", Some("b")));
        assert_eq!(start.cwd, Some(PathBuf::from("sub")));
        let expected = json!({
            "a.b": 1, "approval_policy": "never", "compact_prompt": "c", "developer_instructions": "d", "model": "m",
            "profile": "p", "sandbox_mode": "read-only",
        });
        assert_eq!(Value::Object(start.overrides), expected);
    }

    #[test]
    fn a_thread_has_two_names() {
        let id = "00000000-0000-7000-8000-000000000000";
        for key in ["threadId", "conversationId"] {
            let call = ToolCall::read("codex-reply", Some(json!({key: id, "prompt": "hi"})));
            assert!(matches!(call, Ok(ToolCall::Reply { thread, .. }) if thread.to_string() == id));
        }
    }

    #[test]
    fn invalid_calls_are_explained() {
        let why = |name: &str, arguments: Value| ToolCall::read(name, Some(arguments)).expect_err("it is wrong");
        assert!(why("codex", json!({})).ends_with("missing field `prompt`"));
        assert!(why("codex-reply", json!({"prompt": "x"})).ends_with("missing field `threadId`"));
        assert!(why("codex-reply", json!({"prompt": "x", "threadId": "y"})).starts_with("Failed to parse thread_id"));
        assert_eq!(why("other", json!({})), "Unknown tool 'other'");
        assert!(ToolCall::read("codex", None).expect_err("it is wrong").contains("`prompt` field is required"));
    }

    #[test]
    fn an_error_is_marked_in_both_ways() {
        let result = ToolResult::error(None, "why").to_json();
        assert_eq!(result, json!({"content": [{"type": "text", "text": "why"}], "isError": true, "error": "why"}));
    }
}
