//! How much clients may take up.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How many may be about to show who they are at the same time. More are dropped without a word.
const LOBBY: usize = 256;

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
///
/// Strangers wait in a lobby until they have shown who they are, so however many come, they take no room from those who may.
#[derive(Debug, Clone)]
pub struct Slots {
    served: Arc<Semaphore>,
    lobby: Arc<Semaphore>,
}

/// The room that somebody takes up until it is dropped.
#[derive(Debug)]
pub(crate) struct Slot(#[expect(dead_code, reason = "it is held, not looked at")] OwnedSemaphorePermit);

impl Slots {
    /// Room for so many connections.
    #[must_use]
    pub fn new(connections: usize) -> Self {
        let room = |count: usize| Arc::new(Semaphore::new(count.min(Semaphore::MAX_PERMITS)));
        Self { served: room(connections), lobby: room(LOBBY) }
    }

    /// Room for a stranger.
    pub(crate) fn wait(&self) -> Option<Slot> {
        Arc::clone(&self.lobby).try_acquire_owned().ok().map(Slot)
    }

    /// Room for a client.
    pub(crate) fn serve(&self) -> Option<Slot> {
        Arc::clone(&self.served).try_acquire_owned().ok().map(Slot)
    }

    /// Whether another client would be served.
    pub(crate) fn has_room(&self) -> bool {
        self.served.available_permits() > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strangers_take_no_room_from_clients() {
        let slots = Slots::new(2);
        let strangers: Vec<Slot> = std::iter::from_fn(|| slots.wait()).collect();
        assert_eq!(strangers.len(), LOBBY);
        let clients: Vec<Slot> = std::iter::from_fn(|| slots.serve()).collect();
        assert_eq!((clients.len(), slots.has_room()), (2, false));
        drop(clients);
        assert!(slots.serve().is_some());
    }
}
