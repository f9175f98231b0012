//! The threads of agents: started, closed and read like any other.

use std::collections::VecDeque;
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Once};

use codex_config::Config;
use codex_config::project_doc::repository_root;
use codex_log::Event;
use codex_log::decode::{Decoder, Wanted};
use codex_log::history::ForkPoint;
use codex_log::state::{Interrupted, ThreadState};
use codex_log::store::{Entry, ReadFrom, StoreError, StoreErrorKind, ThreadStore};
use codex_thread::{ClientAdditions, ExplicitOverrides, InitialHistory, LoadedThreads};
use codex_tools::agents::{AgentTrees, ChildHistory, ChildHost, ChildStart, ChildStarted, StoredChild};
use codex_tools::worktrees::Worktrees;
use codex_wire::ids::ThreadId;
use futures_util::future::BoxFuture;

use crate::local_host::Loaded;
use crate::prepared_thread::asks_first;
use crate::setup::Setup;
use crate::tree_requests::TreeRequests;

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
        self.requests = Some(Arc::new(TreeRequests::new(self.config.agents().requests)));
        let is_unsaved = matches!(self.initial_history, InitialHistory::Unsaved(_));
        let setup = Self { agents: None, initial_history: InitialHistory::New, ..self.clone() };
        let worktrees = Arc::new(Worktrees::new(&self.home));
        sweep_once(&worktrees, &self.store);
        let children = Arc::new(Children { setup, loaded: Arc::clone(loaded), is_unsaved, worktrees });
        self.agents = trees.open(&self.config, &self.home, self.profile.offers_agents, children);
    }
}

/// Starts the children of one root.
struct Children {
    /// The setup of the root, without its history.
    setup: Setup,
    loaded: Arc<Loaded>,
    is_unsaved: bool,
    worktrees: Arc<Worktrees>,
}

impl fmt::Debug for Children {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Children").finish_non_exhaustive()
    }
}

impl Children {
    fn setup_of(&self, mut child: ChildStart) -> Setup {
        let explicit = ExplicitOverrides { cwd: true, model: true, approval_policy: true, sandbox_policy: true };
        let (thread, parent) = (child.thread, child.spawn.parent_thread_id);
        let history = match &mut child.history {
            ChildHistory::Empty => InitialHistory::New,
            // The setup of the child does not keep what it shares with its parent at the beginning.
            ChildHistory::Fork { shared, .. } => match shared.take() {
                Some(of) => InitialHistory::Shared { of, explicit },
                None => InitialHistory::Forked { thread: parent, point: ForkPoint::End, explicit },
            },
            ChildHistory::Resume => InitialHistory::Resumed { thread, explicit: ExplicitOverrides::default() },
        };
        let initial_history = if self.is_unsaved { InitialHistory::Unsaved(Box::new(history)) } else { history };
        Setup {
            // Clients of the root subscribe a moment later, and see everything from the beginning.
            recent_bytes: self.setup.recent_bytes.max(RECENT_BYTES),
            cwd: child.settings.cwd.clone(),
            config: self.config_of(&child),
            agents: Some(Arc::clone(&child.agents)),
            child: Some(Arc::new(child)),
            initial_history,
            additions: ClientAdditions::default(),
            ..self.setup.clone()
        }
    }
}

impl Children {
    /// The configuration of a child. Its worktree is trusted as much as the checkout that it was made from.
    fn config_of(&self, child: &ChildStart) -> Arc<Config> {
        let root = |folder: &Path| repository_root(folder).unwrap_or_else(|| folder.to_owned());
        let config = &self.setup.config;
        let trust = child.isolated_from.as_deref().and_then(|origin| config.projects.get(&root(origin)));
        let Some(trust) = trust else { return Arc::clone(config) };
        let mut own = (**config).clone();
        own.projects.insert(root(&child.settings.cwd), *trust);
        Arc::new(own)
    }
}

/// Removes what earlier runs of the program have left, once in each run, in the background.
fn sweep_once(worktrees: &Arc<Worktrees>, store: &Arc<dyn ThreadStore>) {
    static SWEPT: Once = Once::new();
    if tokio::runtime::Handle::try_current().is_err() {
        return;
    }
    SWEPT.call_once(|| {
        let store = Arc::clone(store);
        let is_gone = |error: StoreError| error.kind() == StoreErrorKind::Missing;
        worktrees.start_sweep(move |thread| !store.meta(thread).is_err_and(is_gone));
    });
}

impl ChildHost for Children {
    fn start(&self, child: ChildStart) -> BoxFuture<'static, Result<ChildStarted, String>> {
        if let Some(requests) = &self.setup.requests {
            requests.expect_agents();
        }
        let (loaded, id) = (Arc::clone(&self.loaded), child.thread);
        let setup = self.setup_of(child);
        Box::pin(async move {
            let _turn = loaded.turn_to_open(id).await;
            if loaded.get(id).is_some_and(|thread| !thread.has_ended()) {
                return Err("its thread is open in another client".to_owned());
            }
            let (thread, started) = setup.start_child().await.map_err(|error| error.to_string())?;
            loaded.add(thread);
            Ok(started)
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

    fn stored(&self, thread: ThreadId, parent: ThreadId) -> Option<StoredChild> {
        let state = self.setup.store.history(thread, Interrupted::Kept).ok()?.state;
        let is_own = state.meta.lineage.parent_thread_id == Some(parent);
        is_own.then(|| StoredChild { goes_on: goes_on(&self.setup, &state), agents: state.agents })
    }

    fn stored_events(&self, thread: ThreadId, since_ms: i64, most: usize) -> Vec<Event> {
        let Ok(mut lines) = self.setup.store.read(thread, ReadFrom::Start) else { return Vec::new() };
        // Clients are not told the items of the conversation, nor the settings of requests.
        let mut decoder = Decoder::new(Wanted::ALL.without(Wanted::RECORDS | Wanted::SETTINGS | Wanted::META));
        let (mut new, mut newest) = (Vec::new(), VecDeque::new());
        let mut keep = |new: &mut Vec<Event>| {
            for event in new.drain(..).filter(|event| event.at_ms >= since_ms) {
                if newest.len() == most {
                    newest.pop_front();
                }
                newest.push_back(event);
            }
        };
        while let Ok(Some(entry)) = lines.next_entry() {
            if let Entry::Line(line) = entry {
                decoder.line(&line, &mut new);
                keep(&mut new);
            }
        }
        decoder.end(&mut new);
        keep(&mut new);
        newest.into()
    }

    fn worktrees(&self) -> Arc<Worktrees> {
        Arc::clone(&self.worktrees)
    }
}

/// Whether a thread in this state continues its turn when it is resumed under the policies that it had.
fn goes_on(setup: &Setup, state: &ThreadState) -> bool {
    let asks = setup.profile.asks_again && state.settings.as_deref().is_some_and(asks_first);
    let waits = setup.config.model.waits_for_limits && state.limit_wait.is_some();
    let has_turn = state.turn.as_ref().is_some_and(|turn| turn.id.is_some());
    has_turn && (waits || (asks && !state.questions.is_empty()))
}
