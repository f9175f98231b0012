//! The events of a thread.
//!
//! Invariant: the engine alone makes events; within a log their numbers grow.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use chrono::DateTime;
use codex_wire::conversation_item::{ConversationItem, ItemOrigin};
use codex_wire::error_info::CodexErrorInfo;
use codex_wire::event::{McpStartupCompleteEvent, McpStartupUpdateEvent};
use codex_wire::goal::Goal;
use codex_wire::ids::ThreadId;
use codex_wire::name::Name;
use codex_wire::plan::UpdatePlanArgs;
use codex_wire::response::ResponseItem;
use codex_wire::review::{ReviewOutputEvent, ReviewTarget};
use codex_wire::rollout::SessionMeta;
use codex_wire::text::Text;
use codex_wire::tokens::{RateLimitSnapshot, TokenUsageInfo};

use crate::settings::Settings;
use crate::{Answer, Delta, Item, ItemId, Question, QuestionId, ReadState, Seq};

/// The name of a turn: the id of the submission that started it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TurnId(Arc<str>);

impl TurnId {
    /// Makes a name from a client's submission id.
    #[must_use]
    pub fn new(id: impl Into<Arc<str>>) -> Self {
        Self(id.into())
    }

    /// The name as others share it.
    #[must_use]
    pub fn to_name(&self) -> Name {
        Arc::clone(&self.0).into()
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// One entry of a thread's log.
#[derive(Debug, Clone)]
pub struct Event {
    /// The thread it belongs to.
    pub thread: ThreadId,
    /// Its number within the log.
    pub seq: Seq,
    /// When it happened, in milliseconds of Unix time.
    pub at_ms: i64,
    /// The turn it belongs to, or none for what the thread says by itself.
    pub turn: Option<TurnId>,
    pub body: Body,
}

#[derive(Debug, Clone)]
pub enum Body {
    /// The thread is ready.
    ThreadStarted(Box<ThreadStarted>),
    /// Work on a user's input has begun.
    TurnStarted {
        /// The size of the model's window, where known.
        context_window: Option<i64>,
    },
    /// The model is about to be asked, under these settings.
    ModelAsked(Arc<Settings>),
    /// An item has entered the conversation with the model.
    Recorded(Record),
    /// An item has started.
    ItemStarted(Item),
    /// An item has grown.
    ItemDelta {
        /// Which one.
        item: ItemId,
        /// By what.
        delta: Delta,
    },
    /// An item is complete.
    ItemCompleted(Item),
    /// An item has broken off: it will not be whole, and this is what there was of it.
    ItemInterrupted(Item),
    /// A person is asked whether something may be done.
    Asked(Arc<Question>),
    /// A person has answered, or did not in time.
    Answered {
        /// Which question.
        question: QuestionId,
        /// The answer.
        answer: Answer,
        /// The item that the question was about, in its new state; none if it had continued before.
        item: Option<Item>,
    },
    /// The model has typed into a terminal.
    TerminalWritten {
        /// The command that runs there.
        item: ItemId,
        /// The number of the terminal.
        terminal: u64,
        stdin: String,
    },
    /// The turn has changed files: all of its changes so far, as a diff.
    DiffChanged(Arc<str>),
    /// The model has looked at a picture.
    ImageViewed {
        /// The call.
        item: ItemId,
        /// The file.
        path: PathBuf,
    },
    /// The model has changed its plan.
    PlanUpdated(UpdatePlanArgs),
    /// A review has begun.
    ReviewEntered(Arc<ReviewEntered>),
    /// A review is over, with what it found unless it was stopped.
    ReviewExited(Option<Arc<ReviewOutputEvent>>),
    /// A summary has taken the place of the conversation.
    Compacted(Arc<Compacted>),
    /// The conversation has gone back to where it was after an answer.
    WentBack {
        /// The provider's name for the answer.
        response_id: String,
        /// The conversation from here on, without the messages that every conversation of the thread begins with.
        replacement: Vec<ConversationItem>,
    },
    /// The last turns were forgotten.
    RolledBack(RolledBack),
    /// The thread has another goal, or its goal stands otherwise than before.
    GoalChanged(Arc<Goal>),
    /// The thread has no goal any more.
    GoalCleared,
    /// Tokens were counted, or the account's limits were told.
    TokensCounted {
        /// The token usage of the thread; none before the first answer.
        info: Option<TokenUsageInfo>,
        /// The rate limits of the account; none if the provider has told nothing about them.
        rate_limits: Option<Box<RateLimitSnapshot>>,
    },
    /// An answer broke off and is asked for again.
    AnswerRetried {
        failure: Failure,
        /// Which retry this is, from 1.
        attempt: u32,
        /// How many there may be.
        limit: u32,
        /// How long the engine waits before it asks.
        delay: Duration,
    },
    /// The account's allowance is used up, and the turn waits until it comes back.
    LimitReached {
        /// The provider's error; [`limit_words`] adds until when the turn waits.
        failure: Failure,
        /// Until when, in milliseconds of Unix time.
        until_ms: i64,
        /// Whether the turn goes on when the thread is resumed.
        goes_on: bool,
    },
    /// Something the user should know; work goes on.
    Warning { message: String },
    /// An MCP server is further in starting up, or has ended.
    ServerChanged(Arc<McpStartupUpdateEvent>),
    /// All MCP servers have started or failed to.
    ServersStarted(Arc<McpStartupCompleteEvent>),
    /// The tool of an MCP server tells how far a call is.
    CallProgressed {
        /// The call.
        item: ItemId,
        /// How far it is, in the words of the tool.
        message: String,
    },
    /// The turn that is about to end has left something to read, and this is what the user has not read by now.
    Unread(Arc<ReadState>),
    /// The turn is over. Every started turn has exactly one of these.
    TurnEnded(Outcome),
}

/// How a thread began.
#[derive(Debug, Clone)]
pub struct ThreadStarted {
    /// The settings of its first turn.
    pub settings: Arc<Settings>,
    /// The id of its model provider.
    pub provider: String,
    /// The first line of its file.
    pub meta: SessionMeta,
    /// Whether that line is there already.
    pub is_resumed: bool,
    /// Its file.
    pub rollout: PathBuf,
    /// The identity of the prompt history file.
    pub history_log: u64,
    /// How many prompts that file holds.
    pub history_entries: usize,
    /// The files of instructions that the model is told of.
    pub instruction_sources: Vec<PathBuf>,
}

/// An item of the conversation with the model, encoded once for file and request alike.
///
/// One that was read from a file keeps its bytes and is understood only when somebody asks.
#[derive(Debug, Clone)]
pub struct Record {
    /// The item as JSON.
    pub json: ConversationItem,
    /// The item as it was made here.
    made: Option<Arc<ResponseItem>>,
}

impl Record {
    /// Encodes an item.
    ///
    /// # Errors
    /// Only if an item held something JSON cannot express, which none does.
    pub fn new(item: ResponseItem) -> Result<Self, serde_json::Error> {
        let item = Arc::new(item);
        Ok(Self { json: ConversationItem::new(&item)?, made: Some(item) })
    }

    /// An item from a file.
    #[must_use]
    pub fn stored(json: ConversationItem) -> Self {
        Self { json, made: None }
    }

    /// The same item, with a part that only this maker reads.
    #[must_use]
    pub fn made_by(self, origin: Option<Arc<ItemOrigin>>) -> Self {
        Self { json: self.json.made_by(origin), made: self.made }
    }

    /// The item, if it was made here.
    pub(crate) fn made(&self) -> Option<&ResponseItem> {
        self.made.as_deref()
    }

    /// The item; none if it came from a file and cannot be understood.
    #[must_use]
    pub fn item(&self) -> Option<Arc<ResponseItem>> {
        self.made.clone().or_else(|| self.json.typed().ok())
    }
}

/// The start of a review.
#[derive(Debug, Clone, PartialEq)]
pub struct ReviewEntered {
    /// Which changes.
    pub target: ReviewTarget,
    /// The same in a few words, for people.
    pub hint: String,
    /// The reviewer's instructions.
    pub prompt: String,
}

/// Which turns were forgotten.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RolledBack {
    /// How many.
    pub turns: usize,
    /// How many things the user had said in them.
    pub said: usize,
    /// The first of them, where its name is known.
    pub first: Option<TurnId>,
}

/// The compaction of a conversation.
#[derive(Debug, Clone)]
pub struct Compacted {
    /// The model's summary.
    pub summary: String,
    /// The conversation from here on; none if an older release did not record it.
    pub replacement: Option<Vec<ConversationItem>>,
    /// About how many tokens the conversation had.
    pub before: usize,
    /// About how many it has now.
    pub after: usize,
}

/// Whether an event is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// It has lines, and is published only after they were written.
    Kept,
    /// It follows from events that are kept.
    Derived,
    /// It is a piece of what is kept once it is whole.
    Drafted,
    /// It is told and forgotten.
    Passing,
}

