//! Without a database there are no servers that share threads.

use codex_relay::Relay;
use codex_server::app::{AppServer, Start};
use codex_transport::{Slots, Token};

/// This server among those that share its database.
#[derive(Debug, Clone)]
pub(crate) enum Cluster {}

#[expect(clippy::unused_async, reason = "as with a database")]
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

    pub(crate) async fn watch(&self, _app: &AppServer, _slots: &Slots) {
        match *self {}
    }

    pub(crate) async fn hand_over(&self, _app: &AppServer, _slots: &Slots) {
        match *self {}
    }
}
