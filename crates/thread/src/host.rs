//! The interface of a component that runs threads.

use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use codex_log::client_tools::ToolClient;
use codex_log::history::{ForkPoint, SharedHistory};
use codex_wire::dynamic_tool::DynamicToolSpec;
use codex_wire::ids::ThreadId;
use codex_wire::response::ResponseItem;
use serde_json::{Map, Value};
use tokio::sync::OwnedMutexGuard;

use crate::children::LoadedThreads;
use crate::feed::Feed;
use crate::handle::Thread;
use crate::profile::ClientProfile;
use crate::request::OpenQuestions;
use crate::start_error::StartError;

/// A boxed future.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Runs threads, in this process or elsewhere, and tracks which are loaded.
pub trait ThreadHost: LoadedThreads {
    /// Starts a new thread, or continues an existing one. From then on it is loaded.
    fn start(&self, request: StartThread) -> BoxFuture<'_, Result<StartedThread, StartError>>;

    /// Waits until nobody else is loading or unloading that thread. The caller holds the result while it loads the
    /// thread.
    fn turn_to_open(&self, id: ThreadId) -> BoxFuture<'_, OpeningTurn>;

    /// Removes a thread from the loaded ones. It runs as long as a handle exists.
    fn release(&self, id: ThreadId) -> Option<Thread>;

    /// Whether a thread could be unloaded: it has no subscribers, and is idle or only waits for a person.
    fn is_idle(&self, id: ThreadId, questions: OpenQuestions) -> BoxFuture<'_, bool>;

    /// Unloads a thread unless it has become busy; returns whether it is gone.
    fn unload(&self, id: ThreadId, questions: OpenQuestions) -> BoxFuture<'_, bool>;

    /// The names of the models that the configured provider lists, asked for within a bounded time and kept for a while.
    /// Empty if the provider does not say.
    fn listed_models(&self) -> BoxFuture<'_, Vec<String>>;

    /// Closes all threads, each with everything written. One that does not end in time is abandoned.
    fn close(&self) -> BoxFuture<'_, ()>;
}

/// The right to load or unload one thread, until it is dropped.
#[derive(Debug)]
pub struct OpeningTurn {
    _guard: OwnedMutexGuard<()>,
}

impl From<OwnedMutexGuard<()>> for OpeningTurn {
    fn from(guard: OwnedMutexGuard<()>) -> Self {
        Self { _guard: guard }
    }
}

#[derive(Debug)]
pub struct StartedThread {
    pub thread: Thread,
    /// Its log, from the first event on.
    pub feed: Feed,
    /// Whether the user wants to see raw reasoning as it streams.
    pub shows_raw_reasoning: bool,
}

/// A request to start a thread.
#[derive(Debug, Clone)]
pub struct StartThread {
    /// The working directory, relative to the host's; the host's own if unset.
    pub cwd: Option<PathBuf>,
    /// Overrides of configuration values, by key.
    pub overrides: Map<String, Value>,
    /// Replaces the built-in instructions.
    pub base_instructions: Option<String>,
    /// The name of the client program, sent to the provider; the host's own name if unset.
    pub originator: Option<String>,
    pub profile: ClientProfile,
    /// The initial history.
    pub initial_history: InitialHistory,
    pub additions: ClientAdditions,
}

/// Data that a client gives a new thread besides its settings. A resumed thread keeps its own.
#[derive(Debug, Clone, Default)]
pub struct ClientAdditions {
    /// The client's word for the origin of the thread, which is stored and shown unchanged.
    pub thread_source: Option<String>,
    /// The tools that the client supplies.
    pub dynamic_tools: Vec<DynamicToolSpec>,
    /// The client as the one that runs them, also those of a resumed thread that it has started.
    pub tool_client: Option<Arc<dyn ToolClient>>,
}

/// The initial history of a thread.
#[derive(Debug, Clone, Default)]
pub enum InitialHistory {
    /// Empty: a new thread.
    #[default]
    New,
    /// Its own history.
    Resumed {
        thread: ThreadId,
        /// The settings that the caller gave explicitly, which take precedence over the stored ones.
        explicit: ExplicitOverrides,
    },
    /// The history of another thread.
    Forked {
        thread: ThreadId,
        /// The end of the copied part.
        point: ForkPoint,
        /// As above.
        explicit: ExplicitOverrides,
    },
    /// The history of another thread that is loaded, and shares it.
    Shared {
        of: Arc<SharedHistory>,
        /// As above.
        explicit: ExplicitOverrides,
    },
    /// A conversation that the caller supplies.
    Given(Vec<ResponseItem>),
    /// Any of these, but nothing is written: the thread lives only in memory, and its source is unchanged.
    Unsaved(Box<InitialHistory>),
}

impl InitialHistory {
    /// The history, whether the thread is saved or not.
    #[must_use]
    pub fn history(&self) -> &Self {
        match self {
            Self::Unsaved(initial_history) => initial_history.history(),
            history => history,
        }
    }

    /// The conversation that the caller supplies, if any.
    #[must_use]
    pub fn given(self) -> Vec<ResponseItem> {
        match self {
            Self::Given(items) => items,
            Self::Unsaved(initial_history) => initial_history.given(),
            Self::New | Self::Resumed { .. } | Self::Forked { .. } | Self::Shared { .. } => Vec::new(),
        }
    }
}

/// The settings that the caller gave explicitly.
#[derive(Debug, Clone, Copy, Default)]
#[expect(clippy::struct_excessive_bools, reason = "one for each setting, and all combinations make sense")]
pub struct ExplicitOverrides {
    pub cwd: bool,
    pub model: bool,
    pub approval_policy: bool,
    pub sandbox_policy: bool,
}
