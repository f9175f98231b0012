//! Decisions of a person as the client library tells them to a server.

use codex_client::approvals;

use crate::question::{Decision, Question};

/// The answer to a question.
pub(crate) fn reply(question: &Question, decision: Decision) -> approvals::Decision {
    match decision {
        Decision::Accept => approvals::Decision::Allow,
        Decision::AcceptForSession => approvals::Decision::AllowForSession,
        Decision::AcceptAlways => approvals::Decision::AllowWithAmendment(question.rule().unwrap_or_default().to_vec()),
        Decision::Decline => approvals::Decision::deny("declined"),
        Decision::Cancel => approvals::Decision::Cancel,
    }
}