impl Body {
    /// Whether it is stored. The encoder writes lines for stored events only, except that a resumed thread
    /// has its first line already, and the reviewer's instructions are in the line that starts the review.
    #[must_use]
    pub fn class(&self) -> Class {
        match self {
            Self::ThreadStarted(_)
            | Self::TurnStarted { .. }
            | Self::ModelAsked(_)
            | Self::Recorded(_)
            | Self::ItemCompleted(_)
            | Self::ItemInterrupted(_)
            | Self::Asked(_)
            | Self::Answered { .. }
            | Self::ReviewEntered(_)
            | Self::ReviewExited(_)
            | Self::Compacted(_)
            | Self::WentBack { .. }
            | Self::RolledBack(_)
            | Self::GoalChanged(_)
            | Self::GoalCleared
            | Self::TokensCounted { .. }
            | Self::LimitReached { .. }
            | Self::TurnEnded(_) => Class::Kept,
            Self::ItemStarted(_) | Self::ImageViewed { .. } | Self::PlanUpdated(_) => Class::Derived,
            Self::ItemDelta { .. } => Class::Drafted,
            Self::TerminalWritten { .. }
            | Self::DiffChanged(_)
            | Self::AnswerRetried { .. }
            | Self::Warning { .. }
            | Self::ServerChanged(_)
            | Self::ServersStarted(_)
            | Self::CallProgressed { .. }
            | Self::Unread(_) => Class::Passing,
        }
    }

