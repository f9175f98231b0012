//! Watchdogs: messages that are sent again and again.

use codex_log::agents::{AgentEvent, WatchdogChange};
use codex_wire::agent::AgentId;

use super::Tree;

/// The message of a watchdog that was given none.
const DEFAULT_MESSAGE: &str = "This is a reminder from a watchdog. Check how far the work is: continue it if it is not \
                               done, and report anything that blocks it.";

/// A watchdog.
#[derive(Debug)]
pub(super) struct Watchdog {
    pub(super) owner: AgentId,
    pub(super) target: AgentId,
    pub(super) message: String,
    interval_s: u64,
    due_ms: i64,
}

impl Watchdog {
    pub(super) fn new(owner: AgentId, target: AgentId, interval_s: u64, message: Option<String>, now_ms: i64) -> Self {
        let message = message.unwrap_or_else(|| DEFAULT_MESSAGE.to_owned());
        let mut watchdog = Self { owner, target, message, interval_s, due_ms: now_ms };
        watchdog.wind_up(now_ms);
        watchdog
    }

    pub(super) fn due_ms(&self) -> i64 {
        self.due_ms
    }

    fn wind_up(&mut self, now_ms: i64) {
        let interval_ms = i64::try_from(self.interval_s.saturating_mul(1000)).unwrap_or(i64::MAX);
        self.due_ms = now_ms.saturating_add(interval_ms);
    }
}

impl Tree {
    /// Sends the messages that are due. A watchdog whose message cannot be sent is removed.
    pub(super) fn ring_watchdogs(&mut self) {
        let now_ms = self.now_ms;
        let mut place = 0;
        while place < self.watchdogs.len() {
            let watchdog = &mut self.watchdogs[place];
            if watchdog.due_ms > now_ms {
                place += 1;
                continue;
            }
            watchdog.wind_up(now_ms);
            let (owner, target, message) = (watchdog.owner, watchdog.target, watchdog.message.clone());
            if self.may_take(target, message.len(), false).is_ok() {
                self.post(owner, target, Some(message), false, false);
                place += 1;
            } else {
                self.remove_watchdog(place);
            }
        }
    }

    pub(super) fn remove_watchdog(&mut self, place: usize) {
        let Watchdog { owner, target, interval_s, .. } = self.watchdogs.remove(place);
        let told = AgentEvent::Watchdog(WatchdogChange { agent_id: target, interval_s, message: None });
        match self.get(owner) {
            Some(owner) if !owner.is_loaded() => owner.deferred.push(told),
            Some(_) => self.tell(owner, told),
            None => {}
        }
    }

    /// Removes the watchdogs of an agent and those that wake it.
    pub(super) fn drop_watchdogs(&mut self, agent: AgentId) {
        while let Some(place) = self.watchdogs.iter().position(|known| known.owner == agent || known.target == agent) {
            self.remove_watchdog(place);
        }
    }
}
