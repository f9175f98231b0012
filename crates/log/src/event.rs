//! The events of a thread.
//!
//! Invariant: only the engine creates events; within a log their numbers grow.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use chrono::DateTime;
use codex_wire::conversation_item::{ConversationItem, ItemOrigin};
use codex_wire::error_info::CodexErrorInfo;
use codex_wire::event::{McpStartupCompleteEvent, McpStartupUpdateEvent};
use codex_wire::goal::Goal;
use codex_wire::ids::ThreadId;
use codex_wire::plan::UpdatePlanArgs;
use codex_wire::response::ResponseItem;
use codex_wire::review::{ReviewOutputEvent, ReviewTarget};
use codex_wire::rollout::SessionMeta;
use codex_wire::text::Text;
use codex_wire::tokens::{RateLimitSnapshot, TokenUsageInfo};

use crate::agents::AgentEvent;
use crate::queue::QueueEvent;
use crate::settings::Settings;
use crate::shared_id::shared_id;
use crate::{Answer, Delta, Item, ItemId, Question, QuestionId, ReadState, Seq};
use codex_wire::budget::BudgetEvent;

shared_id! {
    /// The id of a turn: the id of the submission that started it.
    TurnId
}

/// One entry of a thread's log.
#[derive(Debug, Clone)]
pub struct Event {
    /// The thread it belongs to.
    pub thread: ThreadId,
    /// Its number within the log.
    pub seq: Seq,
    /// The time in milliseconds of Unix time.
    pub at_ms: i64,
    /// The turn it belongs to; `None` for events of the thread itself.
    pub turn: Option<TurnId>,
    pub body: Body,
}

#[derive(Debug, Clone)]
pub enum Body {
    /// The thread is ready.
    ThreadStarted(Box<ThreadStarted>),
    /// The processing of a user's input has begun.
    TurnStarted {
        /// The size of the model's window, if known.
        context_window: Option<i64>,
    },
    /// The model is about to be asked, with these settings.
    ModelAsked(Arc<Settings>),
    /// An item was added to the conversation with the model.
    Recorded(Record),
    /// An item has started.
    ItemStarted(Item),
    /// An item has grown.
    ItemDelta { item: ItemId, delta: Delta },
    /// An item is complete.
    ItemCompleted(Item),
    /// An item broke off: it will not be completed, and this is its partial content.
    ItemInterrupted(Item),
    /// A person is asked whether something may be done.
    Asked(Arc<Question>),
    /// A person has answered, or did not answer in time.
    Answered {
        question: QuestionId,
        /// The answer.
        answer: Answer,
        /// The item that the question was about, in its new state; `None` if it had continued before.
        item: Option<Item>,
    },
    /// The model has typed into a terminal.
    TerminalWritten {
        item: ItemId,
        /// The number of the terminal.
        terminal: u64,
        stdin: String,
    },
    /// The turn has changed files: all its changes so far, as a diff.
    DiffChanged(Arc<str>),
    /// The model has viewed an image.
    ImageViewed { item: ItemId, path: PathBuf },
    /// The model has changed its plan.
    PlanUpdated(UpdatePlanArgs),
    /// A review has begun.
    ReviewEntered(Arc<ReviewEntered>),
    /// A review has ended, with its findings unless it was interrupted.
    ReviewExited(Option<Arc<ReviewOutputEvent>>),
    /// A summary has replaced the conversation.
    Compacted(Arc<Compacted>),
    /// The conversation was rewound to its state after an answer.
    WentBack {
        /// The provider's id of the answer.
        response_id: String,
        /// The conversation from here on, without the initial messages of every conversation of the thread.
        replacement: Vec<ConversationItem>,
    },
    /// The last turns were rolled back.
    RolledBack(RolledBack),
    /// The goal of the thread, or its status, has changed.
    GoalChanged(Arc<Goal>),
    /// The goal of the thread was removed.
    GoalCleared,
    /// The queue of the thread has changed, or is told again.
    Queue(Arc<QueueEvent>),
    /// Tokens were counted, or the account's limits were received.
    TokensCounted {
        /// The token usage of the thread; `None` before the first answer.
        info: Option<TokenUsageInfo>,
        /// The rate limits of the account; `None` if the provider has not sent any.
        rate_limits: Option<Box<RateLimitSnapshot>>,
    },
    /// An answer broke off and is retried.
    AnswerRetried {
        failure: Failure,
        /// The number of this retry, from 1.
        attempt: u32,
        /// The maximum number of retries.
        limit: u32,
        /// The wait before the retry.
        delay: Duration,
    },
    /// The account's allowance is exhausted, and the turn waits until it is restored.
    LimitReached {
        /// The provider's error; [`limit_words`] adds the end of the wait.
        failure: Failure,
        /// The end of the wait, in milliseconds of Unix time.
        until_ms: i64,
        /// Whether the turn continues when the thread is resumed.
        goes_on: bool,
    },
    /// A warning for the user; the turn continues.
    Warning { message: String },
    /// The status of an MCP server has changed.
    ServerChanged(Arc<McpStartupUpdateEvent>),
    /// All MCP servers have started or failed to start.
    ServersStarted(Arc<McpStartupCompleteEvent>),
    /// The tool of an MCP server reports progress.
    CallProgressed {
        item: ItemId,
        /// The progress in the tool's own words.
        message: String,
    },
    /// The use of the budget is told, or a limit was reached.
    Budget(BudgetEvent),
    /// Something has happened to an agent of this thread.
    Agent(Arc<AgentEvent>),
    /// The turn that is about to end has a result that is unread; this is the unread part of the thread.
    Unread(Arc<ReadState>),
    /// The turn has ended. Every started turn has exactly one of these.
    TurnEnded(Outcome),
}

