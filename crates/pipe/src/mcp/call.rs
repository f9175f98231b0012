//! One call of a tool: a turn of a thread, followed to its end.

use std::sync::Arc;

use codex_dialects::eq::Vocabulary;
use codex_log::settings::SettingsChange;
use codex_log::{Answer, Question, TurnId};
use codex_thread::{
    Children, ClientAdditions, ClientProfile, Closed, ExplicitOverrides, InitialHistory, OpenQuestions, StartError,
    StartThread, StartedThread, Subscription, Thread, ThreadHost, TurnStart,
};
use codex_wire::decision::ReviewDecision;
use codex_wire::ids::ThreadId;
use codex_wire::input::UserInput;
use serde_json::{Map, Value, json};
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::Server;
use super::asker::Asker;
use super::elicitation::{self, Origin};
use super::elsewhere::TurnElsewhere;
use super::exchange::{Era, Exchange};
use super::followed::{Change, Followed, Happening, TurnHere};
use super::parked::Retry;
use super::questions::{OpenQuestion, Questions};
use super::sealed::LIFETIME;
use super::stateless;
use super::tool::{ToolCall, ToolResult};

/// The number of idle threads that stay loaded. Others are unloaded, and loaded again by their next call.
const MOST_LOADED: usize = 32;

/// A call, which is a turn that is followed.
struct Call {
    followed: Followed,
    questions: Questions,
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
    fn of(followed: Followed, exchange: &Exchange) -> Self {
        Self { followed, questions: Questions::of(exchange) }
    }

    /// Starts a thread and its first turn, whose id is that of the request, as in 0.77.
    async fn start(start: StartThread, prompt: String, exchange: &Exchange) -> Result<Self, ToolResult> {
        let failed = |error: &StartError| {
            ToolResult::error(None, format!("Failed to start Codex session: {}", with_cause(error)))
        };
        let started = exchange.session.shared.server.threads.start(start).await.map_err(|error| failed(&error))?;
        let StartedThread { thread, feed, shows_raw_reasoning } = started;
        let turn = say(&thread, TurnId::new(exchange.id.to_string()), prompt).await?;
        let vocabulary = vocabulary(shows_raw_reasoning);
        let turn = TurnHere { thread, turn, feed, children: children(exchange), vocabulary };
        Ok(Self::of(Followed::Here(Box::new(turn)), exchange))
    }

