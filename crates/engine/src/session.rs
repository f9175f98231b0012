//! The task that owns a thread: it feeds the turn machine and performs its effects.

mod commands;
mod reviewing;
mod terminals;

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;

use codex_model::{Backoff, Prompt, ReasoningRequest};
use codex_wire::ids::ThreadId;
use codex_wire::input::UserInput;
use codex_wire::plan::UpdatePlanArgs;
use codex_wire::reasoning::ReasoningSummary;
use codex_wire::response::{Message, ResponseItem};
use codex_wire::tokens::{RateLimitSnapshot, TokenUsage};
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::mpsc;

use self::commands::Allowed;
use self::reviewing::Review;
pub(crate) use self::terminals::LookingAt;
use self::terminals::OpenTerminals;
use crate::compaction::{self, Summary};
use crate::context::Context;
use crate::environment::{Environment, shell_name};
use crate::feed::Feed;
use crate::images;
use crate::journal::Journal;
use crate::log::{Abort, Body, Compacted, Item, ItemId, Outcome, Record, ThreadStarted, TurnId};
use crate::models::ModelInfo;
use crate::opening::Opening;
use crate::settings::{Settings, SettingsChange};
use crate::thread::{Command, Recall, Setup, StartError, TurnStart};
use crate::turn::{Effect, Input, Manners, Turn, UserMessage, Window};
use crate::work::{Arrived, Work};

/// How full the window may get before the conversation is summed up.
const COMPACT_AT_PERCENT: i64 = 90;

/// The bytes of a token, near enough.
const BYTES_PER_TOKEN: usize = 4;

/// The state of one thread.
pub(crate) struct Session {
    id: ThreadId,
    setup: Setup,
    started: Arc<ThreadStarted>,
    settings: Arc<Settings>,
    environment: Environment,
    instructions: Arc<str>,
    tools: Arc<RawValue>,
    /// An empty list of tools, for requests that are to be answered in words alone.
    no_tools: Arc<RawValue>,
    context: Context,
    allowed: Allowed,
    terminals: OpenTerminals,
    /// The plan the model made last.
    plan: Option<UpdatePlanArgs>,
    /// What is put aside while a review runs.
    reviewing: Option<Review>,
    /// Whether the client has said its last word, so that questions can only be denied.
    is_finishing: bool,
    journal: Journal,
    running: Option<Running>,
    inbox: mpsc::Receiver<Command>,
}

/// The running turn.
struct Running {
    id: TurnId,
    /// What it runs under; a change meanwhile is for the next turn.
    settings: Arc<Settings>,
    machine: Turn,
    work: Work,
    /// What the model was asked last, for retries.
    prompt: Option<Prompt>,
    output_schema: Option<Value>,
}

/// What woke the session.
enum Wake {
    Command(Option<Command>),
    Arrived(Arrived),
}

impl Session {
    /// Opens a thread: its log, its first lines on disk, and its first event in the feed.
    pub(crate) async fn start(
        id: ThreadId,
        setup: Setup,
        inbox: mpsc::Receiver<Command>,
    ) -> Result<(Self, Feed), StartError> {
        let Opening { started, instructions, preface, mut warnings, mut journal } =
            Opening::prepare(id, &setup).await?;
        let feed = journal.subscribe();
        journal.append(None, Body::ThreadStarted(Box::new(started.clone())));
        let settings = Arc::clone(&started.settings);
        let environment = Environment::new(&settings, shell_name(setup.shell.as_deref()));
        let allowed = Allowed::load(&setup.home.rules(), &mut warnings);
        let has_terminals = setup.config.features.get("unified_exec").copied().unwrap_or(false);
        let mut session = Self {
            id,
            tools: crate::tools::offered(has_terminals)?,
            no_tools: crate::tools::none()?,
            setup,
            started: Arc::new(started),
            settings,
            environment,
            instructions,
            context: Context::default(),
            allowed,
            terminals: OpenTerminals::new(),
            plan: None,
            reviewing: None,
            is_finishing: false,
            journal,
            running: None,
            inbox,
        };
        let environment = Message::user(session.environment.text());
        for message in preface.into_iter().chain([environment]) {
            session.tell_model(message);
        }
        session.context.end_preface();
        for message in warnings {
            session.emit(Body::Warning { message });
        }
        session.journal.publish_durably().await;
        Ok((session, feed))
    }

