//! The work that a running turn waits for.

use std::pin::Pin;
use std::time::Duration;

use codex_log::Failure;
use codex_model::{Answer, Retry, StreamExt};
use codex_tools::full_message;
use codex_wire::error_info::CodexErrorInfo;
use tokio::time::{Sleep, sleep};

use crate::turn::Input;

/// The work that a running turn waits for. Replacing it cancels it.
pub(crate) enum Work {
    /// Nothing at all.
    Nothing,
    /// The next event of the model's answer.
    Answer(Answer),
    /// The time of the next retry.
    Wait(Pin<Box<Sleep>>),
}

impl Work {
    /// Waits before a retry.
    pub(crate) fn wait(delay: Duration) -> Self {
        Self::Wait(Box::pin(sleep(delay)))
    }

    /// Waits for whatever comes next. Cancelling it loses nothing.
    pub(crate) async fn next(&mut self) -> Input {
        match self {
            Self::Nothing => std::future::pending().await,
            Self::Answer(answer) => match answer.next().await {
                Some(Ok(event)) => Input::Model(event),
                Some(Err(error)) => {
                    let failure = Failure { message: full_message(&error), hint: error.hint(), info: error.info() };
                    Input::AnswerFailed(failure, error.retry())
                }
                None => Input::AnswerFailed(ended_early(), Retry::Stream { after: None }),
            },
            Self::Wait(sleep) => {
                sleep.await;
                *self = Self::Nothing;
                Input::RetryDue
            }
        }
    }
}

fn ended_early() -> Failure {
    Failure { message: "the model's answer ended early".to_owned(), hint: None, info: CodexErrorInfo::Other }
}
