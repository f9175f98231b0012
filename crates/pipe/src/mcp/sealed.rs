//! The state that a client carries from a call that needs an answer to the call with the answer.
//!
//! A client could change it, keep it, or make one up. So it is authenticated with a key that only this process has, it
//! expires, and it names the one call, thread, turn and questions that it is for.

use std::fmt;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use codex_wire::ids::ThreadId;
use ring::rand::{SecureRandom as _, SystemRandom};
use ring::{digest, hmac};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::time::Instant;

/// The time that a client has to answer.
pub(super) const LIFETIME: Duration = Duration::from_secs(30 * 60);
/// The longest state that is looked at, in bytes.
const MOST_BYTES: usize = 64 * 1024;

/// The contents of a state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Ticket {
    /// Random, so each state is used at most once.
    pub(super) number: String,
    pub(super) thread: ThreadId,
    pub(super) turn: String,
    pub(super) questions: Vec<String>,
    /// The digest of the tool and the arguments.
    pub(super) call: String,
    /// The end of its life, in milliseconds since the key was made.
    expires: u64,
}

/// The reason why a state is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum StateError {
    /// It was changed, or made by another process.
    #[error("`requestState` was not issued by this server")]
    Foreign,
    #[error("`requestState` has expired, and the turn was interrupted")]
    Expired,
    /// The tool or its arguments differ.
    #[error("`requestState` belongs to another call")]
    OtherCall,
    #[error("`requestState` was used before")]
    Used,
}

/// Makes and reads states.
pub(super) struct Seal {
    key: hmac::Key,
    random: SystemRandom,
    since: Instant,
}

impl fmt::Debug for Seal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Seal(..)")
    }
}

impl Seal {
    /// A new key; `None` if the system has no random numbers.
    pub(super) fn new() -> Option<Self> {
        let random = SystemRandom::new();
        let key = hmac::Key::generate(hmac::HMAC_SHA256, &random).ok()?;
        Some(Self { key, random, since: Instant::now() })
    }

    /// A new ticket, whose life begins now.
    pub(super) fn ticket(
        &self,
        thread: ThreadId,
        turn: String,
        questions: Vec<String>,
        call: String,
    ) -> Option<Ticket> {
        let mut number = [0; 16];
        self.random.fill(&mut number).ok()?;
        let expires = self.now() + millis(LIFETIME);
        Some(Ticket { number: URL_SAFE_NO_PAD.encode(number), thread, turn, questions, call, expires })
    }

    fn now(&self) -> u64 {
        millis(self.since.elapsed())
    }

    /// The state of a ticket; `None` if it has no JSON, which no ticket lacks.
    pub(super) fn close(&self, ticket: &Ticket) -> Option<String> {
        let contents = serde_json::to_vec(ticket).ok()?;
        let tag = hmac::sign(&self.key, &contents);
        Some(format!("{}.{}", URL_SAFE_NO_PAD.encode(&contents), URL_SAFE_NO_PAD.encode(tag)))
    }

    /// The ticket of a state for this call.
    pub(super) fn open(&self, state: &str, call: &str) -> Result<Ticket, StateError> {
        if state.len() > MOST_BYTES {
            return Err(StateError::Foreign);
        }
        let (contents, tag) = state.split_once('.').ok_or(StateError::Foreign)?;
        let decoded = |text: &str| URL_SAFE_NO_PAD.decode(text).map_err(|_| StateError::Foreign);
        let contents = decoded(contents)?;
        hmac::verify(&self.key, &contents, &decoded(tag)?).map_err(|_| StateError::Foreign)?;
        let ticket: Ticket = serde_json::from_slice(&contents).map_err(|_| StateError::Foreign)?;
        if ticket.expires <= self.now() {
            return Err(StateError::Expired);
        }
        if ticket.call != call {
            return Err(StateError::OtherCall);
        }
        Ok(ticket)
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// The digest of a tool and its arguments, whatever the order of their members.
pub(super) fn digest_of(tool: &str, arguments: Option<&Value>) -> String {
    let mut context = digest::Context::new(&digest::SHA256);
    context.update(tool.as_bytes());
    context.update(b"\0");
    if let Some(arguments) = arguments {
        add(&mut context, arguments);
    }
    URL_SAFE_NO_PAD.encode(context.finish())
}

fn add(context: &mut digest::Context, value: &Value) {
    match value {
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_by_key(|(name, _)| *name);
            context.update(b"{");
            for (name, value) in members {
                context.update(Value::from(name.as_str()).to_string().as_bytes());
                context.update(b":");
                add(context, value);
                context.update(b",");
            }
            context.update(b"}");
        }
        Value::Array(items) => {
            context.update(b"[");
            for item in items {
                add(context, item);
                context.update(b",");
            }
            context.update(b"]");
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            context.update(value.to_string().as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn ticket(seal: &Seal) -> Ticket {
        let thread = ThreadId::fresh();
        seal.ticket(thread, "turn".to_owned(), vec!["q".to_owned()], "call".to_owned()).expect("there is randomness")
    }

    #[tokio::test(start_paused = true)]
    async fn a_state_opens_for_its_call_until_it_expires() {
        let seal = Seal::new().expect("there is randomness");
        let ticket = ticket(&seal);
        let state = seal.close(&ticket).expect("it has JSON");
        tokio::time::advance(LIFETIME.saturating_sub(Duration::from_millis(1))).await;
        assert_eq!(seal.open(&state, "call"), Ok(ticket));
        assert_eq!(seal.open(&state, "other"), Err(StateError::OtherCall));
        tokio::time::advance(Duration::from_millis(1)).await;
        assert_eq!(seal.open(&state, "call"), Err(StateError::Expired));
    }

    #[tokio::test]
    async fn a_state_with_any_other_byte_is_refused() {
        let seal = Seal::new().expect("there is randomness");
        let state = seal.close(&ticket(&seal)).expect("it has JSON");
        for at in 0..state.len() {
            let mut changed = state.clone().into_bytes();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(changed).expect("it is ASCII");
            assert_eq!(seal.open(&changed, "call"), Err(StateError::Foreign), "byte {at}");
        }
        for text in ["", ".", "a.b", &state[1..], &state[..state.len() - 1], &"A".repeat(MOST_BYTES + 1)] {
            assert_eq!(seal.open(text, "call"), Err(StateError::Foreign));
        }
    }

    #[tokio::test]
    async fn a_state_of_another_process_is_refused() {
        let (one, other) = (Seal::new().expect("there is randomness"), Seal::new().expect("there is randomness"));
        let state = one.close(&ticket(&one)).expect("it has JSON");
        assert_eq!(other.open(&state, "call"), Err(StateError::Foreign));
    }

    #[test]
    fn a_digest_is_of_the_values_and_not_of_their_order() {
        let digest = |tool: &str, arguments: Value| digest_of(tool, Some(&arguments));
        let one = digest("t", json!({"a": {"x": 1, "y": [1, 2]}, "b": "c"}));
        assert_eq!(one, digest("t", json!({"b": "c", "a": {"y": [1, 2], "x": 1}})));
        for other in [json!({"a": {"x": 1, "y": [2, 1]}, "b": "c"}), json!({"a": {"x": 1, "y": [1, 2]}}), json!(null)] {
            assert_ne!(one, digest("t", other));
        }
        assert_ne!(one, digest("u", json!({"a": {"x": 1, "y": [1, 2]}, "b": "c"})));
        assert_ne!(digest_of("t", None), digest("t", json!(null)));
    }
}
