//! The kinds of events that a reader of lines wants.

use std::ops::BitOr;

use crate::Item;

/// Kinds of events that a reader wants. Lines with other kinds are skipped after reading their head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wanted(u32);

impl Wanted {
    pub(super) const NONE: Self = Self(0);
    /// The start of the thread.
    pub const META: Self = Self(1);
    /// Starts and ends of turns, and rollbacks.
    pub const TURNS: Self = Self(1 << 1);
    /// Messages, reasoning, reviews and compactions.
    pub const SHOWN: Self = Self(1 << 2);
    /// Items of tools: commands, patches, searches.
    pub const CALLS: Self = Self(1 << 3);
    /// Starts of items, before they are complete.
    pub const STARTS: Self = Self(1 << 4);
    /// Token usage.
    pub const TOKENS: Self = Self(1 << 5);
    /// Goals.
    pub const GOALS: Self = Self(1 << 6);
    /// Plans.
    pub const PLANS: Self = Self(1 << 7);
    /// The settings of requests.
    pub const SETTINGS: Self = Self(1 << 8);
    /// The items of the conversation with the model.
    pub const RECORDS: Self = Self(1 << 9);
    /// Replacements of the conversation. A reader that wants them gets the event from the line that contains the new
    /// conversation, others from the line that clients are shown.
    pub const COMPACTIONS: Self = Self(1 << 10);
    /// Items of all kinds that broke off.
    pub const BROKEN_OFF: Self = Self(1 << 11);
    /// Of all displayed items, only the user's messages and the ends of reviews.
    pub const SAID: Self = Self(1 << 12);
    /// Questions to people, and their answers.
    pub const QUESTIONS: Self = Self(1 << 13);
    /// The agents of the thread.
    pub const AGENTS: Self = Self(1 << 14);
    /// The queue of the thread.
    pub const QUEUE: Self = Self(1 << 15);
    /// The use of the thread's budget.
    pub const BUDGET: Self = Self(1 << 16);
    /// All events of lines.
    pub const ALL: Self = Self((1 << 17) - 1);
    /// All events that determine the state of a thread, except its start.
    pub const STATE: Self = Self(
        Self::TURNS.0
            | Self::SAID.0
            | Self::TOKENS.0
            | Self::GOALS.0
            | Self::PLANS.0
            | Self::SETTINGS.0
            | Self::RECORDS.0
            | Self::COMPACTIONS.0
            | Self::QUESTIONS.0
            | Self::AGENTS.0
            | Self::QUEUE.0
            | Self::BUDGET.0,
    );

    /// Whether any of these is wanted.
    #[must_use]
    pub fn any(self, of: Self) -> bool {
        self.0 & of.0 != 0
    }

    /// All except these.
    #[must_use]
    pub fn without(self, these: Self) -> Self {
        Self(self.0 & !these.0)
    }

    /// The kind of an item.
    pub(super) fn item(item: &Item) -> Self {
        if item.agent_call().is_some() || item.agent_activity().is_some() {
            Self::CALLS | Self::AGENTS
        } else if item.is_call() {
            Self::CALLS
        } else if item.said().is_some() {
            Self::SHOWN | Self::SAID
        } else {
            Self::SHOWN
        }
    }

    /// The kinds of events in an `event_msg` line, by its inner type; none if the line has no events of the log.
    pub(super) fn told_by(inner: &str) -> Option<Self> {
        Some(match inner {
            "task_started" | "turn_started" | "task_complete" | "turn_complete" | "turn_aborted" | "error"
            | "thread_rolled_back" | "limit_reached" => Self::TURNS,
            "user_message" | "exited_review_mode" => Self::SHOWN | Self::SAID,
            "agent_message"
            | "agent_reasoning"
            | "agent_reasoning_raw_content"
            | "entered_review_mode"
            | "context_compacted"
            | "warning" => Self::SHOWN,
            "item_completed" => Self::SHOWN | Self::SAID | Self::CALLS | Self::AGENTS,
            "sub_agent_activity" => Self::CALLS | Self::AGENTS,
            "item_interrupted" => Self::SHOWN | Self::CALLS | Self::BROKEN_OFF,
            "token_count" => Self::TOKENS,
            "goal_changed" | "goal_cleared" => Self::GOALS,
            "approval_asked" | "approval_answered" => Self::QUESTIONS,
            "subagent_lifecycle" | "agent_inbox" | "agent_mail" | "agent_mail_read" | "agent_result"
            | "agent_watchdog" | "agent_history" | "agent_numbers" | "agent_tree" => Self::AGENTS,
            "queue_added" | "queue_updated" | "queue_removed" | "queue_ordered" | "queue_paused" | "queue_resumed"
            | "queue_all" => Self::QUEUE,
            "budget_used" | "budget_reached" => Self::BUDGET,
            _ => return None,
        })
    }

    /// The kind of an item, by its type in files.
    pub(super) fn told_by_item(kind: &str) -> Self {
        match kind {
            "UserMessage" => Self::SHOWN | Self::SAID,
            "AgentMessage" | "Reasoning" => Self::SHOWN,
            "CollabAgentToolCall" | "SubAgentActivity" => Self::CALLS | Self::AGENTS,
            _ => Self::CALLS,
        }
    }
}

impl BitOr for Wanted {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}
