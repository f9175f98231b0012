//! State that all connections share: the configuration, the stored threads, and the options of the server.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, Weak};

use codex_config::{AccountHost, Config, ConfigSource};
use codex_log::store::ThreadStore;
use codex_protocol::rpc::ErrorObject;
use codex_protocol::v2::thread::ThreadOptions;
use codex_thread::{ClientProfile, InitialHistory, StartThread, ThreadHost};
use codex_tools::servers::ToolServers;
use serde_json::{Map, Value};

use super::connection::{Client, Connection, lock};
use super::disk::Places;
use super::event_filter::Dialect;
use codex_dialects::ProtocolRelease;

/// How the server was started.
#[derive(Debug, Clone)]
pub struct Start {
    /// The host of the threads.
    pub threads: Arc<dyn ThreadHost>,
    /// The store of threads.
    pub store: Arc<dyn ThreadStore>,
    /// The owner of the login.
    pub accounts: Arc<dyn AccountHost>,
    /// The user's configuration.
    pub config: Arc<ConfigSource>,
    /// Where threads and commands work that name no folder.
    pub cwd: PathBuf,
    /// A folder of programs that commands find before all others.
    pub programs: Option<PathBuf>,
    /// The name this program gives itself to providers.
    pub originator: String,
    /// Who runs MCP servers.
    pub servers: Option<Arc<dyn ToolServers>>,
    /// Which release's ways are followed; found out from the configuration if unset.
    pub release: Option<ProtocolRelease>,
    /// The dialect of clients that choose none; found out from how they ask if unset.
    pub dialect: Option<Dialect>,
}

/// State that all connections share.
#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) start: Start,
    /// The store of threads.
    pub(crate) store: Arc<dyn ThreadStore>,
    /// How much the clients may have done at once.
    pub(crate) places: Places,
    /// The clients that are there.
    connections: Mutex<Vec<Weak<Connection>>>,
}

impl Host {
    pub(crate) fn new(start: Start) -> Self {
        let store = Arc::clone(&start.store);
        Self { start, store, places: Places::default(), connections: Mutex::default() }
    }

    /// Notes that a client is there.
    pub(crate) fn welcome(&self, connection: &Arc<Connection>) {
        let mut connections = lock(&self.connections);
        connections.retain(|connection| connection.strong_count() > 0);
        connections.push(Arc::downgrade(connection));
    }

    /// The clients that are there.
    pub(crate) fn connections(&self) -> Vec<Arc<Connection>> {
        let connections = lock(&self.connections);
        connections.iter().filter_map(Weak::upgrade).collect()
    }

    /// The configuration without any wishes of a client or a project.
    pub(crate) fn config(&self) -> Result<Arc<Config>, ErrorObject> {
        self.start.config.config().map_err(|error| {
            let hint = error.hint().map(|hint| format!("\n{hint}")).unwrap_or_default();
            ErrorObject::invalid(format!("failed to load configuration: {error}{hint}"))
        })
    }

    /// The folders that the loaded threads were started in.
    pub(crate) fn workspaces(&self) -> Vec<PathBuf> {
        self.start.threads.loaded().iter().map(|thread| thread.started().settings.cwd.clone()).collect()
    }

    /// Which release's ways are followed. A home that names a catalogue of models was written for the newer ones.
    pub(crate) fn release(&self) -> ProtocolRelease {
        self.start.release.unwrap_or_else(|| {
            let config = self.config().ok();
            let names_catalogue = config.is_some_and(|config| config.model.catalogue.is_some());
            if names_catalogue { ProtocolRelease::V0166 } else { ProtocolRelease::V077 }
        })
    }

    /// Who requests on behalf of a client say they come from: the client, unless a variable says otherwise or 0.77 is
    /// emulated, which had one name for all.
    pub(crate) fn originator<'a>(&'a self, client: &'a str) -> &'a str {
        let Start { originator, config, release, .. } = &self.start;
        let is_given = *release == Some(ProtocolRelease::V077)
            || config.env().text("CODEX_INTERNAL_ORIGINATOR_OVERRIDE").is_some();
        if is_given { originator } else { client }
    }

    /// The request to the host for a new thread.
    pub(crate) fn start_request(&self, options: &ThreadOptions, client: Option<&Client>) -> StartThread {
        StartThread {
            cwd: options.cwd.clone(),
            overrides: wishes(options),
            base_instructions: options.base_instructions.clone(),
            originator: client.map(|client| self.originator(&client.name).to_owned()),
            profile: profile(client.map(|client| client.release).unwrap_or_default()),
            initial_history: InitialHistory::New,
        }
    }
}

/// The expectations of clients of a release.
fn profile(release: ProtocolRelease) -> ClientProfile {
    match release {
        ProtocolRelease::V077 => ClientProfile::V077,
        ProtocolRelease::V0166 => ClientProfile::V0166,
    }
}

/// The wishes of a client as values that go over those of the configuration.
fn wishes(options: &ThreadOptions) -> Map<String, Value> {
    let mut wishes = options.config.clone().unwrap_or_default();
    let mut wish = |key: &str, value: Option<String>| {
        if let Some(value) = value {
            wishes.insert(key.to_owned(), Value::String(value));
        }
    };
    wish("model", options.model.clone());
    wish("model_provider", options.model_provider.clone());
    wish("approval_policy", options.approval_policy.map(|word| word.to_string()));
    wish("approvals_reviewer", options.approvals_reviewer.as_ref().map(|word| word.as_str().to_owned()));
    wish("sandbox_mode", options.sandbox.map(|word| word.to_string()));
    wish("developer_instructions", options.developer_instructions.clone());
    wishes
}
