//! One call of a tool: a turn of a thread, followed to its end.

use std::collections::HashMap;
use std::sync::Arc;

use codex_dialects::eq::{self, Vocabulary};
use codex_log::settings::SettingsChange;
use codex_log::{Answer, Body, Event, Outcome, Question, QuestionId, TurnId};
use codex_thread::{
    Children, ClientAdditions, ClientProfile, Closed, ExplicitOverrides, Feed, InitialHistory, OpenQuestions,
    StartError, StartThread, StartedThread, Subscription, Thread, ThreadHost, TurnStart,
};
use codex_wire::decision::ReviewDecision;
use codex_wire::event::EventMsg;
use codex_wire::ids::ThreadId;
use codex_wire::input::UserInput;
use serde_json::{Map, Value, json};
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::elicitation::{self, Origin};
use super::exchange::{Era, Exchange};
use super::parked::Retry;
use super::sealed::LIFETIME;
use super::session::Session;
use super::stateless;
use super::tool::{ToolCall, ToolResult};

/// The number of idle threads that stay loaded. Others are unloaded, and loaded again by their next call.
const MOST_LOADED: usize = 32;

/// A call, which is a turn that is followed.
struct Call {
    thread: Thread,
    turn: TurnId,
    feed: Feed,
    children: Children,
    vocabulary: Vocabulary,
    questions: Questions,
}

/// The questions of a turn that the client has not answered.
enum Questions {
    /// Asked with requests, which have these ids.
    Requests { session: Arc<Session>, ids: HashMap<(ThreadId, QuestionId), i64> },
    /// To be asked with the result, each with the parameters of its request.
    Results(Vec<OpenQuestion>),
}

/// A question that is asked with the result.
struct OpenQuestion {
    thread: Thread,
    id: QuestionId,
    /// Its name in the result.
    key: String,
    params: Value,
}

/// The reason why a call is no longer followed.
enum Step {
    Ended(ToolResult),
    /// The client wants no answer any more.
    Cancelled,
    /// The client has to answer before the turn continues.
    Asks,
}

/// Runs a call and answers it, unless the client cancels it.
pub(super) async fn run(call: ToolCall, mut exchange: Exchange, mut cancelled: oneshot::Receiver<()>) {
    let threads = Arc::clone(&exchange.session.shared.server.threads);
    let begun = match call {
        ToolCall::Start { start, prompt } => Call::start(*start, prompt, &exchange).await,
        ToolCall::Reply { thread, prompt } => Call::reply(thread, prompt, &mut exchange).await,
    };
    match begun {
        Ok(mut call) => {
            while let Some(retry) = call.follow_and_answer(exchange, cancelled).await {
                (exchange, cancelled) = (retry.exchange, retry.cancelled);
                call.take_responses(&retry.responses).await;
            }
        }
        Err(result) => exchange.finish(&result).await,
    }
    unload_idle(&*threads).await;
}

impl Call {
    /// Starts a thread and its first turn, whose id is that of the request, as in 0.77.
    async fn start(start: StartThread, prompt: String, exchange: &Exchange) -> Result<Self, ToolResult> {
        let failed = |error: &StartError| {
            ToolResult::error(None, format!("Failed to start Codex session: {}", with_cause(error)))
        };
        let started = exchange.session.shared.server.threads.start(start).await.map_err(|error| failed(&error))?;
        let StartedThread { thread, feed, shows_raw_reasoning } = started;
        let turn = say(&thread, TurnId::new(exchange.id.to_string()), prompt).await?;
        let (vocabulary, questions) = (vocabulary(shows_raw_reasoning), Questions::of(exchange));
        Ok(Self { thread, turn, feed, children: children(exchange), vocabulary, questions })
    }

    /// Starts another turn of a thread, which is loaded first if necessary.
    async fn reply(id: ThreadId, prompt: String, exchange: &mut Exchange) -> Result<Self, ToolResult> {
        let threads = Arc::clone(&exchange.session.shared.server.threads);
        // It is not unloaded before it has a subscriber.
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
        let turn = say(&thread, TurnId::new(ThreadId::fresh().to_string()), prompt).await?;
        let (vocabulary, questions) = (vocabulary(shows_raw_reasoning), Questions::of(exchange));
        let mut call = Self { thread, turn, feed, children: children(exchange), vocabulary, questions };
        let running = running.as_ref().map(TurnId::as_str).unwrap_or_default();
        for question in &asked {
            call.ask(exchange, None, running, question).await;
        }
        Ok(call)
    }

