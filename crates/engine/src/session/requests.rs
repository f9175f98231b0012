//! Serves the requests of clients.

use std::sync::Arc;
use std::time::Duration;

use codex_log::history::History;
use codex_log::queue::{QueueEvent, QueueState, QueuedInput};
use codex_log::settings::{Settings, SettingsChange};
use codex_log::{Abort, Body, Outcome, Record, ReviewEntered, Seq, TurnId};
use codex_thread::goal::{GoalChange, GoalError};
use codex_thread::queue::{QueueError, QueueRequest};
use codex_thread::{
    Cursor, FeedStart, HistoryMode, PermissionsRequest, RewindOutcome, Subscription, TerminalsRequest, ThreadRequest,
    TurnInput, TurnStart,
};
use codex_tools::images::read_blocking;
use codex_wire::conversation_item::ConversationItem;
use codex_wire::goal::Goal;
use codex_wire::ids::ThreadId;
use codex_wire::policy::{AskForApproval, SandboxPolicy};
use codex_wire::response::{Message, ResponseItem};
use codex_wire::review::ReviewRequest;

use super::Session;
use super::calls::{self, give};
use super::queue;
use super::running::RunningTurn;
use crate::context;
use crate::environment::{Environment, shell_name};
use crate::prepared_thread::{interrupted, told_under};
use crate::review;
use crate::turn::{Input, Turn, UserMessage};

impl Session {
    pub(super) async fn obey(&mut self, request: ThreadRequest) {
        match request {
            ThreadRequest::Say { turn, input, reply } => give(reply, self.hear(turn, *input).await),
            ThreadRequest::Configure { change, reply } => {
                self.change_settings(&change);
                give(reply, Arc::clone(&self.profile.settings));
            }
            ThreadRequest::Reconfigure { change, reply } => {
                self.stop(Abort::Interrupted).await;
                self.conversations.keep_bookmarks();
                self.change_settings(&change);
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
            ThreadRequest::Interrupt { keeps_agents, reply } => give(reply, self.interrupt(keeps_agents).await),
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
            ThreadRequest::Terminals(request) => self.serve_terminals(request).await,
            ThreadRequest::Queue(request) => self.serve_queue(request).await,
            ThreadRequest::Agents { reply } => give(reply, Box::new(self.state.agents.clone())),
            ThreadRequest::Permissions(request) => self.serve_permissions(request),
            ThreadRequest::OfferToolClient { client, reply } => self.calls.offer_client(client, reply),
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

    async fn serve_terminals(&mut self, request: TerminalsRequest) {
        match request {
            TerminalsRequest::List { reply } => {
                let (open, told) = self.calls.lifecycle.terminals().await;
                self.tell_outside_turns(told).await;
                give(reply, open);
            }
            TerminalsRequest::End { process, reply } => {
                let ended = self.calls.lifecycle.end_terminal(process);
                let is_ended = ended.is_some();
                self.tell_outside_turns(ended.into_iter().collect()).await;
                give(reply, is_ended);
            }
            TerminalsRequest::EndAll { reply } => {
                let ended = self.calls.lifecycle.end_terminals();
                self.tell_outside_turns(ended).await;
                give(reply, ());
            }
        }
    }

    fn serve_permissions(&mut self, request: PermissionsRequest) {
        match request {
            PermissionsRequest::List { reply } => give(reply, self.calls.lifecycle.permissions()),
            PermissionsRequest::Forecast { command, reply } => {
                let cx = self.calls.context(&self.setup, &self.profile, self.turn.as_deref_mut());
                give(reply, self.calls.lifecycle.forecast(&command, &cx));
            }
            PermissionsRequest::Revoke { grant, reply } => give(reply, self.calls.lifecycle.revoke(&grant)),
            PermissionsRequest::RemoveRule { rule, reply } => {
                give(reply, self.calls.lifecycle.remove_rule(&rule, &self.setup.home));
            }
        }
    }

    fn subscribe(&mut self, after: Option<&Cursor>) -> Subscription {
        let log = self.journal.log();
        let now = after.filter(|place| place.log.as_deref().is_none_or(|name| log.is(name)));
        // Clients hear a child from its beginning, or from where it goes on.
        let loaded = self.journal.whole_since().filter(|_| self.setup.child.is_some());
        let seen = now.map(|place| if place.seq == Seq::default() { loaded.unwrap_or_default() } else { place.seq });
        let unbroken = seen.and_then(|seq| self.journal.subscribe_after(seq));
        let told = seen.filter(|_| unbroken.is_some());
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
                TurnStart::Started | TurnStart::Known(_) | TurnStart::Refused(_) => turn,
            };
            self.conversations.expect_key(key, taken_in_by, &self.state);
        }
        start
    }

    /// Notes that the client has disconnected, so that questions can only be denied.
    pub(super) fn expect_no_answers(&mut self) {
        self.is_finishing = true;
        self.calls.lifecycle.expect_no_answers();
    }

    /// Changes the settings of later turns. Agents below get no wider ones.
    fn change_settings(&mut self, change: &SettingsChange) {
        let changed = Arc::new(self.profile.settings.changed(change));
        if let Some(agents) = self.calls.agents.as_ref().filter(|_| changed != self.profile.settings) {
            agents.settings_changed(&changed);
        }
        self.profile.settings = changed;
    }

    async fn say(&mut self, turn: TurnId, saying: TurnInput) -> TurnStart {
        let TurnInput { content, change, key, context } = saying;
        let context = context::messages(context);
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
            let said = UserMessage { context, ..self.message(content, key).await };
            self.goals.goal.person_spoke();
            if let Some(agents) = &self.calls.agents {
                agents.heard();
            }
            self.step(Input::UserSaid(said)).await;
            return TurnStart::Joined(joined);
        }
        self.change_settings(&change);
        let said = UserMessage { context, ..self.message(content, key).await };
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
        self.turn = Some(Box::new(RunningTurn::new(turn, Arc::new(settings), machine, None)));
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
        self.log_agents();
        self.log_queue();
        self.log_used();
        self.publish().await;
        RewindOutcome::Gone
    }

