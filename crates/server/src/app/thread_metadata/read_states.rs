//! The read states of threads.

use std::collections::BTreeMap;
use std::sync::Arc;

use codex_log::store::{ReadMark, ThreadMetadata, ThreadSummary};
use codex_protocol::rpc::ErrorObject;
use codex_protocol::v2::read_state::{
    ThreadReadState, ThreadReadStateOperation, ThreadReadStateUpdateParams, ThreadReadStateUpdateResponse,
};
use codex_wire::ids::ThreadId;
use codex_wire::rollout::SessionSource;

use super::{WithNotification, refusal, summary};
use crate::app::connection::Connection;
use crate::app::disk::blocking;
use crate::app::stored_threads::{parse_name, tell_all};
use codex_dialects::ProtocolRelease;

/// Whether a person reads a thread directly. The work of a subagent is read in its parent.
fn is_read_by_itself(summary: &ThreadSummary) -> bool {
    summary.parent.is_none() && !matches!(summary.source, Some(SessionSource::SubAgent(_)))
}

/// The read states of the threads of a list. Clients of older releases receive none.
pub(crate) fn read_states(
    store: &(impl ThreadMetadata + ?Sized),
    threads: &[ThreadSummary],
    release: ProtocolRelease,
) -> BTreeMap<String, ThreadReadState> {
    let shown = threads.iter().filter(|summary| release == ProtocolRelease::V0166 && is_read_by_itself(summary));
    shown
        .map(|summary| (summary.id.to_string(), codex_dialects::v2::read_state(&store.read_state(summary.id))))
        .collect()
}

/// The read state of a saved thread, if the client knows read states.
pub(crate) async fn read_state(connection: &Connection, id: ThreadId) -> Option<ThreadReadState> {
    if connection.release() != ProtocolRelease::V0166 {
        return None;
    }
    let host = Arc::clone(&connection.host);
    let found = blocking(move || {
        let found = summary(&host, id).ok().filter(is_read_by_itself);
        Ok(found.map(|_| codex_dialects::v2::read_state(&host.store.read_state(id))))
    });
    found.await.ok().flatten()
}

/// Marks a thread as read or unread.
pub(super) async fn mark(
    connection: &Connection,
    params: ThreadReadStateUpdateParams,
) -> WithNotification<ThreadReadStateUpdateResponse> {
    let id = parse_name(&params.thread_id)?;
    let mark = match params.operation {
        ThreadReadStateOperation::Read => ReadMark::Read,
        ThreadReadStateOperation::Unread => ReadMark::Unread,
    };
    let host = Arc::clone(&connection.host);
    blocking(move || {
        if !is_read_by_itself(&summary(&host, id)?) {
            return Err(ErrorObject::invalid(format!("thread {id} is read with the thread that started it")));
        }
        let (state, is_new) = host.store.mark(id, &params.expected_revision, mark).map_err(refusal)?;
        let changed = is_new.then(|| codex_dialects::v2::read_state_changed(id.to_string(), &state));
        Ok((ThreadReadStateUpdateResponse { read_state: codex_dialects::v2::read_state(&state) }, changed))
    })
    .await
}

/// Records which turns of a thread are left, and notifies clients if none of them is unread.
pub(crate) async fn turns_left(connection: &Arc<Connection>, id: ThreadId, left: Vec<String>) {
    let store = Arc::clone(&connection.host.store);
    let noting = blocking(move || {
        let left: Vec<&str> = left.iter().map(String::as_str).collect();
        store.turns_left(id, &left).map_err(refusal)
    });
    // The turns are gone even if the metadata cannot be written.
    if let Ok(Some(state)) = noting.await {
        tell_all(connection, &codex_dialects::v2::read_state_changed(id.to_string(), &state)).await;
    }
}
