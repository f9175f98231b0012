//! The tools the model is offered.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::value::RawValue;
use serde_json::{Value, json};

/// The tools as the model is told of them, encoded once for all requests.
#[derive(Clone)]
pub struct Tools {
    /// All that it has.
    pub all: Arc<RawValue>,
    /// The same while it works towards a goal.
    pub with_goal: Arc<RawValue>,
    /// An empty list, for requests that are to be answered in words alone.
    pub none: Arc<RawValue>,
}

impl Tools {
    /// The tools of a thread.
    pub fn offered(has_terminals: bool, searches_web: bool) -> Result<Self, serde_json::Error> {
        // All threads with the same tools share their description.
        static KNOWN: Mutex<BTreeMap<(bool, bool), Tools>> = Mutex::new(BTreeMap::new());
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(tools) = known.get(&(has_terminals, searches_web)) {
            return Ok(tools.clone());
        }
        let none = serde_json::value::to_raw_value::<[Value; 0]>(&[])?;
        let mut offered = offered(has_terminals, searches_web);
        let all = serde_json::value::to_raw_value(&offered)?.into();
        offered.push(update_goal_tool());
        let with_goal = serde_json::value::to_raw_value(&offered)?.into();
        let tools = Self { all, with_goal, none: none.into() };
        known.insert((has_terminals, searches_web), tools.clone());
        Ok(tools)
    }
}

fn offered(has_terminals: bool, searches_web: bool) -> Vec<Value> {
    let mut tools = if has_terminals { vec![exec_command(), write_stdin()] } else { vec![shell()] };
    tools.push(apply_patch_tool());
    if searches_web {
        tools.push(json!({"type": "web_search"}));
    }
    tools.push(view_image_tool());
    tools.push(json!({
        "type": "function",
        "name": "update_plan",
        "description": "Shows the person your plan. Send all steps each time, with at most one in progress.",
        "strict": false,
        "parameters": {
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
        }
    }));
    tools
}

fn update_goal_tool() -> Value {
    json!({
        "type": "function",
        "name": "update_goal",
        "description": "Says that the goal of this thread is reached, or that you cannot go on without the person.",
        "strict": false,
        "parameters": {
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
        }
    })
}

fn shell() -> Value {
    json!({
        "type": "function",
        "name": "shell",
        "description": "Runs a command and returns what it prints. Most commands need a shell: [\"bash\", \"-lc\", \"…\"].",
        "strict": false,
        "parameters": {
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
        }
    })
}

fn apply_patch_tool() -> Value {
    json!({
        "type": "function",
        "name": "apply_patch",
        "description": include_str!("../prompts/apply_patch.md"),
        "strict": false,
        "parameters": {
            "type": "object",
            "properties": {"input": {"type": "string", "description": "The patch, from `*** Begin Patch` to `*** End Patch`"}},
            "required": ["input"],
            "additionalProperties": false
        }
    })
}

fn view_image_tool() -> Value {
    json!({
        "type": "function",
        "name": "view_image",
        "description": "Shows you a picture: a PNG, JPEG, GIF or WebP file on this machine.",
        "strict": false,
        "parameters": {
            "type": "object",
            "properties": {"path": {"type": "string", "description": "The file"}},
            "required": ["path"],
            "additionalProperties": false
        }
    })
}

fn exec_command() -> Value {
    json!({
        "type": "function",
        "name": "exec_command",
        "description": "Runs a command in a terminal. Returns its output, or a session ID while it goes on.",
        "strict": false,
        "parameters": {
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
        }
    })
}

fn write_stdin() -> Value {
    json!({
        "type": "function",
        "name": "write_stdin",
        "description": "Types into the terminal of a running command, or only looks at it, and returns what it shows.",
        "strict": false,
        "parameters": {
            "type": "object",
            "properties": {
                "session_id": {"type": "number", "description": "The session ID that exec_command returned"},
                "chars": {"type": "string", "description": "What to type; empty to look only"},
                "yield_time_ms": {"type": "number", "description": "How long to wait for its end; 250 by default"},
                "max_output_tokens": {"type": "number", "description": "How much of its output to return"}
            },
            "required": ["session_id"],
            "additionalProperties": false
        }
    })
}
