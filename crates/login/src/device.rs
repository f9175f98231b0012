//! A login with a code that the user enters on another device, as a machine: the interval of the polls, and their end.

use std::time::Duration;

use codex_config::Secret;
use serde_json::Value as Json;

use crate::LoginError;
use crate::http::Answer;
use crate::tokens::{code, refused};

/// The time limit for the user.
pub(crate) const DEVICE_TIME: Duration = Duration::from_secs(15 * 60);
/// The longer interval after `slow_down` (RFC 8628, section 3.5).
const SLOWER: Duration = Duration::from_secs(5);
/// The polling interval if the issuer names none.
const USUAL_INTERVAL: u64 = 5;
/// The maximum pause, so that the wait stays short.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// The schedule of polls.
#[derive(Debug)]
pub struct DevicePolls {
    interval: Duration,
    /// The time that has passed.
    waited: Duration,
}

/// The response of the issuer to a poll.
#[derive(Debug)]
pub enum PollResponse {
    /// The user has not logged in yet.
    Pending,
    /// The issuer requests a longer interval.
    SlowDown,
    /// The user has approved.
    Granted {
        code: Secret,
        /// The PKCE verifier of the code.
        verifier: Secret,
    },
    /// The login has failed.
    Over(LoginError),
}

/// The next step.
#[derive(Debug)]
pub enum Next {
    /// Poll again after a pause.
    Ask {
        /// The pause.
        after: Duration,
    },
    /// Request tokens.
    Exchange {
        /// The code.
        code: Secret,
        /// The PKCE verifier of the code.
        verifier: Secret,
    },
    /// Give up.
    Fail(LoginError),
}

impl DevicePolls {
    /// Polls with the interval that the issuer requests, in seconds, as a number or as a string.
    pub(crate) fn new(interval: Option<&Json>) -> Self {
        let seconds = interval.and_then(|value| value.as_u64().or_else(|| value.as_str()?.trim().parse().ok()));
        let interval = Duration::from_secs(seconds.unwrap_or(USUAL_INTERVAL).max(1)).min(LONGEST_PAUSE);
        Self { interval, waited: Duration::ZERO }
    }

    /// Processes a response.
    pub fn step(&mut self, answer: PollResponse) -> Next {
        match answer {
            PollResponse::Granted { code, verifier } => return Next::Exchange { code, verifier },
            PollResponse::Over(error) => return Next::Fail(error),
            PollResponse::Pending => {}
            // The longer interval stays, because the short one was too fast.
            PollResponse::SlowDown => self.interval = (self.interval + SLOWER).min(LONGEST_PAUSE),
        }
        if self.waited >= DEVICE_TIME {
            return Next::Fail(LoginError::Expired { after: DEVICE_TIME });
        }
        let after = self.interval.min(DEVICE_TIME.saturating_sub(self.waited));
        self.waited += after;
        Next::Ask { after }
    }
}

impl PollResponse {
    /// Decodes the response of the issuer.
    pub(crate) fn of(answer: &Answer) -> Self {
        if answer.is_success() {
            let json = answer.json().unwrap_or_default();
            let secret = |name: &str| json.get(name).and_then(Json::as_str).map(Secret::new);
            return match (secret("authorization_code"), secret("code_verifier")) {
                (Some(code), Some(verifier)) => Self::Granted { code, verifier },
                _ => Self::Over(LoginError::Malformed { what: "it has no code" }),
            };
        }
        match (answer.status, code(answer).as_deref()) {
            (_, Some("slow_down")) | (429, _) => Self::SlowDown,
            (_, Some(word @ ("access_denied" | "authorization_declined" | "authorization_denied"))) => {
                Self::Over(LoginError::Denied { code: word.to_owned() })
            }
            (_, Some("expired_token" | "expired_device_code")) => {
                Self::Over(LoginError::Expired { after: DEVICE_TIME })
            }
            (403 | 404 | 500.., _) | (_, Some("authorization_pending")) => Self::Pending,
            _ => Self::Over(refused(answer)),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn poll_answer(status: u16, body: &Json) -> PollResponse {
        PollResponse::of(&Answer { status, body: body.to_string().into_bytes(), challenges: Vec::new() })
    }

    fn pause(next: Next) -> u64 {
        match next {
            Next::Ask { after } => after.as_secs(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_interval_is_a_number_or_a_string() {
        for (interval, seconds) in [(json!("1"), 1), (json!(7), 7), (json!(0), 1), (json!("soon"), 5), (json!(900), 60)]
        {
            assert_eq!(pause(DevicePolls::new(Some(&interval)).step(PollResponse::Pending)), seconds);
        }
        assert_eq!(pause(DevicePolls::new(None).step(PollResponse::Pending)), 5);
    }

    #[test]
    fn an_issuer_that_wants_more_patience_keeps_it() {
        let mut polls = DevicePolls::new(Some(&json!(1)));
        let slow_down = || poll_answer(400, &json!({"error": "slow_down"}));
        assert_eq!(pause(polls.step(slow_down())), 6);
        assert_eq!(pause(polls.step(PollResponse::Pending)), 6);
        assert_eq!(pause(polls.step(poll_answer(429, &json!(null)))), 11);
        assert_eq!(pause(polls.step(PollResponse::Pending)), 11);
    }

    #[test]
    fn the_code_ends_after_a_quarter_of_an_hour() {
        let mut polls = DevicePolls::new(Some(&json!(50)));
        let mut waited = 0;
        let error = loop {
            match polls.step(PollResponse::Pending) {
                Next::Ask { after } => waited += after.as_secs(),
                Next::Fail(error) => break error,
                Next::Exchange { .. } => panic!("nothing was granted"),
            }
        };
        assert_eq!((waited, error.to_string()), (900, "the login was not completed within 15 minutes".to_owned()));
    }

    #[test]
    fn answers_are_distinguished() {
        assert!(matches!(poll_answer(403, &json!({"error": "authorization_pending"})), PollResponse::Pending));
        assert!(matches!(poll_answer(404, &json!({})), PollResponse::Pending));
        assert!(matches!(poll_answer(503, &json!("busy")), PollResponse::Pending));
        let granted = poll_answer(200, &json!({"authorization_code": "canary-c", "code_verifier": "canary-v"}));
        assert!(matches!(&granted, PollResponse::Granted { code, .. } if code.reveal() == "canary-c"));
        assert!(!format!("{granted:?}").contains("canary"));
        for (status, body, said) in [
            (403, json!({"error": "access_denied"}), "the login was refused: access_denied"),
            (400, json!({"error": "expired_token"}), "the login was not completed within 15 minutes"),
            (400, json!({"error": {"code": "bad_client"}}), "the login service responded with 400: bad_client"),
            (400, json!({"error": "Token canary-1 is bad"}), "the login service responded with 400"),
            (200, json!({}), "unexpected response from the login service: it has no code"),
        ] {
            let PollResponse::Over(error) = poll_answer(status, &body) else { panic!("{status} {body}") };
            assert_eq!(error.to_string(), said);
        }
    }
}
