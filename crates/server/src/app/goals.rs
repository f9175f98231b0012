//! `thread/goal/*`, and the notification of the goal when a client opens a thread. A client that requests a goal
//! receives its notifications from then on.

use codex_protocol::rpc::ErrorObject;
use codex_protocol::v2::goal::{
    ThreadGoal, ThreadGoalClearParams, ThreadGoalClearResponse, ThreadGoalGetParams, ThreadGoalGetResponse,
    ThreadGoalSetParams, ThreadGoalSetResponse, ThreadGoalUpdated,
};
use codex_protocol::v2::notification::{ServerNotification, ThreadNamed};
use codex_thread::goal::GoalChange;

use super::dispatch::serve;
use super::subscriber::ThreadSubscriber;
use super::turns::closed;
use codex_dialects::ProtocolRelease;

serve! {
    subscribed {
        ThreadGoalSet => set,
        ThreadGoalGet => get,
        ThreadGoalClear => clear,
    }
}

async fn set(
    subscriber: &mut ThreadSubscriber,
    params: ThreadGoalSetParams,
) -> Result<ThreadGoalSetResponse, ErrorObject> {
    subscriber.hear_of_goals();
    let ThreadGoalSetParams { objective, status, token_budget, .. } = params;
    let set = subscriber.thread.set_goal(GoalChange { objective, status, token_budget }).await;
    let goal = set.map_err(|_| closed(subscriber))?.map_err(ErrorObject::from_display)?;
    Ok(ThreadGoalSetResponse { goal: ThreadGoal::new(subscriber.thread.id().to_string(), &goal) })
}

async fn get(subscriber: &mut ThreadSubscriber, _: ThreadGoalGetParams) -> Result<ThreadGoalGetResponse, ErrorObject> {
    subscriber.hear_of_goals();
    let goal = subscriber.thread.goal().await.map_err(|_| closed(subscriber))?;
    Ok(ThreadGoalGetResponse { goal: goal.map(|goal| ThreadGoal::new(subscriber.thread.id().to_string(), &goal)) })
}

async fn clear(
    subscriber: &mut ThreadSubscriber,
    _: ThreadGoalClearParams,
) -> Result<ThreadGoalClearResponse, ErrorObject> {
    subscriber.hear_of_goals();
    let cleared = subscriber.thread.clear_goal().await.map_err(|_| closed(subscriber))?;
    Ok(ThreadGoalClearResponse { cleared })
}

/// Sends a client of the newest release the goal of an existing thread. For a resumed thread it also reports that there
/// is none.
pub(crate) async fn tell(subscriber: &mut ThreadSubscriber, is_resumed: bool) {
    if let Some(goal) = current_goal(subscriber, is_resumed).await {
        subscriber.notify(&goal, super::now_ms());
    }
}

async fn current_goal(subscriber: &ThreadSubscriber, is_resumed: bool) -> Option<ServerNotification> {
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