    /// How the thread began.
    pub(crate) fn started(&self) -> Arc<ThreadStarted> {
        Arc::clone(&self.started)
    }

    /// Serves the thread until it is closed or nobody holds it any more.
    pub(crate) async fn run(mut self) {
        let mut closing = Vec::new();
        while self.running.is_some() || closing.is_empty() {
            match self.wake().await {
                Wake::Arrived(Arrived::Turn(input)) => self.step(input).await,
                Wake::Arrived(Arrived::Command(input)) => self.step_command(input).await,
                Wake::Arrived(Arrived::Called(result)) => {
                    self.work(Work::Nothing);
                    let input = self.take_result(result);
                    self.step(input).await;
                }
                Wake::Arrived(Arrived::Looked(look, shown)) => self.looked(look, shown).await,
                Wake::Command(Some(Command::Finish { reply })) => {
                    self.expect_no_answers();
                    closing.push(reply);
                }
                Wake::Command(Some(Command::Close { reply })) => {
                    self.stop(Abort::Interrupted).await;
                    closing.push(reply);
                }
                Wake::Command(Some(command)) => self.obey(command).await,
                Wake::Command(None) => {
                    self.stop(Abort::Interrupted).await;
                    break;
                }
            }
        }
        self.end_terminals();
        self.journal.publish();
        // The feeds end before the reply, so whoever asked can read everything that was said.
        drop(self);
        for reply in closing {
            let _: Result<(), ()> = reply.send(());
        }
    }

    async fn wake(&mut self) -> Wake {
        match &mut self.running {
            // Commands first: an interrupt must not wait behind a flood of deltas.
            Some(running) => tokio::select! {
                biased;
                command = self.inbox.recv() => Wake::Command(command),
                arrived = running.work.next() => Wake::Arrived(arrived),
            },
            None => Wake::Command(self.inbox.recv().await),
        }
    }

    async fn obey(&mut self, command: Command) {
        // A client that no longer waits for its answer is no reason to undo what it asked for.
        match command {
            Command::Say { turn, content, change, reply } => {
                let start = self.say(turn, content, change).await;
                let _: Result<(), TurnStart> = reply.send(start);
            }
            Command::Configure { change, reply } => {
                self.settings = Arc::new(self.settings.changed(&change));
                let _: Result<(), Arc<Settings>> = reply.send(Arc::clone(&self.settings));
            }
            Command::Compact { turn, reply } => {
                self.compact(turn).await;
                let _: Result<(), ()> = reply.send(());
            }
            Command::Review { turn, request, reply } => {
                self.review(turn, request).await;
                let _: Result<(), ()> = reply.send(());
            }
            Command::Answer { id, decision, reply } => {
                let was_asked = self.answer(&id, decision).await;
                let _: Result<(), bool> = reply.send(was_asked);
            }
            Command::Interrupt { reply } => {
                let stopped = self.stop(Abort::Interrupted).await;
                let _: Result<(), bool> = reply.send(stopped);
            }
            Command::Finish { .. } | Command::Close { .. } => {}
        }
    }

    async fn say(&mut self, turn: TurnId, content: Vec<UserInput>, change: SettingsChange) -> TurnStart {
        if let Some(running) = &self.running {
            let joined = running.id.clone();
            if change != SettingsChange::default() {
                let message = "the input joined the running turn, so its settings were not applied".to_owned();
                self.emit(Body::Warning { message });
            }
            let said = user_message(content, self.turn_settings().cwd.clone()).await;
            self.step(Input::UserSaid(said)).await;
            return TurnStart::Joined(joined);
        }
        self.settings = Arc::new(self.settings.changed(&change));
        let said = user_message(content, self.settings.cwd.clone()).await;
        let (machine, effects) = Turn::start(&turn, said, self.window(), self.manners());
        self.begin(turn, machine, change.output_schema);
        let environment = Environment::new(&self.settings, shell_name(self.setup.shell.as_deref()));
        if environment != self.environment {
            self.tell_model(Message::user(environment.text()));
            self.environment = environment;
        }
        self.perform(effects).await;
        TurnStart::Started
    }

