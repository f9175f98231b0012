//! What a reader of lines wants to be told.

use std::ops::BitOr;

/// Kinds of events that a reader wants. Lines that tell of others are passed over by their head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wanted(u16);

impl Wanted {
    /// Nothing.
    pub(super) const NONE: Self = Self(0);
    /// How the thread began.
    pub const META: Self = Self(1);
    /// Beginnings and ends of turns, and which were taken back.
    pub const TURNS: Self = Self(1 << 1);
    /// What was said and thought, reviews, and that the conversation was summed up.
    pub const SHOWN: Self = Self(1 << 2);
    /// Items that were called: commands, patches, searches.
    pub const CALLS: Self = Self(1 << 3);
    /// That items have begun, before they are told as a whole.
    pub const STARTS: Self = Self(1 << 4);
    /// What was used.
    pub const TOKENS: Self = Self(1 << 5);
    /// Goals.
    pub const GOALS: Self = Self(1 << 6);
    /// Plans.
    pub const PLANS: Self = Self(1 << 7);
    /// What requests ran under.
    pub const SETTINGS: Self = Self(1 << 8);
    /// The items of the conversation with the model.
    pub const RECORDS: Self = Self(1 << 9);
    /// What took the place of the conversation. Who wants it is told so by the line that holds it, everyone else by the one
    /// that shows it.
    pub const COMPACTIONS: Self = Self(1 << 10);
    /// Items of all kinds that broke off.
    pub const BROKEN_OFF: Self = Self(1 << 11);
    /// All that lines tell.
    pub const ALL: Self = Self((1 << 12) - 1);

    /// Whether any of these is wanted.
    #[must_use]
    pub fn any(self, of: Self) -> bool {
        self.0 & of.0 != 0
    }

    /// Items that are calls, or the others.
    pub(super) fn item(is_call: bool) -> Self {
        if is_call { Self::CALLS } else { Self::SHOWN }
    }

    /// What a line of the type `event_msg` may tell of, by the type inside; none if it tells nothing of the log.
    pub(super) fn told_by(inner: &str) -> Option<Self> {
        Some(match inner {
            "task_started" | "turn_started" | "task_complete" | "turn_complete" | "turn_aborted" | "error"
            | "thread_rolled_back" => Self::TURNS,
            "user_message"
            | "agent_message"
            | "agent_reasoning"
            | "agent_reasoning_raw_content"
            | "entered_review_mode"
            | "exited_review_mode"
            | "context_compacted"
            | "warning" => Self::SHOWN,
            "item_completed" => Self::SHOWN | Self::CALLS,
            "item_interrupted" => Self::SHOWN | Self::CALLS | Self::BROKEN_OFF,
            "token_count" => Self::TOKENS,
            "goal_changed" | "goal_cleared" => Self::GOALS,
            _ => return None,
        })
    }
}

impl BitOr for Wanted {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}
