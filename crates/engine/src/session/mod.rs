//! The task that owns a thread: it feeds the turn machine and performs its effects.
//!
//! A session consists of parts that do not know each other: the methods of a part take what they need as parameters and
//! return events to publish. They meet only here and in [`perform`].

mod calls;
mod conversations;
mod goals;
mod perform;
mod profile;
mod running;
mod tokens;

use std::sync::Arc;
use std::time::Duration;

use codex_log::history::History;
use codex_log::settings::{Settings, SettingsChange};
use codex_log::state::{ThreadState, Tokens};
use codex_log::{Abort, Body, Outcome, Record, ReviewEntered, ThreadStarted, TurnId};
use codex_thread::goal::{GoalChange, GoalError};
use codex_thread::{
    Cursor, Feed, FeedStart, HistoryMode, InitialHistory, RewindOutcome, Subscription, Thread, ThreadRequest,
    TurnInput, TurnStart,
};
use codex_tools::images::read_blocking;
use codex_tools::lifecycle::CallEvent;
use codex_wire::conversation_item::ConversationItem;
use codex_wire::goal::Goal;
use codex_wire::policy::{AskForApproval, SandboxPolicy};
use codex_wire::response::{Message, ResponseItem};
use codex_wire::review::ReviewRequest;
use tokio::sync::mpsc;

use self::calls::{Calls, give};
use self::conversations::Conversations;
use self::goals::Goals;
use self::profile::Profile;
use self::running::RunningTurn;
use crate::environment::{Environment, shell_name};
use crate::goal::GoalState;
use crate::journal::{Alarm, Journal};
use crate::open_error::OpenError;
use crate::prepared_thread::{PreparedThread, ResumedWork, interrupted, told_under};
use crate::resume::UnfinishedCalls;
use crate::review;
use crate::setup::Setup;
use crate::turn::{Effect, Input, Turn};

/// The number of steps after which a session yields to other tasks if it never has to wait.
const STEPS_AT_ONCE: u32 = 512;

/// The state of one thread.
pub(crate) struct Session {
    setup: Setup,
    started: Arc<ThreadStarted>,
    journal: Journal,
    /// The folded state of the log.
    state: ThreadState,
    conversations: Conversations,
    /// The running turn.
    turn: Option<RunningTurn>,
    calls: Calls,
    goals: Goals,
    /// The settings of requests to the model.
    profile: Profile,
    /// Whether the client has disconnected, so that questions can only be denied.
    is_finishing: bool,
    inbox: mpsc::Receiver<Box<ThreadRequest>>,
}

/// The reason for waking the session.
enum Wake {
    Request(Option<ThreadRequest>),
    Arrived(Input),
    Called(Vec<CallEvent>),
    /// A server has sent an event.
    Server(Body),
    /// The wait for servers is over, or has failed.
    ToolsReady(Option<Outcome>),
    Alarm(Alarm),
    /// No turn is running, no request is pending, and the goal is not reached.
    Idle,
}