    /// Sums the conversation up. What runs makes way.
    async fn compact(&mut self, turn: TurnId) {
        self.stop(Abort::Replaced).await;
        let (machine, effects) = Turn::compact(&turn, self.window(), self.manners());
        self.begin(turn, machine, None);
        self.perform(effects).await;
    }

    fn begin(&mut self, id: TurnId, machine: Turn, output_schema: Option<Value>) {
        // What came before this turn is whole, whatever becomes of the turn.
        self.context.mark();
        let settings = Arc::clone(&self.settings);
        self.running = Some(Running { id, settings, machine, work: Work::Nothing, prompt: None, output_schema });
    }

    fn window(&self) -> Window {
        Window { size: self.context_window(), used: self.context.window_used() }
    }

    fn manners(&self) -> Manners {
        let config = &self.setup.config;
        let set = config.model.auto_compact_token_limit.and_then(|limit| i64::try_from(limit).ok());
        Manners {
            retry_limit: u32::try_from(config.provider.stream_max_retries).unwrap_or(u32::MAX),
            backoff: Backoff::new(),
            forgets_interrupted: self.setup.recall == Recall::Brief,
            // What is left of the window has to hold the request for a summary and the summary itself.
            compact_at: set.or(self.context_window().map(|window| window * COMPACT_AT_PERCENT / 100)),
        }
    }

    /// Stops the running turn, if there is one.
    async fn stop(&mut self, abort: Abort) -> bool {
        let running = self.running.is_some();
        let cut_off = self.cut_off_command();
        self.step(Input::Stop(abort, cut_off)).await;
        running
    }

    async fn step(&mut self, input: Input) {
        if let Some(running) = &mut self.running {
            let effects = running.machine.step(input);
            self.perform(effects).await;
        }
    }

    /// Performs effects, and those that follow when a call is over as soon as it begins.
    async fn perform(&mut self, effects: Vec<Effect>) {
        let mut effects = VecDeque::from(effects);
        while let Some(effect) = effects.pop_front() {
            match effect {
                Effect::Emit(body) => self.emit(body),
                Effect::Count { usage, rate_limits } => self.count(usage, rate_limits),
                Effect::NoteSettings => self.emit(Body::ModelAsked(Arc::clone(self.turn_settings()))),
                Effect::AskModel => {
                    let prompt = self.prompt();
                    self.context.mark();
                    self.ask(Some(prompt));
                }
                Effect::AskForSummary { halvings } => {
                    let prompt = self.summary_prompt(halvings);
                    self.ask(Some(prompt));
                }
                Effect::Compact(summary) => self.put_summary(summary),
                Effect::AskAgain => self.ask(None),
                Effect::Wait(delay) => self.work(Work::wait(delay)),
                Effect::Run(call) => {
                    if let Some(input) = self.run_call(&call)
                        && let Some(running) = &mut self.running
                    {
                        effects.extend(running.machine.step(input));
                    }
                }
                Effect::Cancel => self.work(Work::Nothing),
                Effect::End(outcome) => return self.end(outcome).await,
            }
        }
        self.journal.publish();
    }

    /// Asks the model, or asks again what it was asked last.
    fn ask(&mut self, prompt: Option<Prompt>) {
        let Some(running) = &mut self.running else { return };
        if prompt.is_some() {
            running.prompt = prompt;
        }
        if let Some(prompt) = &running.prompt {
            running.work = Work::Answer(self.setup.model.ask(prompt.clone()));
        }
    }

    fn work(&mut self, work: Work) {
        if let Some(running) = &mut self.running {
            running.work = work;
        }
    }

    async fn end(&mut self, outcome: Outcome) {
        if matches!(outcome, Outcome::Aborted(_)) && self.setup.recall == Recall::Brief {
            self.context.forget_unfinished();
        }
        self.look_after_terminals().await;
        let outcome = self.end_review(outcome);
        self.emit(Body::TurnEnded(outcome));
        self.running = None;
        self.journal.publish_durably().await;
    }

