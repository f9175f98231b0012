//! The tools the model is offered, and what they do.

use codex_wire::plan::UpdatePlanArgs;
use codex_wire::response::FunctionCallOutputPayload;
use serde_json::json;
use serde_json::value::RawValue;
use std::sync::Arc;

use crate::log::Body;
use crate::turn::{Call, CallPayload};

/// What a call led to: events for the log, then the output for the model.
#[derive(Debug)]
pub(crate) struct CallResult {
    pub(crate) events: Vec<Body>,
    pub(crate) output: FunctionCallOutputPayload,
}

impl CallResult {
    fn text(text: impl Into<String>) -> Self {
        Self { events: Vec::new(), output: FunctionCallOutputPayload::Text(text.into()) }
    }
}

/// The tools as the model is told of them, encoded once for all requests of a thread.
pub(crate) fn offered() -> Result<Arc<RawValue>, serde_json::Error> {
    let tools = json!([shell(), {
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
    }]);
    serde_json::value::to_raw_value(&tools).map(Arc::from)
}

fn shell() -> serde_json::Value {
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

/// Runs a call that is no command. It never fails: what goes wrong is told to the model.
pub(crate) fn run(call: &Call) -> CallResult {
    match (call.tool.as_str(), &call.payload) {
        ("update_plan", CallPayload::Function(arguments)) => update_plan(arguments),
        (tool, CallPayload::Function(_)) => CallResult::text(format!("unsupported call: {tool}")),
        (tool, CallPayload::Custom(_)) => CallResult::text(format!("unsupported custom tool call: {tool}")),
    }
}

fn update_plan(arguments: &str) -> CallResult {
    match serde_json::from_str::<UpdatePlanArgs>(arguments) {
        Ok(plan) => CallResult {
            events: vec![Body::PlanUpdated(plan)],
            output: FunctionCallOutputPayload::Text("Plan updated".to_owned()),
        },
        Err(error) => CallResult::text(format!("failed to parse function arguments: {error}")),
    }
}