    /// Follows the turn and answers the request. If the answer asks the client for something, waits for the request
    /// that brings it.
    async fn follow_and_answer(&mut self, mut exchange: Exchange, cancelled: oneshot::Receiver<()>) -> Option<Retry> {
        match self.follow(&mut exchange, cancelled).await {
            Step::Ended(result) => exchange.finish(&result).await,
            Step::Cancelled => exchange.flush().await,
            Step::Asks => return self.park(exchange).await,
        }
        None
    }

    /// Sends the events of the turn until it has ended, or until the client has to be asked with the result.
    async fn follow(&mut self, exchange: &mut Exchange, mut cancelled: oneshot::Receiver<()>) -> Step {
        let mut is_cancelled = false;
        loop {
            if self.questions.wait_for_result() && !is_cancelled {
                return Step::Asks;
            }
            let has_outgoing = exchange.has_outgoing();
            tokio::select! {
                () = exchange.flush(), if has_outgoing => {}
                event = self.feed.next(), if !has_outgoing => {
                    let Some(event) = event else {
                        return ended(is_cancelled, || ToolResult::error(Some(self.thread.id()), Closed.to_string()));
                    };
                    self.take(exchange, &event).await;
                    if let Body::TurnEnded(outcome) = &event.body && event.turn.as_ref() == Some(&self.turn) {
                        return ended(is_cancelled, || result(self.thread.id(), outcome));
                    }
                }
                (thread, event) = self.children.next(), if !has_outgoing => {
                    self.take_child(exchange, thread, &event).await;
                }
                Ok(()) = &mut cancelled, if !is_cancelled => {
                    is_cancelled = true;
                    self.interrupt().await;
                }
            }
        }
    }

    /// Stops the turn, if it is still the one that runs.
    async fn interrupt(&self) {
        let running = self.thread.running().await;
        if running.is_ok_and(|running| running.as_ref() == Some(&self.turn)) {
            // It may have ended at the same moment.
            let _: Result<bool, Closed> = self.thread.interrupt().await;
        }
    }

    /// Queues the messages of an event.
    async fn take(&mut self, exchange: &mut Exchange, event: &Event) {
        let mut messages = Vec::new();
        eq::project(event, self.vocabulary, &mut messages);
        let id = match (&event.turn, &event.body) {
            (_, Body::ThreadStarted(_)) | (None, _) => "",
            (Some(turn), _) => turn.as_str(),
        };
        for msg in &messages {
            // 0.77 uses this id for the items that precede the first turn.
            let id = if id.is_empty() && matches!(msg, EventMsg::RawResponseItem(_)) { "auto-compact-0" } else { id };
            exchange.add_event(event.thread, id, msg);
        }
        match &event.body {
            Body::Asked(question) => self.ask(exchange, None, id, question).await,
            Body::Answered { question, .. } => self.questions.withdraw(exchange, self.thread.id(), question),
            Body::TurnEnded(_) => self.questions.withdraw_all(exchange),
            _ => self.children.follow(event).await,
        }
    }

    /// Asks the questions of a child agent too.
    async fn take_child(&mut self, exchange: &mut Exchange, child: Thread, event: &Event) {
        let turn = event.turn.as_ref().map(TurnId::as_str).unwrap_or_default();
        match &event.body {
            Body::Asked(question) => self.ask(exchange, Some(child), turn, question).await,
            Body::Answered { question, .. } => self.questions.withdraw(exchange, child.id(), question),
            _ => self.children.follow(event).await,
        }
    }

    /// Asks the client; a client that cannot answer does not keep the turn waiting.
    async fn ask(&mut self, exchange: &mut Exchange, child: Option<Thread>, turn: &str, question: &Question) {
        let key = match &child {
            Some(child) => format!("{}:{}", child.id(), question.id),
            None => question.id.to_string(),
        };
        let thread = child.unwrap_or_else(|| self.thread.clone());
        if !exchange.can_ask(question) {
            return refuse(&thread, &question.id).await;
        }
        let origin = Origin { thread: thread.id(), turn, call: &exchange.id };
        let params = elicitation::params(origin, question);
        match &mut self.questions {
            Questions::Requests { session, ids } => {
                if let Some(number) = session.ask(&thread, &question.id) {
                    exchange.add_request(number, "elicitation/create", params);
                    ids.insert((thread.id(), question.id.clone()), number);
                }
            }
            Questions::Results(open) => open.push(OpenQuestion { thread, id: question.id.clone(), key, params }),
        }
    }

