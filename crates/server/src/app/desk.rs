//! One thread in front of one client: its requests in order, its log as notifications, its questions.
//!
//! One task does all three, so an answer always comes before the news it causes.

use std::collections::HashMap;
use std::sync::Arc;

use codex_engine::eq::{self, Vocabulary};
use codex_engine::log::{Approval, Body, Event, ItemId, Subject, TurnId};
use codex_engine::{Feed, Thread};
use codex_wire::decision::ReviewDecision;
use codex_wire::event::EventMsg;
use codex_wire::ids::{RequestId, ThreadId};
use codex_wire::methods::ClientRequest;
use codex_wire::rpc::Notification;
use codex_wire::v2::item::CommandAction;
use codex_wire::v2::notification::{ServerNotification, ServerRequestResolved, ThreadNamed};
use codex_wire::v2::request::{CommandApprovalParams, FileChangeApprovalParams};
use serde::Serialize;
use serde_json::json;
use tokio::sync::mpsc;

use super::connection::{Asked, Connection, Unanswered};
use super::outbox::add_line;
use super::v2::item::command_line;
use super::v2::project::{Projector, Wishes};
use super::vintage::Vintage;

/// How many requests about a thread may wait; more are refused.
pub(crate) const WAITING_TASKS: usize = 64;
/// How many bytes of news are gathered before they are sent, while more is at hand.
const GATHERED_BYTES: usize = 32 * 1024;

/// What a desk is given to do.
#[derive(Debug)]
pub(crate) enum Task {
    /// A request.
    Serve(Unanswered, ClientRequest),
    /// An answer of the client to a question; none if it was no answer.
    Answered {
        /// The call that was asked about.
        call: String,
        /// The answer as JSON.
        answer: Option<String>,
    },
}

/// One thread in front of one client.
pub(crate) struct Desk {
    pub(crate) connection: Arc<Connection>,
    pub(crate) thread: Thread,
    feed: Feed,
    projector: Projector,
    vocabulary: Option<Vocabulary>,
    /// The questions that the client was asked, by call.
    questions: HashMap<ItemId, i64>,
    /// Whether the client listens no more, and whether the thread ends with that.
    leaving: Option<Leaving>,
    buffer: Vec<u8>,
    notifications: Vec<ServerNotification>,
    events: Vec<EventMsg>,
}

/// What becomes of a thread whose client listens no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leaving {
    /// It goes on.
    Alive,
    /// It ends: nobody else listens, and nothing runs.
    Unloaded,
}

/// An event of the queue in a notification.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct QueueEvent<'a> {
    id: &'a str,
    msg: &'a EventMsg,
    conversation_id: ThreadId,
    thread_id: ThreadId,
}

impl Desk {
    /// A desk that reads a thread's log from a feed.
    pub(crate) fn new(connection: Arc<Connection>, thread: Thread, feed: Feed, wishes: Wishes) -> Self {
        let vintage = connection.vintage();
        let vocabulary = Vocabulary { items: true, raw_reasoning: wishes.raw_reasoning, raw_items: wishes.raw_items };
        Self {
            projector: Projector::new(thread.id().to_string(), vintage, wishes),
            vocabulary: connection.client().is_none_or(|client| client.has_events).then_some(vocabulary),
            connection,
            thread,
            feed,
            questions: HashMap::new(),
            leaving: None,
            buffer: Vec::new(),
            notifications: Vec::new(),
            events: Vec::new(),
        }
    }

    /// Puts the questions that wait for an answer before the client.
    pub(crate) fn repeat(&mut self, running: Option<&TurnId>, asked: &[Arc<Approval>]) {
        let turn = running.map(TurnId::as_str).unwrap_or_default();
        for approval in asked {
            self.ask(turn, approval, 0);
        }
    }

    /// Puts what waits for an answer before the client once more.
    pub(crate) async fn ask_again(&mut self) {
        if let Ok(subscription) = self.thread.subscribe().await {
            self.repeat(subscription.running.as_ref(), &subscription.asked);
        }
    }

