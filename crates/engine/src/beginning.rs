//! What a thread goes on with: its own past, or somebody else's.

use codex_log::history::{History, TurnBegin};
use codex_log::settings::{Mode, Settings};
use codex_thread::ExplicitOverrides;
use codex_wire::conversation_item::ConversationItem;
use codex_wire::response::{
    CustomToolCallOutput, FunctionCallOutput, FunctionCallOutputPayload, Message, ResponseItem,
};
use codex_wire::rollout::TurnContextItem;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::compaction::is_summary;
use codex_tools::call::{ToolCall, call_of};

/// What the model is told of a call whose end nobody saw.
const LOST: &str = "aborted";

/// The settings a thread goes on with: as configured now, but never looser than before, unless somebody says so.
pub(crate) fn settle(explicit: ExplicitOverrides, now: Settings, before: &TurnContextItem) -> Settings {
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
        mode: before.collaboration_mode.as_ref().map(Mode::of).unwrap_or_default(),
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
    /// What a history says of the conversation. Questions that nobody has answered are asked again, or count as lost.
    pub(crate) fn of(history: &mut History, asks_again: bool) -> Self {
        let items = std::mem::take(&mut history.items);
        let preface = items.iter().take_while(|item| is_preface(item)).count();
        let carried = (preface..history.replaced).filter(|place| !history.said.contains(place));
        let said = carried
            .chain(history.said.iter().copied())
            .filter_map(|place| Some((place, read_user(items.get(place)?)?)))
            .collect();
        let (mut lost, mut asked) = (Vec::new(), Vec::new());
        for open in &history.open_calls {
            let again = items.get(open.item).filter(|_| asks_again && open.is_asked).and_then(|item| read_call(item));
            match again {
                Some(call) => asked.push(call),
                None => lost.push(lost_output(&open.kind, open.call_id.clone())),
            }
        }
        let items = items.into_iter().map(ConversationItem::from).collect();
        Self { items, preface, said, turns: std::mem::take(&mut history.turns), lost, asked }
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

/// The call that an item of the conversation is.
fn read_call(item: &RawValue) -> Option<ToolCall> {
    call_of(&serde_json::from_str(item.get()).ok()?)
}

fn lost_output(kind: &str, call_id: String) -> ResponseItem {
    let output = FunctionCallOutputPayload::Text(LOST.to_owned());
    if kind == "custom_tool_call" {
        ResponseItem::CustomToolCallOutput(CustomToolCallOutput { call_id, output })
    } else {
        ResponseItem::FunctionCallOutput(FunctionCallOutput { call_id, output })
    }
}

/// Whether an item is one of those that conversations begin with, before anything is said.
fn is_preface(item: &RawValue) -> bool {
    const BEGINNINGS: [&str; 4] =
        ["# AGENTS.md instructions for ", "<user_instructions>", "<environment_context>", "<INSTRUCTIONS>"];
    let Some(message) = read_message(item) else { return false };
    let text = message.text();
    message.role == "developer" || (message.role == "user" && BEGINNINGS.iter().any(|it| text.starts_with(it)))
}

/// A message of the user, unless it is one of our own making.
fn read_user(item: &RawValue) -> Option<Message> {
    let message = read_message(item)?;
    (message.role == "user" && !is_summary(&message.text())).then_some(message)
}

fn read_message(item: &RawValue) -> Option<Message> {
    #[derive(Deserialize)]
    struct Head<'a> {
        #[serde(rename = "type")]
        kind: Option<&'a str>,
        role: Option<&'a str>,
    }
    let head: Head<'_> = serde_json::from_str(item.get()).ok()?;
    // Old files leave the type of a message out.
    (head.role.is_some() && head.kind.is_none_or(|kind| kind == "message"))
        .then(|| serde_json::from_str(item.get()).ok())
        .flatten()
}

#[cfg(test)]
mod tests {
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

    fn before(approval_policy: AskForApproval, sandbox_policy: SandboxPolicy) -> TurnContextItem {
        TurnContextItem {
            cwd: "/tmp".into(),
            approval_policy,
            sandbox_policy,
            model: "old".to_owned(),
            effort: None,
            summary: ReasoningSummary::Auto,
            collaboration_mode: None,
        }
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
