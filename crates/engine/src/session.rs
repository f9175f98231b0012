//! The task that owns a thread: it feeds the turn machine and performs its effects.

mod asking;
mod bookmarks;
mod calls;
mod commands;
mod ending;
mod own;
mod patches;
mod pursuing;
mod results;
mod reviewing;
mod saying;
mod terminals;

use std::collections::VecDeque;
use std::sync::Arc;

use codex_config::ModelTable;
use codex_log::keys::IdempotencyKeys;
use codex_log::settings::Settings;
use codex_log::{Abort, Body, Item, Question, Record, ThreadStarted, TurnId};
use codex_model::Prompt;
use codex_patch::TurnDiff;
use codex_wire::input::UserInput;
use codex_wire::plan::UpdatePlanArgs;
use codex_wire::response::{Message, ResponseItem};
use codex_wire::skill::SkillMetadata;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use self::bookmarks::Bookmark;
use self::commands::Allowed;
use self::ending::unsaved;
pub(crate) use self::patches::RunningPatch;
use self::reviewing::Review;
use self::terminals::OpenTerminals;
pub(crate) use self::terminals::PollingTerminal;
use crate::beginning::Beginning;
use crate::context::Context;
use crate::environment::{Environment, shell_name};
use crate::goal::Pursuit;
use crate::journal::Journal;
use crate::open_error::OpenError;
use crate::opening::{Continued, Opening};
use crate::setup::Setup;
use crate::turn::{Effect, Input, Turn};
use crate::work::{Arrived, Work};
use codex_thread::{Cursor, Feed, FeedStart, Subscription, Thread, ThreadRequest};
use codex_tools::offered::Tools;

/// How many things a session does before it lets others run, should it never have to wait.
const STEPS_AT_ONCE: u32 = 512;

/// The state of one thread.
pub(crate) struct Session {
    setup: Setup,
    started: Arc<ThreadStarted>,
    settings: Arc<Settings>,
    environment: Environment,
    instructions: Arc<str>,
    skills: Arc<[SkillMetadata]>,
    tools: Tools,
    models: ModelTable,
    context: Context,
    allowed: Allowed,
    terminals: OpenTerminals,
    aims: Aims,
    /// What is put aside while a review runs.
    reviewing: Option<Review>,
    /// The questions that wait for an answer.
    asked: Vec<Arc<Question>>,
    /// What was said last under keys of the client's.
    heard: IdempotencyKeys,
    /// The ends of turns, in a session whose client may go back to them.
    bookmarks: Option<Vec<Bookmark>>,
    /// Whether the client has said its last word, so that questions can only be denied.
    is_finishing: bool,
    journal: Journal,
    running: Option<Running>,
    inbox: mpsc::Receiver<Box<ThreadRequest>>,
}

/// What the thread is after.
#[derive(Default)]
struct Aims {
    /// The plan the model made last.
    plan: Option<UpdatePlanArgs>,
    /// What the thread works towards until it is reached.
    goal: Pursuit,
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
    /// What its patches have changed.
    diff: Option<TurnDiff>,
    /// What the user said in it.
    said: Vec<String>,
}

/// What woke the session.
enum Wake {
    Request(Option<ThreadRequest>),
    Arrived(Arrived),
    /// Nothing runs, nobody has said anything, and the goal is not reached.
    Idle,
}

