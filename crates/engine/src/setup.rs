//! The setup of a thread, and its start.

use std::path::PathBuf;
use std::sync::Arc;

use codex_config::{BudgetConfig, Config, Home};
use codex_log::store::ThreadStore;
use codex_model::Model;
use codex_thread::{ClientAdditions, ClientProfile, Feed, InitialHistory, StartError, Thread};
use codex_tools::agents::{ChildStart, ChildStarted, ThreadAgents};
use codex_tools::servers::ServerAccess;
use codex_wire::ids::ThreadId;
use codex_wire::rollout::SessionSource;

use crate::session::Session;
use crate::tree_requests::{self, AgentRequests, Place, TreeRequests};

/// The setup of a thread.
#[derive(Clone)]
pub struct Setup {
    /// The user's configuration.
    pub config: Arc<Config>,
    pub home: Home,
    pub store: Arc<dyn ThreadStore>,
    pub cwd: PathBuf,
    pub model: Arc<dyn Model>,
    /// The program that drives it, as sent to the provider.
    pub originator: String,
    /// The kind of program that drives it, as stored in the rollout.
    pub source: SessionSource,
    /// The user's shell, from the environment.
    pub shell: Option<String>,
    /// A folder of programs that takes precedence over the `PATH` of commands, with programs such as `apply_patch`.
    pub programs: Option<PathBuf>,
    /// The expectations of its clients.
    pub profile: ClientProfile,
    /// Replaces the built-in instructions.
    pub base_instructions: Option<Arc<str>>,
    pub initial_history: InitialHistory,
    /// Data of its client, if it is new.
    pub additions: ClientAdditions,
    /// The number of bytes of its latest events that are kept for clients that reconnect; see
    /// [`Thread::subscribe_after`].
    pub recent_bytes: usize,
    pub servers: Option<ServerAccess>,
    /// The other agents of its tree.
    pub agents: Option<Arc<dyn ThreadAgents>>,
    /// The limits of this run, which count only what it uses itself.
    pub run_budget: BudgetConfig,
    /// The requests of its tree.
    pub requests: Option<Arc<TreeRequests>>,
    /// The start of a child.
    pub child: Option<Arc<ChildStart>>,
}

impl Setup {
    /// Starts a thread. It is on disk when this returns, unless it is ephemeral.
    ///
    /// # Errors
    /// If the working directory does not exist, the history cannot be read, or the thread cannot be saved.
    pub async fn start(self) -> Result<(Thread, Feed), StartError> {
        let (session, thread, feed) = Session::start(self).await?;
        tokio::spawn(Box::new(session).run());
        Ok((thread, feed))
    }

    /// A place for a request of the thread to a model; none if it needs none.
    pub(crate) fn place(&self, model: &str) -> Option<Place> {
        tree_requests::place(self.requests.as_ref(), self.agent(), &self.config, model)
    }

    /// The requests that are made for the thread elsewhere.
    pub(crate) fn requests_of_agent(&self) -> AgentRequests {
        AgentRequests { tree: self.requests.clone(), agent: self.agent(), config: Arc::clone(&self.config) }
    }

    fn agent(&self) -> Option<ThreadId> {
        self.child.as_ref().map(|child| child.thread)
    }

    /// Starts the thread of a child.
    pub(crate) async fn start_child(self) -> Result<(Thread, ChildStarted), StartError> {
        let (session, thread, _) = Session::start(self).await?;
        let started = ChildStarted { has_turn: session.has_turn(), inherited: session.inherited() };
        tokio::spawn(Box::new(session).run());
        Ok((thread, started))
    }
}
