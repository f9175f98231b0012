//! `configWarning`: the settings that have no effect, reported to each client once.

use std::path::PathBuf;
use std::sync::Arc;

use codex_config::ProjectFiles;
use codex_protocol::v2::notification::ServerNotification;
use codex_protocol::v2::warning::ConfigWarning;

use super::connection::{Connection, lock};
use super::disk::blocking;
use super::stored_threads::tell;
use codex_dialects::event_filter::Dialect;

/// Warns a client that has just been initialized.
pub(crate) async fn greet(connection: &Arc<Connection>) {
    if !may_be_told(connection) {
        return;
    }
    let host = Arc::clone(&connection.host);
    let warnings = match &host.at_start {
        Some(at_start) => at_start.warnings.clone(),
        None => blocking({
            let host = Arc::clone(&host);
            move || Ok(host.start.config.warnings(host.start.cwd.clone()))
        })
        .await
        .unwrap_or_default(),
    };
    send_new(connection, warnings).await;
}

/// Warns the client of a thread about settings that the project in its folder may not change.
pub(crate) async fn tell_of_project(connection: &Arc<Connection>, cwd: PathBuf) {
    let cwd = connection.host.start.cwd.join(cwd);
    if !may_be_told(connection) {
        return;
    }
    let host = Arc::clone(&connection.host);
    let warnings = blocking(move || {
        let is_known = ProjectFiles::find(host.start.config.home(), &cwd).is_empty();
        Ok(if is_known { Vec::new() } else { host.start.config.warnings(cwd) })
    });
    let warnings = warnings.await.unwrap_or_default();
    send_new(connection, warnings).await;
}

/// Whether a client has a notification for warnings; v1 has none.
fn may_be_told(connection: &Connection) -> bool {
    connection.client().is_some_and(|client| client.traits().dialect != Some(Dialect::V1) && !client.is_relayed)
}

async fn send_new(connection: &Arc<Connection>, warnings: Vec<codex_config::ConfigWarning>) {
    for warning in warnings {
        let summary = warning.to_string();
        if lock(&connection.warned_of).insert(summary.clone()) {
            let warning = ConfigWarning { summary, details: None, path: warning.path };
            tell(connection, ServerNotification::ConfigWarning(warning)).await;
        }
    }
}
