//! The threads of agents: started, closed and read like any other.

use std::fmt;
use std::sync::Arc;

use codex_log::agents::AgentsState;
use codex_log::history::ForkPoint;
use codex_log::settings::{Settings, SettingsChange};
use codex_log::state::Interrupted;
use codex_thread::{ClientAdditions, ExplicitOverrides, InitialHistory, LoadedThreads};
use codex_tools::agents::{AgentTrees, ChildHistory, ChildHost, ChildStart};
use codex_wire::ids::ThreadId;
use futures_util::future::BoxFuture;

use crate::local_host::Loaded;
use crate::setup::Setup;

/// The number of bytes of an agent's newest events that are kept.
const RECENT_BYTES: usize = 32 * 1024;

impl Setup {
    /// Lets the thread start other agents, if its configuration wants that, and returns the place where their threads
    /// are loaded. Its client has to answer their questions too.
    pub fn offer_agents(&mut self, trees: &dyn AgentTrees) -> Arc<dyn LoadedThreads> {
        let loaded = Arc::<Loaded>::default();
        self.offer_agents_in(trees, &loaded);
        loaded
    }

    /// The same, where the threads of agents are loaded with others.
    pub(crate) fn offer_agents_in(&mut self, trees: &dyn AgentTrees, loaded: &Arc<Loaded>) {
        let is_unsaved = matches!(self.initial_history, InitialHistory::Unsaved(_));
        let setup = Self { agents: None, initial_history: InitialHistory::New, ..self.clone() };
        let children = Arc::new(Children { setup, loaded: Arc::clone(loaded), is_unsaved });
        self.agents = trees.open(&self.config, self.profile.offers_agents, children);
    }
}

/// Starts the children of one root.
struct Children {
    /// The setup of the root, without its history.
    setup: Setup,
    loaded: Arc<Loaded>,
    is_unsaved: bool,
}

impl fmt::Debug for Children {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Children").finish_non_exhaustive()
    }
}

impl Children {
    fn setup_of(&self, child: ChildStart) -> Setup {
        let explicit = ExplicitOverrides { cwd: true, model: true, approval_policy: true, sandbox_policy: true };
        let (thread, parent) = (child.thread, child.spawn.parent_thread_id);
        let history = match &child.history {
            ChildHistory::Empty => InitialHistory::New,
            ChildHistory::Fork { .. } => InitialHistory::Forked { thread: parent, point: ForkPoint::End, explicit },
            ChildHistory::Resume => InitialHistory::Resumed { thread, explicit: ExplicitOverrides::default() },
        };
        let initial_history = if self.is_unsaved { InitialHistory::Unsaved(Box::new(history)) } else { history };
        Setup {
            // Clients of the root subscribe a moment later, and see everything from the beginning.
            recent_bytes: self.setup.recent_bytes.max(RECENT_BYTES),
            cwd: child.settings.cwd.clone(),
            agents: Some(Arc::clone(&child.agents)),
            child: Some(Arc::new(child)),
            initial_history,
            additions: ClientAdditions::default(),
            ..self.setup.clone()
        }
    }
}

impl ChildHost for Children {
    fn start(&self, child: ChildStart) -> BoxFuture<'static, Result<(), String>> {
        let (loaded, id) = (Arc::clone(&self.loaded), child.thread);
        let setup = self.setup_of(child);
        Box::pin(async move {
            let _turn = loaded.turn_to_open(id).await;
            if loaded.get(id).is_some_and(|thread| !thread.has_ended()) {
                return Err("its thread is open in another client".to_owned());
            }
            let (thread, _) = setup.start().await.map_err(|error| error.to_string())?;
            loaded.add(thread);
            Ok(())
        })
    }

    fn close(&self, thread: ThreadId) -> BoxFuture<'static, ()> {
        let loaded = Arc::clone(&self.loaded);
        Box::pin(async move {
            if let Some(thread) = loaded.remove(thread) {
                thread.close().await;
            }
        })
    }

    fn tighten(&self, thread: ThreadId, settings: Arc<Settings>) -> BoxFuture<'static, ()> {
        let loaded = self.loaded.get(thread);
        Box::pin(async move {
            let Some(thread) = loaded else { return };
            let change = SettingsChange {
                approval_policy: Some(settings.approval_policy),
                sandbox_policy: Some(settings.sandbox_policy.clone()),
                ..SettingsChange::default()
            };
            // One that has ended needs no policies.
            let _: Result<_, _> = thread.configure(change).await;
        })
    }

    fn agents_of(&self, thread: ThreadId) -> Option<AgentsState> {
        let history = self.setup.store.history(thread, Interrupted::Kept).ok()?;
        Some(history.state.agents)
    }
}
