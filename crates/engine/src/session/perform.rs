//! Performs the effects of turns and calls: appends to the log, asks the model, starts calls, and ends turns.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::SystemTime;

use codex_log::settings::Settings;
use codex_log::state::Tokens;
use codex_log::store::StoreError;
use codex_log::{Abort, Answer, Body, Outcome, Record, TurnId};
use codex_model::Prompt;
use codex_thread::{HistoryMode, QuestionName};
use codex_tools::call::ToolCall;
use codex_tools::lifecycle::CallEvent;
use codex_wire::conversation_item::ConversationItem;
use codex_wire::input::UserInput;
use codex_wire::response::{Message, ResponseItem};
use codex_wire::tokens::{BYTES_PER_TOKEN, RateLimitSnapshot, TokenUsage};
use codex_wire::tool_spec::ToolList;
use serde_json::Value;

use super::calls::meant;
use super::running::{RunningTurn, unsaved};
use super::{Session, tokens};
use crate::turn::{Effect, Input, Limit, Turn, TurnPolicy, UserMessage, Window};
use crate::work::{Work, unix_ms};

impl Session {
    pub(super) fn begin(&mut self, id: TurnId, machine: Turn, output_schema: Option<Value>) {
        let settings = Arc::clone(&self.profile.settings);
        if let Some(tools) = &self.calls.client_tools {
            tools.begin_turn(&id);
        }
        self.turn = Some(Box::new(RunningTurn::new(id, settings, machine, output_schema)));
        self.goals.goal.begin_turn();
        self.calls.hold_roots(&self.setup, &self.profile, self.turn.as_deref_mut());
    }

    pub(super) async fn step(&mut self, input: Input) {
        if let Some(running) = &mut self.turn {
            let effects = running.machine.step(input);
            self.perform(effects).await;
        }
    }

    /// Performs effects, and those that follow when a call ends as soon as it begins.
    pub(super) async fn perform(&mut self, effects: Vec<Effect>) {
        let mut effects = VecDeque::from(effects);
        while let Some(effect) = effects.pop_front() {
            match effect {
                Effect::Emit(body) => self.emit(body),
                Effect::Count { usage, rate_limits } => self.count(usage, rate_limits),
                Effect::NoteSettings => {
                    if let Some(outcome) = self.spend_request() {
                        return Box::pin(self.stop_with(outcome)).await;
                    }
                    self.emit(Body::ModelAsked(Arc::clone(self.turn_settings())));
                }
                Effect::TakeMail(when) => self.take_mail(when),
                Effect::AskModel => self.ask_model(),
                Effect::AskForSummary { halvings } => self.ask_for_summary(halvings),
                Effect::Compact(summary) => self.put_summary(summary),
                Effect::AskAgain => self.ask(None),
                Effect::Wait(delay) => self.work(Work::wait(delay)),
                Effect::WaitForLimit(limit) => self.wait_for_limit(limit),
                Effect::Run(call) => {
                    // Nothing is run that could not be recorded in the file, or that nothing is left for.
                    let saved = unsaved(self.journal.publish().await);
                    if let Some(outcome) = saved.or_else(|| self.refuse_call(&call)) {
                        return Box::pin(self.stop_with(outcome)).await;
                    }
                    for input in self.run_call(call) {
                        let Some(running) = &mut self.turn else { break };
                        effects.extend(running.machine.step(input));
                    }
                }
                Effect::Cancel => {
                    self.work(Work::Nothing);
                    self.calls.lifecycle.cancel();
                }
                Effect::BreakOff => {
                    let broken_off = self.journal.broken_off();
                    self.emit_all(broken_off.into_iter().map(Body::ItemInterrupted));
                }
                Effect::End(outcome) => {
                    let outcome = self.settle_turn(outcome);
                    return Box::pin(self.end(outcome)).await;
                }
            }
        }
        self.publish().await;
    }

    fn work(&mut self, work: Work) {
        if let Some(running) = &mut self.turn {
            running.work = work;
            running.wait = None;
        }
    }

    /// Logs events of a server, which belong to no turn.
    pub(super) async fn tell_outside_turns(&mut self, bodies: Vec<Body>) {
        for body in bodies {
            self.state.apply(self.journal.append(None, body));
        }
        self.publish().await;
    }

    /// Waits until the account's allowance is restored, and logs the time.
    fn wait_for_limit(&mut self, Limit { failure, after, goes_on }: Limit) {
        let until = SystemTime::now() + after;
        // A review has its own conversation, which is not stored.
        let goes_on = goes_on && !self.conversations.is_review();
        self.emit(Body::LimitReached { failure, until_ms: unix_ms(until), goes_on });
        self.work(Work::limit(after, until));
    }

