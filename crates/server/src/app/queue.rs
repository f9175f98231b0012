//! `thread/queue/*`.

use codex_log::queue::QueuedInput;
use codex_methods::pagination::page;
use codex_protocol::rpc::ErrorObject;
use codex_protocol::v2::empty::Empty;
use codex_protocol::v2::queue::{
    QueuedSubmission, QueuedSubmissionResponse, ThreadQueueAddParams, ThreadQueueDeleteParams,
    ThreadQueueDeleteResponse, ThreadQueueListParams, ThreadQueueListResponse, ThreadQueueReorderParams,
    ThreadQueueStartParams, ThreadQueueStartResponse, ThreadQueueUpdateParams,
};
use codex_protocol::v2::turn::Turn;
use codex_wire::input::UserInput;

use super::dispatch::serve;
use super::subscriber::ThreadSubscriber;
use super::turns::{check_turn, closed, fresh_turn};

/// The maximum length of a client's id for a message, in bytes.
const MOST_ID_BYTES: usize = 512;

serve! {
    subscribed {
        ThreadQueueAdd => add,
        ThreadQueueList => list,
        ThreadQueueUpdate => update,
        ThreadQueueDelete => delete,
        ThreadQueueReorder => reorder,
        ThreadQueueStart => start,
    }
}

fn shown(entry: &QueuedInput) -> QueuedSubmission {
    let QueuedInput { id, client_id, input } = entry.clone();
    QueuedSubmission { id, client_user_message_id: client_id, input }
}

/// Checks the input of an entry as that of a turn.
async fn check(subscriber: &ThreadSubscriber, input: &[UserInput]) -> Result<(), ErrorObject> {
    if input.is_empty() {
        return Err(ErrorObject::invalid("input must not be empty"));
    }
    check_turn(subscriber, &codex_log::settings::SettingsChange::default(), input).await
}

async fn add(
    subscriber: &mut ThreadSubscriber,
    params: ThreadQueueAddParams,
) -> Result<QueuedSubmissionResponse, ErrorObject> {
    let ThreadQueueAddParams { client_user_message_id: client_id, input, .. } = params;
    if client_id.is_empty() || client_id.len() > MOST_ID_BYTES {
        let message = format!("clientUserMessageId has {} bytes; 1 to {MOST_ID_BYTES} are allowed", client_id.len());
        return Err(ErrorObject::invalid(message));
    }
    check(subscriber, &input).await?;
    let entry = QueuedInput { id: fresh_turn().as_str().to_owned(), client_id, input };
    let added = subscriber.thread.enqueue(entry).await.map_err(|_| closed(subscriber))?;
    let queued_submission = shown(&*added.map_err(ErrorObject::from_display)?);
    Ok(QueuedSubmissionResponse { queued_submission })
}

async fn list(
    subscriber: &mut ThreadSubscriber,
    params: ThreadQueueListParams,
) -> Result<ThreadQueueListResponse, ErrorObject> {
    let queue = subscriber.thread.queue().await.map_err(|_| closed(subscriber))?;
    let (entries, next_cursor) =
        page(queue.entries, params.cursor.as_deref(), params.limit).map_err(ErrorObject::from_display)?;
    let data = entries.iter().map(|entry| shown(entry)).collect();
    Ok(ThreadQueueListResponse { data, next_cursor, is_paused: queue.is_paused })
}

async fn update(
    subscriber: &mut ThreadSubscriber,
    params: ThreadQueueUpdateParams,
) -> Result<QueuedSubmissionResponse, ErrorObject> {
    let ThreadQueueUpdateParams { queued_submission_id: id, input, .. } = params;
    check(subscriber, &input).await?;
    let updated = subscriber.thread.update_queued(id, input).await.map_err(|_| closed(subscriber))?;
    let queued_submission = shown(&*updated.map_err(ErrorObject::from_display)?);
    Ok(QueuedSubmissionResponse { queued_submission })
}

async fn delete(
    subscriber: &mut ThreadSubscriber,
    params: ThreadQueueDeleteParams,
) -> Result<ThreadQueueDeleteResponse, ErrorObject> {
    let deleted = subscriber.thread.delete_queued(params.queued_submission_id).await;
    Ok(ThreadQueueDeleteResponse { deleted: deleted.map_err(|_| closed(subscriber))? })
}

async fn reorder(subscriber: &mut ThreadSubscriber, params: ThreadQueueReorderParams) -> Result<Empty, ErrorObject> {
    let ordered = subscriber.thread.reorder_queue(params.queued_submission_ids).await;
    ordered.map_err(|_| closed(subscriber))?.map(|()| Empty {}).map_err(ErrorObject::from_display)
}

async fn start(
    subscriber: &mut ThreadSubscriber,
    params: ThreadQueueStartParams,
) -> Result<ThreadQueueStartResponse, ErrorObject> {
    let started = subscriber.thread.start_queue(params.queued_submission_id).await.map_err(|_| closed(subscriber))?;
    let turn = started.map_err(ErrorObject::from_display)?;
    Ok(ThreadQueueStartResponse { turn: Turn::begun(turn.as_str().to_owned()) })
}
