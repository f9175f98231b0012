//! `configWarning`: the settings that have no effect, reported to each client once.

use std::path::PathBuf;
use std::sync::Arc;

use codex_config::ProjectFiles;
use codex_protocol::v2::notification::ServerNotification;
use codex_protocol::v2::warning::ConfigWarning;

use super::connection::{Connection, lock};
use super::disk::blocking;
use super::event_filter::Dialect;
use super::stored_threads::tell;

/// Warns a client that has just been initialized.
pub(crate) async fn greet(connection: &Arc<Connection>) {
    tell_of(connection, connection.host.start.cwd.clone(), true).await;
}

/// Warns the client of a thread about settings that the project in its folder may not change.
pub(crate) async fn tell_of_project(connection: &Arc<Connection>, cwd: PathBuf) {
    let cwd = connection.host.start.cwd.join(cwd);
    tell_of(connection, cwd, false).await;
}

async fn tell_of(connection: &Arc<Connection>, cwd: PathBuf, is_greeting: bool) {
    // v1 has no message for it.
    if connection.client().is_none_or(|client| client.dialect == Some(Dialect::V1)) {
        return;
    }
    let host = Arc::clone(&connection.host);
    let warnings = blocking(move || {
        let is_known = !is_greeting && ProjectFiles::find(host.start.config.home(), &cwd).is_empty();
        Ok(if is_known { Vec::new() } else { host.start.config.warnings(cwd) })
    });
    for warning in warnings.await.unwrap_or_default() {
        let summary = warning.to_string();
        if lock(&connection.warned_of).insert(summary.clone()) {
            let warning = ConfigWarning { summary, details: None, path: warning.path };
            tell(connection, ServerNotification::ConfigWarning(warning)).await;
        }
    }
}
