//! The setup of a thread, and its start.

use std::path::PathBuf;
use std::sync::Arc;

use codex_config::{Config, Home};
use codex_log::store::ThreadStore;
use codex_model::Model;
use codex_thread::{ClientProfile, Feed, InitialHistory, StartError, Thread};
use codex_tools::servers::ServerAccess;
use codex_wire::rollout::SessionSource;

use crate::session::Session;

/// The setup of a thread.
#[derive(Clone)]
pub struct Setup {
    /// The user's configuration.
    pub config: Arc<Config>,
    /// The home folder.
    pub home: Home,
    /// The store of the thread.
    pub store: Arc<dyn ThreadStore>,
    /// Where it works.
    pub cwd: PathBuf,
    /// The model it asks.
    pub model: Arc<dyn Model>,
    /// The program that drives it, as told to the provider.
    pub originator: String,
    /// The kind of program that drives it, as kept in the rollout.
    pub source: SessionSource,
    /// The user's shell, from the environment.
    pub shell: Option<String>,
    /// A folder of programs that commands find before all others, such as `apply_patch`.
    pub programs: Option<PathBuf>,
    /// The expectations of its clients.
    pub profile: ClientProfile,
    /// Replaces the built-in instructions.
    pub base_instructions: Option<Arc<str>>,
    pub initial_history: InitialHistory,
    /// How many bytes of what it said last are kept for readers that were cut off; see [`Thread::subscribe_after`].
    pub recent_bytes: usize,
    /// The servers whose tools it has.
    pub servers: Option<ServerAccess>,
}

impl Setup {
    /// Starts a thread. It is on disk when this returns, unless it is not to be saved.
    ///
    /// # Errors
    /// If the working directory does not exist, the history cannot be read, or the thread cannot be saved.
    pub async fn start(self) -> Result<(Thread, Feed), StartError> {
        let (session, thread, feed) = Session::start(self).await?;
        tokio::spawn(Box::new(session).run());
        Ok((thread, feed))
    }
}
