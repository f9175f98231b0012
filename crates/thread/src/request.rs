//! The requests to a thread's task, and their results.

use std::sync::Arc;
use std::time::Duration;

use codex_log::agents::AgentsState;
use codex_log::client_tools::ToolClient;
use codex_log::settings::{Settings, SettingsChange};
use codex_log::state::ThreadState;
use codex_log::{Answer, QuestionId, TurnId};
use codex_wire::additional_context::AdditionalContext;
use codex_wire::event::{McpListToolsResponseEvent, McpStartupCompleteEvent};
use codex_wire::goal::Goal;
use codex_wire::ids::RequestId;
use codex_wire::input::UserInput;
use codex_wire::mcp::{CallToolResult, McpInvocation};
use codex_wire::prompt::CustomPrompt;
use codex_wire::response::ResponseItem;
use codex_wire::review::ReviewRequest;
use serde_json::Value;
use tokio::sync::oneshot;

use crate::goal::{GoalChange, GoalError};
use crate::permissions::PermissionsRequest;
use crate::queue::QueueRequest;
use crate::subscription::{Cursor, Subscription};
use crate::terminals::TerminalsRequest;

/// The thread has ended and accepts no more requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the thread has ended")]
pub struct Closed;

/// The outcome of user input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TurnStart {
    /// It started a turn.
    Started,
    /// A turn was running; the model gets the input with its next request.
    Joined(TurnId),
    /// Input with the same key was already accepted in this turn. Nothing has changed.
    Known(TurnId),
    /// Another process has the thread, and why that one keeps it. Nothing has changed.
    Refused(String),
}

/// User input.
#[derive(Debug, Clone, Default)]
pub struct TurnInput {
    pub content: Vec<UserInput>,
    /// The settings for the turn that it starts and for later ones.
    pub change: SettingsChange,
    /// The client's idempotency key. Input with a known key is not processed again, so a client can retry if it does
    /// not know whether its input arrived.
    pub key: Option<Arc<str>>,
    /// Texts that the model gets before the content.
    pub context: AdditionalContext,
}

/// The outcome of rewinding the conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RewindOutcome {
    /// The conversation is where it was after that response.
    Gone,
    /// No turn has ended with that response. Nothing has changed.
    Unknown,
    /// This session keeps no bookmarks, see [`Thread::reconfigure`](crate::Thread::reconfigure). Nothing has changed.
    NotKept,
}

/// The treatment of open questions of a thread without subscribers, if they cannot be asked again when it is resumed:
/// those about a command that has already run, those that were followed by user input, and those of an unsaved thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenQuestions {
    /// They stay open, and the thread stays loaded.
    Wait,
    /// Their turn is interrupted.
    Interrupt,
}

/// The identification of a question in an answer.
#[derive(Debug)]
pub enum QuestionName {
    Id(QuestionId),
    /// By its call, or by its turn if that has only one open question.
    CallOrTurn(String),
    /// By the MCP server that asks, and its own name for the question.
    Elicitation {
        server: String,
        id: RequestId,
    },
}

/// A request about the MCP servers of a thread.
#[derive(Debug)]
pub enum ServersRequest {
    List { reply: oneshot::Sender<McpListToolsResponseEvent> },
    ListPrompts { reply: oneshot::Sender<Vec<CustomPrompt>> },
    Startup { reply: oneshot::Sender<Option<McpStartupCompleteEvent>> },
    CallTool { invocation: Box<McpInvocation>, reply: oneshot::Sender<Result<CallToolResult, String>> },
    ReadResource { server: String, uri: String, reply: oneshot::Sender<Result<Vec<Value>, String>> },
}

/// A request from a [`Thread`](crate::Thread) to the task that owns it. The methods of the handle document each. A
/// dropped `reply` means that the thread has ended.
#[derive(Debug)]
pub enum ThreadRequest {
    Say { turn: TurnId, input: Box<TurnInput>, reply: oneshot::Sender<TurnStart> },
    Configure { change: Box<SettingsChange>, reply: oneshot::Sender<Arc<Settings>> },
    Reconfigure { change: Box<SettingsChange>, reply: oneshot::Sender<Arc<Settings>> },
    GoBack { response: String, reply: oneshot::Sender<RewindOutcome> },
    Compact { turn: TurnId, reply: oneshot::Sender<()> },
    Review { turn: TurnId, request: Box<ReviewRequest>, reply: oneshot::Sender<()> },
    RunUserShell { turn: TurnId, command: String, timeout: Option<Duration>, reply: oneshot::Sender<bool> },
    Inject { items: Vec<ResponseItem>, reply: oneshot::Sender<bool> },
    Answer { question: QuestionName, answer: Answer, reply: oneshot::Sender<bool> },
    Interrupt { keeps_agents: bool, reply: oneshot::Sender<bool> },
    RollBack { turns: usize, reply: oneshot::Sender<bool> },
    SetGoal { change: Box<GoalChange>, reply: oneshot::Sender<Result<Goal, GoalError>> },
    ClearGoal { reply: oneshot::Sender<bool> },
    Goal { reply: oneshot::Sender<Option<Goal>> },
    Running { reply: oneshot::Sender<Option<TurnId>> },
    State { reply: oneshot::Sender<Option<Box<ThreadState>>> },
    Subscribe { after: Option<Cursor>, reply: oneshot::Sender<Subscription> },
    Servers(ServersRequest),
    Terminals(TerminalsRequest),
    Queue(QueueRequest),
    Agents { reply: oneshot::Sender<Box<AgentsState>> },
    Permissions(PermissionsRequest),
    OfferToolClient { client: Arc<dyn ToolClient>, reply: oneshot::Sender<()> },
    CountListeners { reply: oneshot::Sender<usize> },
    IsRetirable { questions: OpenQuestions, reply: oneshot::Sender<bool> },
    Finish { reply: oneshot::Sender<()> },
    Close { reply: oneshot::Sender<()> },
    Retire { questions: OpenQuestions, reply: oneshot::Sender<bool> },
}

impl ThreadRequest {
    /// Whether serving it may add to the log, or needs all that is in it.
    #[must_use]
    pub fn may_write(&self) -> bool {
        match self {
            Self::Say { .. }
            | Self::Reconfigure { .. }
            | Self::GoBack { .. }
            | Self::Compact { .. }
            | Self::Review { .. }
            | Self::RunUserShell { .. }
            | Self::Inject { .. }
            | Self::RollBack { .. }
            | Self::SetGoal { .. }
            | Self::ClearGoal { .. }
            | Self::State { .. }
            | Self::Queue(_) => true,
            Self::Configure { .. }
            | Self::Answer { .. }
            | Self::Interrupt { .. }
            | Self::Goal { .. }
            | Self::Running { .. }
            | Self::Subscribe { .. }
            | Self::Servers(_)
            | Self::Terminals(_)
            | Self::Agents { .. }
            | Self::Permissions(_)
            | Self::OfferToolClient { .. }
            | Self::CountListeners { .. }
            | Self::IsRetirable { .. }
            | Self::Finish { .. }
            | Self::Close { .. }
            | Self::Retire { .. } => false,
        }
    }
}
