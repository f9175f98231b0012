//! What a running turn waits for.

use std::pin::Pin;
use std::time::Duration;

use codex_model::{Answer, Retry, StreamExt};
use codex_wire::error_info::CodexErrorInfo;
use tokio::time::{Instant, Sleep, sleep};

use crate::command::{self, CommandCall, Look, Process, Shown};
use crate::log::Failure;
use crate::patching;
use crate::session::{LookingAt, RunningPatch};
use crate::tools::{CallResult, Later};
use crate::turn::Input;

/// The one thing a running turn waits for. Replacing it cancels it.
pub(crate) enum Work {
    /// Nothing at all.
    Nothing,
    /// The next event of the model's answer.
    Answer(Answer),
    /// The time of the next retry.
    Wait(Pin<Box<Sleep>>),
    /// A command: an answer to a question about it, its output, or its end.
    Command(Box<RunningCommand>),
    /// A patch: its check, an answer to a question about it, or its end.
    Patch(Box<RunningPatch>),
    /// What a terminal shows.
    Look(Box<LookingAt>),
    /// The end of any other call.
    Call(Later),
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
    /// For the running command.
    Command(command::Input),
    /// For the running patch.
    Patch(patching::Input),
    /// The call is over.
    Called(CallResult),
    /// For the call that looks at a terminal.
    Looked(Look, Result<Shown, String>),
}

impl Work {
    /// Waits before a retry.
    pub(crate) fn wait(delay: Duration) -> Self {
        Self::Wait(Box::pin(sleep(delay)))
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
            Self::Command(command) => Arrived::Command(command.next().await),
            Self::Patch(patch) => Arrived::Patch(patch.next().await),
            Self::Call(call) => Arrived::Called(call.await),
            Self::Look(at) => {
                let shown = (&mut at.looking).await;
                Arrived::Looked(at.look, shown.map_err(|error| full_message(&error)))
            }
        }
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
    Failure {
        message: "the model's answer ended early".to_owned(),
        hint: None,
        info: CodexErrorInfo::ResponseStreamDisconnected { http_status_code: None },
    }
}

/// An error with its causes, since clients get one line.
pub(crate) fn full_message(error: &dyn std::error::Error) -> String {
    let mut message = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        message.push_str(": ");
        message.push_str(&error.to_string());
        cause = error.source();
    }
    message
}
