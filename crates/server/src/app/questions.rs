//! Questions to the client, sent in each dialect that it receives, and settled by the first answer.

use std::collections::HashMap;
use std::path::PathBuf;

use codex_log::permissions::{GrantScope, Permissions};
use codex_log::{Answer, Question, QuestionId, QuestionKind, TurnId};
use codex_protocol::v2::notification::{ServerNotification, ServerRequestResolved};
use codex_protocol::v2::pending::PendingServerRequest;
use codex_protocol::v2::permission_request::{
    PermissionGrantScope, PermissionsRequestApprovalResponse, RequestPermissionProfile,
};
use codex_protocol::v2::request::{ApprovalResponse, McpElicitationResponse, ServerRequest};
use codex_wire::decision::{ElicitationDecision, ReviewDecision};
use codex_wire::event::{EventMsg, WarningEvent};
use codex_wire::ids::{RequestId, ThreadId};

use super::connection::{Asked, Client};
use super::subscriber::ThreadSubscriber;
use codex_dialects::event_filter::{ApprovalForms, ClientTraits, Dialect};

/// The open questions of a thread to its client, by id.
pub(crate) type Questions = HashMap<QuestionId, Vec<PutQuestion>>;

/// A question as it was sent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PutQuestion {
    number: i64,
    wording: QuestionDialect,
}

/// The dialect of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum QuestionDialect {
    V1,
    V2,
}

/// Whether a question was already sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Repeat {
    No,
    Yes,
}

impl ThreadSubscriber {
    /// Sends a question to the client, in each dialect that it receives.
    pub(crate) fn ask(&mut self, turn: &str, asked: &Question, at_ms: i64, repeat: Repeat) {
        for wording in dialects(self.filter.approvals).iter().copied() {
            let put = self.questions.entry(asked.id.clone()).or_default();
            if repeat == Repeat::No && put.iter().any(|question| question.wording == wording) {
                continue;
            }
            let traits = self.connection.client().map(Client::traits);
            let Some(request) = worded(traits, self.thread.id(), wording, turn, asked, at_ms) else {
                self.decline(asked);
                continue;
            };
            let form = self.connection.json_form();
            let (number, line) = if form.is_plain() {
                self.connection.outbox.request(request.method(), &request)
            } else {
                self.connection.outbox.request(request.method(), form.request(&request))
            };
            put.push(PutQuestion { number, wording });
            let question = asked.id.clone();
            self.connection.ask(number, Asked { thread: self.thread.id(), question });
            self.outgoing.add_lines(&line);
            self.outgoing.number_here();
        }
    }

    /// Declines a question that the client has no request for, unless it can answer it in another form, and says so.
    fn decline(&mut self, asked: &Question) {
        if self.filter.approvals == Some(ApprovalForms::Both) {
            return;
        }
        let message = format!("a {} was declined, because this client cannot answer it", asked.kind.noun());
        let event = EventMsg::Warning(WarningEvent { message });
        self.send_event(None, &event, super::now_ms());
        let (thread, question) = (self.thread.clone(), asked.id.clone());
        drop(tokio::spawn(async move {
            // Another client may answer first.
            let _: Result<bool, _> = thread.answer(question, Answer::Declined).await;
        }));
    }

    /// The open requests to the client, oldest first.
    pub(crate) async fn pending(&self) -> Vec<PendingServerRequest> {
        let Ok(now) = self.thread.subscribe().await else { return Vec::new() };
        let turn = now.running.as_ref().map(TurnId::as_str).unwrap_or_default();
        let mut pending = Vec::new();
        for asked in &now.asked {
            for PutQuestion { number, wording } in self.questions.get(&asked.id).into_iter().flatten() {
                let traits = self.connection.client().map(Client::traits);
                let Some(request) = worded(traits, self.thread.id(), *wording, turn, asked, 0) else {
                    continue;
                };
                let params = serde_json::to_value(&request).unwrap_or_default();
                pending.push(PendingServerRequest {
                    id: RequestId::Integer(*number),
                    method: request.method().into(),
                    params,
                });
            }
        }
        pending
    }

    /// Passes on an answer. A client that does not understand one form of a question may still answer another.
    pub(crate) async fn answered(&mut self, number: i64, question: QuestionId, answer: Option<&str>) {
        if let Some(put) = self.questions.get_mut(&question) {
            let is_one_of_many = put.iter().any(|question| question.number != number);
            if answer.is_none() && is_one_of_many {
                put.retain(|question| question.number != number);
                return;
            }
        }
        let answer = answer.map_or(Answer::Declined, read_answer);
        // Another client may have answered first.
        let _: Result<bool, _> = self.thread.answer(question, answer).await;
    }

