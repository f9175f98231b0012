//! One call of a tool: a turn of a thread, followed to its end.

use std::collections::HashMap;
use std::sync::Arc;

use codex_dialects::eq::{self, Vocabulary};
use codex_lines::Outbox;
use codex_log::settings::SettingsChange;
use codex_log::{Answer, Body, Event, Outcome, Question, QuestionId, TurnId};
use codex_thread::{
    ClientProfile, Closed, ExplicitOverrides, Feed, InitialHistory, OpenQuestions, StartError, StartThread,
    StartedThread, Subscription, Thread, ThreadHost, TurnStart,
};
use codex_wire::command_line::display;
use codex_wire::decision::ReviewDecision;
use codex_wire::event::EventMsg;
use codex_wire::ids::{RequestId, ThreadId};
use codex_wire::input::UserInput;
use serde::Serialize;
use serde_json::{Map, Value, json};
use tokio::sync::oneshot;

use super::elicitation::{self, Origin};
use super::message;
use super::session::Session;
use super::tool::{ToolCall, ToolResult};

/// How many idle threads stay loaded. Another one is unloaded, and loaded again by its next call.
const MOST_LOADED: usize = 32;
/// The longest message of a progress notification, in characters.
const PROGRESS_CHARS: usize = 200;

/// One call.
pub(super) struct Call {
    session: Arc<Session>,
    outbox: Arc<Outbox>,
    id: RequestId,
    /// The token of progress notifications, if the client wants them, and how many there were.
    progress: Option<(Value, u64)>,
    /// The questions that this call has asked, with the ids of their requests.
    asked: HashMap<QuestionId, i64>,
    /// Lines that wait for room.
    outgoing: Vec<u8>,
}

/// A turn that is followed.
struct Followed {
    thread: Thread,
    turn: TurnId,
    feed: Feed,
    vocabulary: Vocabulary,
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

impl Call {
    pub(super) fn new(session: Arc<Session>, outbox: Arc<Outbox>, id: RequestId, progress: Option<Value>) -> Self {
        let progress = progress.map(|token| (token, 0));
        Self { session, outbox, id, progress, asked: HashMap::new(), outgoing: Vec::new() }
    }

    /// Runs the call and answers it, unless the client cancels it.
    pub(super) async fn run(mut self, call: ToolCall, mut cancelled: oneshot::Receiver<()>) {
        let begun = match call {
            ToolCall::Start { start, prompt } => self.start(*start, prompt).await,
            ToolCall::Reply { thread, prompt } => self.reply(thread, prompt).await,
        };
        let result = match begun {
            Ok(followed) => self.follow(followed, &mut cancelled).await,
            Err(result) => Some(result),
        };
        let threads = Arc::clone(&self.session.server.threads);
        match result {
            Some(result) => self.finish(&result).await,
            None => self.flush().await,
        }
        unload_idle(&*threads).await;
    }

    /// Answers the call.
    pub(super) async fn finish(mut self, result: &ToolResult) {
        self.flush().await;
        // Before the answer, because the client may use the id again after it.
        self.session.end_call(&self.id);
        self.outbox.send_answer(message::answer(&self.id, result.to_json())).await;
    }

    /// Starts a thread and its first turn, whose id is that of the request, as in 0.77.
    async fn start(&mut self, start: StartThread, prompt: String) -> Result<Followed, ToolResult> {
        let failed = |error: &StartError| {
            ToolResult::error(None, format!("Failed to start Codex session: {}", with_cause(error)))
        };
        let started = self.session.server.threads.start(start).await.map_err(|error| failed(&error))?;
        let StartedThread { thread, feed, shows_raw_reasoning } = started;
        let turn = self.say(&thread, TurnId::new(self.id.to_string()), prompt).await?;
        Ok(Followed { thread, turn, feed, vocabulary: vocabulary(shows_raw_reasoning) })
    }