impl Session {
    /// Opens a thread: its log, its first lines on disk, and its first event in the feed.
    pub(crate) async fn start(mut setup: Setup) -> Result<(Self, Thread, Feed), OpenError> {
        let Opening { started, instructions, preface, skills, warnings, mut journal, models, rules, past } =
            Opening::prepare(&setup).await?;
        let is_copy = matches!(setup.beginning, Beginning::Forked { .. });
        let given = std::mem::take(&mut setup.beginning).given();
        journal.keep_recent(setup.recent_bytes);
        let feed = journal.subscribe();
        journal.append(None, Body::ThreadStarted(Box::new(started.clone())));
        let started = Arc::new(started);
        let (thread, inbox) = Thread::new(Arc::clone(&started));
        let settings = Arc::clone(&started.settings);
        let environment = Environment::new(&settings, shell_name(setup.shell.as_deref()));
        let allowed = Allowed::by(rules);
        let has_terminals = setup.config.features.get("unified_exec").copied();
        let has_terminals = has_terminals.unwrap_or_else(|| models.info(&settings.model).has_terminals);
        let mut session = Self {
            tools: Tools::offered(has_terminals, setup.config.web_search),
            models,
            setup,
            started,
            settings,
            environment,
            instructions,
            skills,
            context: Context::default(),
            allowed,
            terminals: OpenTerminals::new(),
            aims: Aims::default(),
            reviewing: None,
            asked: Vec::new(),
            heard: IdempotencyKeys::default(),
            bookmarks: None,
            is_finishing: false,
            journal,
            running: None,
            inbox,
        };
        session.hold_roots();
        match past {
            Some(past) => session.go_on(*past).await,
            None => session.begin_conversation(preface, given),
        }
        let unenforced = codex_sandbox::unenforced_memory_limit(session.setup.config.sandbox.most_memory);
        let unenforced = unenforced.map(|why| format!("`limits.memory` is not enforced: {why}"));
        for message in warnings.into_iter().chain(unenforced) {
            session.emit(Body::Warning { message });
        }
        if let Err(error) = session.journal.publish_durably().await {
            if !session.started.is_resumed || is_copy {
                session.journal.delete();
            }
            return Err(error.into());
        }
        Ok((session, thread, feed))
    }

    fn begin_conversation(&mut self, preface: Vec<Message>, given: Vec<ResponseItem>) {
        let environment = Message::user(self.environment.text());
        for message in preface.into_iter().chain([environment]) {
            self.tell_model(message);
        }
        self.context.end_preface();
        for item in given {
            let is_said = matches!(&item, ResponseItem::Message(message) if message.role == "user");
            if let Ok(record) = Record::new(item) {
                self.emit(Body::Recorded(record));
            }
            if is_said {
                self.context.credit_user();
            }
        }
    }

    async fn go_on(&mut self, continued: Continued) {
        let Continued { mut past, tokens, before, heard, unfinished, goal } = continued;
        self.heard = heard;
        self.aims.goal = Pursuit::resumed(goal, self.setup.profile.follows_goals && self.has_goals());
        let tokens = tokens.filter(|_| !self.setup.profile.counts_from_zero);
        // What the model was told of its surroundings last; a difference is told with the next turn.
        if let Some(before) = before {
            self.environment = Environment::new(&before, shell_name(self.setup.shell.as_deref()));
        }
        let (lost, asked) = (past.lost.clone(), std::mem::take(&mut past.asked));
        self.context = Context::resumed(past, tokens);
        for output in lost {
            if let Ok(record) = Record::new(output) {
                self.emit(Body::Recorded(record));
            }
        }
        self.context.mark();
        if let Some(turn) = unfinished {
            let (machine, effects) = Turn::revive(&turn, asked, self.window(), self.manners(&self.settings));
            self.begin(turn, machine, None);
            self.perform(effects).await;
        }
    }

    /// Serves the thread until it is closed or nobody holds it any more.
    ///
    /// What happens seldom is boxed, so that a thread which waits costs only what it waits with.
    pub(crate) async fn run(mut self: Box<Self>) {
        let mut closing = Vec::new();
        let mut retired = None;
        let mut steps = 0_u32;
        while self.running.is_some() || closing.is_empty() {
            // A model that always has something to say must not keep requests, or other threads, waiting. To give way more
            // often would cost: what piles up meanwhile is merged for clients.
            steps = steps.wrapping_add(1);
            if steps.is_multiple_of(STEPS_AT_ONCE) {
                tokio::task::yield_now().await;
            }
            match self.wake().await {
                Wake::Arrived(Arrived::Turn(input)) => self.step(input).await,
                Wake::Arrived(Arrived::Call(id, news)) => Box::pin(self.step_call(id, news)).await,
                Wake::Request(Some(ThreadRequest::Finish { reply })) => {
                    self.expect_no_answers();
                    closing.push(reply);
                }
                Wake::Request(Some(ThreadRequest::Close { reply })) => {
                    self.is_finishing = true;
                    Box::pin(self.stop(Abort::Interrupted)).await;
                    closing.push(reply);
                }
                Wake::Request(Some(ThreadRequest::Retire { questions, reply })) => {
                    if self.is_retirable(questions) {
                        Box::pin(self.leave_turn()).await;
                        retired = Some(reply);
                        break;
                    }
                    let _: Result<(), bool> = reply.send(false);
                }
                Wake::Request(Some(request)) => Box::pin(self.obey(request)).await,
                Wake::Idle => Box::pin(self.pursue()).await,
                Wake::Request(None) => {
                    self.is_finishing = true;
                    Box::pin(self.stop(Abort::Interrupted)).await;
                    break;
                }
            }
        }
        self.end_terminals();
        self.journal.close();
        // The feeds end before the reply, so whoever asked can read everything that was said.
        drop(self);
        for reply in closing {
            let _: Result<(), ()> = reply.send(());
        }
        if let Some(reply) = retired {
            let _: Result<(), bool> = reply.send(true);
        }
    }

