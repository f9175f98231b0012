//! Questions to the client: put in each dialect that it hears, and settled by the first answer.

use std::collections::HashMap;

use codex_log::{Approval, ItemId, TurnId};
use codex_protocol::v2::notification::{ServerNotification, ServerRequestResolved};
use codex_protocol::v2::pending::PendingServerRequest;
use codex_protocol::v2::request::{ApprovalResponse, ServerRequest};
use codex_wire::decision::ReviewDecision;
use codex_wire::ids::{RequestId, ThreadId};

use super::connection::{Asked, Connection};
use super::desk::Desk;

/// The questions of a thread that its client has not answered, by call.
pub(crate) type Questions = HashMap<ItemId, Vec<Question>>;

/// A question as it was put.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Question {
    number: i64,
    wording: Wording,
}

/// The words of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wording {
    V1,
    V2,
}

/// Whether a question is put that was put before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Repeat {
    No,
    Yes,
}

impl Desk {
    /// Asks the client, in each dialect that it hears.
    pub(crate) fn ask(&mut self, turn: &str, approval: &Approval, at_ms: i64, repeat: Repeat) {
        let hears = [(self.hearing.v1_questions, Wording::V1), (self.hearing.v2_questions, Wording::V2)];
        for wording in hears.into_iter().filter_map(|(is_heard, wording)| is_heard.then_some(wording)) {
            let put = self.questions.entry(approval.call.clone()).or_default();
            if repeat == Repeat::No && put.iter().any(|question| question.wording == wording) {
                continue;
            }
            let request = worded(&self.connection, self.thread.id(), wording, turn, approval, at_ms);
            let (number, line) = self.connection.outbox.request(request.method(), &request);
            put.push(Question { number, wording });
            let asked = Asked { thread: self.thread.id(), call: approval.call.as_str().to_owned() };
            self.connection.ask(number, asked);
            self.news.add_lines(&line);
            self.news.number_here();
        }
    }

    /// What the client was asked and has not answered, oldest first.
    pub(crate) async fn pending(&self) -> Vec<PendingServerRequest> {
        let Ok(now) = self.thread.subscribe().await else { return Vec::new() };
        let turn = now.running.as_ref().map(TurnId::as_str).unwrap_or_default();
        let mut pending = Vec::new();
        for approval in &now.asked {
            for Question { number, wording } in self.questions.get(&approval.call).into_iter().flatten() {
                let request = worded(&self.connection, self.thread.id(), *wording, turn, approval, 0);
                let params = serde_json::to_value(&request).unwrap_or_default();
                pending.push(PendingServerRequest {
                    id: RequestId::Integer(*number),
                    method: request.method(),
                    params,
                });
            }
        }
        pending
    }

    /// Passes an answer on. A client that does not understand one wording of a question may still answer another.
    pub(crate) async fn answered(&mut self, number: i64, call: String, answer: Option<&str>) {
        if let Some(put) = self.questions.get_mut(&ItemId::new(call.as_str())) {
            let is_one_of_many = put.iter().any(|question| question.number != number);
            if answer.is_none() && is_one_of_many {
                put.retain(|question| question.number != number);
                return;
            }
        }
        let decision = answer.and_then(read_decision).unwrap_or(ReviewDecision::Denied);
        // Somebody else may have answered first.
        let _: Result<bool, _> = self.thread.answer(call, decision).await;
    }

    /// Takes a question back that needs no answer any more.
    pub(crate) fn resolve(&mut self, item: &ItemId, at_ms: i64) {
        for Question { number, wording } in self.questions.remove(item).unwrap_or_default() {
            self.connection.forget(number);
            if wording == Wording::V2 {
                let (thread_id, request_id) = (self.thread.id().to_string(), RequestId::Integer(number));
                let resolved = ServerRequestResolved { thread_id, request_id };
                self.notify(&ServerNotification::ServerRequestResolved(resolved), at_ms);
            }
        }
    }
}

/// A question in the words of a dialect.
fn worded(
    connection: &Connection,
    thread: ThreadId,
    wording: Wording,
    turn: &str,
    approval: &Approval,
    at_ms: i64,
) -> ServerRequest {
    match wording {
        Wording::V1 => codex_dialects::v1::question(thread, approval),
        Wording::V2 => codex_dialects::v2::question(connection.vintage(), thread, turn, approval, at_ms),
    }
}

/// Reads a decision. What is none is no approval.
fn read_decision(answer: &str) -> Option<ReviewDecision> {
    let decided = serde_json::from_str::<ApprovalResponse>(answer).map(|answer| answer.decision);
    decided.or_else(|_| serde_json::from_str(answer)).ok()
}
