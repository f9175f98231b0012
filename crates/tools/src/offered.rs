//! The tools the model is offered.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use codex_wire::tool_spec::{ToolList, ToolSpec};
use serde_json::json;

/// The tools as the model is told of them.
#[derive(Clone)]
pub struct Tools {
    /// All that it has.
    pub all: Arc<ToolList>,
    /// The same while it works towards a goal.
    pub with_goal: Arc<ToolList>,
    /// An empty list, for requests that are to be answered in words alone.
    pub none: Arc<ToolList>,
}

impl Tools {
    /// The tools of a thread.
    #[must_use]
    pub fn offered(has_terminals: bool, searches_web: bool) -> Self {
        // They are described once for all threads.
        static KNOWN: Mutex<BTreeMap<(bool, bool), Tools>> = Mutex::new(BTreeMap::new());
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        let make = || {
            let all = offered(has_terminals, searches_web);
            let with_goal = all.iter().cloned().chain([update_goal_tool()]).collect();
            Self { all: ToolList::of(all), with_goal: ToolList::of(with_goal), none: ToolList::of(Vec::new()) }
        };
        known.entry((has_terminals, searches_web)).or_insert_with(make).clone()
    }
}

fn offered(has_terminals: bool, searches_web: bool) -> Vec<ToolSpec> {
    let mut tools = if has_terminals { vec![exec_command(), write_stdin()] } else { vec![shell()] };
    tools.push(apply_patch_tool());
    if searches_web {
        tools.push(ToolSpec::WebSearch);
    }
    tools.push(view_image_tool());
    tools.push(ToolSpec::function(
        "update_plan",
        "Shows the person your plan. Send all steps each time, with at most one in progress.",
        json!({
            "type": "object",
            "properties": {
                "explanation": {"type": "string", "description": "Why the plan changed, if it did"},
                "plan": {
                    "type": "array",
                    "description": "The steps, in order",
                    "items": {
                        "type": "object",
                        "properties": {
                            "step": {"type": "string"},
                            "status": {"type": "string", "enum": ["pending", "in_progress", "completed"]}
                        },
                        "required": ["step", "status"],
                        "additionalProperties": false
                    }
                }
            },
            "required": ["plan"],
            "additionalProperties": false
        }),
    ));
    tools
}

fn update_goal_tool() -> ToolSpec {
    ToolSpec::function(
        "update_goal",
        "Says that the goal of this thread is reached, or that you cannot go on without the person.",
        json!({
            "type": "object",
            "properties": {
                "status": {
                    "type": "string",
                    "enum": ["complete", "blocked"],
                    "description": "`complete` only when all of it is done and you have checked that"
                }
            },
            "required": ["status"],
            "additionalProperties": false
        }),
    )
}

fn shell() -> ToolSpec {
    ToolSpec::function(
        "shell",
        "Runs a command and returns what it prints. Most commands need a shell: [\"bash\", \"-lc\", \"…\"].",
        json!({
            "type": "object",
            "properties": {
                "command": {
                    "type": "array",
                    "items": {"type": "string"},
                    "description": "The program and its arguments"
                },
                "workdir": {"type": "string", "description": "Where to run it; the working directory by default"},
                "timeout_ms": {"type": "number", "description": "How long it may take; 10 seconds by default"},
                "sandbox_permissions": {
                    "type": "string",
                    "enum": ["use_default", "require_escalated"],
                    "description": "`require_escalated` asks the person to let it run outside the sandbox"
                },
                "justification": {
                    "type": "string",
                    "description": "With `require_escalated`: one sentence that tells the person why"
                }
            },
            "required": ["command"],
            "additionalProperties": false
        }),
    )
}

fn apply_patch_tool() -> ToolSpec {
    ToolSpec::function(
        "apply_patch",
        include_str!("../prompts/apply_patch.md"),
        json!({
            "type": "object",
            "properties": {"input": {"type": "string", "description": "The patch, from `*** Begin Patch` to `*** End Patch`"}},
            "required": ["input"],
            "additionalProperties": false
        }),
    )
}

fn view_image_tool() -> ToolSpec {
    ToolSpec::function(
        "view_image",
        "Shows you a picture: a PNG, JPEG, GIF or WebP file on this machine.",
        json!({
            "type": "object",
            "properties": {"path": {"type": "string", "description": "The file"}},
            "required": ["path"],
            "additionalProperties": false
        }),
    )
}

fn exec_command() -> ToolSpec {
    ToolSpec::function(
        "exec_command",
        "Runs a command in a terminal. Returns its output, or a session ID while it goes on.",
        json!({
            "type": "object",
            "properties": {
                "cmd": {"type": "string", "description": "The command, for a shell"},
                "workdir": {"type": "string", "description": "Where to run it; the working directory by default"},
                "shell": {"type": "string", "description": "The shell; the person's own by default"},
                "login": {"type": "boolean", "description": "Whether it is a login shell; true by default"},
                "yield_time_ms": {"type": "number", "description": "How long to wait for its end; 10 seconds by default"},
                "max_output_tokens": {"type": "number", "description": "How much of its output to return"},
                "sandbox_permissions": {"type": "string", "enum": ["use_default", "require_escalated"]},
                "justification": {"type": "string", "description": "With `require_escalated`: why, in one sentence"}
            },
            "required": ["cmd"],
            "additionalProperties": false
        }),
    )
}

fn write_stdin() -> ToolSpec {
    ToolSpec::function(
        "write_stdin",
        "Types into the terminal of a running command, or only looks at it, and returns what it shows.",
        json!({
            "type": "object",
            "properties": {
                "session_id": {"type": "number", "description": "The session ID that exec_command returned"},
                "chars": {"type": "string", "description": "What to type; empty to look only"},
                "yield_time_ms": {"type": "number", "description": "How long to wait for its end; 250 by default"},
                "max_output_tokens": {"type": "number", "description": "How much of its output to return"}
            },
            "required": ["session_id"],
            "additionalProperties": false
        }),
    )
}