    /// Works until the connection or the thread ends.
    pub(crate) async fn run(mut self: Box<Self>, mut tasks: mpsc::Receiver<Task>) {
        let connection = Arc::clone(&self.connection);
        let mut is_staffed = true;
        while self.leaving.is_none() {
            // News that wait for room do not keep a request waiting, or a client could not stop what floods it.
            tokio::select! {
                biased;
                task = tasks.recv(), if is_staffed => match task {
                    // Boxed, so that a desk without work costs only what it waits with.
                    Some(task) => Box::pin(self.perform(task)).await,
                    None if connection.has_parted() => self.leaving = Some(Leaving::Alive),
                    None => is_staffed = false,
                },
                room = connection.outbox.room(self.buffer.len()), if !self.buffer.is_empty() => {
                    connection.outbox.send_news(std::mem::take(&mut self.buffer), room);
                }
                event = self.feed.next(), if self.buffer.is_empty() => match event {
                    Some(event) => self.gather(&event),
                    None => break,
                },
            }
        }
        // What came too late for the thread is answered all the same.
        tasks.close();
        while let Some(task) = tasks.recv().await {
            Box::pin(self.perform(task)).await;
        }
        if self.leaving == Some(Leaving::Unloaded) {
            self.thread.close().await;
        } else if self.leaving.is_none() {
            self.connection.remove_desk(self.thread.id());
        }
        let room = connection.outbox.room(self.buffer.len()).await;
        connection.outbox.send_news(std::mem::take(&mut self.buffer), room);
    }

    /// Lets the client listen no more. A thread that nobody else listens to and that does nothing is unloaded.
    pub(crate) async fn leave(&mut self) {
        let id = self.thread.id();
        self.connection.remove_desk(id);
        let is_alone = self.thread.listeners().await.is_ok_and(|count| count <= 1);
        let is_idle = matches!(self.thread.running().await, Ok(None));
        self.leaving = Some(if is_alone && is_idle { Leaving::Unloaded } else { Leaving::Alive });
        if self.leaving == Some(Leaving::Unloaded) {
            self.connection.host.loaded.remove(id);
            let closed = ThreadNamed { thread_id: id.to_string() };
            self.notify(&ServerNotification::ThreadClosed(closed), super::now_ms());
        }
    }

    async fn perform(&mut self, task: Task) {
        match task {
            Task::Serve(unanswered, request) => super::serve::serve(self, unanswered, request).await,
            Task::Answered { call, answer } => {
                let decision = answer.as_deref().and_then(read_decision).unwrap_or(ReviewDecision::Denied);
                // Somebody else may have answered first.
                let _: Result<bool, _> = self.thread.answer(call, decision).await;
            }
        }
    }

    /// Takes an event, and those behind it as long as they fit.
    fn gather(&mut self, event: &Event) {
        self.take(event);
        while self.buffer.len() < GATHERED_BYTES
            && let Some(event) = self.feed.try_next()
        {
            self.take(&event);
        }
        // A desk that waits keeps no room for what it has passed on.
        self.notifications = Vec::new();
        self.events = Vec::new();
    }

    fn take(&mut self, event: &Event) {
        if let Some(vocabulary) = self.vocabulary {
            self.take_events(event, vocabulary);
        }
        if let Body::ApprovalAnswered { item, .. } = &event.body {
            self.resolve(item.id(), event.at_ms);
        }
        let mut notifications = std::mem::take(&mut self.notifications);
        self.projector.project(event, &mut notifications);
        for notification in notifications.drain(..) {
            self.notify(&notification, event.at_ms);
        }
        self.notifications = notifications;
        match &event.body {
            Body::ApprovalAsked(approval) => {
                let turn = event.turn.as_ref().map(TurnId::as_str).unwrap_or_default();
                self.ask(turn, approval, event.at_ms);
            }
            Body::TurnEnded(_) => {
                let open: Vec<ItemId> = self.questions.keys().cloned().collect();
                for item in open {
                    self.resolve(&item, event.at_ms);
                }
            }
            _ => {}
        }
    }