    /// Whether it shows what the model thinks. The encrypted form for later requests is another thing.
    #[must_use]
    pub fn is_thought(&self) -> bool {
        match self {
            Self::ItemStarted(item) | Self::ItemCompleted(item) => item.is_thought(),
            Self::ItemDelta { delta, .. } => {
                matches!(delta, Delta::SummaryPart { .. } | Delta::Summary { .. } | Delta::Raw { .. })
            }
            _ => false,
        }
    }

    /// The warning that nobody has answered a question in time, or can any more.
    #[must_use]
    pub fn unanswered(what: &str, after: Duration) -> Self {
        let why = if after.is_zero() {
            "nobody can answer any more".to_owned()
        } else {
            format!("nobody answered within {} s", after.as_secs())
        };
        Self::Warning { message: format!("{why}, so the {what} was denied") }
    }
}

/// The message for people about a turn that waits for the account's allowance.
#[must_use]
pub fn limit_words(failure: &Failure, until_ms: i64) -> String {
    let until = DateTime::from_timestamp_millis(until_ms).unwrap_or_default();
    format!("{}; waiting until {}", failure.message, until.format("%Y-%m-%d %H:%M:%S UTC"))
}

/// How a turn ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// The model had nothing more to do.
    Completed {
        /// The last thing it said in its last answer.
        last_message: Option<Text>,
        /// The provider's name for that answer, in sessions whose clients may go back to it.
        bookmark: Option<String>,
    },
    /// Someone stopped it.
    Aborted(Abort),
    /// It could not go on.
    Failed(Failure),
}

/// Why a turn was stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Abort {
    /// The user asked for it.
    Interrupted,
    /// Another task took its place.
    Replaced,
    /// The review it belonged to ended.
    ReviewEnded,
}

/// An error, for people and for programs.
#[derive(Debug, Clone, PartialEq)]
pub struct Failure {
    /// A sentence without a full stop.
    pub message: String,
    /// A next step for the person.
    pub hint: Option<&'static str>,
    /// The kind of failure.
    pub info: CodexErrorInfo,
}