    /// Starts another turn of a thread, which is loaded first if necessary.
    async fn reply(&mut self, id: ThreadId, prompt: String) -> Result<Followed, ToolResult> {
        let threads = Arc::clone(&self.session.server.threads);
        // Nobody unloads it before it has a subscriber.
        let _opening = threads.turn_to_open(id).await;
        let (thread, shows_raw_reasoning) = if let Some(thread) = threads.get(id) {
            (thread, false)
        } else {
            let started = threads.start(resumption(id)).await.map_err(|error| {
                ToolResult::error(Some(id), format!("Session not found for thread_id: {id}: {}", with_cause(&error)))
            })?;
            (started.thread, started.shows_raw_reasoning)
        };
        let ended = |Closed| ToolResult::error(Some(id), Closed.to_string());
        let Subscription { feed, running, asked, .. } = thread.subscribe().await.map_err(ended)?;
        let turn = self.say(&thread, TurnId::new(ThreadId::fresh().to_string()), prompt).await?;
        let mut followed = Followed { thread, turn, feed, vocabulary: vocabulary(shows_raw_reasoning) };
        let running = running.as_ref().map(TurnId::as_str).unwrap_or_default();
        for question in &asked {
            self.ask(&mut followed, running, question).await;
        }
        Ok(followed)
    }

    /// Sends the prompt, and returns the turn that takes it.
    async fn say(&self, thread: &Thread, turn: TurnId, prompt: String) -> Result<TurnId, ToolResult> {
        let content = vec![UserInput::Text { text: prompt, text_elements: Vec::new() }];
        match thread.say(turn.clone(), content, SettingsChange::default()).await {
            Ok(TurnStart::Started) => Ok(turn),
            Ok(TurnStart::Joined(turn) | TurnStart::Known(turn)) => Ok(turn),
            Err(Closed) => Err(ToolResult::error(Some(thread.id()), Closed.to_string())),
        }
    }

    /// Sends the events of the turn until it has ended. Returns its result, or `None` if the client has cancelled it.
    async fn follow(&mut self, mut followed: Followed, cancelled: &mut oneshot::Receiver<()>) -> Option<ToolResult> {
        let mut is_cancelled = false;
        loop {
            let has_outgoing = !self.outgoing.is_empty();
            tokio::select! {
                room = self.outbox.room(self.outgoing.len()), if has_outgoing => {
                    self.outbox.send_notification(std::mem::take(&mut self.outgoing), room);
                }
                event = followed.feed.next(), if !has_outgoing => {
                    let thread = followed.thread.id();
                    let Some(event) = event else {
                        return (!is_cancelled).then(|| ToolResult::error(Some(thread), Closed.to_string()));
                    };
                    self.take(&mut followed, &event).await;
                    if let Body::TurnEnded(outcome) = &event.body && event.turn.as_ref() == Some(&followed.turn) {
                        return (!is_cancelled).then(|| result(thread, outcome));
                    }
                }
                Ok(()) = &mut *cancelled, if !is_cancelled => {
                    is_cancelled = true;
                    let running = followed.thread.running().await;
                    if running.is_ok_and(|running| running.as_ref() == Some(&followed.turn)) {
                        // It may have ended in the same moment.
                        let _: Result<bool, Closed> = followed.thread.interrupt().await;
                    }
                }
            }
        }
    }

    /// Queues the messages of an event.
    async fn take(&mut self, followed: &mut Followed, event: &Event) {
        let mut messages = Vec::new();
        eq::project(event, followed.vocabulary, &mut messages);
        let id = match (&event.turn, &event.body) {
            (_, Body::ThreadStarted(_)) | (None, _) => "",
            (Some(turn), _) => turn.as_str(),
        };
        for msg in &messages {
            // 0.77 gives this id to the items that precede the first turn.
            let id = if id.is_empty() && matches!(msg, EventMsg::RawResponseItem(_)) { "auto-compact-0" } else { id };
            let meta = EventMeta { request_id: &self.id, thread_id: event.thread };
            message::add_notification(&mut self.outgoing, "codex/event", EventParams { meta, id, msg });
            self.tell_progress(msg);
        }
        match &event.body {
            Body::Asked(question) => self.ask(followed, id, question).await,
            Body::Answered { question, .. } => self.withdraw(question),
            Body::TurnEnded(_) => self.withdraw_all(),
            _ => {}
        }
    }

