//! The threads that a program follows, across breaks of the connection.
//!
//! Invariant: a thread is in one state of its life, and only known steps lead to the next. After a break each thread is
//! subscribed to from its last number; what was sent and not answered is sent again under its own name, so that a
//! server which has it already does not take it twice.

use std::collections::BTreeMap;

use codex_protocol::rpc::INVALID_REQUEST;
use serde_json::{Value, json};

use crate::connection::Client;
use crate::error::CallError;
use crate::numbers::Numbers;

/// JSON-RPC: there is no such method.
const NO_METHOD: i64 = -32601;

/// The life of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Life {
    Created,
    Configured,
    Active,
    Completed,
    Interrupted,
    Archived,
}

/// A step that the life of a thread does not have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("thread {thread} is {from:?} and cannot become {to:?}")]
pub struct NoStep {
    pub thread: String,
    pub from: Life,
    pub to: Life,
}

impl Life {
    /// Whether a step leads from here to another state.
    #[must_use]
    pub const fn may_become(self, next: Self) -> bool {
        matches!(
            (self, next),
            (Self::Created, Self::Configured)
                | (Self::Configured | Self::Completed | Self::Interrupted, Self::Active | Self::Archived)
                | (Self::Active, Self::Completed | Self::Interrupted)
        )
    }
}

#[derive(Debug)]
struct Followed {
    life: Life,
    /// Turns that were sent and not answered, with their `clientUserMessageId`, in the order in which they were sent.
    unanswered: Vec<(String, Value)>,
}

/// The threads that a program follows.
#[derive(Debug, Default)]
pub struct Registry {
    threads: BTreeMap<String, Followed>,
    numbers: Numbers,
}

impl Registry {
    /// Follows a thread that was created.
    pub fn follow(&mut self, thread: &str) {
        let created = || Followed { life: Life::Created, unanswered: Vec::new() };
        self.threads.entry(thread.to_owned()).or_insert_with(created);
    }

    /// Stops following a thread.
    pub fn forget(&mut self, thread: &str) {
        self.threads.remove(thread);
        self.numbers.forget(thread);
    }

    /// The state of a thread's life.
    #[must_use]
    pub fn life(&self, thread: &str) -> Option<Life> {
        self.threads.get(thread).map(|followed| followed.life)
    }

    /// Takes a step in the life of a thread.
    ///
    /// # Errors
    /// If there is no such step, or no such thread; then nothing has changed.
    pub fn step(&mut self, thread: &str, to: Life) -> Result<(), NoStep> {
        let refused = |from| NoStep { thread: thread.to_owned(), from, to };
        let followed = self.threads.get_mut(thread).ok_or_else(|| refused(Life::Created))?;
        if !followed.life.may_become(to) {
            return Err(refused(followed.life));
        }
        followed.life = to;
        Ok(())
    }

    /// The numbers of its threads, for the options of a connection.
    #[must_use]
    pub fn numbers(&self) -> Numbers {
        self.numbers.clone()
    }

    /// Records a turn that is about to be sent. Its parameters get a `clientUserMessageId` if they have none.
    pub fn sending(&mut self, thread: &str, params: &mut Value) -> String {
        let known = params.get("clientUserMessageId").and_then(Value::as_str).map(str::to_owned);
        let name = known.unwrap_or_else(|| format!("{:016x}{:016x}", fastrand::u64(..), fastrand::u64(..)));
        if let Some(members) = params.as_object_mut() {
            members.insert("clientUserMessageId".to_owned(), json!(name));
        }
        self.follow(thread);
        if let Some(followed) = self.threads.get_mut(thread) {
            match followed.unanswered.iter_mut().find(|(known, _)| *known == name) {
                Some((_, known)) => known.clone_from(params),
                None => followed.unanswered.push((name.clone(), params.clone())),
            }
        }
        name
    }

    /// A turn was answered, or refused for good.
    pub fn answered(&mut self, thread: &str, name: &str) {
        if let Some(followed) = self.threads.get_mut(thread) {
            followed.unanswered.retain(|(known, _)| known != name);
        }
    }

    /// After a break: subscribes to each thread from its last number, and sends again what was not answered. Events and
    /// open questions arrive as the server tells them again; a response with `reset` replaces what was known. Threads
    /// that the server refuses are returned with its reasons; they do not keep the others from recovering.
    ///
    /// # Errors
    /// If the connection breaks again; then it is to be called anew.
    pub async fn recover(&mut self, client: &Client) -> Result<BTreeMap<String, String>, CallError> {
        let mut refused = BTreeMap::new();
        for (thread, followed) in &mut self.threads {
            if followed.life == Life::Archived {
                continue;
            }
            match subscribe(client, thread, &self.numbers).await {
                Ok(()) => {}
                Err(CallError::Refused { message, .. }) => {
                    refused.insert(thread.clone(), message);
                    continue;
                }
                Err(error) => return Err(error),
            }
            while let Some((_, params)) = followed.unanswered.first() {
                match client.raw("turn/start", params.clone()).await {
                    // A turn that is refused is answered: sending it once more would not help.
                    Ok(_) | Err(CallError::Refused { .. }) => drop(followed.unanswered.remove(0)),
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(refused)
    }
}

/// Subscribes to a thread from its last number.
async fn subscribe(client: &Client, thread: &str, numbers: &Numbers) -> Result<(), CallError> {
    let (log_id, after) = numbers.last(thread);
    let params = json!({"threadId": thread, "after": after, "logId": log_id});
    match client.raw("thread/subscribe", params).await {
        // The connection has noted its numbers.
        Ok(_) => {}
        // A server of another release has no numbers; it tells the whole thread.
        Err(CallError::Refused { code: INVALID_REQUEST | NO_METHOD, .. }) => {
            numbers.unnumbered(thread);
            client.raw("thread/resume", json!({"threadId": thread})).await?;
        }
        Err(error) => return Err(error),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Life; 6] =
        [Life::Created, Life::Configured, Life::Active, Life::Completed, Life::Interrupted, Life::Archived];

    #[test]
    fn only_known_steps_are_taken() {
        let steps: Vec<String> = ALL
            .iter()
            .flat_map(|from| ALL.iter().map(move |to| (from, to)))
            .filter(|(from, to)| from.may_become(**to))
            .map(|(from, to)| format!("{from:?} {to:?}"))
            .collect();
        assert_eq!(
            steps.join(", "),
            "Created Configured, Configured Active, Configured Archived, Active Completed, Active Interrupted, \
             Completed Active, Completed Archived, Interrupted Active, Interrupted Archived"
        );
    }

    #[test]
    fn a_step_that_is_refused_changes_nothing() {
        let mut registry = Registry::default();
        registry.follow("t");
        assert!(registry.step("t", Life::Active).is_err());
        assert_eq!(registry.life("t"), Some(Life::Created));
        assert!(registry.step("t", Life::Configured).and_then(|()| registry.step("t", Life::Active)).is_ok());
        assert!(registry.step("nobody", Life::Configured).is_err());
    }

    #[test]
    fn a_turn_keeps_its_name_until_it_is_answered() {
        let mut registry = Registry::default();
        let mut params = json!({"threadId": "t", "input": []});
        let name = registry.sending("t", &mut params);
        assert_eq!(params["clientUserMessageId"], json!(name));
        assert_eq!(registry.sending("t", &mut params), name, "a name that it has stays");
        assert_eq!(registry.threads["t"].unanswered.len(), 1);
        registry.answered("t", &name);
        assert!(registry.threads["t"].unanswered.is_empty());
    }
}
