//! One request of the client for a call, from its first message to its answer.

use std::sync::Arc;

use codex_lines::Outbox;
use codex_log::Question;
use codex_wire::command_line::display;
use codex_wire::event::EventMsg;
use codex_wire::ids::{RequestId, ThreadId};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::OwnedSemaphorePermit;

use super::message;
use super::session::Session;
use super::stateless::{self, Envelope};
use super::tool::ToolResult;

/// The longest message of a progress notification, in characters.
const PROGRESS_CHARS: usize = 200;

/// One request for a call.
#[derive(Debug)]
pub(super) struct Exchange {
    pub(super) session: Arc<Session>,
    outbox: Arc<Outbox>,
    pub(super) id: RequestId,
    /// The token of progress notifications, if the client wants them, and how many there were.
    progress: Option<(Value, u64)>,
    pub(super) era: Era,
    /// Lines that wait for room.
    outgoing: Vec<u8>,
    /// Whether the session still knows the id. Afterwards it may be that of another call.
    is_known: bool,
    /// Its place among the calls that run. A call that finds none is refused, unless its turn runs already.
    _running: Option<OwnedSemaphorePermit>,
}

/// The kind of protocol version of a request.
#[derive(Debug, Clone)]
pub(super) enum Era {
    /// With a handshake: questions are requests to the client.
    Handshake,
    /// Without: questions are results, and this digest names the call in them.
    Stateless { envelope: Envelope, call: String },
}

#[derive(Serialize)]
struct EventParams<'a> {
    #[serde(rename = "_meta")]
    meta: EventMeta<'a>,
    id: &'a str,
    msg: &'a EventMsg,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct EventMeta<'a> {
    request_id: &'a RequestId,
    thread_id: ThreadId,
}

impl Exchange {
    /// A request whose id the session has noted.
    pub(super) fn new(
        session: Arc<Session>,
        outbox: Arc<Outbox>,
        (id, progress): (RequestId, Option<Value>),
        era: Era,
        running: Option<OwnedSemaphorePermit>,
    ) -> Self {
        let progress = progress.map(|token| (token, 0));
        Self { session, outbox, id, progress, era, outgoing: Vec::new(), is_known: true, _running: running }
    }

    /// Whether the client can be asked this question.
    pub(super) fn can_ask(&self, question: &Question) -> bool {
        let elicits = match &self.era {
            Era::Handshake => self.session.elicits(),
            Era::Stateless { envelope, .. } => envelope.elicits,
        };
        elicits.takes(question)
    }

    /// Whether messages wait for room.
    pub(super) fn has_outgoing(&self) -> bool {
        !self.outgoing.is_empty()
    }

    /// Sends the messages that wait, when there is room for them. Cancelling it loses nothing.
    pub(super) async fn flush(&mut self) {
        if self.has_outgoing() {
            let room = self.outbox.room(self.outgoing.len()).await;
            self.outbox.send_notification(std::mem::take(&mut self.outgoing), room);
        }
    }

    /// Queues an event of the thread, and the progress that it means.
    pub(super) fn add_event(&mut self, thread: ThreadId, id: &str, msg: &EventMsg) {
        let meta = EventMeta { request_id: &self.id, thread_id: thread };
        message::add_notification(&mut self.outgoing, "codex/event", EventParams { meta, id, msg });
        let Some((token, count)) = &mut self.progress else { return };
        let Some(message) = progress(msg) else { return };
        *count += 1;
        let params = json!({"progressToken": token, "progress": count, "message": message});
        message::add_notification(&mut self.outgoing, "notifications/progress", params);
    }

    /// Queues a request to the client.
    pub(super) fn add_request(&mut self, number: i64, method: &str, params: Value) {
        self.outgoing.extend(message::request(number, method, params));
    }

    /// Queues a notification.
    pub(super) fn add_notification(&mut self, method: &str, params: Value) {
        message::add_notification(&mut self.outgoing, method, params);
    }

    /// Answers with the result of the call.
    pub(super) async fn finish(self, result: &ToolResult) {
        let result = result.to_json();
        let result = match &self.era {
            Era::Handshake => result,
            Era::Stateless { .. } => stateless::complete(result),
        };
        self.answer(result).await;
    }

    /// Answers, after the messages that wait.
    pub(super) async fn answer(mut self, result: Value) {
        self.flush().await;
        // Before the answer, because the client may use the id again after it.
        self.forget();
        self.outbox.send_answer(message::answer(&self.id, result)).await;
    }

    fn forget(&mut self) {
        if std::mem::take(&mut self.is_known) {
            self.session.end_call(&self.id);
        }
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.forget();
    }
}

/// The events that are shown to a person while the call runs.
fn progress(msg: &EventMsg) -> Option<String> {
    let message = match msg {
        EventMsg::TaskStarted(_) => "Started".to_owned(),
        EventMsg::ExecCommandBegin(begun) => format!("Running {}", display(&begun.command)),
        EventMsg::PatchApplyBegin(begun) => format!("Changing {} files", begun.changes.len()),
        EventMsg::WebSearchBegin(_) => "Searching the web".to_owned(),
        EventMsg::McpToolCallBegin(begun) => format!("Calling {}", begun.invocation.tool),
        EventMsg::AgentMessage(said) => said.message.to_string(),
        _ => return None,
    };
    Some(message.chars().take(PROGRESS_CHARS).collect())
}
