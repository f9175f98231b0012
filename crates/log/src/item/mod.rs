//! Items that a client displays, one file for each kind.
//!
//! The file of a kind has its fields, title and size, and its stored form in both directions. Generic readers use the
//! methods for all kinds; only the dialects match on the kinds, each in one file.

mod agent_activity;
mod agent_call;
mod agent_message;
mod command;
mod dynamic_call;
mod mcp_call;
mod patch;
mod reasoning;
mod user_message;
mod web_search;

use std::borrow::Cow;
use std::sync::Arc;

use codex_wire::event::EventMsg;
use codex_wire::text::Text;
use serde::{Deserialize, Serialize};

use crate::draft::Run;
use crate::review;
use crate::shared_id::shared_id;

pub use agent_activity::AgentActivity;
pub(crate) use agent_activity::Stored as StoredActivity;
pub use agent_call::{AgentCall, CalledAgent};
pub use agent_message::AgentMessage;
pub use command::{CommandEnd, CommandItem, CommandStatus};
pub use dynamic_call::{DynamicCall, DynamicCallEnd};
pub use mcp_call::{McpCall, McpCallEnd};
pub use patch::{PatchEnd, PatchItem, PatchStatus};
pub use reasoning::Reasoning;
pub use user_message::UserMessage;
pub use web_search::WebSearch;

shared_id! {
    /// The id of an item within its thread; for an item of a model's answer, the provider's id.
    ItemId
}

/// An item that a client displays.
#[derive(Debug, Clone, PartialEq)]
pub enum Item {
    /// A message of the user.
    UserMessage(UserMessage),
    /// A message of the model.
    AgentMessage(AgentMessage),
    /// Reasoning of the model.
    Reasoning(Reasoning),
    /// A web search that the provider made.
    WebSearch(WebSearch),
    /// A command the model runs.
    Command(Arc<CommandItem>),
    /// A patch the model applies.
    Patch(Arc<PatchItem>),
    /// A call of an MCP tool.
    McpCall(Arc<McpCall>),
    /// A call of a tool that the client supplies.
    DynamicCall(Arc<DynamicCall>),
    /// A call about other agents.
    AgentCall(Arc<AgentCall>),
    /// Something that has happened to another agent.
    AgentActivity(Arc<AgentActivity>),
}

/// The reason in the end of a call that did not end by itself.
const BROKEN_OFF: &str = "interrupted";

/// The status of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// It waits for approval.
    AwaitingApproval,
    /// It is running.
    Running,
    /// It succeeded.
    Completed,
    /// It failed, or was interrupted.
    Failed,
    /// It was declined.
    Declined,
}

impl Status {
    /// Its name in files.
    fn word(self) -> &'static str {
        match self {
            Self::AwaitingApproval | Self::Running => "in_progress",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Declined => "declined",
        }
    }

    /// The status of a call that has ended, from its name in a file.
    fn of_ended(word: &str) -> Self {
        match word {
            "completed" => Self::Completed,
            "declined" => Self::Declined,
            _ => Self::Failed,
        }
    }
}

/// Properties of all kinds.
impl Item {
    #[must_use]
    pub fn id(&self) -> &ItemId {
        match self {
            Self::UserMessage(said) => &said.id,
            Self::AgentMessage(answer) => &answer.id,
            Self::Reasoning(thought) => &thought.id,
            Self::WebSearch(search) => &search.id,
            Self::Command(command) => &command.id,
            Self::Patch(patch) => &patch.id,
            Self::McpCall(call) => &call.id,
            Self::DynamicCall(call) => &call.id,
            Self::AgentCall(call) => &call.id,
            Self::AgentActivity(activity) => &activity.id,
        }
    }

