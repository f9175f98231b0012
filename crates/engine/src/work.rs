//! What a running turn waits for.

use std::pin::Pin;
use std::time::Duration;

use codex_model::{Answer, Retry, StreamExt};
use codex_wire::error_info::CodexErrorInfo;
use tokio::time::{Sleep, sleep};

use crate::log::{Body, Failure};
use crate::tools::{self, CallResult};
use crate::turn::{Call, Input};

/// The one thing a running turn waits for. Replacing it cancels it.
pub(crate) enum Work {
    /// Nothing at all.
    Nothing,
    /// The next event of the model's answer.
    Answer(Answer),
    /// The time of the next retry.
    Wait(Pin<Box<Sleep>>),
    /// The end of a call.
    Call(Pin<Box<dyn Future<Output = CallResult> + Send>>),
}

/// What came of waiting: events for the log, and what the turn is told.
pub(crate) struct Arrived {
    pub(crate) events: Vec<Body>,
    pub(crate) input: Input,
}

impl Work {
    /// Waits before a retry.
    pub(crate) fn wait(delay: Duration) -> Self {
        Self::Wait(Box::pin(sleep(delay)))
    }

    /// Runs a call.
    pub(crate) fn call(call: Call) -> Self {
        Self::Call(Box::pin(async move { tools::run(call) }))
    }

    /// Waits for whatever comes next. Cancelling it loses nothing.
    pub(crate) async fn next(&mut self) -> Arrived {
        let input = match self {
            Self::Nothing => std::future::pending().await,
            Self::Answer(answer) => match answer.next().await {
                Some(Ok(event)) => Input::Model(event),
                Some(Err(error)) => {
                    let failure = Failure { message: full_message(&error), hint: error.hint(), info: error.info() };
                    Input::AnswerFailed(failure, error.retry())
                }
                None => Input::AnswerFailed(
                    Failure {
                        message: "the model's answer ended early".to_owned(),
                        hint: None,
                        info: CodexErrorInfo::ResponseStreamDisconnected { http_status_code: None },
                    },
                    Retry::Stream { after: None },
                ),
            },
            Self::Wait(sleep) => {
                sleep.await;
                Input::RetryDue
            }
            Self::Call(call) => {
                let CallResult { events, output } = call.await;
                *self = Self::Nothing;
                return Arrived { events, input: Input::CallEnded(output) };
            }
        };
        if let Input::RetryDue = input {
            *self = Self::Nothing;
        }
        Arrived { events: Vec::new(), input }
    }
}

/// An error with its causes, since clients get one line.
fn full_message(error: &dyn std::error::Error) -> String {
    let mut message = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        message.push_str(": ");
        message.push_str(&error.to_string());
        cause = error.source();
    }
    message
}
