//! Other agents: the interface between threads and the component that runs the trees they belong to.
//!
//! Invariant: nothing here waits, except where a method says so.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use codex_config::{Config, Home};
use codex_log::agents::AgentsState;
use codex_log::history::SharedHistory;
use codex_log::settings::Settings;
use codex_log::{Body, Event};
use codex_wire::agent::MultiAgentVersion;
use codex_wire::budget::Used;
use codex_wire::ids::ThreadId;
use codex_wire::rollout::ThreadSpawn;
use futures_util::future::BoxFuture;
use tokio::sync::oneshot;

use crate::registry::ToolSource;
use crate::worktrees::Worktrees;

/// The agents of one thread, as a source of tools. The thread is gone when it is dropped.
pub trait ThreadAgents: ToolSource + fmt::Debug {
    /// Chooses the generation of its tools, by what the log of a resumed thread tells and what its model was trained on,
    /// and returns it if other releases know it. It is chosen once.
    fn settle_version(
        &self,
        stored: Option<MultiAgentVersion>,
        of_model: Option<MultiAgentVersion>,
    ) -> Option<MultiAgentVersion>;
    /// The thread has started, with these agents and settings. It needs a runtime.
    fn attach(&self, thread: ThreadId, agents: &AgentsState, settings: &Arc<Settings>);
    /// The file in the home folder with the instructions of its role, and the text if there is none.
    fn role(&self) -> (&'static str, &'static str);
    /// Waits for the next order. Cancel safe.
    fn next_order(&self) -> BoxFuture<'_, AgentOrder>;
    /// Whether mail waits.
    fn has_mail(&self) -> bool;
    /// Whether mail waits with which a turn goes on that would end.
    fn goes_on(&self) -> bool;
    /// Takes the mail in the order in which it is to be read, without mail that was read before.
    fn take_mail(&self, agents: &AgentsState, when: MailTime) -> Vec<Unread>;
    /// The user has said something while a turn runs.
    fn heard(&self);
    /// Notes that a turn that was ordered did not begin.
    fn rested(&self);
    /// Sees an event of the thread.
    fn observe(&self, event: &Event);
    /// The thread has used this much more, for which the agents above pay.
    fn charge(&self, used: Used);
    /// The settings of the thread have changed. Agents below it get no wider ones.
    fn settings_changed(&self, settings: &Arc<Settings>);
    /// Whether its tree is running, which starts with its first call or child.
    fn has_tree(&self) -> bool;
    /// Whether agents below are at work.
    fn is_busy(&self) -> bool;
    /// Cancels all agents below.
    fn cancel_below(&self, reason: &str);
    /// Ends all agents below, and returns the last events for the log.
    fn close(&self) -> BoxFuture<'static, Vec<Body>>;
}

/// The time at which mail is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MailTime {
    /// Between the calls of an answer and their outputs, where only calls can be: all other mail stays.
    BeforeOutputs,
    /// Before a request.
    BeforeRequest,
}

/// Mail that was taken.
#[derive(Debug, Clone)]
pub struct Unread {
    /// Its numbers.
    pub mail: Vec<u64>,
    pub form: UnreadForm,
}

/// The form in which the model is told mail.
#[derive(Debug, Clone)]
pub enum UnreadForm {
    /// A message of its user, which clients see too.
    User(String),
    /// A message that clients do not see.
    Note(String),
    /// A call that the model seems to have made, and its output.
    Call { call_id: String, tool: &'static str, arguments: String, output: String },
}

/// An order to a thread.
#[derive(Debug)]
pub enum AgentOrder {
    /// Append to the log.
    Log(Vec<Body>),
    /// Begin a turn, if none runs and mail waits.
    Wake,
    /// Stop the running turn.
    Stop,
    /// Count what agents below have used.
    Charge(Used),
    /// Use no wider policies than these, from the next call on.
    Tighten(Arc<Settings>),
    /// Share the history with a copy of the thread. There is none to share while the log cannot be saved.
    Share(oneshot::Sender<Option<Arc<SharedHistory>>>),
}

/// Runs trees of agents.
pub trait AgentTrees: Send + Sync + fmt::Debug {
    /// The agents of a thread that starts without a parent; none if its configuration offers no agents.
    fn open(
        &self,
        config: &Config,
        home: &Home,
        is_offered: bool,
        host: Arc<dyn ChildHost>,
    ) -> Option<Arc<dyn ThreadAgents>>;
}

/// Starts and ends the threads of agents.
pub trait ChildHost: Send + Sync {
    /// Starts a thread.
    fn start(&self, child: ChildStart) -> BoxFuture<'static, Result<ChildStarted, String>>;
    /// Ends a thread, if it runs.
    fn close(&self, thread: ThreadId) -> BoxFuture<'static, ()>;
    /// The worktrees of isolated agents.
    fn worktrees(&self) -> Arc<Worktrees>;
    /// The state of a thread in its log; none if it was not started by this parent. It reads files.
    fn stored(&self, thread: ThreadId, parent: ThreadId) -> Option<StoredChild>;
    /// The newest events in the log of a thread since a time in Unix milliseconds, oldest first, at most this many. It
    /// reads files, and never opens the thread.
    fn stored_events(&self, thread: ThreadId, since_ms: i64, most: usize) -> Vec<Event>;
}

/// The state in which a thread has started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ChildStarted {
    /// Whether it continues the turn that ran when the program ended.
    pub has_turn: bool,
    /// The number of items of its parent's conversation that it begins with.
    pub inherited: usize,
}

/// A child that does not run.
#[derive(Debug, Clone, Default)]
pub struct StoredChild {
    /// Its own agents.
    pub agents: AgentsState,
    /// Whether it continues its turn when it is started: the turn waits for a person, or for the account's allowance.
    pub goes_on: bool,
}

/// The start of an agent's thread.
#[derive(Clone)]
pub struct ChildStart {
    pub thread: ThreadId,
    pub history: ChildHistory,
    /// Its settings, unless it continues its own history.
    pub settings: Arc<Settings>,
    /// The thread at the root of the tree.
    pub root: ThreadId,
    pub spawn: ThreadSpawn,
    /// The instructions of its role.
    pub instructions: Option<String>,
    /// The folder of its parent, if it has a worktree of its own.
    pub isolated_from: Option<PathBuf>,
    pub agents: Arc<dyn ThreadAgents>,
}

impl fmt::Debug for ChildStart {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ChildStart").field("thread", &self.thread).finish_non_exhaustive()
    }
}

/// The initial history of an agent's thread.
#[derive(Debug, Clone)]
pub enum ChildHistory {
    Empty,
    /// A copy of its parent's, in which the call that made it has this output.
    Fork {
        call_id: String,
        output: String,
        /// Only its last turns, if a number is given.
        turns: Option<usize>,
        /// The history, unless it has to be read.
        shared: Option<Arc<SharedHistory>>,
    },
    /// Its own.
    Resume,
}
