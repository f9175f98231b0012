//! The messages for one client as a stream of server-sent events, which can be read again from any of the latest ones.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use codex_lines::{Line, LineReader, Outbox};
use http_body::Frame;
use tokio::io::duplex;
use tokio::sync::Notify;
use tokio::time::{Instant, Sleep, sleep};

use super::super::session::{Session, lock};

/// The maximum size of the events that are kept for a client that resumes the stream.
const MOST_BYTES: usize = 256 * 1024;
/// The size of the buffer between the calls and the events.
const PIPE_BYTES: usize = 64 * 1024;
/// The interval of comments that keep a silent connection open.
const KEEP_ALIVE: Duration = Duration::from_secs(25);

/// The pause of a client before it resumes a stream that broke off, in milliseconds.
const RETRY_MS: u64 = 1000;

/// A stream of events.
#[derive(Debug)]
pub(super) struct EventStream {
    /// Its number in the session; `None` if it cannot be read again, so its events need no ids.
    number: Option<u64>,
    state: Mutex<State>,
    /// Wakes the writer when a reader has read something or is gone.
    room: Notify,
}

#[derive(Debug)]
struct State {
    events: VecDeque<Vec<u8>>,
    /// The number of the first event that is kept. Events are counted from 1.
    first: u64,
    bytes: usize,
    is_over: bool,
    reader: Option<Reader>,
    /// The number of readers so far.
    readers: u64,
}

/// The one reader of a stream; a new one replaces the previous one.
#[derive(Debug)]
struct Reader {
    number: u64,
    /// The next event for it.
    next: u64,
    waker: Option<Waker>,
}

impl EventStream {
    pub(super) fn new(number: Option<u64>) -> Arc<Self> {
        let state = State { events: VecDeque::new(), first: 1, bytes: 0, is_over: false, reader: None, readers: 0 };
        Arc::new(Self { number, state: Mutex::new(state), room: Notify::new() })
    }

    /// An outbox whose messages become events of this stream. The stream ends when the outbox is dropped.
    pub(super) fn outbox(self: &Arc<Self>) -> Arc<Outbox> {
        let (near, far) = duplex(PIPE_BYTES);
        let (outbox, writer) = Outbox::new(near);
        let stream = Arc::clone(self);
        drop(tokio::spawn(async move {
            let push = async {
                // The messages are our own, and the outbox limits how many there are.
                let mut lines = LineReader::with_limit(far, usize::MAX);
                while let Ok(Some(Line::Whole(line))) = lines.next().await {
                    stream.push(line).await;
                }
                stream.end();
            };
            // A pipe in memory fails only when its other end is gone.
            let _: (std::io::Result<()>, ()) = tokio::join!(writer.run(), push);
        }));
        Arc::new(outbox)
    }

    /// Adds an event. Waits while there is no room and a reader still has to read the oldest.
    async fn push(&self, line: Vec<u8>) {
        loop {
            let has_room = self.room.notified();
            if self.make_room(line.len()) {
                let mut state = lock(&self.state);
                // Nobody can read it again.
                if self.number.is_some() || state.reader.is_some() {
                    state.bytes += line.len();
                    state.events.push_back(line);
                }
                return state.wake();
            }
            has_room.await;
        }
    }

    /// Drops events that were read, or that nobody reads; false if there are others in the way.
    fn make_room(&self, bytes: usize) -> bool {
        let mut state = lock(&self.state);
        while !state.events.is_empty() && state.bytes + bytes > MOST_BYTES {
            if state.reader.as_ref().is_some_and(|reader| reader.next <= state.first) {
                return false;
            }
            if let Some(dropped) = state.events.pop_front() {
                state.bytes -= dropped.len();
                state.first += 1;
            }
        }
        true
    }

    /// Notes that there are no more events.
    pub(super) fn end(&self) {
        let mut state = lock(&self.state);
        state.is_over = true;
        state.wake();
    }

    pub(super) fn is_over(&self) -> bool {
        lock(&self.state).is_over
    }

    pub(super) fn is_read(&self) -> bool {
        lock(&self.state).reader.is_some()
    }

    /// The bytes that it keeps.
    pub(super) fn bytes(&self) -> usize {
        lock(&self.state).bytes
    }

    /// Reads the events after this one, and only later ones if there is no such event yet. An earlier reader reads no
    /// more.
    pub(super) fn read_after(self: &Arc<Self>, last: u64) -> EventReader {
        let mut state = lock(&self.state);
        state.wake();
        state.readers += 1;
        let number = state.readers;
        let end = state.first + state.events.len() as u64;
        let next = last.saturating_add(1).clamp(state.first, end);
        state.reader = Some(Reader { number, next, waker: None });
        drop(state);
        self.room.notify_one();
        let silence = Box::pin(sleep(KEEP_ALIVE));
        EventReader { stream: Arc::clone(self), number, begins_with_id: false, cancels: None, silence }
    }

    /// One event as text. A message has no line breaks.
    fn encode(&self, number: u64, line: &[u8]) -> Bytes {
        let mut event = self.number.map(|stream| format!("id: {stream}-{number}\n")).unwrap_or_default().into_bytes();
        event.extend_from_slice(b"event: message\ndata: ");
        event.extend_from_slice(line);
        event.extend_from_slice(b"\n\n");
        event.into()
    }
}

