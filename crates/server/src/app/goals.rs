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
use super::desk::Desk;
use super::serve::closed;
use codex_dialects::Vintage;

/// Serves a request about the goal of the desk's thread. Whoever asks about one knows of goals, and hears of it from here
/// on.
pub(crate) async fn serve(desk: &mut Desk, unanswered: Unanswered, request: ClientRequest) {
    let (connection, id) = (Arc::clone(&desk.connection), &unanswered.id);
    let outbox = &connection.outbox;
    match request {
        ClientRequest::ThreadGoalSet(params) => {
            desk.hear_of_goals();
            outbox.answer::<call::ThreadGoalSet>(id, set(desk, *params).await).await;
        }
        ClientRequest::ThreadGoalGet(_) => {
            desk.hear_of_goals();
            outbox.answer::<call::ThreadGoalGet>(id, get(desk).await).await;
        }
        ClientRequest::ThreadGoalClear(_) => {
            desk.hear_of_goals();
            let cleared = desk.thread.clear_goal().await.map(|cleared| ThreadGoalClearResponse { cleared });
            outbox.answer::<call::ThreadGoalClear>(id, cleared.map_err(|_| closed(desk))).await;
        }
        // The others are served elsewhere.
        _ => outbox.refuse(id, ErrorObject::internal("the request went to the wrong place")).await,
    }
}

async fn set(desk: &Desk, params: ThreadGoalSetParams) -> Result<ThreadGoalSetResponse, ErrorObject> {
    let ThreadGoalSetParams { objective, status, token_budget, .. } = params;
    let set = desk.thread.set_goal(GoalChange { objective, status, token_budget }).await;
    let goal = set.map_err(|_| closed(desk))?.map_err(ErrorObject::from_display)?;
    Ok(ThreadGoalSetResponse { goal: ThreadGoal::new(desk.thread.id().to_string(), &goal) })
}

async fn get(desk: &Desk) -> Result<ThreadGoalGetResponse, ErrorObject> {
    let goal = desk.thread.goal().await.map_err(|_| closed(desk))?;
    Ok(ThreadGoalGetResponse { goal: goal.map(|goal| ThreadGoal::new(desk.thread.id().to_string(), &goal)) })
}

/// Tells a client of the newest release how the goal stands of a thread that was there before; of one that was resumed
/// also that it has none.
pub(crate) async fn tell(desk: &mut Desk, is_resumed: bool) {
    if let Some(goal) = standing(desk, is_resumed).await {
        desk.notify(&goal, super::now_ms());
    }
}

async fn standing(desk: &Desk, is_resumed: bool) -> Option<ServerNotification> {
    let may_have_one = is_resumed || desk.thread.started().is_resumed;
    if desk.connection.vintage() != Vintage::V0166 || !may_have_one {
        return None;
    }
    let thread_id = desk.thread.id().to_string();
    match desk.thread.goal().await.ok()? {
        Some(goal) => {
            let goal = ThreadGoal::new(thread_id.clone(), &goal);
            let updated = ThreadGoalUpdated { thread_id, turn_id: None, goal };
            Some(ServerNotification::ThreadGoalUpdated(Box::new(updated)))
        }
        None => is_resumed.then_some(ServerNotification::ThreadGoalCleared(ThreadNamed { thread_id })),
    }
}