    fn take_events(&mut self, event: &Event, vocabulary: Vocabulary) {
        // How a thread is set up is told by the answer to the request that opened it.
        if matches!(event.body, Body::ThreadStarted(_)) {
            return;
        }
        let mut events = std::mem::take(&mut self.events);
        eq::project(event, vocabulary, &mut events);
        let id = event.turn.as_ref().map(TurnId::as_str).unwrap_or_default();
        let mut method = String::from("codex/event/");
        let prefix = method.len();
        for msg in events.drain(..) {
            method.truncate(prefix);
            method.push_str(msg.kind());
            let (conversation_id, thread_id) = (event.thread, event.thread);
            let params = QueueEvent { id, msg: &msg, conversation_id, thread_id };
            self.send(&method, &params, event.at_ms);
        }
        self.events = events;
    }

    /// Queues a notification.
    pub(crate) fn notify(&mut self, notification: &ServerNotification, at_ms: i64) {
        self.send(notification.method(), notification, at_ms);
    }

    fn send(&mut self, method: &str, params: &impl Serialize, emitted_at_ms: i64) {
        let is_wanted = self.connection.client().is_none_or(|client| !client.is_unwanted(method));
        if is_wanted {
            add_line(&mut self.buffer, &Notification { method, params, emitted_at_ms });
        }
    }

    fn resolve(&mut self, item: &ItemId, at_ms: i64) {
        if let Some(number) = self.questions.remove(item) {
            self.connection.forget(number);
            let (thread_id, request_id) = (self.thread.id().to_string(), RequestId::Integer(number));
            let resolved = ServerRequestResolved { thread_id, request_id };
            self.notify(&ServerNotification::ServerRequestResolved(resolved), at_ms);
        }
    }

    /// Asks the client.
    fn ask(&mut self, turn: &str, approval: &Approval, at_ms: i64) {
        let (thread_id, turn_id) = (self.thread.id().to_string(), turn.to_owned());
        let item_id = approval.call.as_str().to_owned();
        let reason = approval.reason.clone();
        let outbox = &self.connection.outbox;
        let (number, line) = match &approval.subject {
            Subject::Command { argv, cwd, parsed, amendment } => outbox.request(
                "item/commandExecution/requestApproval",
                CommandApprovalParams {
                    kind: "command",
                    thread_id,
                    turn_id,
                    item_id,
                    started_at_ms: at_ms,
                    environment_id: "local",
                    reason,
                    command: command_line(argv),
                    cwd: cwd.clone(),
                    command_actions: parsed.iter().map(CommandAction::from).collect(),
                    proposed_execpolicy_amendment: amendment.clone(),
                    available_decisions: available_decisions(amendment.as_deref()),
                },
            ),
            Subject::Patch { grant_root, .. } => outbox.request(
                "item/fileChange/requestApproval",
                FileChangeApprovalParams {
                    thread_id,
                    turn_id,
                    item_id,
                    started_at_ms: at_ms,
                    reason: reason.filter(|_| self.connection.vintage() != Vintage::V0166),
                    grant_root: grant_root.clone().filter(|_| self.connection.vintage() != Vintage::V0166),
                },
            ),
        };
        self.connection.ask(number, Asked { thread: self.thread.id(), call: approval.call.as_str().to_owned() });
        self.questions.insert(approval.call.clone(), number);
        self.buffer.extend_from_slice(&line);
    }
}

fn available_decisions(amendment: Option<&[String]>) -> Vec<serde_json::Value> {
    let amendment = amendment.map(|words| json!({"acceptWithExecpolicyAmendment": {"execpolicy_amendment": words}}));
    std::iter::once(json!("accept")).chain(amendment).chain([json!("cancel")]).collect()
}

/// Reads a decision. What is none is no approval.
fn read_decision(answer: &str) -> Option<ReviewDecision> {
    #[derive(serde::Deserialize)]
    struct Decided {
        decision: ReviewDecision,
    }
    let decided = serde_json::from_str::<Decided>(answer).map(|decided| decided.decision);
    decided.or_else(|_| serde_json::from_str(answer)).ok()
}
