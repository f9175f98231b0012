//! The nine tools as a model is told of them.

use std::sync::LazyLock;

use codex_wire::tool_spec::ToolSpec;
use serde_json::{Value, json};

use super::Nine;

/// The instructions of a root.
pub(crate) const ROOT_INSTRUCTIONS: &str = "You can start subagents for work that is independent of yours: give each one task, with everything it has to know, and a \
     label. They share your folder, so do not let two of them write the same files; with isolation `worktree` one has a git \
     worktree of its own, and you take its changes over with subagent_apply. Wait for their results with \
     subagent_await, check what they report, and prune those that you need no more.";

/// The instructions of a child.
pub(crate) const CHILD_INSTRUCTIONS: &str = "You are a subagent: another agent has started you for one task and reads your last message as its result. Work on \
     that task alone. Do not ask questions that you can answer yourself. End with a message that says what you found or \
     changed, with file names, and what is left to do.";

/// The specification of a tool.
pub(super) fn spec(tool: Nine) -> ToolSpec {
    static SPECS: LazyLock<Vec<(Nine, ToolSpec)>> = LazyLock::new(|| {
        Nine::ALL
            .into_iter()
            .map(|tool| (tool, ToolSpec::function(tool.name(), description(tool), parameters(tool))))
            .collect()
    });
    SPECS.iter().find(|(known, _)| *known == tool).map_or(ToolSpec::LocalShell, |(_, spec)| spec.clone())
}

fn description(tool: Nine) -> &'static str {
    match tool {
        Nine::Spawn => {
            "Starts a subagent with an empty history and gives it a task. It works in the background; its result comes as \
             a message, or with subagent_await."
        }
        Nine::Fork => {
            "Starts a subagent with a copy of this conversation. The call returns in both: here with role `parent`, there \
             with role `child`. Without a prompt the child waits for a message."
        }
        Nine::SendMessage => {
            "Sends a message to a subagent, or to an agent above (0 is the root). With `interrupt` its running turn is \
             stopped first. A subagent that is done starts again."
        }
        Nine::List => "Lists your direct subagents with their status, oldest first. `all` adds those below them.",
        Nine::Await => {
            "Waits until a subagent sends a message or is done. `timeout_s` is 300 to 1800; 0 or nothing waits 1800 \
             seconds. Without `agent_ids` any direct subagent ends the wait."
        }
        Nine::Logs => "Reads the newest events of a subagent without disturbing it.",
        Nine::Cancel => "Stops a subagent and all agents below it.",
        Nine::Prune => "Deletes subagents that are done, so that they are no longer listed.",
        Nine::Watchdog => {
            "Sends a message to a subagent, or to the root (0), every `interval_s` seconds until it is canceled."
        }
    }
}

fn parameters(tool: Nine) -> Value {
    let id = || json!({"type": "number", "description": "The number of the agent, from subagent_list."});
    let ids = || json!({"type": "array", "items": {"type": "number"}});
    let text = |about: &str| json!({"type": "string", "description": about});
    let number = |about: &str| json!({"type": "number", "description": about});
    let flag = |about: &str| json!({"type": "boolean", "description": about});
    let start = || {
        json!({
            "prompt": text("The task."),
            "label": text("A short name."),
            "model": text("The model, if another than yours."),
            "sandbox_mode": text("read-only, workspace-write or danger-full-access; never wider than yours."),
            "isolation": crate::applying::isolation_parameter(),
        })
    };
    let (properties, required): (Value, &[&str]) = match tool {
        Nine::Spawn => (start(), &["prompt"]),
        Nine::Fork => (start(), &[]),
        Nine::SendMessage => (
            json!({
                "agent_id": id(),
                "prompt": text("The message."),
                "label": text("A new name for the subagent."),
                "interrupt": flag("Stop its running turn first."),
            }),
            &["agent_id"],
        ),
        Nine::List => (json!({"all": flag("Also those below your subagents.")}), &[]),
        Nine::Await => (json!({"timeout_s": number("Seconds."), "agent_ids": ids()}), &[]),
        Nine::Logs => (
            json!({
                "agent_id": id(),
                "limit": number("How many events; 5 by default."),
                "max_bytes": number("The most bytes of events."),
                "since_ms": number("Only later ones, in Unix milliseconds."),
                "before_ms": number("Only earlier ones, in Unix milliseconds."),
            }),
            &["agent_id"],
        ),
        Nine::Cancel => (json!({"agent_id": id(), "reason": text("The reason.")}), &["agent_id"]),
        Nine::Prune => (
            json!({
                "agent_ids": ids(),
                "all": flag("All direct subagents."),
                "completed_only": flag("Leave out those at work; true by default."),
            }),
            &[],
        ),
        Nine::Watchdog => (
            json!({
                "agent_id": id(),
                "interval_s": number("At least 30; 300 by default."),
                "message": text("The message."),
                "cancel": flag("Remove the watchdog."),
            }),
            &["agent_id"],
        ),
    };
    json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
}