    /// Adds a message of this program to the conversation.
    pub(super) fn tell_model(&mut self, message: Message) {
        if let Ok(record) = Record::new(ResponseItem::Message(message)) {
            self.emit(Body::Recorded(record));
        }
    }

    pub(super) fn emit(&mut self, body: Body) {
        match &body {
            Body::ItemStarted(item) => {
                if let (Some(said), Some(turn)) = (item.said(), &mut self.turn) {
                    turn.hear(&said.content);
                }
                if item.command().is_some_and(|command| !command.is_users_own) {
                    self.spend_command();
                }
            }
            Body::ItemCompleted(item) if item.is_served_by_provider() => self.goals.goal.act(),
            _ => {}
        }
        if self.conversations.keep_private(&body) || (self.setup.config.reasoning.hide && body.is_thought()) {
            return;
        }
        self.conversations.observe(&body, &self.state);
        let turn = self.turn.as_ref().map(|turn| turn.id.clone());
        let event = self.journal.append(turn, body);
        if let Some(agents) = &self.calls.agents {
            agents.observe(event);
        }
        self.state.apply(event);
    }

    pub(super) fn emit_all(&mut self, bodies: impl IntoIterator<Item = Body>) {
        for body in bodies {
            self.emit(body);
        }
    }

    pub(super) fn window(&self) -> Window {
        Window { size: self.context_window(), used: self.conversations.window_used }
    }

    /// The policy of a turn with these settings.
    pub(super) fn turn_policy(&self, settings: &Settings) -> TurnPolicy {
        let registry = self.calls.lifecycle.registry();
        let agents = self.calls.agents.as_ref();
        self.profile.turn_policy(&self.setup, settings, self.context_window(), registry, agents)
    }

    /// The settings of the running turn, or of the next one when none is running.
    pub(super) fn turn_settings(&self) -> &Arc<Settings> {
        self.turn.as_ref().map_or(&self.profile.settings, |turn| &turn.settings)
    }

    fn context_window(&self) -> Option<i64> {
        self.profile.context_window(&self.setup, self.turn_settings())
    }

    /// Builds the message of the user. The future does not borrow the session.
    pub(super) fn message(
        &self,
        content: Vec<UserInput>,
        key: Option<Arc<str>>,
    ) -> impl Future<Output = UserMessage> + use<> {
        self.profile.message(&self.setup, content, key, self.turn_settings().cwd.clone())
    }

    /// Informs the model of its environment, if that has changed.
    pub(super) fn tell_environment(&mut self) {
        for message in self.profile.renew_environment(&self.setup) {
            self.tell_model(message);
        }
    }

    fn prompt(&self, input: Vec<ConversationItem>, tools: Arc<ToolList>) -> Prompt {
        self.profile.prompt(&self.setup, self.started.meta.id, self.turn_settings(), input, tools)
    }

    /// Asks the model to continue, with all its tools.
    fn ask_model(&mut self) {
        let wait = self.calls.servers.as_ref().and_then(|servers| servers.before_turn());
        if let (Some(wait), Some(turn)) = (wait, &mut self.turn) {
            turn.wait = Some(wait);
            return;
        }
        if !self.conversations.is_review()
            && let Some(text) = self.goals.goal.note()
        {
            self.tell_model(Message::user(text));
        }
        let offer = self.profile.offer(&self.setup, self.turn_settings(), self.offers_goal_tool());
        self.calls.lifecycle.thread().set_asks_permissions(offer.asks_permissions);
        let tools = self.calls.lifecycle.registry().snapshot().list(offer);
        let output_schema = self.turn.as_ref().and_then(|turn| turn.output_schema.clone());
        let input = self.conversations.current(&self.state).items().to_vec();
        let prompt = Prompt { output_schema, ..self.prompt(input, tools) };
        self.ask(Some(prompt));
    }

    /// Asks for a summary: the conversation without tools, and the instructions for the summary.
    fn ask_for_summary(&mut self, halvings: u32) {
        let prompt = self.prompt(self.conversations.input_for_summary(halvings, &self.state), ToolList::of(Vec::new()));
        self.ask(Some(Prompt { parallel_tool_calls: false, ..prompt }));
    }

    fn ask(&mut self, prompt: Option<Prompt>) {
        if let Some(turn) = &mut self.turn {
            turn.ask(&self.setup, prompt);
        }
    }

