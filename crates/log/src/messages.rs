//! The messages of the event queue that files store. Clients of the queue receive the same messages.

use codex_wire::event::{
    EnteredReviewModeEvent, ErrorEvent, EventMsg, ExitedReviewModeEvent, TaskCompleteEvent, TaskStartedEvent,
    TokenCountEvent, TurnAbortReason, TurnAbortedEvent,
};

use crate::{Abort, Body, Outcome, ReviewEntered};

/// Appends the stored messages of an event. Events stored in another form have none.
pub fn kept(body: &Body, out: &mut Vec<EventMsg>) {
    match body {
        Body::TurnStarted { context_window } => {
            out.push(EventMsg::TaskStarted(TaskStartedEvent { model_context_window: *context_window }));
        }
        Body::ItemCompleted(item) => item.messages(true, out),
        Body::TokensCounted { info, rate_limits } => {
            let (info, rate_limits) = (info.clone(), rate_limits.as_deref().cloned());
            out.push(EventMsg::TokenCount(TokenCountEvent { info, rate_limits }));
        }
        Body::ReviewEntered(review) => out.push(entered_review_mode(review)),
        Body::ReviewExited(output) => {
            let review_output = output.as_deref().cloned();
            out.push(EventMsg::ExitedReviewMode(ExitedReviewModeEvent { review_output }));
        }
        Body::TurnEnded(outcome) => turn_ended(outcome, out),
        Body::ThreadStarted(_)
        | Body::ModelAsked(_)
        | Body::Recorded(_)
        | Body::ItemStarted(_)
        | Body::ItemDelta { .. }
        | Body::ItemInterrupted(_)
        | Body::Asked(_)
        | Body::Answered { .. }
        | Body::TerminalWritten { .. }
        | Body::DiffChanged(_)
        | Body::ImageViewed { .. }
        | Body::PlanUpdated(_)
        | Body::Compacted(_)
        | Body::WentBack { .. }
        | Body::RolledBack(_)
        | Body::GoalChanged(_)
        | Body::GoalCleared
        | Body::Queue(_)
        | Body::AnswerRetried { .. }
        | Body::LimitReached { .. }
        | Body::Warning { .. }
        | Body::ServerChanged(_)
        | Body::ServersStarted(_)
        | Body::CallProgressed { .. }
        | Body::Agent(_)
        | Body::Budget(_)
        | Body::Unread(_) => {}
    }
}

fn entered_review_mode(review: &ReviewEntered) -> EventMsg {
    EventMsg::EnteredReviewMode(EnteredReviewModeEvent {
        target: review.target.clone(),
        user_facing_hint: Some(review.hint.clone()),
        prompt: Some(review.prompt.clone()),
    })
}

fn turn_ended(outcome: &Outcome, out: &mut Vec<EventMsg>) {
    let (last_agent_message, response_id) = match outcome {
        Outcome::Completed { last_message, bookmark } => (last_message.clone(), bookmark.clone()),
        Outcome::Aborted(abort) => {
            let reason = match abort {
                Abort::Interrupted => TurnAbortReason::Interrupted,
                Abort::Replaced => TurnAbortReason::Replaced,
                Abort::ReviewEnded => TurnAbortReason::ReviewEnded,
            };
            return out.push(EventMsg::TurnAborted(TurnAbortedEvent { reason }));
        }
        Outcome::Failed(failure) => {
            let hint = failure.hint.map(|hint| format!("\n{hint}")).unwrap_or_default();
            let (message, codex_error_info) = (format!("{}{hint}", failure.message), Some(failure.info.clone()));
            out.push(EventMsg::Error(ErrorEvent { message, codex_error_info }));
            (None, None)
        }
    };
    out.push(EventMsg::TaskComplete(TaskCompleteEvent { last_agent_message, response_id }));
}
