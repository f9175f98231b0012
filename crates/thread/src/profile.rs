//! The behaviour of threads for one kind of client.

use std::time::Duration;

/// The expectations of one kind of client. The engine follows the fields and knows no client by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a way of some clients, and all combinations make sense")]
pub struct ClientProfile {
    /// The treatment of interrupted and compacted content.
    pub history: HistoryMode,
    /// A message for the model if there are no skills, so that it does not search for some.
    pub without_skills: Option<&'static str>,
    /// Whether token counts of a resumed thread start at zero.
    pub counts_from_zero: bool,
    /// Whether a waiting turn continues when the thread is resumed: open questions are asked again, and a wait for the
    /// account's allowance continues.
    pub asks_again: bool,
    /// Whether the model is informed of interrupted turns.
    pub tells_of_interrupts: bool,
    /// Whether images are sent to the model between markers that name them.
    pub marks_images: bool,
    /// Whether the thread resumes an earlier goal on its own. A newly set one is always followed.
    pub follows_goals: bool,
    /// Whether unread marks are recorded.
    pub keeps_read_marks: bool,
    /// Whether the model may start other agents if the configuration does not say.
    pub offers_agents: bool,
    /// The time after which an approval request counts as denied, if the configuration does not say; `None` for never.
    pub answer_within: Option<Duration>,
    /// Whether the tools of an MCP server are offered as one namespace, if the provider takes such tools.
    pub groups_tools: bool,
}

/// The treatment of interrupted and compacted content in the conversation. Clients were written for either.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HistoryMode {
    /// An interrupted answer is dropped with its calls, and a summary is one message: the behaviour of the submission
    /// queue.
    Brief,
    /// Interrupted content is marked as such, and user messages are kept apart from a summary.
    Full,
}

/// The message for the model if there are no skills.
const NO_SKILLS: &str = "## Skills\nThere are no skills here.";

impl ClientProfile {
    /// Clients of the submission queue.
    pub const QUEUE: Self = Self { history: HistoryMode::Brief, ..Self::EXEC };

    /// A single non-interactive turn.
    pub const EXEC: Self = Self {
        history: HistoryMode::Full,
        without_skills: None,
        counts_from_zero: false,
        asks_again: false,
        tells_of_interrupts: false,
        marks_images: false,
        follows_goals: false,
        keeps_read_marks: false,
        offers_agents: false,
        answer_within: None,
        groups_tools: false,
    };

    /// Clients of the app-server of 0.77, in both versions of its protocol.
    pub const V077: Self =
        Self { without_skills: Some(NO_SKILLS), counts_from_zero: true, asks_again: true, ..Self::EXEC };

    /// Clients of the app-server of 0.166.
    pub const V0166: Self = Self {
        without_skills: Some(NO_SKILLS),
        asks_again: true,
        tells_of_interrupts: true,
        marks_images: true,
        follows_goals: true,
        keeps_read_marks: true,
        offers_agents: true,
        groups_tools: true,
        ..Self::EXEC
    };
}
