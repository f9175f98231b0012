//! The sessions of clients whose version has a handshake: each is named by an id that nobody can guess, and ends when
//! its client says so or has not been heard of for a while.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::{SecureRandom as _, SystemRandom};
use tokio::time::{Instant, sleep_until};

use super::super::session::{Session, Shared, lock};
use super::events::EventStream;

/// The maximum number of sessions.
const MOST_SESSIONS: usize = 64;
/// The life of a session without a request and without a reader of its events.
pub(super) const IDLE: Duration = Duration::from_secs(30 * 60);
/// The maximum size of the complete streams that a session keeps for clients that resume them.
const FINISHED_BYTES: usize = 512 * 1024;
/// The maximum number of complete streams that a session keeps.
const FINISHED_STREAMS: usize = 16;
/// The number of the stream for messages that belong to no request.
const STANDING: u64 = 0;

/// The sessions of a server.
#[derive(Debug, Default)]
pub(super) struct Sessions {
    open: Mutex<HashMap<String, Arc<HttpSession>>>,
}

/// One session.
#[derive(Debug)]
pub(super) struct HttpSession {
    pub(super) session: Arc<Session>,
    streams: Mutex<Streams>,
    used: Mutex<Instant>,
}

#[derive(Debug, Default)]
struct Streams {
    by_number: BTreeMap<u64, Arc<EventStream>>,
    next: u64,
}

impl Sessions {
    /// A session that nobody can find yet.
    pub(super) fn draft(shared: &Arc<Shared>) -> Arc<HttpSession> {
        let (session, _) = Session::new(Arc::clone(shared));
        let standing = EventStream::new(Some(STANDING));
        let streams = Streams { by_number: BTreeMap::from([(STANDING, standing)]), next: STANDING + 1 };
        Arc::new(HttpSession { session, streams: Mutex::new(streams), used: Mutex::new(Instant::now()) })
    }

    /// Opens a session and returns its id; `None` if there is no room.
    pub(super) fn open(self: &Arc<Self>, session: Arc<HttpSession>) -> Option<String> {
        let mut id = [0; 24];
        SystemRandom::new().fill(&mut id).ok()?;
        let id = URL_SAFE_NO_PAD.encode(id);
        let evicted = {
            let mut open = lock(&self.open);
            let evicted = if open.len() >= MOST_SESSIONS { Some(oldest_idle(&open)?) } else { None };
            let evicted = evicted.and_then(|oldest| open.remove(&oldest));
            open.insert(id.clone(), session);
            evicted
        };
        if let Some(evicted) = evicted {
            evicted.end();
        }
        drop(tokio::spawn(expire(Arc::downgrade(self), id.clone())));
        Some(id)
    }

    /// The session with this id, which is used now.
    pub(super) fn get(&self, id: &str) -> Option<Arc<HttpSession>> {
        let session = lock(&self.open).get(id).cloned()?;
        session.touch();
        Some(session)
    }

    /// Ends a session; false if there is none.
    pub(super) fn close(&self, id: &str) -> bool {
        let closed = lock(&self.open).remove(id);
        closed.map(|session| session.end()).is_some()
    }

    /// Ends all sessions.
    pub(super) fn close_all(&self) {
        let all: Vec<_> = lock(&self.open).drain().collect();
        for (_, session) in all {
            session.end();
        }
    }
}

/// The session that was not used for longest, of those that do nothing.
fn oldest_idle(open: &HashMap<String, Arc<HttpSession>>) -> Option<String> {
    let idle = open.iter().filter(|(_, session)| !session.is_read() && session.session.is_idle());
    idle.min_by_key(|(_, session)| session.last_use()).map(|(id, _)| id.clone())
}

/// Ends a session once it was idle for long enough.
async fn expire(sessions: Weak<Sessions>, id: String) {
    let mut due = Instant::now() + IDLE;
    loop {
        sleep_until(due).await;
        let Some(sessions) = sessions.upgrade() else { return };
        let Some(session) = lock(&sessions.open).get(&id).cloned() else { return };
        if session.is_read() {
            session.touch();
        }
        due = session.last_use() + IDLE;
        if due <= Instant::now() {
            tracing::debug!("a session of an MCP client has expired");
            sessions.close(&id);
            return;
        }
    }
}

impl HttpSession {
    fn touch(&self) {
        *lock(&self.used) = Instant::now();
    }

    fn last_use(&self) -> Instant {
        *lock(&self.used)
    }

    /// Whether a client reads events.
    fn is_read(&self) -> bool {
        lock(&self.streams).by_number.values().any(|stream| stream.is_read())
    }

    /// A new stream for the messages of a request.
    pub(super) fn new_stream(&self) -> Arc<EventStream> {
        let mut streams = lock(&self.streams);
        streams.drop_finished();
        let number = streams.next;
        streams.next += 1;
        let stream = EventStream::new(Some(number));
        streams.by_number.insert(number, Arc::clone(&stream));
        stream
    }

    /// The stream of messages that belong to no request.
    pub(super) fn standing_stream(&self) -> Option<Arc<EventStream>> {
        lock(&self.streams).by_number.get(&STANDING).cloned()
    }

    /// The stream and the number of an event, by its id.
    pub(super) fn find_event(&self, id: &str) -> Option<(Arc<EventStream>, u64)> {
        let (stream, event) = id.split_once('-')?;
        let stream = lock(&self.streams).by_number.get(&stream.parse().ok()?).cloned()?;
        Some((stream, event.parse().ok()?))
    }

    /// Interrupts the calls, answers the questions, and ends the streams.
    fn end(&self) {
        self.session.cancel_all();
        self.session.leave();
        for stream in lock(&self.streams).by_number.values() {
            stream.end();
        }
    }
}

impl Streams {
    /// Drops the oldest complete streams until few are left.
    fn drop_finished(&mut self) {
        let finished = self.by_number.iter().filter(|(_, stream)| stream.is_over() && !stream.is_read());
        let finished: Vec<(u64, usize)> = finished.map(|(number, stream)| (*number, stream.bytes())).collect();
        let (mut count, mut bytes) = (finished.len(), finished.iter().map(|(_, bytes)| bytes).sum::<usize>());
        for (number, size) in finished {
            if count < FINISHED_STREAMS && bytes <= FINISHED_BYTES {
                break;
            }
            self.by_number.remove(&number);
            count -= 1;
            bytes -= size;
        }
    }
}
