//! Requests that lie beside threads: configuration, models, skills, the login, searches, files, commands of the client.
//!
//! Each group of methods is a file with a function `serve`, which answers its own requests and hands all others back.
//! What reads or changes settings is answered before the next line is read, so a client that does not wait for answers
//! finds its own writes; what may take long runs beside everything else.

mod account;
mod catalogue;
mod commands;
mod config;
mod feedback;
mod files;
mod page;
mod repository;
mod running_command;
mod search;
mod skills;
mod watches;

use std::sync::Arc;

use codex_protocol::methods::ClientRequest;
use codex_protocol::rpc::ErrorObject;

use super::connection::{Connection, Unanswered};
use super::disk::blocking;
use super::host::Host;

/// A request that is somebody else's to serve.
pub(crate) type Passed = Option<(Unanswered, ClientRequest)>;

/// Serves the requests of one group: those under `sure`, which cannot fail, `plain`, which need not wait, and `now`
/// before the next line is read, and those under `aside` beside all others. The table of methods says the same of each.
macro_rules! group {
    (
        $connection:ident, $unanswered:ident, $request:ident;
        $(sure { $($sure:ident => $without_fail:expr,)* })?
        $(plain { $($plain:ident => $without_wait:expr,)* })?
        now { $($now:ident => $at_once:expr,)* }
        aside { $($aside:ident => $later:expr,)* }
    ) => {{
        let scope = $request.scope();
        match $request {
            $($(codex_protocol::methods::ClientRequest::$sure(params) => {
                debug_assert_eq!(scope, codex_protocol::methods::Scope::Connection);
                let result = Ok($without_fail($connection, *params));
                $connection.outbox.answer::<codex_protocol::methods::call::$sure>(&$unanswered.id, result).await;
                None
            })*)?
            $($(codex_protocol::methods::ClientRequest::$plain(params) => {
                debug_assert_eq!(scope, codex_protocol::methods::Scope::Connection);
                let result = $without_wait($connection, *params);
                $connection.outbox.answer::<codex_protocol::methods::call::$plain>(&$unanswered.id, result).await;
                None
            })*)?
            $(codex_protocol::methods::ClientRequest::$now(params) => {
                debug_assert_eq!(scope, codex_protocol::methods::Scope::Connection);
                let result = $at_once($connection, *params).await;
                $connection.outbox.answer::<codex_protocol::methods::call::$now>(&$unanswered.id, result).await;
                None
            })*
            $(codex_protocol::methods::ClientRequest::$aside(params) => {
                debug_assert_eq!(scope, codex_protocol::methods::Scope::Process);
                let connection = std::sync::Arc::clone($connection);
                tokio::spawn(async move {
                    let result = $later(&connection, *params).await;
                    connection.outbox.answer::<codex_protocol::methods::call::$aside>(&$unanswered.id, result).await;
                });
                None
            })*
            other => Some(($unanswered, other)),
        }
    }};
}
use group;

/// What a client has going on beside threads.
#[derive(Debug, Default)]
pub(crate) struct ClientResources {
    commands: commands::Commands,
    searches: search::Searches,
    watches: watches::Watches,
}

impl ClientResources {
    /// The client can say nothing more, so what only ends when it says so ends now.
    pub(crate) fn hang_up(&self) {
        self.searches.end_sessions();
        self.watches.end();
        self.commands.enter(commands::Phase::HungUp);
    }

    /// The client is gone, and everything it has started goes with it.
    pub(crate) fn leave(&self) {
        self.searches.end();
        self.watches.end();
        self.commands.enter(commands::Phase::Gone);
    }
}

/// Serves a request, or hands it back if it does not lie beside threads.
pub(crate) async fn serve(connection: &Arc<Connection>, unanswered: Unanswered, request: ClientRequest) -> Passed {
    let (unanswered, request) = super::thread_metadata::serve(connection, unanswered, request).await?;
    let (unanswered, request) = config::serve(connection, unanswered, request).await?;
    let (unanswered, request) = catalogue::serve(connection, unanswered, request).await?;
    let (unanswered, request) = account::serve(connection, unanswered, request).await?;
    let (unanswered, request) = skills::serve(connection, unanswered, request).await?;
    let (unanswered, request) = commands::serve(connection, unanswered, request).await?;
    let (unanswered, request) = search::serve(connection, unanswered, request).await?;
    let (unanswered, request) = watches::serve(connection, unanswered, request).await?;
    let (unanswered, request) = files::serve(connection, unanswered, request)?;
    let (unanswered, request) = repository::serve(connection, unanswered, request)?;
    feedback::serve(connection, unanswered, request)
}

/// Does work on files that needs what all connections share.
async fn with_host<T: Send + 'static>(
    connection: &Connection,
    work: impl FnOnce(&Host) -> Result<T, ErrorObject> + Send + 'static,
) -> Result<T, ErrorObject> {
    let host = Arc::clone(&connection.host);
    blocking(move || work(&host)).await
}

/// An error with all its causes, and what to do about it on a line of its own.
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
