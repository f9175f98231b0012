//! How much clients may take up.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How many connections are told that there is no room, at the same time. More are dropped without a word.
const REFUSALS: usize = 16;

/// What a connection may take.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// How long a client may take to show who it is.
    pub handshake: Duration,
    /// How long a client may read nothing while something is there to read.
    pub stall: Duration,
    /// How often a client is asked whether it is still there, where the protocol can.
    pub ping: Duration,
    /// How long nothing may be heard from a client that is asked.
    pub silence: Duration,
    /// How many bytes a message may have, where messages have a length of their own.
    pub message_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            handshake: Duration::from_secs(10),
            stall: Duration::from_secs(300),
            ping: Duration::from_secs(30),
            silence: Duration::from_secs(90),
            message_bytes: 32 * 1024 * 1024,
        }
    }
}

/// Room for so many connections, over all listeners that share it.
#[derive(Debug, Clone)]
pub struct Slots {
    served: Arc<Semaphore>,
    refused: Arc<Semaphore>,
}

/// The room that a connection takes up until it is dropped.
#[derive(Debug)]
pub(crate) enum Slot {
    /// It is served.
    Served { _permit: OwnedSemaphorePermit },
    /// It is told that there is no room.
    Refused { _permit: OwnedSemaphorePermit },
}

impl Slots {
    /// Room for so many connections.
    #[must_use]
    pub fn new(connections: usize) -> Self {
        let room = |count: usize| Arc::new(Semaphore::new(count.min(Semaphore::MAX_PERMITS)));
        Self { served: room(connections), refused: room(REFUSALS) }
    }

    /// Room for one connection; none if there is not even room to say so.
    pub(crate) fn take(&self) -> Option<Slot> {
        if let Ok(permit) = Arc::clone(&self.served).try_acquire_owned() {
            return Some(Slot::Served { _permit: permit });
        }
        let permit = Arc::clone(&self.refused).try_acquire_owned().ok()?;
        Some(Slot::Refused { _permit: permit })
    }

    /// Whether another connection would be served.
    pub(crate) fn has_room(&self) -> bool {
        self.served.available_permits() > 0
    }
}

impl Slot {
    /// Whether the connection is served.
    pub(crate) fn is_served(&self) -> bool {
        matches!(self, Self::Served { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_comes_too_late_is_told_so_and_then_nobody_is() {
        let slots = Slots::new(2);
        let taken: Vec<Slot> = std::iter::from_fn(|| slots.take()).collect();
        assert_eq!(taken.iter().filter(|slot| slot.is_served()).count(), 2);
        assert_eq!(taken.len(), 2 + REFUSALS);
        drop(taken);
        assert!(slots.take().is_some_and(|slot| slot.is_served()));
    }
}