impl State {
    fn wake(&mut self) {
        if let Some(waker) = self.reader.as_mut().and_then(|reader| reader.waker.take()) {
            waker.wake();
        }
    }
}

/// The events of a stream as the body of a response.
pub(super) struct EventReader {
    stream: Arc<EventStream>,
    /// The number of this reader.
    number: u64,
    /// Whether the first event is one without a message, so the client knows where it is from the start.
    begins_with_id: bool,
    /// The session whose calls are cancelled when nobody reads this any more.
    cancels: Option<Arc<Session>>,
    silence: Pin<Box<Sleep>>,
}

impl fmt::Debug for EventReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventReader")
            .field("stream", &self.stream.number)
            .field("number", &self.number)
            .finish_non_exhaustive()
    }
}

impl EventReader {
    /// Begins with an event that has an id and no message.
    pub(super) fn beginning_with_id(mut self) -> Self {
        self.begins_with_id = true;
        self
    }

    /// Cancels the calls of a session when the client closes the stream.
    pub(super) fn cancelling(mut self, session: Arc<Session>) -> Self {
        self.cancels = Some(session);
        self
    }

    pub(super) fn poll_event(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let framed = |bytes: Bytes| Poll::Ready(Some(Ok(Frame::data(bytes))));
        if std::mem::take(&mut self.begins_with_id)
            && let Some(stream) = self.stream.number
        {
            return framed(format!("id: {stream}-0\nretry: {RETRY_MS}\ndata:\n\n").into());
        }
        let mut state = lock(&self.stream.state);
        let (first, kept, is_over) = (state.first, state.events.len() as u64, state.is_over);
        let Some(reader) = state.reader.as_mut().filter(|reader| reader.number == self.number) else {
            return Poll::Ready(None);
        };
        // Events that had to make room are lost.
        let next = reader.next.max(first);
        if next < first + kept {
            reader.next = next + 1;
            let at = usize::try_from(next - first).unwrap_or(usize::MAX);
            let event = state.events.get(at).map(|line| self.stream.encode(next, line)).unwrap_or_default();
            drop(state);
            self.stream.room.notify_one();
            self.silence.as_mut().reset(Instant::now() + KEEP_ALIVE);
            return framed(event);
        }
        if is_over {
            return Poll::Ready(None);
        }
        reader.waker = Some(context.waker().clone());
        drop(state);
        std::task::ready!(self.silence.as_mut().poll(context));
        self.silence.as_mut().reset(Instant::now() + KEEP_ALIVE);
        framed(Bytes::from_static(b": still here\n\n"))
    }
}

impl Drop for EventReader {
    fn drop(&mut self) {
        let mut state = lock(&self.stream.state);
        if state.reader.as_ref().is_some_and(|reader| reader.number == self.number) {
            state.reader = None;
        }
        drop(state);
        self.stream.room.notify_one();
        if let Some(session) = &self.cancels {
            session.cancel_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use tokio::time::timeout;

    use super::*;

    async fn next(reader: &mut EventReader) -> Option<String> {
        let frame = poll_fn(|context| reader.poll_event(context)).await?;
        let bytes = frame.map(|frame| frame.into_data().expect("it is data")).expect("it cannot fail");
        Some(String::from_utf8(bytes.to_vec()).expect("it is text"))
    }

    #[tokio::test]
    async fn events_that_nobody_reads_make_way_for_new_ones() {
        let stream = EventStream::new(Some(3));
        for _ in 0..10 {
            stream.push(vec![b'x'; MOST_BYTES / 4]).await;
        }
        assert_eq!(stream.bytes(), MOST_BYTES);
        stream.push(b"last".to_vec()).await;
        stream.end();
        let mut reader = stream.read_after(2);
        assert!(next(&mut reader).await.is_some_and(|event| event.starts_with("id: 3-8\n")));
        let mut reader = stream.read_after(10);
        assert_eq!(next(&mut reader).await.as_deref(), Some("id: 3-11\nevent: message\ndata: last\n\n"));
        assert_eq!(next(&mut reader).await, None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_reader_makes_the_writer_wait_and_loses_nothing() {
        let stream = EventStream::new(Some(1));
        let mut reader = stream.read_after(0);
        for _ in 0..2 {
            stream.push(vec![b'x'; MOST_BYTES / 2]).await;
        }
        let waits = |line: &'static [u8]| {
            let stream = Arc::clone(&stream);
            async move { timeout(Duration::from_secs(1), stream.push(line.to_vec())).await.is_err() }
        };
        assert!(waits(b"third").await);
        assert!(next(&mut reader).await.is_some_and(|event| event.starts_with("id: 1-1\n")));
        assert!(!waits(b"third").await);
        assert!(next(&mut reader).await.is_some_and(|event| event.starts_with("id: 1-2\n")));
        assert_eq!(next(&mut reader).await.as_deref(), Some("id: 1-3\nevent: message\ndata: third\n\n"));
        stream.push(vec![b'y'; 2 * MOST_BYTES]).await;
        assert!(waits(b"fifth").await, "one larger than all room is kept alone");
        drop(reader);
        assert!(!waits(b"fifth").await, "a reader that is gone keeps nobody waiting");
    }

    #[tokio::test]
    async fn a_stream_that_cannot_be_resumed_keeps_nothing_without_a_reader() {
        let stream = EventStream::new(None);
        stream.push(b"lost".to_vec()).await;
        assert_eq!(stream.bytes(), 0);
    }
}
