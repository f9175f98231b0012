//! Whoever runs threads for others.

use std::fmt;
use std::path::PathBuf;
use std::pin::Pin;

use codex_log::history::ForkPoint;
use codex_wire::ids::ThreadId;
use codex_wire::response::ResponseItem;
use serde_json::{Map, Value};
use tokio::sync::OwnedMutexGuard;

use crate::feed::Feed;
use crate::handle::Thread;
use crate::profile::ClientProfile;
use crate::request::OpenQuestions;
use crate::start_error::StartError;

/// Something that is still to come.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Runs threads, in this process or elsewhere, and knows which are loaded.
pub trait ThreadHost: Send + Sync + fmt::Debug {
    /// Starts a thread: a new one, or one that goes on. From here on it is loaded.
    fn start(&self, request: StartThread) -> BoxFuture<'_, Result<StartedThread, StartError>>;

    /// The loaded thread of that name.
    fn get(&self, id: ThreadId) -> Option<Thread>;

    /// The loaded threads, oldest first.
    fn loaded(&self) -> Vec<Thread>;

    /// Waits until nobody else is loading or unloading that thread. Whoever loads it holds what this returns.
    fn turn_to_open(&self, id: ThreadId) -> BoxFuture<'_, OpeningTurn>;

    /// Takes a thread out of those that are loaded. It goes on for as long as somebody holds it.
    fn release(&self, id: ThreadId) -> Option<Thread>;

    /// Whether a thread could be unloaded: nobody listens to it, and it does nothing or only asks a person.
    fn is_idle(&self, id: ThreadId, questions: OpenQuestions) -> BoxFuture<'_, bool>;

    /// Unloads a thread unless it has become busy; says whether it is gone.
    fn unload(&self, id: ThreadId, questions: OpenQuestions) -> BoxFuture<'_, bool>;

    /// Ends all threads, each with everything written. One that does not end in time is left behind.
    fn close(&self) -> BoxFuture<'_, ()>;
}

/// The right to load or unload one thread, until it is dropped.
#[derive(Debug)]
pub struct OpeningTurn {
    _held: OwnedMutexGuard<()>,
}

impl From<OwnedMutexGuard<()>> for OpeningTurn {
    fn from(held: OwnedMutexGuard<()>) -> Self {
        Self { _held: held }
    }
}

/// A thread that has started.
#[derive(Debug)]
pub struct StartedThread {
    /// The thread.
    pub thread: Thread,
    /// Its log, from the first event on.
    pub feed: Feed,
    /// Whether the user wants to see what models think as they think it.
    pub shows_raw_reasoning: bool,
}

/// What somebody wants of a thread that is to start.
#[derive(Debug, Clone)]
pub struct StartThread {
    /// Where it works, seen from where the host does; there, if unset.
    pub cwd: Option<PathBuf>,
    /// What goes over the values of the configuration, by their keys.
    pub overrides: Map<String, Value>,
    /// What the model is told in place of our own instructions.
    pub base_instructions: Option<String>,
    /// The program that drives it, as told to the provider; the host's own name if unset.
    pub originator: Option<String>,
    /// What its clients expect.
    pub profile: ClientProfile,
    /// What it begins with.
    pub beginning: Beginning,
}

/// What a thread begins with.
#[derive(Debug, Clone, Default)]
pub enum Beginning {
    /// Nothing: a new thread.
    #[default]
    New,
    /// Its own past.
    Resumed {
        /// Which thread it is.
        thread: ThreadId,
        /// What whoever resumes it has said himself, so that what was in force before does not count.
        explicit: ExplicitOverrides,
    },
    /// The past of another thread.
    Forked {
        /// That thread.
        thread: ThreadId,
        /// Up to where.
        point: ForkPoint,
        /// As above.
        explicit: ExplicitOverrides,
    },
    /// A conversation that somebody hands over.
    Given(Vec<ResponseItem>),
    /// Any of these, but nothing is written: the thread lives in memory alone, and what it goes on with stays as it is.
    Unsaved(Box<Beginning>),
}

impl Beginning {
    /// The conversation that somebody hands over, if it begins with one.
    #[must_use]
    pub fn given(self) -> Vec<ResponseItem> {
        match self {
            Self::Given(items) => items,
            Self::Unsaved(beginning) => beginning.given(),
            Self::New | Self::Resumed { .. } | Self::Forked { .. } => Vec::new(),
        }
    }
}

/// Which settings somebody has given in so many words.
#[derive(Debug, Clone, Copy, Default)]
#[expect(clippy::struct_excessive_bools, reason = "one for each setting, and all combinations make sense")]
pub struct ExplicitOverrides {
    /// The working directory.
    pub cwd: bool,
    /// The model.
    pub model: bool,
    /// When a person is asked.
    pub approval_policy: bool,
    /// What commands may touch.
    pub sandbox_policy: bool,
}
