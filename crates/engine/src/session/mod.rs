//! The task that owns a thread: it feeds the turn machine and performs its effects.
//!
//! A session consists of parts that do not know each other: the methods of a part take what they need as parameters and
//! return events to publish. They meet only here, in [`perform`], [`ending`],
//! [`requests`], [`spending`] and [`tree`].

mod calls;
mod conversations;
mod ending;
mod goals;
mod perform;
mod profile;
mod queue;
mod requests;
mod running;
mod spending;
mod tokens;
mod tree;

use std::sync::Arc;

use codex_log::state::{ThreadState, Tokens};
use codex_log::{Body, Outcome, Record, ThreadStarted};
use codex_thread::{Feed, InitialHistory, Thread, ThreadRequest};
use codex_tools::agents::AgentOrder;
use codex_tools::lifecycle::CallEvent;
use codex_wire::response::{Message, ResponseItem};
use tokio::sync::mpsc;
use tokio::time::sleep;

use self::calls::Calls;
use self::conversations::Conversations;
use self::goals::Goals;
use self::profile::Profile;
use self::running::RunningTurn;
use crate::budget::Budget;
use crate::environment::{Environment, shell_name};
use crate::goal::GoalState;
use crate::journal::{Alarm, Journal};
use crate::open_error::OpenError;
use crate::prepared_thread::{PreparedThread, ResumedWork};
use crate::resume::UnfinishedCalls;
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
    /// The running turn. It is boxed, because most threads of a server have none.
    turn: Option<Box<RunningTurn>>,
    calls: Calls,
    goals: Goals,
    budget: Budget,
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
    /// The tree of agents has an order.
    Agents(AgentOrder),
    /// The wait for servers is over, or has failed.
    ToolsReady(Option<Outcome>),
    Alarm(Alarm),
    /// The time of the turn has to be counted.
    BudgetDue,
    /// No turn is running, no request is pending, and there is input in the queue or the goal is not reached.
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
            cache_key,
            continued,
            role,
        } = PreparedThread::prepare(&setup).await?;
        let is_copy = matches!(setup.initial_history, InitialHistory::Forked { .. } | InitialHistory::Shared { .. });
        let given = std::mem::take(&mut setup.initial_history).given();
        journal.keep_recent(setup.recent_bytes);
        let feed = journal.subscribe();
        state.apply(journal.append(None, Body::ThreadStarted(Box::new(started.clone()))));
        let (settings, started) = (Arc::clone(&started.settings), Arc::new(started));
        let (thread, inbox) = Thread::new(Arc::clone(&started));
        let environment = Environment::new(&settings, shell_name(setup.shell.as_deref()));
        let mut session = Self {
            budget: spending::budget_of(&setup, &state, is_copy),
            calls: Calls::new(rules, &setup, &started.meta),
            profile: Profile { settings, environment, instructions, skills, models, cache_key },
            setup,
            started,
            state,
            conversations: Conversations::default(),
            goals: Goals::default(),
            is_finishing: false,
            journal,
            turn: None,
            inbox,
        };
        session.calls.hold_roots(&session.setup, &session.profile, None);
        session.attach_agents();
        match continued {
            Some(continued) => {
                session.go_on(*continued, is_copy).await;
                session.begin_as_fork(role);
            }
            None => session.begin_conversation(preface, given),
        }
        let unenforced = codex_sandbox::unenforced_memory_limit(session.setup.config.sandbox.most_memory);
        let unenforced = unenforced.map(|why| format!("`limits.memory` is not enforced: {why}"));
        let warnings = warnings.into_iter().chain(unenforced);
        warnings.for_each(|message| session.emit(Body::Warning { message }));
        if let Err(error) = session.journal.publish_durably().await {
            if !session.started.is_resumed || is_copy {
                session.journal.delete();
            }
            return Err(error.into());
        }
        Ok((session, thread, feed))
    }

    /// Whether a turn runs.
    pub(crate) fn has_turn(&self) -> bool {
        self.turn.is_some()
    }

    /// The number of items of another conversation that it began with, as an agent.
    pub(crate) fn inherited(&self) -> usize {
        self.conversations.inherited
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

    pub(super) async fn go_on(&mut self, continued: ResumedWork, is_copy: bool) {
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
        self.settle_queue(is_copy, unfinished.is_some());
        if is_copy {
            self.forget_used();
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

    /// Serves the thread until it is closed or its last handle is dropped. Rare futures are boxed, so that an idle thread
    /// needs little memory.
    pub(crate) async fn run(mut self: Box<Self>) {
        let mut closing = Vec::new();
        let mut retired = None;
        let mut steps = 0_u32;
        while self.turn.is_some() || closing.is_empty() {
            // A model that streams without a pause must not delay others. To yield more often would cost more.
            steps = steps.wrapping_add(1);
            if steps.is_multiple_of(STEPS_AT_ONCE) {
                tokio::task::yield_now().await;
            }
            match self.wake().await {
                Wake::Arrived(input) => self.step(input).await,
                Wake::Called(events) => Box::pin(self.called(events)).await,
                Wake::Server(body) => self.tell_outside_turns(vec![body]).await,
                Wake::Agents(order) => Box::pin(self.obey_tree(order)).await,
                Wake::ToolsReady(None) => Box::pin(self.perform(vec![Effect::AskModel])).await,
                Wake::ToolsReady(Some(failed)) => Box::pin(self.stop_with(failed)).await,
                Wake::BudgetDue => Box::pin(self.budget_due()).await,
                Wake::Alarm(Alarm::DraftDue) => self.journal.write_draft(),
                Wake::Alarm(Alarm::Wanted) => Box::pin(self.lend()).await,
                Wake::Alarm(Alarm::Revoked(reason)) => {
                    Box::pin(self.stop_with(running::revoked(reason))).await;
                    break;
                }
                Wake::Request(Some(ThreadRequest::Finish { reply })) => {
                    self.expect_no_answers();
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
                Wake::Request(Some(request)) => Box::pin(self.take_back_for(request)).await,
                Wake::Idle => Box::pin(self.start_next()).await,
                Wake::Request(None) => {
                    Box::pin(self.close_turn()).await;
                    break;
                }
            }
        }
        Box::pin(self.close_log()).await;
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
        self.count_time();
        let budget_due = self.budget.due_in();
        let is_lendable = self.is_lendable();
        match &mut self.turn {
            // Requests first: an interrupt must not wait behind a flood of deltas.
            Some(turn) => tokio::select! {
                biased;
                request = self.inbox.recv() => Wake::Request(request.map(|request| *request)),
                alarm = self.journal.alarm(), if self.journal.has_alarm() => Wake::Alarm(alarm),
                order = Calls::next_order(self.calls.agents.as_ref()) => Wake::Agents(order),
                arrived = turn.work.next() => Wake::Arrived(arrived),
                failed = RunningTurn::tools_ready(&mut turn.wait) => Wake::ToolsReady(failed),
                events = self.calls.lifecycle.next() => Wake::Called(events),
                body = Calls::next_server_event(self.calls.servers.as_ref()) => Wake::Server(body),
                () = sleep(budget_due.unwrap_or_default()), if budget_due.is_some() => Wake::BudgetDue,
            },
            // Requests that have arrived in the meantime go first.
            None if self.state.queue.is_due() || self.goals.goal.is_due() => match self.inbox.try_recv() {
                Ok(request) => Wake::Request(Some(*request)),
                Err(mpsc::error::TryRecvError::Empty) => Wake::Idle,
                Err(mpsc::error::TryRecvError::Disconnected) => Wake::Request(None),
            },
            None => tokio::select! {
                biased;
                request = self.inbox.recv() => Wake::Request(request.map(|request| *request)),
                alarm = self.journal.claimed(is_lendable) => Wake::Alarm(alarm),
                order = Calls::next_order(self.calls.agents.as_ref()) => Wake::Agents(order),
                body = Calls::next_server_event(self.calls.servers.as_ref()) => Wake::Server(body),
            },
        }
    }
}
