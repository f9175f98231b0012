//! The specifications of the built-in tools. They are built once for all threads.

use std::sync::{Arc, LazyLock};

use codex_wire::tool_spec::{CustomTool, Grammar, ToolSpec};
use serde_json::{Value, json};

pub(crate) static UPDATE_PLAN: LazyLock<ToolSpec> = LazyLock::new(|| {
    ToolSpec::function(
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
    )
});

pub(crate) static UPDATE_GOAL: LazyLock<ToolSpec> = LazyLock::new(|| {
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
});

pub(crate) static REQUEST_PERMISSIONS: LazyLock<ToolSpec> = LazyLock::new(|| {
    ToolSpec::function(
        "request_permissions",
        "Asks the person to let commands write to more folders, or use the network, when the sandbox stops you. Ask only \
         for what you need.",
        json!({
            "type": "object",
            "properties": {
                "reason": {"type": "string", "description": "Why you need it, in one sentence"},
                "permissions": {
                    "type": "object",
                    "properties": {
                        "file_system": {
                            "type": "object",
                            "properties": {
                                "write": {
                                    "type": "array",
                                    "description": "Existing folders",
                                    "items": {"type": "string"}
                                }
                            },
                            "additionalProperties": false
                        },
                        "network": {
                            "type": "object",
                            "properties": {"enabled": {"type": "boolean"}},
                            "additionalProperties": false
                        }
                    },
                    "additionalProperties": false
                }
            },
            "required": ["permissions"],
            "additionalProperties": false
        }),
    )
});

/// The schema of the tools that run a command to its end.
fn command_schema(command: &Value) -> Value {
    json!({
        "type": "object",
        "properties": {
            "command": command,
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
    })
}

pub(crate) static SHELL: LazyLock<ToolSpec> = LazyLock::new(|| {
    ToolSpec::function(
        "shell",
        "Runs a command and returns what it prints. Most commands need a shell: [\"bash\", \"-lc\", \"…\"].",
        command_schema(&json!({
            "type": "array",
            "items": {"type": "string"},
            "description": "The program and its arguments"
        })),
    )
});

pub(crate) static SHELL_COMMAND: LazyLock<ToolSpec> = LazyLock::new(|| {
    ToolSpec::function(
        "shell_command",
        "Runs a command in the person's shell and returns what it prints.",
        command_schema(&json!({"type": "string", "description": "The command, for a shell"})),
    )
});

/// The patch as free text, for models that were trained to write it that way.
pub(crate) static APPLY_PATCH_TEXT: LazyLock<ToolSpec> = LazyLock::new(|| {
    ToolSpec::Custom(Arc::new(CustomTool {
        name: "apply_patch".into(),
        description: include_str!("../prompts/apply_patch.md").into(),
        grammar: Some(Grammar {
            syntax: "lark".into(),
            definition: include_str!("../prompts/apply_patch.lark").into(),
        }),
    }))
});

pub(crate) static APPLY_PATCH: LazyLock<ToolSpec> = LazyLock::new(|| {
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
});

pub(crate) static VIEW_IMAGE: LazyLock<ToolSpec> = LazyLock::new(|| {
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
});

pub(crate) static EXEC_COMMAND: LazyLock<ToolSpec> = LazyLock::new(|| {
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
});

pub(crate) static WRITE_STDIN: LazyLock<ToolSpec> = LazyLock::new(|| {
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
});