    async fn serve_queue(&mut self, request: QueueRequest) {
        match request {
            QueueRequest::List { reply } => give(reply, self.state.queue.clone()),
            QueueRequest::Add { entry, reply } => give(reply, self.enqueue(*entry).await),
            QueueRequest::Update { id, input, reply } => {
                let change = queue::update(&self.state.queue, id.clone(), input);
                give(reply, self.change_entry(&id, change).await);
            }
            QueueRequest::Delete { id, reply } => {
                let is_known = self.state.queue.entry(&id).is_some();
                if is_known {
                    self.change_queue(QueueEvent::Removed { id }).await;
                }
                give(reply, is_known);
            }
            QueueRequest::Reorder { ids, reply } => match queue::reorder(&self.state.queue, ids) {
                Ok(ordered) => {
                    self.change_queue(ordered).await;
                    give(reply, Ok(()));
                }
                Err(error) => give(reply, Err(error)),
            },
            QueueRequest::Start { id, reply } => give(reply, self.start_queue(id).await),
        }
    }

    /// Adds an entry, unless a message with the same key is known.
    async fn enqueue(&mut self, entry: QueuedInput) -> Result<Arc<QueuedInput>, QueueError> {
        let mut entries = self.state.queue.entries.iter();
        if let Some(known) = entries.find(|known| known.client_id == entry.client_id) {
            return Ok(Arc::clone(known));
        }
        if let Some(turn) = self.conversations.turn_of(&entry.client_id, &self.state) {
            return Ok(Arc::new(QueuedInput { id: turn.as_str().to_owned(), ..entry }));
        }
        let id = entry.id.clone();
        let change = queue::add(&self.state.queue, entry);
        self.change_entry(&id, change).await
    }

