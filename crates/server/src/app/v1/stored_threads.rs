//! Requests about conversations on disk, loaded or not.

use std::path::Path;
use std::sync::Arc;

use chrono::SecondsFormat;
use codex_log::store::{Located, ThreadSummary};
use codex_protocol::rpc::ErrorObject;
use codex_protocol::v1::conversation::{
    ArchiveConversationParams, ConversationSummary, GetConversationSummaryParams, GetConversationSummaryResponse,
    ListConversationsParams, ListConversationsResponse,
};
use codex_protocol::v2::empty::Empty;
use codex_protocol::v2::thread_list::ThreadListParams;
use codex_wire::rollout::SessionSource;

use crate::app::connection::Connection;
use crate::app::disk::blocking;
use crate::app::dispatch::serve;
use crate::app::host::Host;
use crate::app::stored_threads::{archive, query};

serve! {
    waits { ListConversations => list, }
    stored {
        GetConversationSummary => summary,
        ArchiveConversation => put_away,
    }
}

async fn list(
    connection: &Arc<Connection>,
    params: ListConversationsParams,
) -> Result<ListConversationsResponse, ErrorObject> {
    let ListConversationsParams { page_size, cursor, model_providers } = params;
    let limit = page_size.map(|size| u32::try_from(size).unwrap_or(u32::MAX));
    let host = Arc::clone(&connection.host);
    blocking(move || {
        let provider = host.config()?.provider.id.clone();
        let params = ThreadListParams { cursor, limit, model_providers, ..ThreadListParams::default() };
        let page = host.store.list(&query(params, &provider)).map_err(ErrorObject::from_display)?;
        let items = page.threads.into_iter().map(|thread| shown(thread, &provider)).collect();
        Ok(ListConversationsResponse { items, next_cursor: page.next_cursor })
    })
    .await
}

async fn summary(
    connection: &Arc<Connection>,
    params: GetConversationSummaryParams,
) -> Result<GetConversationSummaryResponse, ErrorObject> {
    let host = Arc::clone(&connection.host);
    blocking(move || {
        let id = match (params.rollout_path, params.conversation_id) {
            (Some(path), _) => locate(&host, &path)?.thread,
            (None, Some(id)) => id,
            (None, None) => return Err(ErrorObject::invalid("either conversationId or rolloutPath must be given")),
        };
        let found = host.store.find(id).map_err(ErrorObject::internal_from)?;
        let found = found.ok_or_else(|| ErrorObject::invalid(format!("no rollout found for conversation id {id}")))?;
        let provider = host.config()?.provider.id.clone();
        Ok(GetConversationSummaryResponse { summary: shown(found, &provider) })
    })
    .await
}

/// Archives a conversation whose id and file belong together.
async fn put_away(connection: &Arc<Connection>, params: ArchiveConversationParams) -> Result<Empty, ErrorObject> {
    let ArchiveConversationParams { conversation_id, rollout_path } = params;
    let host = Arc::clone(&connection.host);
    let shown = rollout_path.display().to_string();
    let located = blocking(move || locate(&host, &rollout_path)).await?;
    if located.archived {
        return Err(ErrorObject::invalid(format!("rollout path `{shown}` must be in sessions directory")));
    }
    if located.thread != conversation_id {
        let text = format!("rollout path `{shown}` does not match conversation id `{conversation_id}`");
        return Err(ErrorObject::invalid(text));
    }
    archive(connection, conversation_id).await
}

/// The thread that a client names; a path starts at the home folder.
fn locate(host: &Host, path: &Path) -> Result<Located, ErrorObject> {
    let path = host.start.config.home().path().join(path);
    host.store.locate(&path).map_err(ErrorObject::from_display)
}

fn shown(thread: ThreadSummary, default_provider: &str) -> ConversationSummary {
    ConversationSummary {
        conversation_id: thread.id,
        path: thread.path,
        preview: thread.preview,
        timestamp: Some(thread.created_at.to_rfc3339_opts(SecondsFormat::Millis, true)),
        model_provider: thread.provider.unwrap_or_else(|| default_provider.to_owned()),
        cwd: thread.cwd,
        cli_version: thread.cli_version,
        source: thread.source.unwrap_or(SessionSource::VsCode),
        git_info: thread.git.map(Into::into),
    }
}
