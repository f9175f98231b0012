//! The settings and the unfinished calls of a resumed thread.

use codex_log::settings::Settings;
use codex_log::state::ThreadState;
use codex_thread::ExplicitOverrides;
use codex_wire::response::{CustomToolCallOutput, FunctionCallOutput, FunctionCallOutputPayload, ResponseItem};

use codex_tools::call::{ToolCall, call_of};

/// The output of a call whose end was not recorded.
const LOST: &str = "aborted";

/// The settings of a resumed thread: as configured now, but never looser than before, unless set explicitly.
pub(crate) fn settle(explicit: ExplicitOverrides, now: Settings, before: &Settings) -> Settings {
    Settings {
        cwd: if explicit.cwd || !before.cwd.is_dir() { now.cwd } else { before.cwd.clone() },
        model: if explicit.model { now.model } else { before.model.clone() },
        effort: if explicit.model { now.effort } else { before.effort.clone().or(now.effort) },
        approval_policy: if explicit.approval_policy {
            now.approval_policy
        } else {
            now.approval_policy.stricter(before.approval_policy)
        },
        sandbox_policy: if explicit.sandbox_policy {
            now.sandbox_policy
        } else {
            now.sandbox_policy.tighter(&before.sandbox_policy)
        },
        mode: before.mode.clone(),
        ..now
    }
}

/// Calls of a resumed thread whose end was not recorded.
#[derive(Debug, Default)]
pub(crate) struct UnfinishedCalls {
    /// Outputs for calls that have none.
    pub(crate) lost: Vec<ResponseItem>,
    /// Calls whose questions are asked again.
    pub(crate) asked: Vec<ToolCall>,
}

impl UnfinishedCalls {
    /// The unfinished calls in the state of a thread. Unanswered questions are asked again, or their calls count as
    /// lost.
    pub(crate) fn of(state: &ThreadState, asks_again: bool) -> Self {
        let mut ends = Self::default();
        for open in state.conversation.open_calls() {
            let is_asked = || state.questions.iter().any(|question| question.item().as_str() == open.call_id);
            let item = state.conversation.items().get(open.item).and_then(|item| item.typed().ok());
            match item.as_deref().filter(|_| asks_again && is_asked()).and_then(call_of) {
                Some(call) => ends.asked.push(call),
                None => ends.lost.push(lost_output(item.as_deref(), open.call_id.to_owned())),
            }
        }
        ends
    }
}

fn lost_output(call: Option<&ResponseItem>, call_id: String) -> ResponseItem {
    let output = FunctionCallOutputPayload::Text(LOST.to_owned());
    if matches!(call, Some(ResponseItem::CustomToolCall(_))) {
        ResponseItem::CustomToolCallOutput(CustomToolCallOutput { call_id, output })
    } else {
        ResponseItem::FunctionCallOutput(FunctionCallOutput { call_id, output })
    }
}

#[cfg(test)]
mod tests {
    use codex_log::settings::Mode;
    use codex_wire::policy::{ApprovalsReviewer, AskForApproval, SandboxPolicy};
    use codex_wire::reasoning::ReasoningSummary;

    use super::*;

    fn settings(approval_policy: AskForApproval, sandbox_policy: SandboxPolicy) -> Settings {
        Settings {
            cwd: "/".into(),
            approval_policy,
            reviewer: ApprovalsReviewer::User,
            withheld: None,
            sandbox_policy,
            model: "new".to_owned(),
            effort: None,
            summary: ReasoningSummary::Auto,
            verbosity: None,
            mode: Mode::default(),
            agent_tools: None,
        }
    }

    fn before(approval_policy: AskForApproval, sandbox_policy: SandboxPolicy) -> Settings {
        Settings { cwd: "/tmp".into(), model: "old".to_owned(), ..settings(approval_policy, sandbox_policy) }
    }

    #[test]
    fn a_thread_continues_no_looser_than_it_was() {
        let now = settings(AskForApproval::Never, SandboxPolicy::DangerFullAccess);
        let then = before(AskForApproval::UnlessTrusted, SandboxPolicy::ReadOnly);
        let settled = settle(ExplicitOverrides::default(), now, &then);
        assert_eq!(settled.approval_policy, AskForApproval::UnlessTrusted);
        assert_eq!(settled.sandbox_policy, SandboxPolicy::ReadOnly);
        assert_eq!((settled.model.as_str(), settled.cwd), ("old", "/tmp".into()));
    }

    #[test]
    fn a_configuration_that_became_stricter_counts() {
        let now = settings(AskForApproval::UnlessTrusted, SandboxPolicy::ReadOnly);
        let then = before(AskForApproval::Never, SandboxPolicy::DangerFullAccess);
        let settled = settle(ExplicitOverrides::default(), now, &then);
        assert_eq!(settled.approval_policy, AskForApproval::UnlessTrusted);
        assert_eq!(settled.sandbox_policy, SandboxPolicy::ReadOnly);
    }

    #[test]
    fn explicit_settings_win() {
        let all = ExplicitOverrides { cwd: true, model: true, approval_policy: true, sandbox_policy: true };
        let now = settings(AskForApproval::Never, SandboxPolicy::DangerFullAccess);
        let settled = settle(all, now.clone(), &before(AskForApproval::UnlessTrusted, SandboxPolicy::ReadOnly));
        assert_eq!(settled, now);
    }
}
