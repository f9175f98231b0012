//! Threads that run in this process: their setup, the models they share, and the table of loaded threads.

mod loaded;
mod models;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use codex_config::{BudgetConfig, ConfigSource};
use codex_log::store::ThreadStore;
use codex_thread::{
    BoxFuture, Fault, LoadedThreads, OpenQuestions, OpeningTurn, StartError, StartThread, StartedThread, Thread,
    ThreadHost,
};
use codex_tools::agents::AgentTrees;
use codex_tools::servers::{Reload, ServerAccess, ToolServers};
use codex_wire::ids::ThreadId;
use codex_wire::rollout::SessionSource;
use tokio::time::timeout;

pub(crate) use self::loaded::Loaded;
use self::models::SharedModels;
use crate::credentials::CredentialsSource;
use crate::setup::Setup;

/// The time limit for reading the files of a thread's setup.
const FILES_TIME: Duration = Duration::from_secs(30);

/// The options of all threads of this process.
#[derive(Debug)]
pub struct HostOptions {
    /// The user's configuration.
    pub config: Arc<ConfigSource>,
    /// The working directory of threads that name none.
    pub cwd: PathBuf,
    /// A folder of programs that takes precedence over the `PATH` of commands.
    pub programs: Option<PathBuf>,
    /// The name under which this program sends requests to providers.
    pub originator: String,
    /// The kind of program that starts the threads.
    pub source: SessionSource,
    /// The number of bytes of each thread's latest events that are kept for clients that reconnect.
    pub recent_bytes: usize,
    /// The credentials of requests.
    pub credentials: CredentialsSource,
    /// The store of threads.
    pub store: Arc<dyn ThreadStore>,
    /// The MCP servers of threads.
    pub servers: Option<Arc<dyn ToolServers>>,
    /// The trees of agents that threads may start.
    pub agents: Option<Arc<dyn AgentTrees>>,
}

/// Runs threads in this process.
#[derive(Debug, Clone)]
pub struct LocalHost {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    options: HostOptions,
    models: SharedModels,
    loaded: Arc<Loaded>,
}

impl LocalHost {
    /// Creates a host without threads. Nothing is read from disk before a thread is requested.
    #[must_use]
    pub fn new(options: HostOptions) -> Self {
        Self { shared: Arc::new(Shared { options, models: SharedModels::default(), loaded: Arc::default() }) }
    }

    /// The setup of a thread, built on a thread that may block.
    async fn setup(&self, request: StartThread) -> Result<Setup, StartError> {
        let shared = Arc::clone(&self.shared);
        match timeout(FILES_TIME, tokio::task::spawn_blocking(move || shared.setup(request))).await {
            Ok(Ok(setup)) => setup,
            Ok(Err(error)) => Err(StartError::new(Fault::Host, error.to_string())),
            Err(_) => {
                let after = FILES_TIME.as_secs();
                Err(StartError::new(Fault::Host, format!("the files could not be reached within {after} s")))
            }
        }
    }
}

impl LoadedThreads for LocalHost {
    fn get(&self, id: ThreadId) -> Option<Thread> {
        self.shared.loaded.get(id)
    }

    fn loaded(&self) -> Vec<Thread> {
        self.shared.loaded.all()
    }
}

impl ThreadHost for LocalHost {
    fn start(&self, request: StartThread) -> BoxFuture<'_, Result<StartedThread, StartError>> {
        Box::pin(async move {
            let mut setup = self.setup(request).await?;
            if let Some(trees) = &self.shared.options.agents {
                setup.offer_agents_in(&**trees, &self.shared.loaded);
            }
            let shows_raw_reasoning = setup.config.reasoning.raw;
            let (thread, feed) = setup.start().await?;
            self.shared.loaded.add(thread.clone());
            Ok(StartedThread { thread, feed, shows_raw_reasoning })
        })
    }

    fn turn_to_open(&self, id: ThreadId) -> BoxFuture<'_, OpeningTurn> {
        Box::pin(self.shared.loaded.turn_to_open(id))
    }

    fn release(&self, id: ThreadId) -> Option<Thread> {
        self.shared.loaded.remove(id)
    }

    fn is_idle(&self, id: ThreadId, questions: OpenQuestions) -> BoxFuture<'_, bool> {
        Box::pin(self.shared.loaded.is_idle(id, questions))
    }

    fn unload(&self, id: ThreadId, questions: OpenQuestions) -> BoxFuture<'_, bool> {
        Box::pin(self.shared.loaded.unload(id, questions))
    }

    fn listed_models(&self) -> BoxFuture<'_, Vec<String>> {
        let HostOptions { config, credentials, originator, .. } = &self.shared.options;
        Box::pin(self.shared.models.listed((config, credentials), originator))
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.shared.loaded.close())
    }
}

impl Shared {
    /// The setup of a thread. This function reads files.
    fn setup(&self, request: StartThread) -> Result<Setup, StartError> {
        let StartThread { cwd, overrides, base_instructions, originator, profile, initial_history, additions } =
            request;
        let HostOptions { config: source, cwd: here, programs, .. } = &self.options;
        let originator = originator.unwrap_or_else(|| self.options.originator.clone());
        let cwd = cwd.map_or_else(|| here.clone(), |wish| here.join(wish));
        if !cwd.is_dir() {
            let why = format!("the working directory {} does not exist", cwd.display());
            return Err(StartError::new(Fault::Request, why));
        }
        let cwd = cwd.canonicalize().unwrap_or(cwd);
        let servers = self.options.servers.as_ref().map(|servers| {
            let (source, overrides, cwd) = (Arc::clone(source), overrides.clone(), cwd.clone());
            let reload: Reload =
                Arc::new(move || source.config_for(overrides.clone(), &cwd).map_err(|error| error.to_string()));
            ServerAccess { servers: Arc::clone(servers), reload: Some(reload) }
        });
        let config = source.config_for(overrides, &cwd).map_err(|error| {
            let hint = error.hint().map(|hint| format!("\n{hint}")).unwrap_or_default();
            StartError::new(Fault::Request, format!("failed to load configuration: {error}{hint}"))
        })?;
        source.home().ensure().map_err(|error| StartError::new(Fault::Host, error.to_string()))?;
        let model = self.models.model((source, &self.options.credentials), &config, &originator);
        Ok(Setup {
            model: model.map_err(|error| StartError::new(Fault::Request, error.to_string()))?,
            config,
            home: source.home().clone(),
            originator,
            source: self.options.source.clone(),
            shell: source.env().text("SHELL"),
            programs: programs.clone(),
            base_instructions: base_instructions.map(Arc::from),
            initial_history,
            additions,
            recent_bytes: self.options.recent_bytes,
            store: Arc::clone(&self.options.store),
            profile,
            cwd,
            servers,
            agents: None,
            run_budget: BudgetConfig::default(),
            requests: None,
            child: None,
        })
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Every change is one push or assignment, so a panic elsewhere cannot have left a partial one.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
