//! The questions of a call, as its client is asked them.

use std::collections::HashMap;
use std::sync::Arc;

use codex_log::QuestionId;
use codex_wire::ids::ThreadId;
use serde_json::{Value, json};

use super::asker::Asker;
use super::exchange::{Era, Exchange};
use super::session::Session;

/// The questions of a turn that the client has not answered.
pub(super) enum Questions {
    /// Asked with requests, which have these ids.
    Requests { session: Arc<Session>, ids: HashMap<(ThreadId, QuestionId), i64> },
    /// To be asked with the result, each with the parameters of its request.
    Results(Vec<OpenQuestion>),
}

/// A question that is asked with the result.
pub(super) struct OpenQuestion {
    pub(super) asker: Asker,
    pub(super) id: QuestionId,
    /// Its name in the result.
    pub(super) key: String,
    pub(super) params: Value,
}

impl Questions {
    pub(super) fn of(exchange: &Exchange) -> Self {
        match &exchange.era {
            Era::Handshake => Self::Requests { session: Arc::clone(&exchange.session), ids: HashMap::new() },
            Era::Stateless { .. } => Self::Results(Vec::new()),
        }
    }

    /// Whether the client has to be asked with the result.
    pub(super) fn wait_for_result(&self) -> bool {
        matches!(self, Self::Results(open) if !open.is_empty())
    }

    /// Notes that a question needs no answer any more, and tells the client if it was asked and has not answered.
    pub(super) fn withdraw(&mut self, exchange: &mut Exchange, thread: ThreadId, question: &QuestionId) {
        match self {
            Self::Requests { session, ids } => {
                if let Some(number) = ids.remove(&(thread, question.clone()))
                    && session.withdraw(number)
                {
                    let params = json!({"requestId": number, "reason": "the question needs no answer any more"});
                    exchange.add_notification("notifications/cancelled", params);
                }
            }
            Self::Results(open) => open.retain(|asked| asked.asker.thread() != thread || asked.id != *question),
        }
    }

    pub(super) fn withdraw_all(&mut self, exchange: &mut Exchange) {
        let open: Vec<(ThreadId, QuestionId)> = match self {
            Self::Requests { ids, .. } => ids.keys().cloned().collect(),
            Self::Results(open) => open.iter().map(|asked| (asked.asker.thread(), asked.id.clone())).collect(),
        };
        for (thread, question) in &open {
            self.withdraw(exchange, *thread, question);
        }
    }
}

impl Drop for Questions {
    fn drop(&mut self) {
        if let Self::Requests { session, ids } = self {
            for number in ids.values() {
                session.withdraw(*number);
            }
        }
    }
}
