//! `thread/metadata/update`.

use std::sync::Arc;

use codex_log::store::RepositoryChange;
use codex_protocol::rpc::ErrorObject;
use codex_protocol::v2::metadata::{ThreadMetadataGitInfoUpdateParams, ThreadMetadataUpdateParams};
use codex_protocol::v2::thread::ThreadResponse;

use super::{refusal, summary};
use crate::app::connection::Connection;
use crate::app::disk::blocking;
use crate::app::stored_threads::{parse_name, read_thread};

/// Changes the repository information of a thread.
pub(super) async fn update(
    connection: &Arc<Connection>,
    params: ThreadMetadataUpdateParams,
) -> Result<ThreadResponse, ErrorObject> {
    let id = parse_name(&params.thread_id)?;
    let host = Arc::clone(&connection.host);
    blocking(move || {
        let summary = summary(&host, id)?;
        let Some(ThreadMetadataGitInfoUpdateParams { sha, branch, origin_url }) = params.git_info else {
            return Ok(());
        };
        let change = RepositoryChange { commit: sha, branch, url: origin_url };
        host.store.change_repository(&summary, change).map_err(refusal)
    })
    .await?;
    Ok(ThreadResponse { thread: read_thread(connection, id, false).await? })
}
