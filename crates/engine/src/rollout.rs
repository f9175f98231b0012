//! The file of a thread as a projection of its log, in the form that other releases read too.
//!
//! Deltas are not kept: the items they lead to are. Of the event queue only what a resumed client is shown again is
//! kept; the rest follows from the items of the conversation.

use codex_store::{RolloutError, RolloutFile};
use codex_wire::event::EventMsg;
use codex_wire::rollout::TurnContextItem;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::eq::{self, Vocabulary};
use crate::log::{Body, Event};
use crate::settings::Settings;

/// Appends the lines that an event gives.
pub(crate) fn append(event: &Event, file: &mut RolloutFile) -> Result<(), RolloutError> {
    match &event.body {
        Body::ThreadStarted(started) => file.append("session_meta", &started.meta),
        Body::ModelAsked(settings) => file.append("turn_context", &turn_context(settings)),
        Body::Recorded(record) => file.append("response_item", &*record.json),
        Body::Compacted(compacted) => {
            let replacement_history = compacted.replacement.iter().map(|record| &*record.json).collect();
            file.append("compacted", &CompactedLine { message: &compacted.summary, replacement_history })?;
            file.append("event_msg", &EventMsg::ContextCompacted)
        }
        // Every reader of the file takes what a summary is replaced by for the conversation from there on.
        Body::WentBack { replacement, .. } => {
            let replacement_history = replacement.iter().map(|item| &**item).collect();
            file.append("compacted", &CompactedLine { message: "", replacement_history })
        }
        Body::ItemCompleted(_)
        | Body::TokensCounted { .. }
        | Body::ReviewEntered(_)
        | Body::ReviewExited(_)
        | Body::TurnEnded(_) => {
            let mut messages = Vec::new();
            eq::project(event, Vocabulary { raw_reasoning: true, ..Vocabulary::default() }, &mut messages);
            messages.iter().filter(|message| is_kept(message)).try_for_each(|message| file.append("event_msg", message))
        }
        Body::TurnStarted { .. }
        | Body::ItemStarted(_)
        | Body::ItemDelta { .. }
        | Body::ApprovalAsked(_)
        | Body::ApprovalAnswered { .. }
        | Body::TerminalWritten { .. }
        | Body::ImageViewed { .. }
        | Body::DiffChanged(_)
        | Body::PlanUpdated(_)
        | Body::AnswerRetried { .. }
        | Body::Warning { .. } => Ok(()),
    }
}

/// [`codex_wire::rollout::CompactedItem`] with its items as they are encoded already.
#[derive(Serialize)]
struct CompactedLine<'a> {
    message: &'a str,
    replacement_history: Vec<&'a RawValue>,
}

fn is_kept(message: &EventMsg) -> bool {
    matches!(
        message,
        EventMsg::UserMessage(_)
            | EventMsg::AgentMessage(_)
            | EventMsg::AgentReasoning(_)
            | EventMsg::AgentReasoningRawContent(_)
            | EventMsg::TokenCount(_)
            | EventMsg::EnteredReviewMode(_)
            | EventMsg::ExitedReviewMode(_)
            | EventMsg::TurnAborted(_)
    )
}

fn turn_context(settings: &Settings) -> TurnContextItem {
    TurnContextItem {
        cwd: settings.cwd.clone(),
        approval_policy: settings.approval_policy,
        sandbox_policy: settings.sandbox_policy.clone(),
        model: settings.model.clone(),
        effort: settings.effort.clone(),
        summary: settings.summary.clone(),
    }
}
