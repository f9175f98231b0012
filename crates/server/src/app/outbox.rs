//! Everything a connection sends, in one queue of bounded size.
//!
//! Answers have room of their own, so that a client which is slow to read what a thread says can still stop it. Notifications
//! wait for room; what waits with them is merged by the feed they come from.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use codex_protocol::methods::Method;
use codex_protocol::rpc::{ErrorObject, Request, Response};
use codex_wire::ids::RequestId;
use serde::Serialize;
use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

/// How many bytes of notifications may wait to be written.
const NOTIFICATION_BYTES: u32 = 256 * 1024;
/// How many bytes of answers may wait to be written; more make the reading side wait.
const ANSWER_BYTES: u32 = 4 * 1024 * 1024;
/// How many bytes are gathered before they are written, while more is at hand.
const WRITE_BYTES: usize = 256 * 1024;

/// The sending side of a connection.
#[derive(Debug)]
pub(crate) struct Outbox {
    queue: mpsc::UnboundedSender<Chunk>,
    notifications: Arc<Semaphore>,
    answers: Arc<Semaphore>,
    next_request: AtomicI64,
}

/// Whole lines on their way out, and the room they take up.
struct Chunk {
    bytes: Vec<u8>,
    room: Option<OwnedSemaphorePermit>,
}

/// Room for notifications.
#[derive(Debug)]
pub(crate) struct Room(Option<OwnedSemaphorePermit>);

/// The end of the queue that writes.
pub(crate) struct Writer<W> {
    queue: mpsc::UnboundedReceiver<Chunk>,
    output: W,
}

impl Outbox {
    /// A queue to an output.
    pub(crate) fn new<W: AsyncWrite + Unpin>(output: W) -> (Self, Writer<W>) {
        let (sender, queue) = mpsc::unbounded_channel();
        let room = |bytes: u32| Arc::new(Semaphore::new(bytes as usize));
        let outbox = Self {
            queue: sender,
            notifications: room(NOTIFICATION_BYTES),
            answers: room(ANSWER_BYTES),
            next_request: AtomicI64::new(0),
        };
        (outbox, Writer { queue, output })
    }

    /// Answers a request.
    pub(crate) async fn answer<M: Method>(&self, id: &RequestId, result: Result<M::Response, ErrorObject>) {
        let line = match result {
            Ok(result) => encoded(&Response::Result { id, result }),
            Err(error) => refusal(id, error),
        };
        self.send_answer(line).await;
    }

    /// Answers a request with an error.
    pub(crate) async fn refuse(&self, id: &RequestId, error: ErrorObject) {
        self.send_answer(refusal(id, error)).await;
    }

    /// Answers a request with an error, whether there is room or not.
    pub(crate) fn refuse_at_once(&self, id: &RequestId, error: ErrorObject) {
        self.push(refusal(id, error), None);
    }

    async fn send_answer(&self, line: Vec<u8>) {
        let room = acquire(&self.answers, line.len(), ANSWER_BYTES).await;
        self.push(line, room);
    }

    /// A request of ours as a line, and its number.
    pub(crate) fn request(&self, method: &str, params: impl Serialize) -> (i64, Vec<u8>) {
        let id = self.next_request.fetch_add(1, Ordering::Relaxed);
        let mut bytes = Vec::new();
        add_line(&mut bytes, &Request { method, id, params });
        (id, bytes)
    }

    /// Waits for room for so many bytes of notifications.
    pub(crate) async fn room(&self, bytes: usize) -> Room {
        Room(acquire(&self.notifications, bytes, NOTIFICATION_BYTES).await)
    }

    /// Sends notifications for which there is room.
    pub(crate) fn send_notification(&self, bytes: Vec<u8>, room: Room) {
        self.push(bytes, room.0);
    }

    fn push(&self, bytes: Vec<u8>, room: Option<OwnedSemaphorePermit>) {
        // When the writer is gone so is the client.
        let _: Result<(), _> = self.queue.send(Chunk { bytes, room });
    }
}

async fn acquire(room: &Arc<Semaphore>, bytes: usize, all: u32) -> Option<OwnedSemaphorePermit> {
    // What is larger than all the room there is gets all of it, alone.
    let wanted = u32::try_from(bytes).unwrap_or(all).min(all);
    Arc::clone(room).acquire_many_owned(wanted).await.ok()
}

fn refusal(id: &RequestId, error: ErrorObject) -> Vec<u8> {
    let response: Response<'_, ()> = Response::Error { error, id };
    encoded(&response)
}

fn encoded(answer: &impl Serialize) -> Vec<u8> {
    let mut line = Vec::with_capacity(256);
    add_line(&mut line, answer);
    line
}

/// Adds a message as a line. Half a line would be worse than none.
pub(crate) fn add_line(bytes: &mut Vec<u8>, message: &impl Serialize) {
    let whole = bytes.len();
    match serde_json::to_writer(&mut *bytes, message) {
        Ok(()) => bytes.push(b'\n'),
        Err(_) => bytes.truncate(whole),
    }
}

impl<W: AsyncWrite + Unpin> Writer<W> {
    /// Writes until nobody sends any more.
    pub(crate) async fn run(mut self) -> std::io::Result<()> {
        let mut next = self.queue.recv().await;
        while let Some(Chunk { mut bytes, room }) = next.take() {
            let mut rooms = vec![room];
            while let Ok(chunk) = self.queue.try_recv() {
                // Large ones are not copied.
                if bytes.len() + chunk.bytes.len() > WRITE_BYTES {
                    next = Some(chunk);
                    break;
                }
                bytes.extend_from_slice(&chunk.bytes);
                rooms.push(chunk.room);
            }
            self.output.write_all(&bytes).await?;
            self.output.flush().await?;
            drop((bytes, rooms));
            if next.is_none() {
                next = self.queue.recv().await;
            }
        }
        Ok(())
    }
}
