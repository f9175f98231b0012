//! The calls that wait for an answer of a client without a connection of its own: it comes with the same call, sent
//! again.

use std::collections::HashMap;
use std::sync::Mutex;

use codex_wire::ids::ThreadId;
use serde_json::{Map, Value};
use tokio::sync::oneshot;

use super::exchange::Exchange;
use super::sealed::{Seal, StateError, Ticket};
use super::session::lock;

/// The maximum number of calls that wait.
const MOST_PARKED: usize = 64;

/// The calls that wait for an answer.
#[derive(Debug)]
pub(super) struct ParkedCalls {
    /// `None` if the system has no random numbers.
    seal: Option<Seal>,
    /// By the numbers of their tickets.
    waiting: Mutex<HashMap<String, (Ticket, oneshot::Sender<Retry>)>>,
}

/// A call that was sent again.
#[derive(Debug)]
pub(super) struct Retry {
    pub(super) exchange: Exchange,
    pub(super) cancelled: oneshot::Receiver<()>,
    /// The answers, by the keys of the questions.
    pub(super) responses: Map<String, Value>,
}

/// The place of a call that waits. Without it, the call is no longer found.
#[derive(Debug)]
pub(super) struct Place<'a> {
    calls: &'a ParkedCalls,
    number: String,
    /// The state for the client.
    pub(super) state: String,
    pub(super) retried: oneshot::Receiver<Retry>,
}

impl Default for ParkedCalls {
    fn default() -> Self {
        Self { seal: Seal::new(), waiting: Mutex::default() }
    }
}

impl ParkedCalls {
    /// Makes a place for a call; `None` if there is none left.
    pub(super) fn park(
        &self,
        thread: ThreadId,
        turn: &str,
        questions: impl Iterator<Item = String>,
        call: String,
    ) -> Option<Place<'_>> {
        let seal = self.seal.as_ref()?;
        let ticket = seal.ticket(thread, turn.to_owned(), questions.collect(), call)?;
        let state = seal.close(&ticket)?;
        let (sender, retried) = oneshot::channel();
        let mut waiting = lock(&self.waiting);
        if waiting.len() >= MOST_PARKED {
            return None;
        }
        let number = ticket.number.clone();
        waiting.insert(number.clone(), (ticket, sender));
        Some(Place { calls: self, number, state, retried })
    }

    /// Takes the call that a state is for. The state is worth nothing afterwards.
    pub(super) fn take(&self, state: &str, call: &str) -> Result<oneshot::Sender<Retry>, StateError> {
        let seal = self.seal.as_ref().ok_or(StateError::Foreign)?;
        let ticket = seal.open(state, call)?;
        let (held, retry) = lock(&self.waiting).remove(&ticket.number).ok_or(StateError::Used)?;
        if held == ticket { Ok(retry) } else { Err(StateError::Foreign) }
    }

    /// Gives up all calls that wait.
    pub(super) fn clear(&self) {
        lock(&self.waiting).clear();
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        lock(&self.calls.waiting).remove(&self.number);
    }
}
