//! Decisions of a person as the client library tells them to a server.

use codex_client::approvals;
use serde_json::{Value, json};

use crate::question::{Decision, Question};

/// The answer to a question.
pub(crate) fn reply(question: &Question, decision: Decision) -> approvals::Decision {
    if let Some(granted) = grant(question, decision) {
        return approvals::Decision::Result(granted);
    }
    match decision {
        // A question of the model has no word for a refusal.
        Decision::Decline | Decision::Cancel if question.is_of_model() => {
            approvals::Decision::Result(json!({"answers": {}}))
        }
        Decision::Accept => approvals::Decision::Allow,
        Decision::AcceptForSession => approvals::Decision::AllowForSession,
        Decision::AcceptAlways => approvals::Decision::AllowWithAmendment(question.rule().unwrap_or_default().to_vec()),
        Decision::Decline => approvals::Decision::deny("declined"),
        Decision::Cancel => approvals::Decision::Cancel,
    }
}

/// The permissions that are granted: those that were asked for, and nothing else.
fn grant(question: &Question, decision: Decision) -> Option<Value> {
    let permissions = question.permissions()?;
    let scope = match decision {
        Decision::Accept => "turn",
        Decision::AcceptForSession => "session",
        Decision::AcceptAlways | Decision::Decline | Decision::Cancel => return None,
    };
    Some(json!({"permissions": permissions, "scope": scope}))
}

/// The values of a form as an answer.
pub(crate) fn filled_in(question: &Question, values: Value) -> approvals::Decision {
    approvals::Decision::Result(if question.is_of_model() {
        values
    } else {
        json!({"action": "accept", "content": values})
    })
}
