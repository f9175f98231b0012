//! The tools as a model is told of them.

use codex_wire::tool_spec::ToolSpec;
use serde_json::{Value, json};

use super::PathVerb;
use crate::roles::Roles;

/// The specification of a tool.
pub(super) fn spec(verb: PathVerb, roles: &Roles) -> ToolSpec {
    ToolSpec::function(verb.name(), description(verb), parameters(verb, roles))
}

fn description(verb: PathVerb) -> &'static str {
    match verb {
        PathVerb::Spawn => {
            "Starts an agent that works on a task of its own beside you, and returns its path. Use it only when the user \
             asks for agents or for work in parallel."
        }
        PathVerb::Message => {
            "Sends a message to an agent below you or above you. One that is not at work reads it when it has its next \
             task."
        }
        PathVerb::Followup => "Gives an agent below you another task, and starts it again if it is not at work.",
        PathVerb::Wait => {
            "Waits until a message or the result of any agent comes. You are told the messages and results themselves \
             with the next input."
        }
        PathVerb::List => "Lists the agents below you with their paths and status.",
        PathVerb::Interrupt => "Stops an agent and all agents below it. A follow-up task starts it again.",
    }
}

fn parameters(verb: PathVerb, roles: &Roles) -> Value {
    let text = |about: &str| json!({"type": "string", "description": about});
    let target = || text("The path of the agent: whole like /root/tests, or below you like tests.");
    let (properties, required): (Value, &[&str]) = match verb {
        PathVerb::Spawn => (
            json!({
                "message": text("The task."),
                "task_name": text("A name for the task, in lower-case letters, digits and underscores."),
                "agent_type": text(&roles.description()),
                "model": text("The model, if another than yours."),
                "reasoning_effort": text("How hard it thinks."),
                "isolation": crate::applying::isolation_parameter(),
                "service_tier": text("The tier of the provider."),
                "fork_turns": text("How much of this conversation it begins with: `all` (by default), `none`, or the number of the last turns."),
            }),
            &["message", "task_name"],
        ),
        PathVerb::Message | PathVerb::Followup => {
            (json!({"target": target(), "message": text("The message.")}), &["target", "message"])
        }
        PathVerb::Wait => {
            (json!({"timeout_ms": {"type": "number", "description": "10000 to 3600000; 30000 by default."}}), &[])
        }
        PathVerb::List => (json!({"path_prefix": text("Only this agent and those below it.")}), &[]),
        PathVerb::Interrupt => (json!({"target": target()}), &["target"]),
    };
    json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
}