    /// Answers the request with the open questions, and waits for the one that answers them. If none comes, the turn is
    /// interrupted, because nobody would learn its result.
    async fn park(&mut self, exchange: Exchange) -> Option<Retry> {
        let Questions::Results(open) = &self.questions else { return None };
        let Era::Stateless { call, .. } = exchange.era.clone() else { return None };
        let session = Arc::clone(&exchange.session);
        let keys = open.iter().map(|asked| asked.key.clone());
        let Some(mut place) = session.shared.parked.park(self.thread.id(), self.turn.as_str(), keys, call) else {
            let why = "Too many calls wait for an answer of their client; the turn was interrupted";
            self.interrupt().await;
            exchange.finish(&ToolResult::error(Some(self.thread.id()), why)).await;
            return None;
        };
        let request = |asked: &OpenQuestion| json!({"method": "elicitation/create", "params": asked.params});
        let requests = open.iter().map(|asked| (asked.key.clone(), request(asked)));
        exchange.answer(stateless::input_required(requests.collect(), place.state.clone())).await;
        let retried = timeout(LIFETIME, &mut place.retried).await;
        drop(place);
        if let Ok(Ok(retry)) = retried {
            return Some(retry);
        }
        self.interrupt().await;
        None
    }

    /// Passes the answers of a retried call on. A question without one is asked again.
    async fn take_responses(&mut self, responses: &Map<String, Value>) {
        let Questions::Results(open) = &mut self.questions else { return };
        let (answered, unanswered): (Vec<_>, Vec<_>) =
            std::mem::take(open).into_iter().partition(|asked| responses.contains_key(&asked.key));
        *open = unanswered;
        for OpenQuestion { thread, id, key, .. } in answered {
            let answer = elicitation::read_answer(responses.get(&key));
            // Somebody else may have answered first.
            let _: Result<bool, Closed> = thread.answer(id, answer).await;
        }
    }
}

impl Questions {
    fn of(exchange: &Exchange) -> Self {
        match &exchange.era {
            Era::Handshake => Self::Requests { session: Arc::clone(&exchange.session), ids: HashMap::new() },
            Era::Stateless { .. } => Self::Results(Vec::new()),
        }
    }

    /// Whether the client has to be asked with the result.
    fn wait_for_result(&self) -> bool {
        matches!(self, Self::Results(open) if !open.is_empty())
    }

    /// Notes that a question needs no answer any more, and tells the client if it was asked and has not answered.
    fn withdraw(&mut self, exchange: &mut Exchange, thread: ThreadId, question: &QuestionId) {
        match self {
            Self::Requests { session, ids } => {
                if let Some(number) = ids.remove(&(thread, question.clone()))
                    && session.withdraw(number)
                {
                    let params = json!({"requestId": number, "reason": "the question needs no answer any more"});
                    exchange.add_notification("notifications/cancelled", params);
                }
            }
            Self::Results(open) => open.retain(|asked| asked.thread.id() != thread || asked.id != *question),
        }
    }

    fn withdraw_all(&mut self, exchange: &mut Exchange) {
        let open: Vec<(ThreadId, QuestionId)> = match self {
            Self::Requests { ids, .. } => ids.keys().cloned().collect(),
            Self::Results(open) => open.iter().map(|asked| (asked.thread.id(), asked.id.clone())).collect(),
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

async fn refuse(thread: &Thread, question: &QuestionId) {
    let no = Answer::Decision(ReviewDecision::Denied);
    let _: Result<bool, Closed> = thread.answer(question.clone(), no).await;
}

/// The children of the thread of a call.
fn children(exchange: &Exchange) -> Children {
    let threads: Arc<dyn ThreadHost> = Arc::clone(&exchange.session.shared.server.threads);
    Children::new(threads)
}

fn ended(is_cancelled: bool, result: impl FnOnce() -> ToolResult) -> Step {
    if is_cancelled { Step::Cancelled } else { Step::Ended(result()) }
}

/// Sends the prompt, and returns the turn that accepts it.
async fn say(thread: &Thread, turn: TurnId, prompt: String) -> Result<TurnId, ToolResult> {
    let content = vec![UserInput::Text { text: prompt, text_elements: Vec::new() }];
    match thread.say(turn.clone(), content, SettingsChange::default()).await {
        Ok(TurnStart::Started) => Ok(turn),
        Ok(TurnStart::Joined(turn) | TurnStart::Known(turn)) => Ok(turn),
        Err(Closed) => Err(ToolResult::error(Some(thread.id()), Closed.to_string())),
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
        additions: ClientAdditions::default(),
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

fn with_cause(error: &StartError) -> String {
    let cause = std::error::Error::source(error).map(|cause| format!(": {cause}")).unwrap_or_default();
    format!("{error}{cause}")
}

/// Unloads the oldest idle threads until few enough are left.
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
