//! What a client asks of the goal of a thread, and what it is told of it when it opens one.

use std::sync::Arc;

use codex_protocol::methods::{ClientRequest, call};
use codex_protocol::rpc::ErrorObject;
use codex_protocol::v2::goal::{
    ThreadGoal, ThreadGoalClearResponse, ThreadGoalGetResponse, ThreadGoalSetParams, ThreadGoalSetResponse,
    ThreadGoalUpdated,
};
use codex_protocol::v2::notification::{ServerNotification, ThreadNamed};
use codex_thread::goal::GoalChange;

use super::connection::Unanswered;
use super::serve::closed;
use super::subscriber::ThreadSubscriber;
use codex_dialects::ProtocolRelease;

/// Serves a request about the goal of the subscriber's thread. Whoever asks about one knows of goals, and hears of it from here
/// on.
pub(crate) async fn serve(subscriber: &mut ThreadSubscriber, unanswered: Unanswered, request: ClientRequest) {
    let (connection, id) = (Arc::clone(&subscriber.connection), &unanswered.id);
    let outbox = &connection.outbox;
    match request {
        ClientRequest::ThreadGoalSet(params) => {
            subscriber.hear_of_goals();
            outbox.answer::<call::ThreadGoalSet>(id, set(subscriber, *params).await).await;
        }
        ClientRequest::ThreadGoalGet(_) => {
            subscriber.hear_of_goals();
            outbox.answer::<call::ThreadGoalGet>(id, get(subscriber).await).await;
        }
        ClientRequest::ThreadGoalClear(_) => {
            subscriber.hear_of_goals();
            let cleared = subscriber.thread.clear_goal().await.map(|cleared| ThreadGoalClearResponse { cleared });
            outbox.answer::<call::ThreadGoalClear>(id, cleared.map_err(|_| closed(subscriber))).await;
        }
        // The others are served elsewhere.
        _ => outbox.refuse(id, ErrorObject::internal("the request went to the wrong place")).await,
    }
}

async fn set(subscriber: &ThreadSubscriber, params: ThreadGoalSetParams) -> Result<ThreadGoalSetResponse, ErrorObject> {
    let ThreadGoalSetParams { objective, status, token_budget, .. } = params;
    let set = subscriber.thread.set_goal(GoalChange { objective, status, token_budget }).await;
    let goal = set.map_err(|_| closed(subscriber))?.map_err(ErrorObject::from_display)?;
    Ok(ThreadGoalSetResponse { goal: ThreadGoal::new(subscriber.thread.id().to_string(), &goal) })
}

async fn get(subscriber: &ThreadSubscriber) -> Result<ThreadGoalGetResponse, ErrorObject> {
    let goal = subscriber.thread.goal().await.map_err(|_| closed(subscriber))?;
    Ok(ThreadGoalGetResponse { goal: goal.map(|goal| ThreadGoal::new(subscriber.thread.id().to_string(), &goal)) })
}

/// Tells a client of the newest release how the goal stands of a thread that was there before; of one that was resumed
/// also that it has none.
pub(crate) async fn tell(subscriber: &mut ThreadSubscriber, is_resumed: bool) {
    if let Some(goal) = standing(subscriber, is_resumed).await {
        subscriber.notify(&goal, super::now_ms());
    }
}

async fn standing(subscriber: &ThreadSubscriber, is_resumed: bool) -> Option<ServerNotification> {
    let may_have_one = is_resumed || subscriber.thread.started().is_resumed;
    if subscriber.connection.release() != ProtocolRelease::V0166 || !may_have_one {
        return None;
    }
    let thread_id = subscriber.thread.id().to_string();
    match subscriber.thread.goal().await.ok()? {
        Some(goal) => {
            let goal = ThreadGoal::new(thread_id.clone(), &goal);
            let updated = ThreadGoalUpdated { thread_id, turn_id: None, goal };
            Some(ServerNotification::ThreadGoalUpdated(Box::new(updated)))
        }
        None => is_resumed.then_some(ServerNotification::ThreadGoalCleared(ThreadNamed { thread_id })),
    }
}