    /// Starts another turn of a thread: on the server that has it open, or here, where it is loaded first if necessary.
    async fn reply(id: ThreadId, prompt: String, exchange: &mut Exchange) -> Result<Self, ToolResult> {
        let Server { threads, others, .. } = exchange.session.shared.server.clone();
        // It is not unloaded before it has a subscriber.
        let opening = threads.turn_to_open(id).await;
        let (thread, shows_raw_reasoning) = if let Some(thread) = threads.get(id).filter(|it| !it.has_ended()) {
            (thread, false)
        } else {
            if let Some(others) = others
                && let Some(connection) = others.connect(id).await
            {
                // If its server ends meanwhile, the app-server of this process loads it.
                drop(opening);
                let turn = TurnElsewhere::start(connection, id, &prompt).await?;
                return Ok(Self::of(Followed::Elsewhere(Box::new(turn)), exchange));
            }
            let started = threads.start(resumption(id)).await.map_err(|error| {
                ToolResult::error(Some(id), format!("Session not found for thread_id: {id}: {}", with_cause(&error)))
            })?;
            (started.thread, started.shows_raw_reasoning)
        };
        let ended = |Closed| ToolResult::error(Some(id), Closed.to_string());
        let Subscription { feed, running, asked, .. } = thread.subscribe().await.map_err(ended)?;
        let turn = say(&thread, TurnId::new(ThreadId::fresh().to_string()), prompt).await?;
        let vocabulary = vocabulary(shows_raw_reasoning);
        let turn = TurnHere { thread: thread.clone(), turn, feed, children: children(exchange), vocabulary };
        let mut call = Self::of(Followed::Here(Box::new(turn)), exchange);
        let running = running.as_ref().map(TurnId::as_str).unwrap_or_default();
        for question in &asked {
            call.ask(exchange, Asker::Here(thread.clone()), running, question).await;
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
                arrival = self.followed.next(), if !has_outgoing => {
                    let happening = self.followed.take(arrival).await;
                    if let Some(result) = self.take(exchange, happening).await {
                        return if is_cancelled { Step::Cancelled } else { Step::Ended(result) };
                    }
                }
                Ok(()) = &mut cancelled, if !is_cancelled => {
                    is_cancelled = true;
                    self.followed.interrupt().await;
                }
            }
        }
    }

    /// Queues the messages for the client, and returns the result of the call if it has ended.
    async fn take(&mut self, exchange: &mut Exchange, happening: Happening) -> Option<ToolResult> {
        let thread = self.followed.thread();
        for (id, msg) in &happening.messages {
            exchange.add_event(thread, id, msg);
        }
        match happening.change? {
            Change::Asked { asker, turn, question } => self.ask(exchange, asker, &turn, &question).await,
            Change::Answered { thread, question } => self.questions.withdraw(exchange, thread, &question),
            Change::TurnEnded(result) => {
                self.questions.withdraw_all(exchange);
                return result;
            }
            Change::Lost(result) => return Some(result),
        }
        None
    }

    /// Asks the client; a client that cannot answer does not keep the turn waiting.
    async fn ask(&mut self, exchange: &mut Exchange, asker: Asker, turn: &str, question: &Question) {
        let thread = asker.thread();
        let key = if thread == self.followed.thread() {
            question.id.to_string()
        } else {
            format!("{thread}:{}", question.id)
        };
        if !exchange.can_ask(question) {
            return asker.answer(question.id.clone(), Answer::Decision(ReviewDecision::Denied)).await;
        }
        let origin = Origin { thread, turn, call: &exchange.id };
        let params = elicitation::params(origin, question);
        match &mut self.questions {
            Questions::Requests { session, ids } => {
                if let Some(number) = session.ask(&asker, &question.id) {
                    exchange.add_request(number, "elicitation/create", params);
                    ids.insert((thread, question.id.clone()), number);
                }
            }
            Questions::Results(open) => open.push(OpenQuestion { asker, id: question.id.clone(), key, params }),
        }
    }

    /// Answers the request with the open questions, and waits for the one that answers them. If none comes, the turn is
    /// interrupted, because nobody would learn its result.
    async fn park(&mut self, exchange: Exchange) -> Option<Retry> {
        let Questions::Results(open) = &self.questions else { return None };
        let Era::Stateless { call, .. } = exchange.era.clone() else { return None };
        let session = Arc::clone(&exchange.session);
        let keys = open.iter().map(|asked| asked.key.clone());
        let thread = self.followed.thread();
        let Some(mut place) = session.shared.parked.park(thread, self.followed.turn(), keys, call) else {
            let why = "Too many calls wait for an answer of their client; the turn was interrupted";
            self.followed.interrupt().await;
            exchange.finish(&ToolResult::error(Some(thread), why)).await;
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
        self.followed.interrupt().await;
        None
    }

    /// Passes the answers of a retried call on. A question without one is asked again.
    async fn take_responses(&mut self, responses: &Map<String, Value>) {
        let Questions::Results(open) = &mut self.questions else { return };
        let (answered, unanswered): (Vec<_>, Vec<_>) =
            std::mem::take(open).into_iter().partition(|asked| responses.contains_key(&asked.key));
        *open = unanswered;
        for OpenQuestion { asker, id, key, .. } in answered {
            asker.answer(id, elicitation::read_answer(responses.get(&key))).await;
        }
    }
}

/// The children of the thread of a call.
fn children(exchange: &Exchange) -> Children {
    let threads: Arc<dyn ThreadHost> = Arc::clone(&exchange.session.shared.server.threads);
    Children::new(threads)
}

/// Sends the prompt, and returns the turn that accepts it.
async fn say(thread: &Thread, turn: TurnId, prompt: String) -> Result<TurnId, ToolResult> {
    let content = vec![UserInput::Text { text: prompt, text_elements: Vec::new() }];
    match thread.say(turn.clone(), content, SettingsChange::default()).await {
        Ok(TurnStart::Started) => Ok(turn),
        Ok(TurnStart::Joined(turn) | TurnStart::Known(turn)) => Ok(turn),
        Ok(TurnStart::Refused(why)) => Err(ToolResult::error(Some(thread.id()), why)),
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
