//! The servers that share a database with this one: where they are, and what happens when this one ends.

use std::error::Error as _;
use std::future::pending;
use std::sync::Arc;

use anyhow::Context;
use codex_config::StoreConfig;
use codex_dialects::ProtocolRelease;
use codex_postgres::{ChangeKind, LivingServer, NameUse, PostgresStore, StoreChange};
use codex_protocol::v2::initialize::Release;
use codex_protocol::v2::moved::{OtherServer, ServerMovedNotification};
use codex_protocol::v2::notification::{ServerNotification, ThreadNameUpdated, ThreadNamed};
use codex_relay::{ClientView, Peer, PeerStream, Peers, Pending, Relay};
use codex_server::app::{AppServer, Start};
use codex_thread::ThreadHost;
use codex_transport::{Address, Slots, Token, dial};
use codex_wire::ids::ThreadId;
use tokio::sync::broadcast::error::RecvError;

use crate::console;

/// This server among those that share its database.
#[derive(Debug, Clone)]
pub(crate) struct Cluster {
    store: PostgresStore,
    config: StoreConfig,
}

impl Cluster {
    pub(crate) fn new(store: PostgresStore, config: StoreConfig) -> Self {
        Self { store, config }
    }

    /// The same for a process that listens nowhere. It can use threads of other servers; its own are open to nobody else.
    pub(crate) fn without_address(mut self) -> Self {
        self.config.advertise = None;
        self
    }

    /// The token that all servers have in common, if there is one.
    pub(crate) fn token(&self) -> anyhow::Result<Option<Token>> {
        let token = self.config.token_file.as_deref().map(Token::read);
        token.transpose().context("store.token_file")
    }

    /// Enters this server into the list of servers, and returns the relay to the others. `token` is that of this server.
    pub(crate) fn join(&self, start: &Start, app: &AppServer, token: Option<Token>) -> anyhow::Result<Relay> {
        let address = self.config.advertise.as_deref().map(advertised).transpose()?;
        let is_listed = address.is_some();
        if self.store.register(address)? == NameUse::Shared && is_listed {
            let name = self.store.server_name();
            console::note(format_args!(
                "another server is named {name}, or was a moment ago; set store.server_name to a name of its own"
            ));
        }
        let token = self.token()?.or(token);
        let servers = Servers { store: self.store.clone(), threads: Arc::clone(&start.threads), token };
        let view = ClientView {
            emulate: start.release.map(release),
            release: release(app.default_release()),
            dialect: start.dialect,
        };
        Ok(Relay::new(Arc::new(servers), view))
    }

    /// Follows the database and the other servers. Runs until it is dropped.
    pub(crate) async fn watch(&self, app: &AppServer, slots: &Slots) {
        let days = self.config.keep_days;
        tokio::join!(self.report_readiness(slots), self.pass_on_changes(app), self.store.keep_days(days));
    }

    /// Reports whether the database answers to those who ask whether this server is ready.
    async fn report_readiness(&self, slots: &Slots) {
        let mut answers = self.store.answers();
        loop {
            let why = (!*answers.borrow_and_update()).then_some("the database cannot be reached");
            slots.set_unready(why);
            if answers.changed().await.is_err() {
                return pending().await;
            }
        }
    }

    /// Tells clients what other servers have changed.
    async fn pass_on_changes(&self, app: &AppServer) {
        let mut changes = self.store.changes_elsewhere();
        loop {
            match changes.recv().await {
                Ok(change) => app.tell_clients(told(change)).await,
                // Clients that list threads see the result.
                Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return pending().await,
            }
        }
    }

    /// Ends the work of this server: running turns get the configured time to finish and are then interrupted, all
    /// threads are given back, and clients are told which servers have them from now on.
    pub(crate) async fn hand_over(&self, app: &AppServer, slots: &Slots) {
        slots.set_unready(Some("the server is ending"));
        app.finish_threads(self.config.drain).await;
        let others = self.store.leave().await;
        let other = |server: &LivingServer| OtherServer { name: server.name.clone(), url: server.address.clone() };
        let moved = ServerMovedNotification { servers: others.iter().map(other).collect() };
        app.tell_clients(ServerNotification::ServerMoved(moved)).await;
    }
}

/// The notification of a change by another server.
fn told(StoreChange { thread, kind }: StoreChange) -> ServerNotification {
    let thread_id = thread.to_string();
    match kind {
        ChangeKind::Named(thread_name) => {
            ServerNotification::ThreadNameUpdated(ThreadNameUpdated { thread_id, thread_name })
        }
        ChangeKind::Archived => ServerNotification::ThreadArchived(ThreadNamed { thread_id }),
        ChangeKind::Unarchived => ServerNotification::ThreadUnarchived(ThreadNamed { thread_id }),
        ChangeKind::Deleted => ServerNotification::ThreadDeleted(ThreadNamed { thread_id }),
    }
}

/// Checks the address at which other servers reach this one.
fn advertised(text: &str) -> anyhow::Result<String> {
    let address: Address = text.parse().context("store.advertise")?;
    let is_wrong = match &address {
        Address::Unix(path) => path.is_none(),
        Address::Ws(ip) | Address::Tcp(ip) | Address::Grpc(ip) => ip.port() == 0 || ip.ip().is_unspecified(),
        Address::Stdio | Address::Http(_) => true,
    };
    anyhow::ensure!(!is_wrong, "store.advertise: {address} is not an address that another server can connect to");
    Ok(address.to_string())
}

fn release(release: ProtocolRelease) -> Release {
    match release {
        ProtocolRelease::V058 => Release::V058,
        ProtocolRelease::V077 => Release::V077,
        ProtocolRelease::V0166 => Release::V0166,
    }
}

/// The other servers, for the relay.
#[derive(Debug)]
struct Servers {
    store: PostgresStore,
    threads: Arc<dyn ThreadHost>,
    token: Option<Token>,
}

impl Peers for Servers {
    fn own_id(&self) -> Option<String> {
        self.store.server_id().map(|id| id.to_string())
    }

    fn is_here(&self, thread: ThreadId) -> bool {
        self.threads.get(thread).is_some_and(|thread| !thread.has_ended())
    }

    fn owner(&self, thread: ThreadId) -> Pending<'_, Option<Peer>> {
        Box::pin(async move {
            // If the database does not answer, this server says so itself.
            let LivingServer { id, name, address } = self.store.owner_elsewhere(thread).await.ok().flatten()?;
            address.map(|address| Peer { id: id.to_string(), name, address })
        })
    }

    fn living(&self) -> Pending<'_, Vec<String>> {
        Box::pin(async move {
            let mut servers = self.store.servers();
            match servers.changed().await {
                Ok(()) => servers.borrow().iter().map(|server| server.id.to_string()).collect(),
                Err(_) => pending().await,
            }
        })
    }

    fn dial<'a>(&'a self, peer: &'a Peer) -> Pending<'a, Result<PeerStream, String>> {
        Box::pin(async move {
            let address: Address = peer.address.parse().map_err(|_| "it has no valid address".to_owned())?;
            dial(&address, self.token.as_ref()).await.map_err(|error| {
                let cause = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
                format!("{error}{cause}")
            })
        })
    }
}
