//! The origin of a question, which gets its answer: a thread of this process, or the server that has its thread open.

use std::sync::Arc;

use codex_lines::{Outbox, encoded};
use codex_log::{Answer, QuestionId};
use codex_thread::{Closed, Thread};
use codex_wire::ids::ThreadId;
use serde_json::{Value, json};

/// The origin of a question.
#[derive(Debug, Clone)]
pub(super) enum Asker {
    Here(Thread),
    Elsewhere(RelayedRequest),
}

/// A request of another server.
#[derive(Debug, Clone)]
pub(super) struct RelayedRequest {
    pub(super) thread: ThreadId,
    /// The id of the request.
    pub(super) number: i64,
    /// To that server.
    pub(super) outbox: Arc<Outbox>,
}

impl Asker {
    /// The thread that asks.
    pub(super) fn thread(&self) -> ThreadId {
        match self {
            Self::Here(thread) => thread.id(),
            Self::Elsewhere(request) => request.thread,
        }
    }

    /// Passes on an answer. If somebody else has answered first, nothing happens.
    pub(super) async fn answer(&self, question: QuestionId, answer: Answer) {
        match self {
            Self::Here(thread) => {
                let _: Result<bool, Closed> = thread.answer(question, answer).await;
            }
            Self::Elsewhere(request) => {
                let line = encoded(&response(request.number, &answer));
                request.outbox.send_answer_at_once(line);
            }
        }
    }
}

/// An answer as the response to a request.
fn response(id: i64, answer: &Answer) -> Value {
    match answer {
        Answer::Decision(decision) => json!({"id": id, "result": {"decision": decision}}),
        Answer::Given { action, content } => json!({"id": id, "result": {"action": action, "content": content}}),
        // A client of MCP grants no permissions; it answers with a decision.
        Answer::Granted { .. } => json!({"id": id, "result": {"decision": answer.decision()}}),
        Answer::Declined => {
            json!({"id": id, "error": {"code": -32603, "message": "the client did not answer the question"}})
        }
    }
}

#[cfg(test)]
mod tests {
    use codex_wire::decision::{ElicitationDecision, ReviewDecision};

    use super::*;

    #[test]
    fn answers_are_responses_that_every_server_reads() {
        assert_eq!(
            response(7, &Answer::Decision(ReviewDecision::ApprovedForSession)),
            json!({"id": 7, "result": {"decision": "approved_for_session"}})
        );
        let given = Answer::Given { action: ElicitationDecision::Accept, content: Some(json!({"name": "Ada"})) };
        assert_eq!(response(7, &given), json!({"id": 7, "result": {"action": "accept", "content": {"name": "Ada"}}}));
        assert_eq!(response(7, &Answer::Declined)["error"]["code"], -32603);
    }
}
