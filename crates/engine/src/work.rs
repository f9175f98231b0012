//! What a running turn waits for.

use std::pin::Pin;
use std::time::Duration;

use codex_log::{Failure, ItemId};
use codex_model::{Answer, Retry, StreamExt};
use codex_tools::command::{self, CommandCall, Process, Shown, TerminalPoll};
use codex_tools::plain::{CallResult, Later};
use codex_tools::{full_message, patching};
use codex_wire::error_info::CodexErrorInfo;
use futures_util::future::select_all;
use tokio::time::{Instant, Sleep, sleep};

use crate::session::{PollingTerminal, RunningPatch};
use crate::turn::Input;

/// What a running turn waits for. Replacing it cancels it.
pub(crate) enum Work {
    /// Nothing at all.
    Nothing,
    /// The next event of the model's answer.
    Answer(Answer),
    /// The time of the next retry.
    Wait(Pin<Box<Sleep>>),
    /// Calls, in the order they started.
    Calls(Vec<RunningCall>),
}

/// A call with what it waits for. Dropping it cancels it.
pub(crate) struct RunningCall {
    pub(crate) id: ItemId,
    pub(crate) doing: Doing,
}

/// What a call does.
pub(crate) enum Doing {
    /// A command: an answer to a question about it, its output, or its end.
    Command(Box<RunningCommand>),
    /// A patch: its check, an answer to a question about it, or its end.
    Patch(Box<RunningPatch>),
    /// What a terminal shows.
    Poll(Box<PollingTerminal>),
    /// The end of any other call.
    Other(Later),
}

/// When something is due, and how long that is from when it was set.
pub(crate) type Deadline = (Pin<Box<Sleep>>, Duration);

/// A command with what it waits for.
pub(crate) struct RunningCommand {
    pub(crate) call: CommandCall,
    pub(crate) since: Instant,
    /// The process, while it runs.
    pub(crate) process: Option<Process>,
    /// The terminal it was started in, if any.
    pub(crate) terminal: Option<u64>,
    /// When a question counts as denied, and how long that took.
    pub(crate) deadline: Option<Deadline>,
}

/// What came of waiting.
pub(crate) enum Arrived {
    /// For the turn.
    Turn(Input),
    /// For a call.
    Call(ItemId, CallEvent),
}

/// What a call is told.
pub(crate) enum CallEvent {
    /// For a command.
    Command(command::Input),
    /// For a patch.
    Patch(patching::Input),
    /// For a call that looks at a terminal.
    Looked(TerminalPoll, Result<Shown, String>),
    /// The call is over.
    Called(CallResult),
}

impl Work {
    /// Waits before a retry.
    pub(crate) fn wait(delay: Duration) -> Self {
        Self::Wait(Box::pin(sleep(delay)))
    }

    /// The running calls.
    pub(crate) fn calls(&self) -> &[RunningCall] {
        match self {
            Self::Calls(calls) => calls,
            Self::Nothing | Self::Answer(_) | Self::Wait(_) => &[],
        }
    }

    /// A running call by its name.
    pub(crate) fn call(&mut self, id: &ItemId) -> Option<&mut Doing> {
        let Self::Calls(calls) = self else { return None };
        calls.iter_mut().find(|call| call.id == *id).map(|call| &mut call.doing)
    }

    /// Waits for one more call.
    pub(crate) fn begin(&mut self, id: ItemId, doing: Doing) {
        let call = RunningCall { id, doing };
        match self {
            Self::Calls(calls) => calls.push(call),
            Self::Nothing | Self::Answer(_) | Self::Wait(_) => *self = Self::Calls(vec![call]),
        }
    }

    /// Waits no longer for a call.
    pub(crate) fn drop_call(&mut self, id: &ItemId) {
        if let Self::Calls(calls) = self {
            calls.retain(|call| call.id != *id);
        }
    }

    /// Waits for whatever comes next. Cancelling it loses nothing.
    pub(crate) async fn next(&mut self) -> Arrived {
        match self {
            Self::Nothing => std::future::pending().await,
            Self::Answer(answer) => Arrived::Turn(match answer.next().await {
                Some(Ok(event)) => Input::Model(event),
                Some(Err(error)) => {
                    let failure = Failure { message: full_message(&error), hint: error.hint(), info: error.info() };
                    Input::AnswerFailed(failure, error.retry())
                }
                None => Input::AnswerFailed(ended_early(), Retry::Stream { after: None }),
            }),
            Self::Wait(sleep) => {
                sleep.await;
                *self = Self::Nothing;
                Arrived::Turn(Input::RetryDue)
            }
            Self::Calls(calls) if calls.is_empty() => std::future::pending().await,
            Self::Calls(calls) => {
                // Earlier calls go first. What one of them streams is bounded, so no other waits for long.
                select_all(calls.iter_mut().map(|call| Box::pin(call.next()))).await.0
            }
        }
    }
}

impl RunningCall {
    async fn next(&mut self) -> Arrived {
        let news = match &mut self.doing {
            Doing::Command(command) => CallEvent::Command(command.next().await),
            Doing::Patch(patch) => CallEvent::Patch(patch.next().await),
            Doing::Poll(at) => {
                let shown = (&mut at.looking).await;
                CallEvent::Looked(at.look, shown.map_err(|error| full_message(&error)))
            }
            Doing::Other(later) => CallEvent::Called(later.await),
        };
        Arrived::Call(self.id.clone(), news)
    }
}

impl RunningCommand {
    /// A command about to be judged.
    pub(crate) fn new(call: CommandCall) -> Self {
        Self { call, since: Instant::now(), process: None, terminal: None, deadline: None }
    }

    async fn next(&mut self) -> command::Input {
        if let Some(process) = &mut self.process {
            let input = process.next().await;
            if matches!(input, command::Input::Ended(_) | command::Input::Shown(_)) {
                self.process = None;
            }
            return input;
        }
        match &mut self.deadline {
            Some((sleep, after)) => {
                sleep.await;
                let after = *after;
                self.deadline = None;
                command::Input::Unanswered(after)
            }
            None => std::future::pending().await,
        }
    }
}

fn ended_early() -> Failure {
    Failure { message: "the model's answer ended early".to_owned(), hint: None, info: CodexErrorInfo::Other }
}