    /// The status of the item; `None` if it is not a call of the model or the user.
    #[must_use]
    pub fn status(&self) -> Option<Status> {
        match self {
            Self::UserMessage(_)
            | Self::AgentMessage(_)
            | Self::Reasoning(_)
            | Self::WebSearch(_)
            | Self::AgentActivity(_) => None,
            Self::Command(command) => Some(command.status),
            Self::Patch(patch) => Some(patch.status),
            Self::McpCall(call) => Some(call.status),
            Self::DynamicCall(call) => Some(call.status),
            Self::AgentCall(call) => Some(call.status),
        }
    }

    /// A title for people, or the user's own text.
    #[must_use]
    pub fn title(&self) -> Cow<'_, str> {
        match self {
            Self::UserMessage(said) => said.title().into(),
            Self::AgentMessage(answer) => answer.text.as_str().into(),
            Self::Reasoning(thought) => thought.title().into(),
            Self::WebSearch(search) => search.query.as_str().into(),
            Self::Command(command) => command.title(),
            Self::Patch(patch) => patch.title().into(),
            Self::McpCall(call) => call.title().into(),
            Self::DynamicCall(call) => call.title().into(),
            Self::AgentCall(call) => call.title().into(),
            Self::AgentActivity(activity) => activity.title().into(),
        }
    }

    /// The approximate size of its texts in bytes.
    #[must_use]
    pub fn weight(&self) -> usize {
        match self {
            Self::UserMessage(said) => said.weight(),
            Self::AgentMessage(answer) => answer.text.len(),
            Self::Reasoning(thought) => thought.weight(),
            Self::WebSearch(search) => search.query.len(),
            Self::Command(command) => command.weight(),
            Self::Patch(patch) => patch.weight(),
            Self::McpCall(call) => call.weight(),
            Self::DynamicCall(call) => call.weight(),
            Self::AgentCall(call) => call.weight(),
            Self::AgentActivity(activity) => activity.weight(),
        }
    }

    /// The item as it was at its start, as far as the complete item shows.
    #[must_use]
    pub fn begun(&self) -> Self {
        match self {
            Self::UserMessage(_) | Self::WebSearch(_) | Self::AgentActivity(_) => self.clone(),
            Self::AgentMessage(answer) => Self::AgentMessage(answer.begun()),
            Self::Reasoning(thought) => Self::Reasoning(thought.begun()),
            Self::Command(command) => Self::Command(Arc::new(command.begun())),
            Self::Patch(patch) => Self::Patch(Arc::new(patch.begun())),
            Self::McpCall(call) => Self::McpCall(Arc::new(call.begun())),
            Self::DynamicCall(call) => Self::DynamicCall(Arc::new(call.begun())),
            Self::AgentCall(call) => Self::AgentCall(Arc::new(call.begun())),
        }
    }

    /// The item as it was when it broke off, with these runs of text.
    #[must_use]
    pub fn broken_off(&self, runs: &[Run]) -> Self {
        match self {
            Self::AgentMessage(answer) => Self::AgentMessage(answer.broken_off(runs)),
            Self::Reasoning(thought) => Self::Reasoning(thought.broken_off(runs)),
            Self::Command(command) => Self::Command(Arc::new(command.broken_off(runs))),
            Self::UserMessage(_)
            | Self::WebSearch(_)
            | Self::Patch(_)
            | Self::McpCall(_)
            | Self::DynamicCall(_)
            | Self::AgentCall(_)
            | Self::AgentActivity(_) => self.with_status(Status::Failed),
        }
    }

    /// A call as one that has failed, with an end that says so if it has none.
    #[must_use]
    pub fn ended(&self) -> Self {
        match self {
            Self::Patch(patch) => Self::Patch(Arc::new(patch.ended())),
            Self::McpCall(call) => Self::McpCall(Arc::new(call.ended())),
            Self::DynamicCall(call) if call.end.is_none() => Self::McpCall(Arc::new(call.as_mcp_call().ended())),
            Self::Command(command) if command.end.is_some() => self.with_status(Status::Failed),
            Self::Command(command) => Self::Command(Arc::new(command.broken_off(&[]))),
            Self::UserMessage(_)
            | Self::AgentMessage(_)
            | Self::Reasoning(_)
            | Self::WebSearch(_)
            | Self::DynamicCall(_)
            | Self::AgentCall(_)
            | Self::AgentActivity(_) => self.with_status(Status::Failed),
        }
    }

    /// The item with another id.
    #[must_use]
    pub fn with_id(self, id: ItemId) -> Self {
        match self {
            Self::UserMessage(said) => Self::UserMessage(UserMessage { id, ..said }),
            Self::AgentMessage(answer) => Self::AgentMessage(AgentMessage { id, ..answer }),
            Self::Reasoning(thought) => Self::Reasoning(Reasoning { id, ..thought }),
            Self::WebSearch(search) => Self::WebSearch(WebSearch { id, ..search }),
            Self::Command(command) => Self::Command(Arc::new(CommandItem { id, ..Arc::unwrap_or_clone(command) })),
            Self::Patch(patch) => Self::Patch(Arc::new(PatchItem { id, ..Arc::unwrap_or_clone(patch) })),
            Self::McpCall(call) => Self::McpCall(Arc::new(McpCall { id, ..Arc::unwrap_or_clone(call) })),
            Self::DynamicCall(call) => Self::DynamicCall(Arc::new(DynamicCall { id, ..Arc::unwrap_or_clone(call) })),
            Self::AgentCall(call) => Self::AgentCall(Arc::new(AgentCall { id, ..Arc::unwrap_or_clone(call) })),
            Self::AgentActivity(activity) => {
                Self::AgentActivity(Arc::new(AgentActivity { id, ..Arc::unwrap_or_clone(activity) }))
            }
        }
    }

    /// The parts in which readers of older releases receive the item: reasoning is split.
    #[must_use]
    pub fn parts(self) -> Vec<Self> {
        match self {
            Self::Reasoning(thought) => thought.parts().map(Self::Reasoning).collect(),
            Self::UserMessage(_)
            | Self::AgentMessage(_)
            | Self::WebSearch(_)
            | Self::Command(_)
            | Self::Patch(_)
            | Self::McpCall(_)
            | Self::DynamicCall(_)
            | Self::AgentCall(_)
            | Self::AgentActivity(_) => vec![self],
        }
    }

    /// Appends reasoning, if both items are reasoning.
    pub fn think_on(&mut self, more: &Self) {
        if let (Self::Reasoning(thought), Self::Reasoning(more)) = (self, more) {
            thought.summary.extend_from_slice(&more.summary);
            thought.raw.extend_from_slice(&more.raw);
        }
    }

    /// The item with another status, if it has one.
    #[must_use]
    pub fn with_status(&self, status: Status) -> Self {
        match self {
            Self::Command(command) => Self::Command(Arc::new(CommandItem { status, ..(**command).clone() })),
            Self::Patch(patch) => Self::Patch(Arc::new(PatchItem { status, ..(**patch).clone() })),
            Self::McpCall(call) => Self::McpCall(Arc::new(McpCall { status, ..(**call).clone() })),
            Self::DynamicCall(call) => Self::DynamicCall(Arc::new(DynamicCall { status, ..(**call).clone() })),
            Self::AgentCall(call) => Self::AgentCall(Arc::new(AgentCall { status, ..(**call).clone() })),
            Self::UserMessage(_)
            | Self::AgentMessage(_)
            | Self::Reasoning(_)
            | Self::WebSearch(_)
            | Self::AgentActivity(_) => self.clone(),
        }
    }
}

