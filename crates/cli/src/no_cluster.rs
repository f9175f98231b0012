//! Without a database there are no servers that share threads.

use codex_pipe::mcp::{OtherServers, ServerConnection};
use codex_relay::Relay;
use codex_server::app::{AppServer, Start};
use codex_thread::BoxFuture;
use codex_transport::{Slots, Token};
use codex_wire::ids::ThreadId;
use tokio::io::DuplexStream;

/// This server among those that share its database.
#[derive(Debug, Clone)]
pub(crate) enum Cluster {}

impl Cluster {
    pub(crate) fn without_address(self) -> Self {
        match self {}
    }

    pub(crate) fn token(&self) -> anyhow::Result<Option<Token>> {
        match *self {}
    }

    pub(crate) fn join(&self, _start: &Start, _app: &AppServer, _token: Option<Token>) -> anyhow::Result<Relay> {
        match *self {}
    }

    pub(crate) fn join_in_process(&self, _start: &Start, _app: &AppServer) -> anyhow::Result<RelayInProcess> {
        match *self {}
    }

    pub(crate) async fn watch(&self, _app: &AppServer, _slots: &Slots) {
        match *self {}
    }

    pub(crate) async fn hand_over(&self, _app: &AppServer, _slots: &Slots) {
        match *self {}
    }
}

/// The relay of clients within this process.
#[derive(Debug, Clone)]
pub(crate) enum RelayInProcess {}

impl RelayInProcess {
    pub(crate) fn connect_client(&self) -> DuplexStream {
        match *self {}
    }
}

impl OtherServers for RelayInProcess {
    fn connect(&self, _thread: ThreadId) -> BoxFuture<'_, Option<ServerConnection>> {
        match *self {}
    }
}