    /// Asks the client; one that cannot answer does not keep the turn waiting.
    async fn ask(&mut self, followed: &mut Followed, turn: &str, question: &Question) {
        let thread = &followed.thread;
        if !self.session.can_elicit() {
            let no = Answer::Decision(ReviewDecision::Denied);
            let _: Result<bool, Closed> = thread.answer(question.id.clone(), no).await;
            return;
        }
        if let Some(number) = self.session.ask(thread, &question.id) {
            let origin = Origin { thread: thread.id(), turn, call: &self.id };
            let request = message::request(number, "elicitation/create", elicitation::params(origin, question));
            self.outgoing.extend(request);
            self.asked.insert(question.id.clone(), number);
        }
    }

    /// Tells the client that a question needs no answer any more, if it has not answered it.
    fn withdraw(&mut self, question: &QuestionId) {
        if let Some(number) = self.asked.remove(question)
            && self.session.withdraw(number)
        {
            let params = json!({"requestId": number, "reason": "the question needs no answer any more"});
            message::add_notification(&mut self.outgoing, "notifications/cancelled", params);
        }
    }

    fn withdraw_all(&mut self) {
        let open: Vec<QuestionId> = self.asked.keys().cloned().collect();
        for question in &open {
            self.withdraw(question);
        }
    }

    /// Queues a progress notification for a message that is one.
    fn tell_progress(&mut self, msg: &EventMsg) {
        let Some((token, count)) = &mut self.progress else { return };
        let Some(message) = progress(msg) else { return };
        *count += 1;
        let params = json!({"progressToken": token, "progress": count, "message": message});
        message::add_notification(&mut self.outgoing, "notifications/progress", params);
    }

    async fn flush(&mut self) {
        if !self.outgoing.is_empty() {
            let room = self.outbox.room(self.outgoing.len()).await;
            self.outbox.send_notification(std::mem::take(&mut self.outgoing), room);
        }
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        self.session.end_call(&self.id);
        for number in self.asked.values() {
            self.session.withdraw(*number);
        }
    }
}

/// The messages of 0.77.
fn vocabulary(raw_reasoning: bool) -> Vocabulary {
    Vocabulary { items: true, raw_reasoning, raw_items: true }
}

fn resumption(thread: ThreadId) -> StartThread {
    StartThread {
        cwd: None,
        overrides: Map::new(),
        base_instructions: None,
        originator: None,
        profile: ClientProfile::V077,
        initial_history: InitialHistory::Resumed { thread, explicit: ExplicitOverrides::default() },
    }
}

/// The result of a turn.
fn result(thread: ThreadId, outcome: &Outcome) -> ToolResult {
    match outcome {
        Outcome::Completed { last_message, .. } => {
            let text = last_message.as_ref().map(ToString::to_string).unwrap_or_default();
            ToolResult { thread: Some(thread), text, is_error: false }
        }
        Outcome::Aborted(_) => ToolResult::error(Some(thread), "The turn was interrupted"),
        Outcome::Failed(failure) => {
            let hint = failure.hint.map(|hint| format!("\n{hint}")).unwrap_or_default();
            ToolResult::error(Some(thread), format!("{}{hint}", failure.message))
        }
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

fn with_cause(error: &StartError) -> String {
    let cause = std::error::Error::source(error).map(|cause| format!(": {cause}")).unwrap_or_default();
    format!("{error}{cause}")
}

/// Unloads the oldest idle threads until few are left.
async fn unload_idle(threads: &dyn ThreadHost) {
    let loaded = threads.loaded();
    let mut count = loaded.len();
    for id in loaded.iter().map(Thread::id) {
        if count <= MOST_LOADED {
            break;
        }
        count -= usize::from(threads.unload(id, OpenQuestions::Wait).await);
    }
}