impl From<AgentActivity> for Item {
    fn from(activity: AgentActivity) -> Self {
        Self::AgentActivity(Arc::new(activity))
    }
}

/// Properties of some kinds, for readers who need nothing else.
impl Item {
    /// The message, if it is one of the user.
    #[must_use]
    pub fn said(&self) -> Option<&UserMessage> {
        if let Self::UserMessage(said) = self { Some(said) } else { None }
    }

    /// The message, if it is one of the model.
    #[must_use]
    pub fn answer(&self) -> Option<&Text> {
        if let Self::AgentMessage(answer) = self { Some(&answer.text) } else { None }
    }

    /// Whether it is reasoning.
    #[must_use]
    pub fn is_thought(&self) -> bool {
        matches!(self, Self::Reasoning(_))
    }

    /// Whether it is a call that the provider served itself.
    #[must_use]
    pub fn is_served_by_provider(&self) -> bool {
        matches!(self, Self::WebSearch(_))
    }

    /// Whether it is an action, not a message or reasoning.
    #[must_use]
    pub fn is_call(&self) -> bool {
        match self {
            Self::UserMessage(_) | Self::AgentMessage(_) | Self::Reasoning(_) => false,
            Self::WebSearch(_)
            | Self::Command(_)
            | Self::Patch(_)
            | Self::McpCall(_)
            | Self::DynamicCall(_)
            | Self::AgentCall(_)
            | Self::AgentActivity(_) => true,
        }
    }

