//! What a thread goes on with: its own past, or somebody else's.

use codex_log::settings::Settings;
use codex_log::state::{ThreadState, TurnBegin};
use codex_thread::ExplicitOverrides;
use codex_wire::conversation_item::ConversationItem;
use codex_wire::response::{
    CustomToolCallOutput, FunctionCallOutput, FunctionCallOutputPayload, Message, ResponseItem,
};

use crate::compaction::is_summary;
use codex_tools::call::{ToolCall, call_of};

/// What the model is told of a call whose end nobody saw.
const LOST: &str = "aborted";

/// The settings a thread goes on with: as configured now, but never looser than before, unless somebody says so.
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

/// A conversation that goes on.
#[derive(Debug, Default)]
pub(crate) struct Past {
    /// Its items.
    pub(crate) items: Vec<ConversationItem>,
    /// How many of them were there before anything was said.
    pub(crate) preface: usize,
    /// What the user said, each with its place.
    pub(crate) said: Vec<(usize, Message)>,
    /// Where the turns since the last summary begin.
    pub(crate) turns: Vec<TurnBegin>,
    /// Outputs for calls that have none.
    pub(crate) lost: Vec<ResponseItem>,
    /// Calls about which a person is to be asked again.
    pub(crate) asked: Vec<ToolCall>,
}

impl Past {
    /// What the state of a thread says of the conversation. Questions that nobody has answered are asked again, or count as
    /// lost.
    pub(crate) fn of(state: &ThreadState, asks_again: bool) -> Self {
        let conversation = &state.conversation;
        let items = conversation.items().to_vec();
        let said = conversation.said_messages().into_iter().filter(|(_, message)| !is_summary(&message.text()));
        let (mut lost, mut asked) = (Vec::new(), Vec::new());
        for open in conversation.open_calls() {
            let is_asked = || state.questions.iter().any(|question| question.item().as_str() == open.call_id);
            let item = items.get(open.item).and_then(|item| item.typed().ok());
            match item.as_deref().filter(|_| asks_again && is_asked()).and_then(call_of) {
                Some(call) => asked.push(call),
                None => lost.push(lost_output(item.as_deref(), open.call_id.to_owned())),
            }
        }
        let (preface, turns) = (conversation.preface().len(), conversation.turns().to_vec());
        Self { items, preface, said: said.collect(), turns, lost, asked }
    }

    /// Puts items before everything else.
    pub(crate) fn put_before(&mut self, told: Vec<ConversationItem>) {
        let places =
            self.said.iter_mut().map(|(place, _)| place).chain(self.turns.iter_mut().map(|turn| &mut turn.item));
        for place in places {
            *place += told.len();
        }
        self.preface += told.len();
        self.items.splice(0..0, told);
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
            held_back: None,
            sandbox_policy,
            model: "new".to_owned(),
            effort: None,
            summary: ReasoningSummary::Auto,
            verbosity: None,
            mode: Mode::default(),
        }
    }

    fn before(approval_policy: AskForApproval, sandbox_policy: SandboxPolicy) -> Settings {
        Settings { cwd: "/tmp".into(), model: "old".to_owned(), ..settings(approval_policy, sandbox_policy) }
    }

    #[test]
    fn a_thread_goes_on_no_looser_than_it_was() {
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
    fn what_the_caller_insists_on_counts() {
        let all = ExplicitOverrides { cwd: true, model: true, approval_policy: true, sandbox_policy: true };
        let now = settings(AskForApproval::Never, SandboxPolicy::DangerFullAccess);
        let settled = settle(all, now.clone(), &before(AskForApproval::UnlessTrusted, SandboxPolicy::ReadOnly));
        assert_eq!(settled, now);
    }
}