    async fn wake(&mut self) -> Wake {
        match &mut self.running {
            // Requests first: an interrupt must not wait behind a flood of deltas.
            Some(running) => tokio::select! {
                biased;
                request = self.inbox.recv() => Wake::Request(request.map(|request| *request)),
                arrived = running.work.next() => Wake::Arrived(arrived),
            },
            // What somebody has sent meanwhile goes first.
            None if self.aims.goal.is_due() => match self.inbox.try_recv() {
                Ok(request) => Wake::Request(Some(*request)),
                Err(mpsc::error::TryRecvError::Empty) => Wake::Idle,
                Err(mpsc::error::TryRecvError::Disconnected) => Wake::Request(None),
            },
            None => Wake::Request(self.inbox.recv().await.map(|request| *request)),
        }
    }

    async fn obey(&mut self, request: ThreadRequest) {
        match request {
            ThreadRequest::Say { turn, input, reply } => give(reply, self.hear(turn, *input).await),
            ThreadRequest::Configure { change, reply } => {
                self.settings = Arc::new(self.settings.changed(&change));
                give(reply, Arc::clone(&self.settings));
            }
            ThreadRequest::Reconfigure { change, reply } => {
                self.stop(Abort::Interrupted).await;
                self.keep_bookmarks();
                self.settings = Arc::new(self.settings.changed(&change));
                give(reply, Arc::clone(&self.settings));
            }
            ThreadRequest::GoBack { response, reply } => give(reply, self.go_back(&response).await),
            ThreadRequest::Compact { turn, reply } => {
                self.compact(turn).await;
                give(reply, ());
            }
            ThreadRequest::Review { turn, request, reply } => {
                self.review(turn, *request).await;
                give(reply, ());
            }
            ThreadRequest::RunUserShell { turn, command, timeout, reply } => {
                give(reply, self.run_own(turn, command, timeout).await);
            }
            ThreadRequest::Inject { items, reply } => give(reply, self.inject(items).await),
            ThreadRequest::Answer { question, answer, reply } => give(reply, self.answer(&question, answer).await),
            ThreadRequest::Interrupt { reply } => give(reply, self.stop(Abort::Interrupted).await),
            ThreadRequest::RollBack { turns, reply } => {
                let gone = if self.running.is_none() { self.context.roll_back(turns) } else { None };
                let done = gone.is_some();
                if let Some(gone) = gone {
                    self.emit(Body::RolledBack(gone));
                    self.aims.goal.forget_told();
                    self.publish_durably().await;
                }
                give(reply, done);
            }
            ThreadRequest::SetGoal { change, reply } => give(reply, self.set_goal(*change).await),
            ThreadRequest::ClearGoal { reply } => give(reply, self.clear_goal().await),
            ThreadRequest::Goal { reply } => give(reply, self.aims.goal.goal().cloned()),
            ThreadRequest::Running { reply } => give(reply, self.running.as_ref().map(|running| running.id.clone())),
            ThreadRequest::CountListeners { reply } => give(reply, self.journal.listeners()),
            ThreadRequest::IsRetirable { questions, reply } => give(reply, self.is_retirable(questions)),
            ThreadRequest::Subscribe { after, reply } => give(reply, self.subscribe(after.as_ref())),
            ThreadRequest::Finish { .. } | ThreadRequest::Close { .. } | ThreadRequest::Retire { .. } => {}
        }
    }

