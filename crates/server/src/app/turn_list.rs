//! Turns and items of a thread, page by page.

use std::sync::Arc;

use codex_dialects::ProtocolRelease;
use codex_methods::pages;
use codex_protocol::rpc::ErrorObject;
use codex_protocol::v2::turn::{Turn, TurnStatus};
use codex_protocol::v2::turn_list::{
    ThreadItemsListParams, ThreadItemsListResponse, ThreadTurnsListParams, ThreadTurnsListResponse,
};

use super::connection::Connection;
use super::disk::blocking;
use super::stored;
use super::stored_threads::parse_name;

/// All turns of a thread, loaded or not.
pub(crate) async fn turns(connection: &Arc<Connection>, thread: &str) -> Result<Vec<Turn>, ErrorObject> {
    let id = parse_name(thread)?;
    let loaded = connection.host.start.threads.get(id);
    let running = match &loaded {
        Some(loaded) => loaded.running().await.ok().flatten(),
        None => None,
    };
    let is_loaded = loaded.is_some();
    // These methods were added with this release, so turns have its form, whatever release the connection follows.
    let (host, release) = (Arc::clone(&connection.host), ProtocolRelease::V0166);
    let mut turns = blocking(move || {
        if !is_loaded {
            let found = host.store.find(id).map_err(ErrorObject::internal_from)?;
            found.ok_or_else(|| super::dispatch::not_found(&id.to_string()))?;
        }
        // An unsaved thread has no turns on disk.
        Ok(stored::turns(&*host.store, id, release).unwrap_or_default())
    })
    .await?;
    if let (Some(running), Some(last)) = (running, turns.last_mut())
        && last.id == running.as_str()
    {
        last.status = TurnStatus::InProgress;
    }
    Ok(turns)
}

/// Serves `thread/turns/list`.
pub(crate) async fn list_turns(
    connection: &Arc<Connection>,
    params: ThreadTurnsListParams,
) -> Result<ThreadTurnsListResponse, ErrorObject> {
    pages::turns(turns(connection, &params.thread_id).await?, &params)
}

/// Serves `thread/items/list`.
pub(crate) async fn list_items(
    connection: &Arc<Connection>,
    params: ThreadItemsListParams,
) -> Result<ThreadItemsListResponse, ErrorObject> {
    pages::items(turns(connection, &params.thread_id).await?, params)
}
