//! The namespace as a model is told of it.

use codex_wire::tool_spec::ToolSpec;
use serde_json::{Value, json};

use super::{NAMESPACE, Verb};
use crate::roles::Roles;

/// The specification of all tools.
pub(super) fn namespace(roles: &Roles) -> ToolSpec {
    let tools =
        Verb::ALL.into_iter().map(|verb| ToolSpec::function(verb.name(), description(verb), parameters(verb, roles)));
    let tools = tools.chain([crate::applying::namespace_spec()]).collect();
    ToolSpec::namespace(NAMESPACE, "Starts other agents, waits for them and sends them messages.", tools)
}

fn description(verb: Verb) -> &'static str {
    match verb {
        Verb::Spawn => {
            "Starts an agent that works on a task of its own beside you, and returns its id. Use it only when the user \
             asks for agents or for work in parallel."
        }
        Verb::Wait => "Waits until one of these agents is done, and returns the results of those that are.",
        Verb::Send => "Sends a message to an agent. With `interrupt` its running turn is stopped first.",
        Verb::Close => "Closes an agent and all agents below it.",
        Verb::Resume => "Loads an agent again, so that it can take messages.",
    }
}

fn parameters(verb: Verb, roles: &Roles) -> Value {
    let text = |about: &str| json!({"type": "string", "description": about});
    let items = || json!({"type": "array", "items": {"type": "object"}, "description": "The message in parts."});
    let (properties, required): (Value, &[&str]) = match verb {
        Verb::Spawn => (
            json!({
                "message": text("The task."),
                "items": items(),
                "fork_context": {"type": "boolean", "description": "Begin with a copy of this conversation."},
                "agent_type": text(&roles.description()),
                "model": text("The model, if another than yours."),
                "reasoning_effort": text("How hard it thinks."),
                "isolation": crate::applying::isolation_parameter(),
            }),
            &[],
        ),
        Verb::Wait => (
            json!({
                "targets": {"type": "array", "items": {"type": "string"}, "description": "The ids of the agents."},
                "timeout_ms": {"type": "number", "description": "10000 to 3600000; 30000 by default."},
            }),
            &["targets"],
        ),
        Verb::Send => (
            json!({
                "target": text("The id of the agent."),
                "message": text("The message."),
                "items": items(),
                "interrupt": {"type": "boolean", "description": "Stop its running turn first."},
            }),
            &["target"],
        ),
        Verb::Close => (json!({"target": text("The id of the agent.")}), &["target"]),
        Verb::Resume => (json!({"id": text("The id of the agent.")}), &["id"]),
    };
    json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
}
