//! Everything that one side of a connection sends, in one queue of bounded size.
//!
//! Answers have their own room, so that a client that is slow to read notifications can still interrupt a thread.
//! Notifications wait for room; those that wait are merged by their feed.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use serde::Serialize;
use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

/// The maximum number of bytes of notifications that may wait to be written.
const NOTIFICATION_BYTES: u32 = 256 * 1024;
/// The maximum number of bytes of answers that may wait to be written; with more, the reading side waits.
const ANSWER_BYTES: u32 = 4 * 1024 * 1024;
/// The number of bytes that are collected before they are written, while more are available.
const WRITE_BYTES: usize = 256 * 1024;

/// The sending side of a connection.
#[derive(Debug)]
pub struct Outbox {
    queue: mpsc::UnboundedSender<Chunk>,
    notifications: Arc<Semaphore>,
    answers: Arc<Semaphore>,
    next_request: AtomicI64,
}

/// Queued lines, and the room they occupy.
#[derive(Debug)]
struct Chunk {
    bytes: Vec<u8>,
    room: Option<OwnedSemaphorePermit>,
}

/// Room for notifications.
#[derive(Debug)]
pub struct Room(Option<OwnedSemaphorePermit>);

/// The receiving end of the queue, which writes.
#[derive(Debug)]
pub struct Writer<W> {
    queue: mpsc::UnboundedReceiver<Chunk>,
    output: W,
}

impl Outbox {
    /// Creates a queue to an output.
    pub fn new<W: AsyncWrite + Unpin>(output: W) -> (Self, Writer<W>) {
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

    /// Sends an answer when there is room for it.
    pub async fn send_answer(&self, line: Vec<u8>) {
        let room = acquire(&self.answers, line.len(), ANSWER_BYTES).await;
        self.push(line, room);
    }

    /// Sends an answer, whether there is room or not.
    pub fn send_answer_at_once(&self, line: Vec<u8>) {
        self.push(line, None);
    }

    /// The id of the next request of this side, from 0.
    pub fn next_request_id(&self) -> i64 {
        self.next_request.fetch_add(1, Ordering::Relaxed)
    }

    /// Numbers the next requests of this side from another number on.
    pub fn number_requests_from(&self, first: i64) {
        self.next_request.store(first, Ordering::Relaxed);
    }

    /// Waits for room for a number of bytes of notifications or requests.
    pub async fn room(&self, bytes: usize) -> Room {
        Room(acquire(&self.notifications, bytes, NOTIFICATION_BYTES).await)
    }

    /// Sends notifications or requests for which there is room.
    pub fn send_notification(&self, bytes: Vec<u8>, room: Room) {
        self.push(bytes, room.0);
    }

    fn push(&self, bytes: Vec<u8>, room: Option<OwnedSemaphorePermit>) {
        // When the writer is gone, so is the client.
        let _: Result<(), _> = self.queue.send(Chunk { bytes, room });
    }
}

async fn acquire(room: &Arc<Semaphore>, bytes: usize, all: u32) -> Option<OwnedSemaphorePermit> {
    // A message that is larger than the whole room occupies all of it.
    let wanted = u32::try_from(bytes).unwrap_or(all).min(all);
    Arc::clone(room).acquire_many_owned(wanted).await.ok()
}

/// A message as a line.
pub fn encoded(message: &impl Serialize) -> Vec<u8> {
    let mut line = Vec::with_capacity(256);
    add_line(&mut line, message);
    line
}

/// Appends a message as a line. A partial line would be worse than none.
pub fn add_line(bytes: &mut Vec<u8>, message: &impl Serialize) {
    let whole = bytes.len();
    match serde_json::to_writer(&mut *bytes, message) {
        Ok(()) => bytes.push(b'\n'),
        Err(_) => bytes.truncate(whole),
    }
}

impl<W: AsyncWrite + Unpin> Writer<W> {
    /// Writes until all senders are gone.
    ///
    /// # Errors
    /// When the output fails.
    pub async fn run(mut self) -> std::io::Result<()> {
        let mut next = self.queue.recv().await;
        while let Some(Chunk { mut bytes, room }) = next.take() {
            let mut rooms = vec![room];
            while let Ok(chunk) = self.queue.try_recv() {
                // Large lines are not copied.
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

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, duplex};

    use super::*;

    #[tokio::test]
    async fn an_answer_passes_notifications_that_find_no_room() {
        let (near, mut far) = duplex(16);
        let (outbox, writer) = Outbox::new(near);
        let full = outbox.room(NOTIFICATION_BYTES as usize).await;
        outbox.send_notification(vec![b'n'; NOTIFICATION_BYTES as usize], full);
        // There is no room left: the next notification waits, and the answer does not.
        assert!(tokio::time::timeout(std::time::Duration::ZERO, outbox.room(1)).await.is_err());
        outbox.send_answer(encoded(&"answer")).await;
        let writing = tokio::spawn(writer.run());
        drop(outbox);
        let mut read = Vec::new();
        far.read_to_end(&mut read).await.unwrap();
        assert_eq!(read.len(), NOTIFICATION_BYTES as usize + 9);
        assert!(read.ends_with(b"\"answer\"\n"));
        writing.await.unwrap().unwrap();
    }

    #[tokio::test]
    async fn a_message_larger_than_all_room_is_sent_alone() {
        let (outbox, _writer) = Outbox::new(Vec::new());
        let room = outbox.room(10 * NOTIFICATION_BYTES as usize).await;
        assert!(tokio::time::timeout(std::time::Duration::ZERO, outbox.room(1)).await.is_err());
        drop(room);
        let _room = outbox.room(1).await;
    }

    #[test]
    fn requests_are_numbered_from_zero() {
        let (outbox, _writer) = Outbox::new(Vec::new());
        assert_eq!([outbox.next_request_id(), outbox.next_request_id()], [0, 1]);
        outbox.number_requests_from(1 << 32);
        assert_eq!(outbox.next_request_id(), 1 << 32);
    }
}