impl Session {
    /// Opens a thread: its log, its first lines on disk, and its first event in the feed.
    pub(crate) async fn start(mut setup: Setup) -> Result<(Self, Thread, Feed), OpenError> {
        let PreparedThread {
            started,
            instructions,
            preface,
            skills,
            warnings,
            mut journal,
            models,
            rules,
            mut state,
            continued,
        } = PreparedThread::prepare(&setup).await?;
        let is_copy = matches!(setup.initial_history, InitialHistory::Forked { .. });
        let given = std::mem::take(&mut setup.initial_history).given();
        journal.keep_recent(setup.recent_bytes);
        let feed = journal.subscribe();
        state.apply(journal.append(None, Body::ThreadStarted(Box::new(started.clone()))));
        let started = Arc::new(started);
        let (thread, inbox) = Thread::new(Arc::clone(&started));
        let settings = Arc::clone(&started.settings);
        let environment = Environment::new(&settings, shell_name(setup.shell.as_deref()));
        let calls = Calls::new(rules, &setup);
        let mut session = Self {
            profile: Profile { settings, environment, instructions, skills, models },
            setup,
            started,
            state,
            conversations: Conversations::default(),
            calls,
            goals: Goals::default(),
            is_finishing: false,
            journal,
            turn: None,
            inbox,
        };
        session.calls.hold_roots(&session.setup, &session.profile, None);
        match continued {
            Some(continued) => session.go_on(*continued).await,
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
        let environment = Message::user(self.profile.environment.text());
        for message in preface.into_iter().chain([environment]) {
            self.tell_model(message);
        }
        for record in given.into_iter().filter_map(|item| Record::new(item).ok()) {
            self.emit(Body::Recorded(record));
        }
    }

    async fn go_on(&mut self, continued: ResumedWork) {
        let ResumedWork { ends: UnfinishedCalls { lost, asked }, before, unfinished, limit_wait } = continued;
        let is_followed = self.setup.profile.follows_goals && Goals::are_kept(&self.setup);
        self.goals.goal = GoalState::resumed(self.state.goal.as_deref().cloned(), is_followed);
        if self.setup.profile.counts_from_zero {
            self.state.tokens = Tokens::default();
        }
        let info = self.state.tokens.info.as_ref();
        self.conversations.window_used = info.map_or(0, |info| info.last_token_usage.tokens_in_window());
        // The environment that the model knows; the next turn reports a difference.
        if let Some(before) = before {
            self.profile.environment = Environment::new(&before, shell_name(self.setup.shell.as_deref()));
        }
        for record in lost.into_iter().filter_map(|output| Record::new(output).ok()) {
            self.emit(Body::Recorded(record));
        }
        if let Some(turn) = unfinished {
            let (window, policy) = (self.window(), self.turn_policy(&self.profile.settings));
            let (machine, effects) = match limit_wait {
                Some((failure, after)) => Turn::wait_again(&turn, failure, after, window, policy),
                None => Turn::revive(&turn, asked, window, policy),
            };
            self.begin(turn, machine, None);
            if let Some(turn) = &mut self.turn {
                turn.is_counted = true;
            }
            self.perform(effects).await;
        }
    }

    /// Serves the thread until it is closed or its last handle is dropped.
    ///
    /// Rare futures are boxed, so that an idle thread needs little memory.
    pub(crate) async fn run(mut self: Box<Self>) {
        let mut closing = Vec::new();
        let mut retired = None;
        let mut steps = 0_u32;
        while self.turn.is_some() || closing.is_empty() {
            // A model that streams without a pause must not delay requests or other threads. To yield more often would
            // cost more: deltas that queue up meanwhile are merged for clients.
            steps = steps.wrapping_add(1);
            if steps.is_multiple_of(STEPS_AT_ONCE) {
                tokio::task::yield_now().await;
            }
            match self.wake().await {
                Wake::Arrived(input) => self.step(input).await,
                Wake::Called(events) => Box::pin(self.called(events)).await,
                Wake::Server(body) => self.tell_of_server(body).await,
                Wake::ToolsReady(None) => Box::pin(self.perform(vec![Effect::AskModel])).await,
                Wake::ToolsReady(Some(failed)) => Box::pin(self.stop_with(failed)).await,
                Wake::Alarm(Alarm::DraftDue) => self.journal.write_draft(),
                Wake::Alarm(Alarm::Revoked(reason)) => {
                    Box::pin(self.stop_with(running::revoked(reason))).await;
                    break;
                }
                Wake::Request(Some(ThreadRequest::Finish { reply })) => {
                    self.is_finishing = true;
                    self.calls.lifecycle.expect_no_answers();
                    closing.push(reply);
                }
                Wake::Request(Some(ThreadRequest::Close { reply })) => {
                    Box::pin(self.close_turn()).await;
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
                    Box::pin(self.close_turn()).await;
                    break;
                }
            }
        }
        self.close_log().await;
        // The feeds end before the reply, so the requester can read everything that was published.
        drop(self);
        for reply in closing {
            let _: Result<(), ()> = reply.send(());
        }
        if let Some(reply) = retired {
            let _: Result<(), bool> = reply.send(true);
        }
    }

    async fn wake(&mut self) -> Wake {
        match &mut self.turn {
            // Requests first: an interrupt must not wait behind a flood of deltas.
            Some(turn) => tokio::select! {
                biased;
                request = self.inbox.recv() => Wake::Request(request.map(|request| *request)),
                alarm = self.journal.alarm(), if self.journal.has_alarm() => Wake::Alarm(alarm),
                arrived = turn.work.next() => Wake::Arrived(arrived),
                failed = RunningTurn::tools_ready(&mut turn.wait) => Wake::ToolsReady(failed),
                events = self.calls.lifecycle.next() => Wake::Called(events),
                body = Calls::next_server_event(self.calls.servers.as_ref()) => Wake::Server(body),
            },
            // Requests that have arrived in the meantime go first.
            None if self.goals.goal.is_due() => match self.inbox.try_recv() {
                Ok(request) => Wake::Request(Some(*request)),
                Err(mpsc::error::TryRecvError::Empty) => Wake::Idle,
                Err(mpsc::error::TryRecvError::Disconnected) => Wake::Request(None),
            },
            None => tokio::select! {
                biased;
                request = self.inbox.recv() => Wake::Request(request.map(|request| *request)),
                reason = self.journal.revoked(), if self.journal.is_revocable() => Wake::Alarm(Alarm::Revoked(reason)),
                body = Calls::next_server_event(self.calls.servers.as_ref()) => Wake::Server(body),
            },
        }
    }

    async fn obey(&mut self, request: ThreadRequest) {
        match request {
            ThreadRequest::Say { turn, input, reply } => give(reply, self.hear(turn, *input).await),
            ThreadRequest::Configure { change, reply } => {
                self.profile.settings = Arc::new(self.profile.settings.changed(&change));
                give(reply, Arc::clone(&self.profile.settings));
            }
            ThreadRequest::Reconfigure { change, reply } => {
                self.stop(Abort::Interrupted).await;
                self.conversations.keep_bookmarks();
                self.profile.settings = Arc::new(self.profile.settings.changed(&change));
                give(reply, Arc::clone(&self.profile.settings));
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
                give(reply, self.run_user_shell(turn, command, timeout).await);
            }
            ThreadRequest::Inject { items, reply } => give(reply, self.inject(items).await),
            ThreadRequest::Answer { question, answer, reply } => give(reply, self.answer(&question, answer).await),
            ThreadRequest::Interrupt { reply } => give(reply, self.stop(Abort::Interrupted).await),
            ThreadRequest::RollBack { turns, reply } => {
                let gone = if self.turn.is_none() { self.state.conversation.last_turns(turns) } else { None };
                let done = gone.is_some();
                if let Some(gone) = gone {
                    self.emit(Body::RolledBack(gone));
                    self.goals.goal.forget_told();
                    self.publish_durably().await;
                }
                give(reply, done);
            }
            ThreadRequest::SetGoal { change, reply } => give(reply, self.set_goal(*change).await),
            ThreadRequest::ClearGoal { reply } => give(reply, self.clear_goal().await),
            ThreadRequest::Goal { reply } => give(reply, self.goals.goal.goal().cloned()),
            ThreadRequest::Running { reply } => give(reply, self.turn.as_ref().map(|turn| turn.id.clone())),
            ThreadRequest::Servers(request) => self.calls.serve(request),
            ThreadRequest::CountListeners { reply } => give(reply, self.journal.listeners()),
            ThreadRequest::IsRetirable { questions, reply } => give(reply, self.is_retirable(questions)),
            ThreadRequest::State { reply } => {
                let is_in_file = self.journal.is_saved() && !self.journal.is_in_memory();
                give(reply, is_in_file.then(|| Box::new(self.state.clone())));
            }
            ThreadRequest::Subscribe { after, reply } => give(reply, self.subscribe(after.as_ref())),
            ThreadRequest::Finish { .. } | ThreadRequest::Close { .. } | ThreadRequest::Retire { .. } => {}
        }
    }

    fn subscribe(&mut self, after: Option<&Cursor>) -> Subscription {
        let log = self.journal.log();
        let now = after.filter(|place| place.log.as_deref().is_none_or(|name| log.is(name)));
        let unbroken = now.and_then(|place| self.journal.subscribe_after(place.seq));
        let told = now.filter(|_| unbroken.is_some()).map(|place| place.seq);
        // Events of this load are repeated from memory or not at all: lines do not record how items grew.
        let is_kept = |name: &str| !log.is(name) && log.is_same_incarnation(name);
        let has_turn = self.turn.is_some();
        let lines_upto = after
            .filter(|place| place.log.as_deref().is_some_and(is_kept))
            .and_then(|place| self.journal.lines_upto(has_turn).filter(|upto| place.seq.position() <= upto.position()));
        let feed = unbroken.or_else(|| lines_upto.and_then(|upto| self.journal.subscribe_after(upto)));
        Subscription {
            open_items: self.journal.open_items(told.or(lines_upto)),
            tokens: self.state.tokens.info.clone(),
            begins: FeedStart { log, last: self.journal.last(), is_unbroken: told.is_some(), lines_upto },
            feed: feed.unwrap_or_else(|| self.journal.subscribe()),
            settings: Arc::clone(&self.profile.settings),
            running: self.turn.as_ref().map(|turn| turn.id.clone()),
            asked: self.state.questions.clone(),
        }
    }

    /// Accepts input, unless it was accepted before.
    pub(super) async fn hear(&mut self, turn: TurnId, saying: TurnInput) -> TurnStart {
        let key = saying.key.clone();
        if let Some(known) = key.as_deref().and_then(|key| self.conversations.turn_of(key, &self.state)) {
            return TurnStart::Known(known);
        }
        let start = self.say(turn.clone(), saying).await;
        if let Some(key) = key {
            let taken_in_by = match &start {
                TurnStart::Joined(running) => running.clone(),
                TurnStart::Started | TurnStart::Known(_) => turn,
            };
            self.conversations.expect_key(key, taken_in_by, &self.state);
        }
        start
    }

    async fn say(&mut self, turn: TurnId, saying: TurnInput) -> TurnStart {
        let TurnInput { content, change, key } = saying;
        if self.conversations.has_bookmarks() {
            // The clients that use bookmarks expect input to interrupt the running turn.
            self.stop(Abort::Replaced).await;
        }
        if let Some(turn) = &self.turn {
            let joined = turn.id.clone();
            if change != SettingsChange::default() {
                let message = "the input joined the running turn, so its settings were not applied".to_owned();
                self.emit(Body::Warning { message });
            }
            let said = self.message(content, key).await;
            self.goals.goal.person_spoke();
            self.step(Input::UserSaid(said)).await;
            return TurnStart::Joined(joined);
        }
        self.profile.settings = Arc::new(self.profile.settings.changed(&change));
        let said = self.message(content, key).await;
        let (machine, effects) = Turn::start(&turn, said, self.window(), self.turn_policy(&self.profile.settings));
        self.begin(turn, machine, change.output_schema);
        self.goals.goal.person_spoke();
        self.tell_environment();
        self.perform(effects).await;
        TurnStart::Started
    }

    /// Adds items that a client supplies to the conversation; false while a turn is running.
    pub(super) async fn inject(&mut self, items: Vec<ResponseItem>) -> bool {
        if self.turn.is_some() {
            return false;
        }
        for record in items.into_iter().filter_map(|item| Record::new(item).ok()) {
            self.emit(Body::Recorded(record));
        }
        self.publish_durably().await;
        true
    }

    /// Compacts the conversation. A running turn is interrupted.
    async fn compact(&mut self, turn: TurnId) {
        self.stop(Abort::Replaced).await;
        let (machine, effects) = Turn::compact(&turn, self.window(), self.turn_policy(&self.profile.settings));
        self.begin(turn, machine, None);
        self.perform(effects).await;
    }

    /// Runs a shell command of the user in its own turn; false while another turn is running.
    async fn run_user_shell(&mut self, turn: TurnId, command: String, timeout: Option<Duration>) -> bool {
        if self.turn.is_some() {
            return false;
        }
        let call = calls::user_shell(command, timeout);
        let (machine, effects) = Turn::user_shell(&turn, call, self.window(), self.turn_policy(&self.profile.settings));
        self.begin(turn, machine, None);
        self.perform(effects).await;
        true
    }

    async fn set_goal(&mut self, change: GoalChange) -> Result<Goal, GoalError> {
        let goal = self.goals.set(change, &self.setup, self.turn.is_some())?;
        self.log_goal();
        self.publish_durably().await;
        Ok(goal)
    }

    async fn clear_goal(&mut self) -> bool {
        let had_one = self.goals.goal.clear();
        if had_one {
            self.emit(Body::GoalCleared);
            self.publish_durably().await;
        }
        had_one
    }

    /// Starts a review. A running turn is interrupted.
    async fn review(&mut self, turn: TurnId, request: ReviewRequest) {
        self.stop(Abort::Replaced).await;
        let prompt = review::prompt(&request.target);
        // Clients of the event queue learn the request to the reviewer only from the start of the review.
        let said = review::message(&prompt, self.setup.profile.history == HistoryMode::Full);
        let settings = Settings {
            approval_policy: AskForApproval::Never,
            sandbox_policy: SandboxPolicy::ReadOnly,
            model: self.setup.config.model.review.clone().unwrap_or_else(|| self.profile.settings.model.clone()),
            ..(*self.profile.settings).clone()
        };
        let (machine, effects) = Turn::start(&turn, said, self.window(), self.turn_policy(&settings));
        self.turn = Some(RunningTurn::new(turn, Arc::new(settings), machine, None));
        self.goals.goal.begin_turn();
        let hint = request.user_facing_hint.unwrap_or_else(|| review::hint(&request.target));
        self.emit(Body::ReviewEntered(Arc::new(ReviewEntered { target: request.target, hint, prompt })));
        self.conversations.begin_review(&mut self.profile.instructions);
        self.tell_model(Message::user(self.profile.environment.text()));
        self.perform(effects).await;
    }

    /// Rewinds the conversation to its state after an answer. A running turn is interrupted, unless there is no such
    /// bookmark.
    async fn go_back(&mut self, response: &str) -> RewindOutcome {
        if !self.conversations.has_bookmarks() {
            return RewindOutcome::NotKept;
        }
        let Some(place) = self.conversations.find_bookmark(response) else { return self.go_to_earlier(response).await };
        self.stop(Abort::Replaced).await;
        let Some((replacement, environment)) = self.conversations.go_back(place, &self.state) else {
            return RewindOutcome::Unknown;
        };
        self.profile.environment = environment;
        self.went_back(response, replacement).await
    }

    /// Continues from an answer of an earlier thread, perhaps of another run of the program.
    async fn go_to_earlier(&mut self, response: &str) -> RewindOutcome {
        let (store, name) = (Arc::clone(&self.setup.store), response.to_owned());
        let interrupted = interrupted(&self.setup);
        let found = read_blocking(move || store.history_after_answer(&name, interrupted)).await;
        let Some(History { state, .. }) = found.flatten() else { return RewindOutcome::Unknown };
        self.stop(Abort::Replaced).await;
        // The environment that the model knew there; the next turn reports a difference.
        if let Some(before) = state.settings.as_deref() {
            let told = told_under(before, &self.profile.settings);
            self.profile.environment = Environment::new(&told, shell_name(self.setup.shell.as_deref()));
        }
        self.conversations.window_used = 0;
        self.went_back(response, state.conversation.items().to_vec()).await
    }

    async fn went_back(&mut self, response: &str, replacement: Vec<ConversationItem>) -> RewindOutcome {
        self.emit(Body::WentBack { response_id: response.to_owned(), replacement });
        self.goals.goal.start_over();
        self.log_goal();
        self.publish().await;
        RewindOutcome::Gone
    }
}