    fn count(&mut self, usage: Option<TokenUsage>, rate_limits: Option<RateLimitSnapshot>) {
        if let Some(usage) = usage {
            self.conversations.window_used = usage.tokens_in_window();
        }
        let price = self.setup.config.price_of(&self.turn_settings().model);
        let rules = tokens::CountRules {
            window: self.context_window(),
            price,
            begins_turn: self.turn.as_ref().is_some_and(|turn| !turn.is_counted),
        };
        let tokens = tokens::after_answer(self.state.tokens.clone(), usage, rate_limits, &rules);
        if let Some(turn) = &mut self.turn {
            turn.is_counted |= tokens.info.is_some();
        }
        self.tell_tokens(tokens);
        if let Some(usage) = usage {
            self.spend_answer(usage.total_tokens, price.map_or(0.0, |price| price.of(&usage)));
        }
        let charged = usage.and_then(|usage| self.goals.charge(usage.total_tokens));
        self.budget_charged(charged);
    }

    fn tell_tokens(&mut self, tokens: Tokens) {
        let Tokens { info, rate_limits } = tokens;
        self.emit(Body::TokensCounted { info, rate_limits: rate_limits.map(Box::new) });
    }

    fn put_summary(&mut self, summary: String) {
        let history = self.setup.profile.history;
        let compacted = self.conversations.compact(summary, &self.state, self.state.plan.as_ref(), history);
        let after = compacted.after;
        self.emit(Body::Compacted(compacted));
        if let Some(mode) = self.profile.environment.mode() {
            self.tell_model(mode);
        }
        if !self.conversations.is_review() {
            self.goals.goal.start_over();
            self.log_goal();
            self.log_agents();
            self.log_queue();
            self.log_used();
        }
        if history == HistoryMode::Full {
            // Clients show the tokens in the window, which has been emptied.
            let count = after + self.profile.instructions.len() / BYTES_PER_TOKEN;
            self.tell_tokens(tokens::estimated(self.state.tokens.clone(), count));
        }
    }

    /// Saves and publishes the appended events. A turn that cannot be saved fails.
    pub(super) async fn publish(&mut self) {
        if let Some(outcome) = unsaved(self.journal.publish().await) {
            Box::pin(self.stop_with(outcome)).await;
        }
    }

    /// Saves and publishes the events outside of turns, durably. The journal reports a failed write.
    pub(super) async fn publish_durably(&mut self) {
        let _: Result<(), StoreError> = self.journal.publish_durably().await;
    }

    /// Starts a call. Returns the input for the turn if the call has already ended.
    pub(super) fn run_call(&mut self, call: ToolCall) -> Vec<Input> {
        let is_offered = self.offers_goal_tool();
        self.goals.note_call(&call, is_offered);
        self.calls.lifecycle.thread().set_offers_goal(is_offered);
        // The answer that led to it is complete.
        self.work(Work::Nothing);
        let cx = self.calls.context(&self.setup, &self.profile, self.turn.as_deref_mut());
        let events = self.calls.lifecycle.begin(call, &cx);
        self.take_call_events(events)
    }

    /// Processes the events of calls.
    pub(super) async fn called(&mut self, events: Vec<CallEvent>) {
        let inputs = self.take_call_events(events);
        if inputs.is_empty() {
            return self.publish().await;
        }
        for input in inputs {
            self.step(input).await;
        }
    }

    /// Logs the events of calls, and returns the inputs for the turn.
    fn take_call_events(&mut self, events: Vec<CallEvent>) -> Vec<Input> {
        let (mut inputs, mut failed) = (Vec::new(), Vec::new());
        for event in events {
            match event {
                CallEvent::Emit(body) => self.emit(body),
                CallEvent::Failed(id) => failed.push(id),
                CallEvent::GoalReported(status) => {
                    let changed = self.goals.report(status);
                    self.emit_all(changed);
                }
                CallEvent::Ended(id, output) => {
                    let has_failed = failed.contains(&id);
                    inputs.push(Input::CallEnded(id, output, has_failed));
                }
                CallEvent::TurnStopped => {
                    // The other calls end with it.
                    let outputs = self.cut_off_calls();
                    inputs.push(Input::Stop(Outcome::Aborted(Abort::Interrupted), outputs));
                }
            }
        }
        inputs
    }

    /// Passes an answer to the call that waits for it; false if none does.
    pub(super) async fn answer(&mut self, name: &QuestionName, answer: Answer) -> bool {
        let turn = self.turn.as_ref().map(|turn| &turn.id);
        let Some(question) = meant(&self.state.questions, name, turn) else { return false };
        let Some(events) = self.calls.lifecycle.answer(&question.id, answer) else { return false };
        self.called(events).await;
        true
    }

    /// Whether the model is offered the tool for goals: a goal is active, and the model is not the reviewer.
    fn offers_goal_tool(&self) -> bool {
        self.goals.goal.is_active() && !self.conversations.is_review()
    }

    /// Logs a change of the goal.
    pub(super) fn log_goal(&mut self) {
        let changed = self.goals.changed();
        self.emit_all(changed);
    }
}
