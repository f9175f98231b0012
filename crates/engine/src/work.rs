//! The work that a running turn waits for.

use std::pin::Pin;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use codex_log::Failure;
use codex_model::{Answer, ModelError, ModelEvent, Retry, StreamExt};
use codex_tools::full_message;
use codex_wire::error_info::CodexErrorInfo;
use tokio::time::{Instant, Sleep, sleep, sleep_until};

use crate::tree_requests::Place;
use crate::turn::Input;

/// The interval at which a long wait checks the clock.
const GLANCE: Duration = Duration::from_secs(30);

/// The work that a running turn waits for. Replacing it cancels it.
pub(crate) enum Work {
    Nothing,
    /// The next event of the model's answer, which is sent when it is its turn.
    Answer(Answer, Option<Place>),
    /// The time of the next retry.
    Wait(Pin<Box<Sleep>>),
    /// The time when the account's allowance is restored. The clock is checked at intervals, because the machine may
    /// have been suspended.
    Limit {
        deadline: Instant,
        until: SystemTime,
    },
}

impl Work {
    /// Waits before a retry.
    pub(crate) fn wait(delay: Duration) -> Self {
        Self::Wait(Box::pin(sleep(delay)))
    }

    /// Waits until the account's allowance is restored.
    pub(crate) fn limit(after: Duration, until: SystemTime) -> Self {
        Self::Limit { deadline: Instant::now() + after, until }
    }

    /// Waits for the next event. Cancelling it loses nothing.
    pub(crate) async fn next(&mut self) -> Input {
        match self {
            Self::Nothing => std::future::pending().await,
            Self::Answer(answer, place) => match next_of(answer, place.as_ref()).await {
                Some(Ok(event)) => Input::Model(event),
                Some(Err(error)) => {
                    let retry = error.retry();
                    if let (Retry::Stream { after: Some(delay) }, Some(place)) = (retry, &*place) {
                        place.hold(delay);
                    }
                    let failure = Failure { message: full_message(&error), hint: error.hint(), info: error.info() };
                    Input::AnswerFailed(failure, retry)
                }
                None => Input::AnswerFailed(ended_early(), Retry::Stream { after: None }),
            },
            Self::Wait(sleep) => {
                sleep.await;
                *self = Self::Nothing;
                Input::RetryDue
            }
            Self::Limit { deadline, until } => {
                while Instant::now() < *deadline && SystemTime::now() < *until {
                    sleep_until((*deadline).min(Instant::now() + GLANCE)).await;
                }
                *self = Self::Nothing;
                Input::RetryDue
            }
        }
    }
}

/// Waits until the request may be sent, and for the next event of its answer.
async fn next_of(answer: &mut Answer, place: Option<&Place>) -> Option<Result<ModelEvent, ModelError>> {
    if let Some(place) = place {
        place.granted().await;
    }
    answer.next().await
}

/// Milliseconds of Unix time.
pub(crate) fn unix_ms(time: SystemTime) -> i64 {
    time.duration_since(UNIX_EPOCH).ok().and_then(|since| i64::try_from(since.as_millis()).ok()).unwrap_or_default()
}

fn ended_early() -> Failure {
    Failure { message: "the model's answer ended early".to_owned(), hint: None, info: CodexErrorInfo::Other }
}