    /// Withdraws a question that no longer needs an answer.
    pub(crate) fn resolve(&mut self, question: &QuestionId, at_ms: i64) {
        for PutQuestion { number, wording } in self.questions.remove(question).unwrap_or_default() {
            self.connection.forget(number);
            if wording == QuestionDialect::V2 {
                let (thread_id, request_id) = (self.thread.id().to_string(), RequestId::Integer(number));
                let resolved = ServerRequestResolved { thread_id, request_id };
                self.notify(&ServerNotification::ServerRequestResolved(resolved), at_ms);
            }
        }
    }
}

/// The dialects of the requests in some forms.
pub(super) fn dialects(forms: Option<ApprovalForms>) -> &'static [QuestionDialect] {
    match forms {
        None => &[],
        Some(ApprovalForms::V1) => &[QuestionDialect::V1],
        Some(ApprovalForms::V2) => &[QuestionDialect::V2],
        Some(ApprovalForms::Both) => &[QuestionDialect::V1, QuestionDialect::V2],
    }
}

/// A question as a request of a dialect; `None` if its clients cannot answer it.
pub(super) fn worded(
    client: Option<ClientTraits>,
    thread: ThreadId,
    wording: QuestionDialect,
    turn: &str,
    asked: &Question,
    at_ms: i64,
) -> Option<ServerRequest> {
    // A client that has chosen both dialects reads all their requests.
    if client.is_some_and(|client| client.dialect == Some(Dialect::Both))
        && let QuestionKind::Elicitation(elicitation) = &asked.kind
    {
        let turn = if wording == QuestionDialect::V1 { "" } else { turn };
        return Some(codex_dialects::v2::elicitation(thread, turn, elicitation));
    }
    let release = client.map(|client| client.release).unwrap_or_default();
    match wording {
        QuestionDialect::V1 => codex_dialects::v1::question(thread, asked),
        QuestionDialect::V2 => codex_dialects::v2::question(release, thread, turn, asked, at_ms),
    }
}

/// Decodes an answer of any form.
fn read_answer(answer: &str) -> Answer {
    if let Ok(granted) = serde_json::from_str::<PermissionsRequestApprovalResponse>(answer) {
        let network = granted.permissions.network.as_ref().and_then(|network| network.enabled).unwrap_or(false);
        let permissions = Permissions { write: written(&granted.permissions), network };
        let scope = match granted.scope {
            PermissionGrantScope::Turn => GrantScope::Turn,
            PermissionGrantScope::Session => GrantScope::Session,
        };
        return Answer::Granted { permissions, scope };
    }
    let Ok(given) = serde_json::from_str::<McpElicitationResponse>(answer) else {
        return read_decision(answer).map_or(Answer::Declined, Answer::Decision);
    };
    let kept = given.meta.as_ref().and_then(|meta| meta["persist"].as_str());
    match (given.action, kept) {
        (ElicitationDecision::Accept, Some("session")) => Answer::Decision(ReviewDecision::ApprovedForSession),
        (ElicitationDecision::Accept, Some("always")) => {
            let proposed_execpolicy_amendment = Vec::new();
            Answer::Decision(ReviewDecision::ApprovedExecpolicyAmendment { proposed_execpolicy_amendment })
        }
        (action, _) => Answer::Given { action, content: given.content },
    }
}

/// The folders that may be written, in either form.
fn written(granted: &RequestPermissionProfile) -> Vec<PathBuf> {
    let files = granted.file_system.as_ref();
    let plain = files.and_then(|files| files.write.as_ref()).into_iter().flatten().cloned();
    let entries = files.and_then(|files| files.entries.as_ref()).into_iter().flatten();
    let listed = entries.filter(|entry| entry["access"] == "write" && entry["path"]["type"] == "path");
    plain.chain(listed.filter_map(|entry| entry["path"]["path"].as_str()).map(PathBuf::from)).collect()
}

/// Decodes a decision. Anything else is not an approval.
fn read_decision(answer: &str) -> Option<ReviewDecision> {
    let decided = serde_json::from_str::<ApprovalResponse>(answer).map(|answer| answer.decision);
    decided.or_else(|_| serde_json::from_str(answer)).ok()
}