    /// Changes an entry, and returns it as it is then.
    async fn change_entry(
        &mut self,
        id: &str,
        change: Result<QueueEvent, QueueError>,
    ) -> Result<Arc<QueuedInput>, QueueError> {
        self.change_queue(change?).await;
        self.state.queue.entry(id).cloned().ok_or_else(|| QueueError::Unknown { id: id.to_owned() })
    }

    /// Logs a change of the queue, which belongs to no turn.
    async fn change_queue(&mut self, change: QueueEvent) {
        self.state.apply(self.journal.append(None, Body::Queue(Arc::new(change))));
        self.publish_durably().await;
    }

    /// Starts the turn of an entry, and resumes the queue.
    async fn start_queue(&mut self, id: Option<String>) -> Result<TurnId, QueueError> {
        let queue = &self.state.queue;
        let entry = match &id {
            Some(id) => queue.entry(id).ok_or_else(|| QueueError::Unknown { id: id.clone() }),
            None => queue.entries.first().ok_or(QueueError::Empty),
        };
        let entry = Arc::clone(entry?);
        if self.turn.is_some() {
            return Err(QueueError::Running);
        }
        if self.state.queue.is_paused {
            self.change_queue(QueueEvent::Resumed).await;
        }
        Ok(self.start_entry(&entry).await)
    }

    async fn start_entry(&mut self, entry: &QueuedInput) -> TurnId {
        let key = Some(entry.client_id.as_str().into());
        let input = TurnInput { content: entry.input.clone(), key, ..TurnInput::default() };
        let start = self.hear(entry.turn(), input).await;
        // The entry is gone once its message is in the log; this tells clients.
        self.change_queue(QueueEvent::Removed { id: entry.id.clone() }).await;
        match start {
            TurnStart::Started | TurnStart::Refused(_) => entry.turn(),
            TurnStart::Joined(turn) | TurnStart::Known(turn) => turn,
        }
    }

    /// Starts the turn that an idle thread starts by itself: for what a person has queued, or for the goal.
    pub(super) async fn start_next(&mut self) {
        match self.state.queue.entries.first().cloned().filter(|_| self.state.queue.is_due()) {
            Some(entry) => drop(self.start_entry(&entry).await),
            None => self.pursue().await,
        }
    }

    /// Pauses the queue of a thread that is loaded again, unless its turn continues: nobody may have expected the next
    /// turn. The queue of the original thread is not that of its copy.
    pub(super) fn settle_queue(&mut self, is_copy: bool, is_running: bool) {
        if self.state.queue.is_empty() {
            return;
        }
        if is_copy {
            self.emit(Body::Queue(Arc::new(QueueState::default().whole())));
        } else if !is_running && !self.state.queue.is_paused {
            self.emit(Body::Queue(Arc::new(QueueEvent::Paused)));
        }
    }

    /// Pauses the queue after a turn that was interrupted or failed.
    pub(super) fn pause_queue_after(&mut self, outcome: &Outcome) {
        if self.state.queue.is_due() && queue::is_paused_by(outcome) {
            self.emit(Body::Queue(Arc::new(QueueEvent::Paused)));
        }
    }

    /// Tells the queue again after a compaction: readers of the file begin there.
    pub(super) fn log_queue(&mut self) {
        if !self.state.queue.is_empty() {
            self.emit(Body::Queue(Arc::new(self.state.queue.whole())));
        }
    }

    /// Starts a turn for the goal.
    async fn pursue(&mut self) {
        let turn = TurnId::new(ThreadId::fresh().to_string());
        let said = self.goals.next_step();
        let (machine, effects) = Turn::start(&turn, said, self.window(), self.turn_policy(&self.profile.settings));
        self.begin(turn, machine, None);
        self.goals.goal.begin_own();
        self.tell_environment();
        self.perform(effects).await;
    }
}