    fn count(&mut self, usage: Option<TokenUsage>, rate_limits: Option<RateLimitSnapshot>) {
        if let Some(usage) = usage {
            self.context.count(usage, self.context_window());
        }
        if let Some(limits) = rate_limits {
            self.context.limit(limits);
        }
        self.emit(Body::TokensCounted {
            info: self.context.usage(),
            rate_limits: Box::new(self.context.rate_limits()),
        });
    }

    /// The settings of the running turn, or of the next one when none is running.
    fn turn_settings(&self) -> &Arc<Settings> {
        self.running.as_ref().map_or(&self.settings, |running| &running.settings)
    }

    fn context_window(&self) -> Option<i64> {
        let configured = self.setup.config.model.context_window.and_then(|window| i64::try_from(window).ok());
        configured.or(ModelInfo::of(&self.turn_settings().model).context_window)
    }

    fn prompt(&self) -> Prompt {
        let Settings { model, effort, summary, verbosity, .. } = &**self.turn_settings();
        let reasons = ModelInfo::of(model).reasons || effort.is_some();
        Prompt {
            thread: self.id,
            model: model.clone(),
            instructions: Arc::clone(&self.instructions),
            input: self.context.input(),
            tools: Arc::clone(&self.tools),
            parallel_tool_calls: false,
            reasoning: reasons.then(|| ReasoningRequest {
                effort: effort.clone(),
                summary: (*summary != ReasoningSummary::None).then(|| summary.clone()),
            }),
            verbosity: verbosity.clone(),
            output_schema: self.running.as_ref().and_then(|running| running.output_schema.clone()),
        }
    }

    /// The request for a summary: the conversation without tools, and what we want of it.
    fn summary_prompt(&self, halvings: u32) -> Prompt {
        let mut input = self.context.input_without(halvings);
        input.extend(Record::new(ResponseItem::Message(Message::user(compaction::PROMPT))).map(|record| record.json));
        Prompt { input, tools: Arc::clone(&self.no_tools), output_schema: None, ..self.prompt() }
    }

    fn put_summary(&mut self, summary: String) {
        let said = self.context.said();
        let plan = self.plan.as_ref();
        let messages = Summary { text: &summary, said: &said, plan, recall: self.setup.recall }.messages();
        let replacement: Vec<Record> = messages.into_iter().filter_map(|item| Record::new(item).ok()).collect();
        let (before, after) = self.context.replace(&replacement);
        let (before, after) = (before / BYTES_PER_TOKEN, after / BYTES_PER_TOKEN);
        self.emit(Body::Compacted(Arc::new(Compacted { summary, replacement, before, after })));
    }

    /// Puts a message of ours into the conversation.
    fn tell_model(&mut self, message: Message) {
        if let Ok(record) = Record::new(ResponseItem::Message(message)) {
            self.emit(Body::Recorded(record));
        }
    }

    fn emit(&mut self, body: Body) {
        match &body {
            Body::Recorded(record) => self.context.record(record),
            Body::ItemStarted(Item::UserMessage { .. }) => self.context.credit_user(),
            Body::PlanUpdated(plan) => self.plan = Some(plan.clone()),
            _ => {}
        }
        if self.is_private(&body) {
            return;
        }
        let turn = self.running.as_ref().map(|running| running.id.clone());
        self.journal.append(turn, body);
    }
}

/// Makes a message of what the user said; pictures are read where blocking is allowed.
async fn user_message(content: Vec<UserInput>, cwd: PathBuf) -> UserMessage {
    let id = ItemId::new(ThreadId::fresh().to_string());
    let reads_files = content.iter().any(|item| matches!(item, UserInput::LocalImage { .. }));
    if !reads_files {
        let message = images::message(&content, &cwd);
        return UserMessage { id, content, message, is_echoed: true };
    }
    let for_reading = content.clone();
    let read = tokio::task::spawn_blocking(move || images::message(&for_reading, &cwd)).await;
    let message = read.unwrap_or_else(|_| Message::user("The person's pictures could not be read"));
    UserMessage { id, content, message, is_echoed: true }
}
