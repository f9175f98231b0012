//! State that all connections share: the configuration, the stored threads, and the options of the server.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use codex_config::{AccountHost, Config, ConfigFindings, ConfigSource, ConfigWarning};
use codex_log::store::ThreadStore;
use codex_protocol::rpc::ErrorObject;
use codex_protocol::v2::thread::ThreadOptions;
use codex_thread::{ClientAdditions, ClientProfile, InitialHistory, StartThread, ThreadHost};
use codex_tools::servers::ToolServers;
use serde_json::{Map, Value};
use tokio::sync::Notify;

use super::connection::{Client, Connection, lock};
use super::disk::Places;
use codex_dialects::ProtocolRelease;
use codex_dialects::event_filter::{ClientTraits, Dialect};

/// The time that the description of the dialect with `item/created` gives a person to answer an approval request.
const ITEMS_DEADLINE: Duration = Duration::from_secs(120);

/// The options with which a server is started.
#[derive(Debug, Clone)]
pub struct Start {
    pub threads: Arc<dyn ThreadHost>,
    pub store: Arc<dyn ThreadStore>,
    /// The owner of the login.
    pub accounts: Arc<dyn AccountHost>,
    /// The user's configuration.
    pub config: Arc<ConfigSource>,
    /// The folder of threads and commands that name none.
    pub cwd: PathBuf,
    /// A folder of programs that takes precedence over the `PATH` of commands.
    pub programs: Option<PathBuf>,
    /// The name under which this program sends requests to providers.
    pub originator: String,
    /// The pool of MCP servers.
    pub servers: Option<Arc<dyn ToolServers>>,
    /// The release whose behaviour is followed; if unset, it follows from the configuration.
    pub release: Option<ProtocolRelease>,
    /// The dialect of all clients; if unset, a client chooses it, or it follows from the methods that it calls.
    pub dialect: Option<Dialect>,
    /// The time between two notifications of deltas of a thread, for a client that shows them at that pace. Deltas that
    /// arrive in between are sent as one.
    pub delta_interval: Option<Duration>,
}

/// State that all connections share.
#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) start: Start,
    pub(crate) store: Arc<dyn ThreadStore>,
    /// The number of jobs that the clients may run at once.
    pub(crate) places: Places,
    /// The connected clients.
    connections: Mutex<Vec<Weak<Connection>>>,
    /// The configuration at the start, for a server whose one client comes at once.
    pub(crate) at_start: Option<AtStart>,
    /// Notified when a client has initialized.
    pub(crate) initialized: Notify,
}

/// The parts of the configuration that `initialize` needs.
#[derive(Debug)]
pub(crate) struct AtStart {
    pub(crate) release: ProtocolRelease,
    pub(crate) warnings: Vec<ConfigWarning>,
}

impl Host {
    pub(crate) fn new(start: Start) -> Self {
        let store = Arc::clone(&start.store);
        Self {
            start,
            store,
            places: Places::default(),
            connections: Mutex::default(),
            at_start: None,
            initialized: Notify::new(),
        }
    }

    /// The findings spare `initialize` two reads of the configuration, and a thread for them.
    pub(crate) fn for_one_client(start: Start, findings: ConfigFindings) -> Self {
        let host = Self::new(start);
        let ConfigFindings { warnings, names_catalogue } = findings;
        let release = host.start.release.unwrap_or_else(|| implied_release(names_catalogue));
        Self { at_start: Some(AtStart { release, warnings }), ..host }
    }

    /// Registers a connected client.
    pub(crate) fn welcome(&self, connection: &Arc<Connection>) {
        let mut connections = lock(&self.connections);
        connections.retain(|connection| connection.strong_count() > 0);
        connections.push(Arc::downgrade(connection));
    }

    /// The connected clients.
    pub(crate) fn connections(&self) -> Vec<Arc<Connection>> {
        let connections = lock(&self.connections);
        connections.iter().filter_map(Weak::upgrade).collect()
    }

    /// The configuration without the settings of a client or a project.
    pub(crate) fn config(&self) -> Result<Arc<Config>, ErrorObject> {
        self.start.config.config().map_err(|error| {
            let hint = error.hint().map(|hint| format!("\n{hint}")).unwrap_or_default();
            ErrorObject::invalid(format!("failed to load configuration: {error}{hint}"))
        })
    }

    /// The folders in which the loaded threads were started.
    pub(crate) fn workspaces(&self) -> Vec<PathBuf> {
        self.start.threads.loaded().iter().map(|thread| thread.started().settings.cwd.clone()).collect()
    }

    /// The release whose behaviour is followed.
    pub(crate) fn release(&self) -> ProtocolRelease {
        self.start.release.unwrap_or_else(|| {
            let config = self.config().ok();
            implied_release(config.is_some_and(|config| config.model.catalogue.is_some()))
        })
    }

    /// The originator of requests on behalf of a client: the client, unless a variable overrides it or 0.77 is
    /// emulated, which used one name for all clients.
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
            profile: profile(client.map(Client::traits)),
            initial_history: InitialHistory::New,
            additions: ClientAdditions { thread_source: options.thread_source.clone(), ..ClientAdditions::default() },
        }
    }
}

/// A home that names a model catalogue was written for a newer release.
fn implied_release(names_catalogue: bool) -> ProtocolRelease {
    if names_catalogue { ProtocolRelease::V0166 } else { ProtocolRelease::V077 }
}

/// The expectations of a client.
fn profile(client: Option<ClientTraits>) -> ClientProfile {
    let profile = match client.map(|client| client.release).unwrap_or_default() {
        ProtocolRelease::V058 | ProtocolRelease::V077 => ClientProfile::V077,
        ProtocolRelease::V0166 => ClientProfile::V0166,
    };
    let has_deadline = client.is_some_and(|client| client.dialect == Some(Dialect::Items));
    ClientProfile { answer_within: has_deadline.then_some(ITEMS_DEADLINE), ..profile }
}

/// The settings of a client as values that override those of the configuration.
fn wishes(options: &ThreadOptions) -> Map<String, Value> {
    let mut wishes = options.config.clone().unwrap_or_default();
    if let Some(Ok(policy)) = options.approval_policy.map(serde_json::to_value) {
        wishes.insert("approval_policy".to_owned(), policy);
    }
    let mut wish = |key: &str, value: Option<String>| {
        if let Some(value) = value {
            wishes.insert(key.to_owned(), Value::String(value));
        }
    };
    wish("model", options.model.clone());
    wish("model_provider", options.model_provider.clone());
    wish("approvals_reviewer", options.approvals_reviewer.as_ref().map(|word| word.as_str().to_owned()));
    wish("sandbox_mode", options.sandbox.map(|word| word.to_string()));
    wish("developer_instructions", options.developer_instructions.clone());
    wishes
}

#[cfg(test)]
mod tests {
    use super::super::client_kinds::Signs;
    use super::*;

    #[test]
    fn only_clients_of_the_items_dialect_have_a_deadline_by_default() {
        let signs = |name, dialect| Signs {
            emulate: None,
            default: ProtocolRelease::V077,
            dialect,
            name,
            has_capabilities: false,
            has_old_policy: false,
        };
        let deadline = |signs: Signs<'_>| profile(Some(signs.traits())).answer_within;
        assert_eq!(deadline(signs("jetbrains-codex", None)), Some(Duration::from_secs(120)));
        assert_eq!(deadline(signs("x", Some(Dialect::Items))), Some(Duration::from_secs(120)));
        assert_eq!(deadline(signs("x", Some(Dialect::V1))), None);
        assert_eq!(deadline(signs("x", None)), None);
    }
}
