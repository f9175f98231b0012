//! What a thread can be asked, as its task receives it, and what it answers.

use std::sync::Arc;
use std::time::Duration;

use codex_log::settings::{Settings, SettingsChange};
use codex_log::state::ThreadState;
use codex_log::{Answer, QuestionId, TurnId};
use codex_wire::goal::Goal;
use codex_wire::input::UserInput;
use codex_wire::response::ResponseItem;
use codex_wire::review::ReviewRequest;
use tokio::sync::oneshot;

use crate::goal::{GoalChange, GoalError};
use crate::subscription::{Cursor, Subscription};

/// The thread has ended, so nothing more can be asked of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the thread has ended")]
pub struct Closed;

/// What became of a user's input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TurnStart {
    /// It started a turn.
    Started,
    /// A turn was running; the model gets the input with its next request.
    Joined(TurnId),
    /// The same input, by its key, has been said before, in this turn. Nothing has changed.
    Known(TurnId),
}

/// What somebody says.
#[derive(Debug, Clone, Default)]
pub struct TurnInput {
    /// The pieces.
    pub content: Vec<UserInput>,
    /// What the turn that it starts, and those after it, run under.
    pub change: SettingsChange,
    /// The client's own name for it. What was said before under the same key is not said again, so a client that does
    /// not know whether it was heard can repeat itself.
    pub key: Option<Arc<str>>,
}

/// What became of the wish to take the conversation back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WayBack {
    /// The conversation is where it was after that answer.
    Gone,
    /// No turn has ended with that answer. Nothing has changed.
    Unknown,
    /// This session keeps no points to go back to, see [`Thread::reconfigure`](crate::Thread::reconfigure). Nothing has changed.
    NotKept,
}

/// What becomes of questions of a thread that nobody listens to, if they cannot be asked again when it is resumed: those about
/// a command that has run before, those after which the user has said something, and those of a thread that is not saved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenQuestions {
    /// They wait for an answer, and the thread with them.
    Wait,
    /// Their turn is interrupted.
    Interrupt,
}

/// How a client says which question it answers.
#[derive(Debug)]
pub enum QuestionName {
    /// By its own name.
    Id(QuestionId),
    /// By the call it is about, or by its turn when only one is asked there.
    CallOrTurn(String),
}

/// One request of the [`Thread`](crate::Thread) to the task that owns it. The methods of the handle say what each means. A
/// `reply` that is dropped says that the thread has ended.
#[derive(Debug)]
pub enum ThreadRequest {
    Say { turn: TurnId, input: Box<TurnInput>, reply: oneshot::Sender<TurnStart> },
    Configure { change: Box<SettingsChange>, reply: oneshot::Sender<Arc<Settings>> },
    Reconfigure { change: Box<SettingsChange>, reply: oneshot::Sender<Arc<Settings>> },
    GoBack { response: String, reply: oneshot::Sender<WayBack> },
    Compact { turn: TurnId, reply: oneshot::Sender<()> },
    Review { turn: TurnId, request: Box<ReviewRequest>, reply: oneshot::Sender<()> },
    RunUserShell { turn: TurnId, command: String, timeout: Option<Duration>, reply: oneshot::Sender<bool> },
    Inject { items: Vec<ResponseItem>, reply: oneshot::Sender<bool> },
    Answer { question: QuestionName, answer: Answer, reply: oneshot::Sender<bool> },
    Interrupt { reply: oneshot::Sender<bool> },
    RollBack { turns: usize, reply: oneshot::Sender<bool> },
    SetGoal { change: Box<GoalChange>, reply: oneshot::Sender<Result<Goal, GoalError>> },
    ClearGoal { reply: oneshot::Sender<bool> },
    Goal { reply: oneshot::Sender<Option<Goal>> },
    Running { reply: oneshot::Sender<Option<TurnId>> },
    State { reply: oneshot::Sender<Option<Box<ThreadState>>> },
    Subscribe { after: Option<Cursor>, reply: oneshot::Sender<Subscription> },
    CountListeners { reply: oneshot::Sender<usize> },
    IsRetirable { questions: OpenQuestions, reply: oneshot::Sender<bool> },
    Finish { reply: oneshot::Sender<()> },
    Close { reply: oneshot::Sender<()> },
    Retire { questions: OpenQuestions, reply: oneshot::Sender<bool> },
}