    /// The command, if it is one.
    #[must_use]
    pub fn command(&self) -> Option<&CommandItem> {
        if let Self::Command(command) = self { Some(command) } else { None }
    }

    /// The call about other agents, if it is one.
    #[must_use]
    pub fn agent_call(&self) -> Option<&AgentCall> {
        if let Self::AgentCall(call) = self { Some(call) } else { None }
    }

    /// The news about another agent, if it is that.
    #[must_use]
    pub fn agent_activity(&self) -> Option<&AgentActivity> {
        if let Self::AgentActivity(activity) = self { Some(activity) } else { None }
    }

    /// The patch, if it is one.
    #[must_use]
    pub fn patch(&self) -> Option<&PatchItem> {
        if let Self::Patch(patch) = self { Some(patch) } else { None }
    }
}

/// The stored form of items: messages and reasoning as messages of the event queue, calls and broken-off items as
/// items.
impl Item {
    /// Appends its messages, with raw reasoning if it is wanted. Calls have none.
    pub fn messages(&self, wants_thoughts: bool, out: &mut Vec<EventMsg>) {
        match self {
            Self::UserMessage(said) => out.push(said.message()),
            Self::AgentMessage(answer) => out.push(answer.message()),
            Self::Reasoning(thought) => thought.messages(wants_thoughts, out),
            Self::Command(_)
            | Self::Patch(_)
            | Self::WebSearch(_)
            | Self::McpCall(_)
            | Self::DynamicCall(_)
            | Self::AgentCall(_)
            | Self::AgentActivity(_) => {}
        }
    }

    /// Its form as a stored item.
    pub(crate) fn stored_form(&self) -> KeptItem<'_> {
        match self {
            Self::UserMessage(said) => KeptItem::UserMessage(said.stored_form()),
            Self::AgentMessage(answer) => KeptItem::AgentMessage(answer.stored_form()),
            Self::Reasoning(thought) => KeptItem::Reasoning(thought.stored_form()),
            Self::WebSearch(search) => KeptItem::WebSearch(search.stored_form()),
            Self::Command(command) => KeptItem::CommandExecution(command.stored_form()),
            Self::Patch(patch) => KeptItem::FileChange(patch.stored_form()),
            Self::McpCall(call) => KeptItem::McpToolCall(call.stored_form()),
            Self::DynamicCall(call) => KeptItem::DynamicToolCall(call.stored_form()),
            Self::AgentCall(call) => KeptItem::CollabAgentToolCall(call.stored_form()),
            Self::AgentActivity(activity) => KeptItem::SubAgentActivity(activity.stored_form()),
        }
    }

    /// Whether it is not stored: readers of files count the user's messages, and the request to a reviewer is in the
    /// line that starts the review.
    pub(crate) fn is_kept_elsewhere(&self) -> bool {
        self.said().is_some_and(|said| said.id.as_str().starts_with(review::ASKED))
    }
}