/// The start of a thread.
#[derive(Debug, Clone)]
pub struct ThreadStarted {
    /// The settings of its first turn.
    pub settings: Arc<Settings>,
    /// The id of its model provider.
    pub provider: String,
    /// The first line of its file.
    pub meta: SessionMeta,
    /// Whether that line is already in the file.
    pub is_resumed: bool,
    /// Its file.
    pub rollout: PathBuf,
    /// The identity of the prompt history file.
    pub history_log: u64,
    /// The number of prompts in that file.
    pub history_entries: usize,
    /// The instruction files that the model received.
    pub instruction_sources: Vec<PathBuf>,
}

/// An item of the conversation with the model, encoded once for both the file and requests.
///
/// One that was read from a file keeps its bytes and is decoded only on demand.
#[derive(Debug, Clone)]
pub struct Record {
    /// The item as JSON.
    pub json: ConversationItem,
    /// The typed item, if it was created here.
    made: Option<Arc<ResponseItem>>,
}

impl Record {
    /// Encodes an item.
    ///
    /// # Errors
    /// Only if an item contained a value that JSON cannot express, which none does.
    pub fn new(item: ResponseItem) -> Result<Self, serde_json::Error> {
        let item = Arc::new(item);
        Ok(Self { json: ConversationItem::new(&item)?, made: Some(item) })
    }

    /// An item from a file.
    #[must_use]
    pub fn stored(json: ConversationItem) -> Self {
        Self { json, made: None }
    }

    /// The same item, with data that only this provider can read.
    #[must_use]
    pub fn made_by(self, origin: Option<Arc<ItemOrigin>>) -> Self {
        Self { json: self.json.made_by(origin), made: self.made }
    }

    /// The typed item, if it was created here.
    pub(crate) fn made(&self) -> Option<&ResponseItem> {
        self.made.as_deref()
    }

    /// The typed item; `None` if it came from a file and cannot be decoded.
    #[must_use]
    pub fn item(&self) -> Option<Arc<ResponseItem>> {
        self.made.clone().or_else(|| self.json.typed().ok())
    }
}

/// The start of a review.
#[derive(Debug, Clone, PartialEq)]
pub struct ReviewEntered {
    /// The changes to review.
    pub target: ReviewTarget,
    /// A short description for people.
    pub hint: String,
    /// The reviewer's instructions.
    pub prompt: String,
}

/// A rollback.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RolledBack {
    /// The number of turns.
    pub turns: usize,
    /// The number of the user's messages in them.
    pub said: usize,
    /// The first of them, if its id is known.
    pub first: Option<TurnId>,
}

/// The compaction of a conversation.
#[derive(Debug, Clone)]
pub struct Compacted {
    /// The model's summary.
    pub summary: String,
    /// The conversation from here on; `None` if an older release did not record it.
    pub replacement: Option<Vec<ConversationItem>>,
    /// The approximate number of tokens before.
    pub before: usize,
    /// The approximate number of tokens after.
    pub after: usize,
}

/// Whether an event is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// It has lines, and is published only after they were written.
    Kept,
    /// It follows from events that are stored.
    Derived,
    /// It is part of an item that is stored once it is complete.
    Drafted,
    /// It is published and not stored.
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
            | Self::Queue(_)
            | Self::TokensCounted { .. }
            | Self::LimitReached { .. }
            | Self::Budget(_)
            | Self::Agent(_)
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

    /// Whether it shows reasoning of the model. The encrypted form for later requests is a different thing.
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

    /// The warning that a question was not answered in time, or cannot be answered any more.
    #[must_use]
    pub fn unanswered(what: &str, after: Duration) -> Self {
        let why = if after.is_zero() {
            "no client can answer it any more".to_owned()
        } else {
            format!("no answer arrived within {} s", after.as_secs())
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

/// The end of a turn.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// The model had nothing more to do.
    Completed {
        /// The last message of its last answer.
        last_message: Option<Text>,
        /// The provider's id of that answer, in sessions whose clients may return to it.
        bookmark: Option<String>,
    },
    /// It was interrupted.
    Aborted(Abort),
    /// It failed.
    Failed(Failure),
}

/// The reason why a turn was interrupted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Abort {
    /// The user requested it.
    Interrupted,
    /// Another task replaced it.
    Replaced,
    /// The review it belonged to ended.
    ReviewEnded,
}

/// An error, for people and for programs.
#[derive(Debug, Clone, PartialEq)]
pub struct Failure {
    /// A sentence without a full stop.
    pub message: String,
    /// A hint: the next step for the person.
    pub hint: Option<&'static str>,
    /// The kind of failure.
    pub info: CodexErrorInfo,
}
