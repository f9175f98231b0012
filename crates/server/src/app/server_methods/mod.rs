//! Requests that are not about threads: configuration, models, skills, the login, searches, files, commands of the
//! client.
//!
//! Methods that read or change settings are answered before the next line is read, so a client that does not wait for
//! responses sees its own writes; slow methods run concurrently. The table of methods says which.

mod account;
mod catalogue;
mod commands;
mod config;
mod feedback;
mod files;
mod mcp;
mod nothing_there;
mod repository;
mod running_command;
mod search;
mod skills;
mod watches;

use std::sync::Arc;

use codex_protocol::rpc::ErrorObject;

use super::connection::Connection;
use super::disk::blocking;
use super::host::Host;

/// Running work of a client that is not about threads.
#[derive(Debug, Default)]
pub(crate) struct ClientResources {
    commands: commands::Commands,
    searches: search::Searches,
    watches: watches::Watches,
}

impl ClientResources {
    /// The client can send no more requests, so work that ends only on request ends now.
    pub(crate) fn hang_up(&self) {
        self.searches.end_sessions();
        self.watches.end();
        self.commands.enter(commands::Phase::HungUp);
    }

    /// The client is gone, and everything it started ends with it.
    pub(crate) fn leave(&self) {
        self.searches.end();
        self.watches.end();
        self.commands.enter(commands::Phase::Gone);
    }
}

/// Runs work on files that needs the shared state of all connections.
async fn with_host<T: Send + 'static>(
    connection: &Connection,
    work: impl FnOnce(&Host) -> Result<T, ErrorObject> + Send + 'static,
) -> Result<T, ErrorObject> {
    let host = Arc::clone(&connection.host);
    blocking(move || work(&host)).await
}

/// An error with all its causes, and a hint on a separate line.
fn explain(error: &(dyn std::error::Error + 'static), hint: Option<String>) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    if let Some(hint) = hint {
        text.push('\n');
        text.push_str(&hint);
    }
    text
}