/// An item in the stored form of the newest releases.
#[derive(Serialize)]
#[serde(tag = "type")]
pub(crate) enum KeptItem<'a> {
    UserMessage(user_message::StoredForm<'a>),
    AgentMessage(agent_message::StoredForm<'a>),
    Reasoning(reasoning::StoredForm<'a>),
    CommandExecution(command::StoredForm<'a>),
    FileChange(patch::StoredForm<'a>),
    McpToolCall(mcp_call::StoredForm<'a>),
    WebSearch(web_search::StoredForm<'a>),
    CollabAgentToolCall(agent_call::StoredForm<'a>),
    SubAgentActivity(agent_activity::StoredForm<'a>),
    DynamicToolCall(dynamic_call::StoredForm<'a>),
}

/// A complete item, as it is decoded. The newest releases also store messages in this form.
#[derive(Deserialize)]
#[serde(tag = "type")]
pub enum StoredItem {
    UserMessage(user_message::Stored),
    AgentMessage(agent_message::Stored),
    Reasoning(reasoning::Stored),
    CommandExecution(command::Stored),
    FileChange(patch::Stored),
    McpToolCall(mcp_call::Stored),
    CollabAgentToolCall(agent_call::Stored),
    SubAgentActivity(agent_activity::Stored),
    DynamicToolCall(dynamic_call::Stored),
    WebSearch(web_search::Stored),
    #[serde(other)]
    Other,
}

impl StoredItem {
    /// Decodes an item; `None` if it is malformed or its kind is unknown. The type is checked first, because an
    /// internally tagged enum would copy every member before its type is known.
    pub(crate) fn read(json: &str) -> Option<Item> {
        #[derive(Deserialize)]
        struct Kind<'a> {
            #[serde(rename = "type", borrow)]
            kind: Cow<'a, str>,
        }
        fn parse<'a, T: Deserialize<'a>>(json: &'a str) -> Option<T> {
            serde_json::from_str(json).ok()
        }
        let stored = match &*serde_json::from_str::<Kind<'_>>(json).ok()?.kind {
            "UserMessage" => Self::UserMessage(parse(json)?),
            "AgentMessage" => Self::AgentMessage(parse(json)?),
            "Reasoning" => Self::Reasoning(parse(json)?),
            "CommandExecution" => Self::CommandExecution(parse(json)?),
            "FileChange" => Self::FileChange(parse(json)?),
            "McpToolCall" => Self::McpToolCall(parse(json)?),
            "DynamicToolCall" => Self::DynamicToolCall(parse(json)?),
            "CollabAgentToolCall" => Self::CollabAgentToolCall(parse(json)?),
            "SubAgentActivity" => Self::SubAgentActivity(parse(json)?),
            "WebSearch" => Self::WebSearch(parse(json)?),
            _ => Self::Other,
        };
        stored.item()
    }

    /// The item, unless its kind is unknown.
    #[must_use]
    pub fn item(self) -> Option<Item> {
        Some(match self {
            Self::UserMessage(stored) => Item::UserMessage(stored.into()),
            Self::AgentMessage(stored) => Item::AgentMessage(stored.into()),
            Self::Reasoning(stored) => Item::Reasoning(stored.into()),
            Self::CommandExecution(stored) => Item::Command(Arc::new(stored.into())),
            Self::FileChange(stored) => Item::Patch(Arc::new(stored.into())),
            Self::McpToolCall(stored) => Item::McpCall(Arc::new(stored.into())),
            Self::DynamicToolCall(stored) => Item::DynamicCall(Arc::new(stored.into())),
            Self::CollabAgentToolCall(stored) => Item::AgentCall(Arc::new(stored.into())),
            Self::SubAgentActivity(stored) => Item::AgentActivity(Arc::new(stored.into())),
            Self::WebSearch(stored) => Item::WebSearch(stored.into()),
            Self::Other => return None,
        })
    }
}
