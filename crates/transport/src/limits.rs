//! Limits on connections.
//!
//! Unauthenticated connections, clients over Unix sockets and clients over IP addresses have separate room, so none of
//! them takes room from another. A connection that has not sent a request yet can be evicted.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::time::{Instant, sleep_until};

use crate::pipe::{MESSAGE_BYTES, STALL};

/// The time that a new connection keeps its place among the unauthenticated ones. A client with the token has presented
/// it by then; others wait in the kernel's queue in the meantime.
const GRACE: Duration = Duration::from_millis(10);

/// The limits of a connection.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// The maximum number of unauthenticated connections at one listener. When one more arrives, the oldest is closed.
    pub strangers: usize,
    /// The time limit for authentication.
    pub handshake: Duration,
    /// The time that a silent client keeps its place when there is no other left.
    pub quiet: Duration,
    /// The time for which a client may read nothing while messages are waiting.
    pub stall: Duration,
    /// The interval of pings, if the protocol has them.
    pub ping: Duration,
    /// The maximum silence of a client that is pinged.
    pub silence: Duration,
    /// The maximum size of a message, if messages have an explicit length.
    pub message_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            strangers: 128,
            handshake: Duration::from_secs(5),
            quiet: Duration::from_secs(10),
            stall: STALL,
            ping: Duration::from_secs(30),
            silence: Duration::from_secs(90),
            message_bytes: MESSAGE_BYTES,
        }
    }
}

/// The transport of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TransportKind {
    Unix,
    Ip,
}

/// Room for a number of clients over Unix sockets and for as many over IP addresses, shared by all listeners.
#[derive(Debug, Clone)]
pub struct Slots {
    unix: SlotPool,
    ip: SlotPool,
    /// The reason why no client should come at the moment.
    unready: Arc<Mutex<Option<&'static str>>>,
    /// Room for the large messages of all clients over HTTP, in kilobytes.
    messages: Arc<Semaphore>,
}

impl Slots {
    /// Room for `most` clients over Unix sockets, and for as many over IP addresses.
    #[must_use]
    pub fn new(connections: usize) -> Self {
        let messages = Arc::new(Semaphore::new(MESSAGE_BYTES / 1024));
        Self { unix: SlotPool::new(connections), ip: SlotPool::new(connections), unready: Arc::default(), messages }
    }

    /// Waits for room for a message of this length. All clients together have room for one of the maximum length.
    pub(crate) async fn room(&self, bytes: usize) -> Option<OwnedSemaphorePermit> {
        let kilobytes = u32::try_from(bytes.min(MESSAGE_BYTES) / 1024).ok()?;
        Arc::clone(&self.messages).acquire_many_owned(kilobytes).await.ok()
    }

    /// Sets the reason why no client should come at the moment, for `/readyz`. Clients that come are served.
    pub fn set_unready(&self, why: Option<&'static str>) {
        *self.unready.lock().unwrap_or_else(PoisonError::into_inner) = why;
    }

    pub(crate) fn unready(&self) -> Option<&'static str> {
        *self.unready.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes room for a client. If there is none left, a client that has been silent for `quiet` is evicted.
    pub(crate) fn serve(&self, way: TransportKind, quiet: Duration) -> Result<Slot, Full> {
        let places = self.of(way);
        places.take(quiet).ok_or(Full { way, most: places.lock().most })
    }

    /// Whether another client would be served.
    pub(crate) fn has_room(&self, way: TransportKind) -> bool {
        let places = self.of(way).lock();
        places.taken.len() < places.most
    }

    fn of(&self, way: TransportKind) -> &SlotPool {
        match way {
            TransportKind::Unix => &self.unix,
            TransportKind::Ip => &self.ip,
        }
    }
}

/// There is no room for another client.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Full {
    way: TransportKind,
    most: usize,
}

impl fmt::Display for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let over = match self.way {
            TransportKind::Unix => "Unix sockets",
            TransportKind::Ip => "IP addresses",
        };
        write!(f, "too many connections; at most {} are served over {over} (--max-connections); retry later", self.most)
    }
}

/// A bounded number of places.
#[derive(Debug, Clone)]
pub(crate) struct SlotPool(Arc<Mutex<PoolState>>);

#[derive(Debug)]
struct PoolState {
    most: usize,
    /// Numbers increase, so the oldest comes first.
    taken: BTreeMap<u64, SlotState>,
    next: u64,
}

#[derive(Debug)]
struct SlotState {
    since: Instant,
    /// Whether it can no longer be evicted.
    is_kept: bool,
    /// Dropped to tell the holder that the place is lost.
    _permit: oneshot::Sender<()>,
}

impl PoolState {
    /// The oldest place that can be evicted.
    fn oldest(&self) -> Option<(u64, Instant)> {
        self.taken.iter().find(|(_, seat)| !seat.is_kept).map(|(number, seat)| (*number, seat.since))
    }
}

impl SlotPool {
    pub(crate) fn new(most: usize) -> Self {
        Self(Arc::new(Mutex::new(PoolState { most, taken: BTreeMap::new(), next: 0 })))
    }