    fn subscribe(&mut self, after: Option<&Cursor>) -> Subscription {
        let log = self.journal.log();
        let now = after.filter(|place| place.log.as_deref().is_none_or(|name| log.is(name)));
        let unbroken = now.and_then(|place| self.journal.subscribe_after(place.seq));
        let told = now.filter(|_| unbroken.is_some()).map(|place| place.seq);
        let is_kept = |place: &&Cursor| place.log.as_deref().is_none_or(|name| log.is_same_incarnation(name));
        let lines_upto = after.filter(|_| unbroken.is_none()).filter(is_kept).and_then(|place| {
            self.journal.lines_upto(self.running.is_some()).filter(|upto| place.seq.position() <= upto.position())
        });
        let feed = unbroken.or_else(|| lines_upto.and_then(|upto| self.journal.subscribe_after(upto)));
        Subscription {
            standing: self.journal.standing(told.or(lines_upto)),
            tokens: self.context.usage(),
            begins: FeedStart { log, last: self.journal.last(), is_unbroken: told.is_some(), lines_upto },
            feed: feed.unwrap_or_else(|| self.journal.subscribe()),
            settings: Arc::clone(&self.settings),
            running: self.running.as_ref().map(|running| running.id.clone()),
            asked: self.asked.clone(),
        }
    }

    /// Sums the conversation up. What runs makes way.
    async fn compact(&mut self, turn: TurnId) {
        self.stop(Abort::Replaced).await;
        let (machine, effects) = Turn::compact(&turn, self.window(), self.manners(&self.settings));
        self.begin(turn, machine, None);
        self.perform(effects).await;
    }

    fn begin(&mut self, id: TurnId, machine: Turn, output_schema: Option<Value>) {
        // What came before this turn is whole, whatever becomes of the turn.
        self.context.begin_turn(&id);
        let settings = Arc::clone(&self.settings);
        self.running = Some(Running {
            id,
            settings,
            machine,
            work: Work::Nothing,
            prompt: None,
            output_schema,
            diff: None,
            said: Vec::new(),
        });
        self.aims.goal.begin_turn();
        self.hold_roots();
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
                    self.tell_goal();
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
                    // Nothing is run of which the file could not tell that it was.
                    if let Some(outcome) = unsaved(self.journal.publish()) {
                        return Box::pin(self.stop_with(outcome)).await;
                    }
                    if let Some(input) = self.run_call(&call)
                        && let Some(running) = &mut self.running
                    {
                        effects.extend(running.machine.step(input));
                    }
                }
                Effect::Cancel => self.work(Work::Nothing),
                Effect::End(outcome) => return Box::pin(self.end(outcome)).await,
            }
        }
        self.publish().await;
    }

    fn work(&mut self, work: Work) {
        if let Some(running) = &mut self.running {
            running.work = work;
        }
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
            Body::ItemStarted(Item::UserMessage { content, .. }) => {
                self.context.credit_user();
                if let Some(running) = &mut self.running {
                    running.said.extend(content.iter().filter_map(|item| match item {
                        UserInput::Text { text, .. } => Some(text.clone()),
                        _ => None,
                    }));
                }
            }
            Body::ItemCompleted(Item::WebSearch { .. }) => self.aims.goal.act(),
            Body::PlanUpdated(plan) => self.aims.plan = Some(plan.clone()),
            Body::Asked(question) => self.asked.push(Arc::clone(question)),
            Body::Answered { question, .. } => self.asked.retain(|asked| asked.id != *question),
            Body::TurnEnded(_) => self.asked.clear(),
            _ => {}
        }
        if self.is_private(&body) || (self.setup.config.reasoning.hide && body.is_thought()) {
            return;
        }
        let turn = self.running.as_ref().map(|running| running.id.clone());
        self.journal.append(turn, body);
    }
}

/// Answers a request. A client that no longer waits is no reason to undo what it asked for.
fn give<T>(reply: oneshot::Sender<T>, answer: T) {
    let _: Result<(), T> = reply.send(answer);
}