    fn lock(&self) -> MutexGuard<'_, PoolState> {
        // Every change under the lock is one insertion or removal.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a free place, or evicts the oldest one that is not kept, if it is at least `patience` old.
    pub(crate) fn take(&self, patience: Duration) -> Option<Slot> {
        let mut places = self.lock();
        if places.taken.len() >= places.most {
            let (oldest, _) = places.oldest().filter(|(_, since)| since.elapsed() >= patience)?;
            places.taken.remove(&oldest);
        }
        let (permit, lost) = oneshot::channel();
        let number = places.next;
        places.next += 1;
        places.taken.insert(number, SlotState { since: Instant::now(), is_kept: false, _permit: permit });
        drop(places);
        Some(Slot { keeper: SlotKeeper { places: self.clone(), number }, lost })
    }

    /// Takes a place for an unauthenticated connection.
    pub(crate) fn take_among_strangers(&self) -> Option<Slot> {
        self.take(GRACE)
    }

    /// Waits until there is a place for an unauthenticated connection.
    pub(crate) async fn vacancy(&self) {
        loop {
            let since = {
                let places = self.lock();
                if places.taken.len() < places.most { None } else { places.oldest().map(|(_, since)| since) }
            };
            match since.map(|since| since + GRACE) {
                Some(due) if due > Instant::now() => sleep_until(due).await,
                Some(_) | None => return,
            }
        }
    }

    /// Evicts the oldest, for lack of descriptors.
    pub(crate) fn drop_oldest(&self) {
        let mut places = self.lock();
        if let Some((oldest, _)) = places.oldest() {
            places.taken.remove(&oldest);
        }
    }
}

/// A place, held until this is dropped or evicted.
#[derive(Debug)]
pub(crate) struct Slot {
    keeper: SlotKeeper,
    lost: oneshot::Receiver<()>,
}

impl Slot {
    /// A handle that makes the place permanent.
    pub(crate) fn keeper(&self) -> SlotKeeper {
        self.keeper.clone()
    }

    /// Resolves when the place is lost.
    pub(crate) async fn lost(&mut self) {
        // Nothing is ever sent.
        let _: Result<(), _> = (&mut self.lost).await;
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.keeper.places.lock().taken.remove(&self.keeper.number);
    }
}

/// Makes a place permanent.
#[derive(Debug, Clone)]
pub(crate) struct SlotKeeper {
    places: SlotPool,
    number: u64,
}

impl SlotKeeper {
    /// From here on the place cannot be lost.
    pub(crate) fn keep(&self) {
        if let Some(seat) = self.places.lock().taken.get_mut(&self.number) {
            seat.is_kept = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    const QUIET: Duration = Duration::from_secs(10);

    fn is_lost(place: &mut Slot) -> bool {
        place.lost().now_or_never().is_some()
    }

    #[tokio::test(start_paused = true)]
    async fn each_way_has_room_of_its_own() {
        let slots = Slots::new(2);
        let over = |way| -> Vec<Slot> { std::iter::from_fn(|| slots.serve(way, QUIET).ok()).collect() };
        let ip = over(TransportKind::Ip);
        assert_eq!(
            (ip.len(), slots.has_room(TransportKind::Ip), slots.has_room(TransportKind::Unix)),
            (2, false, true)
        );
        let unix = over(TransportKind::Unix);
        assert_eq!(unix.len(), 2);
        let full = slots.serve(TransportKind::Unix, QUIET).expect_err("there is no room");
        let told = "too many connections; at most 2 are served over Unix sockets (--max-connections); retry later";
        assert_eq!(full.to_string(), told);
        drop(ip);
        assert!(slots.serve(TransportKind::Ip, QUIET).is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn only_a_silent_client_makes_room() {
        let slots = Slots::new(2);
        let mut clients =
            [slots.serve(TransportKind::Unix, QUIET).unwrap(), slots.serve(TransportKind::Unix, QUIET).unwrap()];
        clients[0].keeper().keep();
        assert!(slots.serve(TransportKind::Unix, QUIET).is_err(), "both have just come");
        tokio::time::advance(QUIET).await;
        let third = slots.serve(TransportKind::Unix, QUIET).unwrap();
        assert_eq!(clients.each_mut().map(is_lost), [false, true]);
        third.keeper().keep();
        drop(clients);
        // An evicted place is returned only once.
        assert!(slots.serve(TransportKind::Unix, QUIET).is_ok());
        let fourth = slots.serve(TransportKind::Unix, QUIET).unwrap();
        fourth.keeper().keep();
        assert!(slots.serve(TransportKind::Unix, QUIET).is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn the_oldest_stranger_makes_way_once_it_had_its_chance() {
        let lobby = SlotPool::new(2);
        lobby.vacancy().await;
        let mut first = lobby.take_among_strangers().unwrap();
        let begun = Instant::now();
        let mut second = lobby.take_among_strangers().unwrap();
        assert!(lobby.take_among_strangers().is_none());
        lobby.vacancy().await;
        assert_eq!(begun.elapsed(), GRACE);
        let mut third = lobby.take_among_strangers().unwrap();
        assert_eq!([&mut first, &mut second, &mut third].map(is_lost), [true, false, false]);
        lobby.drop_oldest();
        assert_eq!([&mut second, &mut third].map(is_lost), [true, false]);
        assert!(lobby.take_among_strangers().is_some());
    }
}
