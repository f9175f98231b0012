//! Runs a command to its end with bounded memory.
//!
//! Invariant: reading never waits for the receiver of the chunks, and every dropped byte is counted.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;
use tokio::time::{Instant, timeout, timeout_at};

use crate::error::SpawnError;
use crate::launch::{Exit, Launch};
use crate::platform::{Running, clean_up_aside, spawn};
use codex_lines::{BoundedBuffer, Captured};

/// The size of the read buffer.
const READ_SIZE: usize = 32 * 1024;
/// The time to wait for output after the end, in case a process of another user holds the pipe.
const GRACE: Duration = Duration::from_secs(2);
/// The time that the last chunks wait for a slow receiver.
const LAST_CHUNKS: Duration = Duration::from_millis(250);
/// Sent in place of the output beyond the budget.
const MARKER: &[u8] = "\n… more output, not shown while the command runs …\n".as_bytes();

/// The limits of one command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    pub timeout: Option<Duration>,
    /// The number of bytes kept of each stream: half from the start, half from the end.
    pub kept_bytes: usize,
    /// The total number of bytes sent as chunks. A marker follows, and the rest is only counted.
    pub streamed_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { timeout: None, kept_bytes: 256 * 1024, streamed_bytes: 1024 * 1024 }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    Stdout,
    Stderr,
}

/// A chunk of output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    pub stream: Stream,
    /// The bytes, not necessarily whole characters.
    pub bytes: Vec<u8>,
}

#[derive(Debug, Clone)]
pub struct Finished {
    pub exit: Exit,
    /// Whether it was killed because its time was up.
    pub timed_out: bool,
    pub duration: Duration,
    pub stdout: Captured,
    pub stderr: Captured,
    /// Both streams, in order of arrival.
    pub aggregated: Captured,
}

/// Runs a command to its end. Dropping the future kills all of its processes.
///
/// Its placeholders may be removed a moment later; see [`cleanup_done`](crate::cleanup_done).
///
/// Terminal output counts as stdout. With [`crate::Stdio::Inherit`] there is nothing to keep; stdin is empty.
pub async fn run(launch: Launch, limits: Limits, chunks: mpsc::Sender<Chunk>) -> Result<Finished, SpawnError> {
    let started = Instant::now();
    let mut running = spawn(launch)?;
    let mut output = Collected::new(limits, chunks);
    let (timed_out, exit) = drive(&mut running, limits.timeout.map(|limit| started + limit), &mut output).await;
    if let Some(reason) = why_ended(&running) {
        output.take(Stream::Stderr, reason.as_bytes());
    }
    clean_up_aside(running);
    output.sender.finish().await;
    Ok(Finished {
        exit,
        timed_out,
        duration: started.elapsed(),
        stdout: output.stdout.finish(),
        stderr: output.stderr.finish(),
        aggregated: output.aggregated.finish(),
    })
}

/// The reason why a command was killed without a request, on separate lines; empty if it ended by itself.
#[must_use]
pub fn why_ended(running: &Running) -> Option<String> {
    running.exceeded_memory().map(memory_text)
}

fn memory_text(limit: u64) -> String {
    let amount = match limit {
        _ if limit.is_multiple_of(1 << 30) => format!("{} GiB", limit >> 30),
        _ if limit.is_multiple_of(1 << 20) => format!("{} MiB", limit >> 20),
        _ => format!("{limit} bytes"),
    };
    format!("\nThe command was ended: it used more than the {amount} of memory that `limits.memory` allows.\n")
}

/// Reads both streams until the command and the streams have ended.
async fn drive(running: &mut Running, deadline: Option<Instant>, output: &mut Collected) -> (bool, Exit) {
    // Nothing will be typed, so the pipe is closed.
    running.take_stdin();
    let out: Option<Box<dyn AsyncRead + Send + Unpin>> = match running.take_pty() {
        Some(pty) => Some(Box::new(pty)),
        None => running.take_stdout().map(|pipe| Box::new(pipe) as _),
    };
    let (mut out, mut err) = (Source::new(out), Source::new(running.take_stderr()));
    let (mut timed_out, mut exit, mut until) = (false, None, deadline);
    while exit.is_none() || out.is_open() || err.is_open() {
        let had_ended = exit.is_some();
        let step = async {
            tokio::select! {
                bytes = out.read(), if out.is_open() => output.take(Stream::Stdout, bytes),
                bytes = err.read(), if err.is_open() => output.take(Stream::Stderr, bytes),
                status = running.ended(), if exit.is_none() => exit = Some(status),
            }
        };
        match (before(until, step).await, exit) {
            (true, Some(_)) if !had_ended => until = Some(Instant::now() + GRACE),
            (true, _) => {}
            (false, Some(_)) => break,
            (false, None) => {
                timed_out = true;
                running.kill();
                until = None;
            }
        }
    }
    (timed_out, exit.unwrap_or(Exit::Signal(9)))
}

/// Whether `step` finished in time.
async fn before(until: Option<Instant>, step: impl Future<Output = ()>) -> bool {
    let Some(until) = until else {
        step.await;
        return true;
    };
    timeout_at(until, step).await.is_ok()
}

/// A buffered stream.
struct Source<R> {
    reader: Option<R>,
    buffer: Box<[u8]>,
}

impl<R: AsyncRead + Unpin> Source<R> {
    fn new(reader: Option<R>) -> Self {
        let size = if reader.is_some() { READ_SIZE } else { 0 };
        Self { reader, buffer: vec![0; size].into() }
    }

    fn is_open(&self) -> bool {
        self.reader.is_some()
    }

    /// The next chunk; empty at the end.
    async fn read(&mut self) -> &[u8] {
        let Some(reader) = &mut self.reader else { return &[] };
        let length = reader.read(&mut self.buffer).await.unwrap_or(0);
        if length == 0 {
            self.reader = None;
        }
        self.buffer.get(..length).unwrap_or_default()
    }
}

struct Collected {
    stdout: BoundedBuffer,
    stderr: BoundedBuffer,
    aggregated: BoundedBuffer,
    sender: Sender,
}

impl Collected {
    fn new(limits: Limits, chunks: mpsc::Sender<Chunk>) -> Self {
        let keeper = || BoundedBuffer::new(limits.kept_bytes);
        let sender = Sender { chunks, left: limits.streamed_bytes, marked: false, waiting: VecDeque::new() };
        Self { stdout: keeper(), stderr: keeper(), aggregated: keeper(), sender }
    }

    fn take(&mut self, stream: Stream, bytes: &[u8]) {
        match stream {
            Stream::Stdout => self.stdout.push(bytes),
            Stream::Stderr => self.stderr.push(bytes),
        }
        self.aggregated.push(bytes);
        self.sender.push(stream, bytes);
    }
}

/// Forwards chunks without waiting. Chunks that the receiver has no room for are queued here, within the budget.
struct Sender {
    chunks: mpsc::Sender<Chunk>,
    left: usize,
    marked: bool,
    waiting: VecDeque<Chunk>,
}

impl Sender {
    fn push(&mut self, stream: Stream, bytes: &[u8]) {
        let (shown, rest) = bytes.split_at(bytes.len().min(self.left));
        self.left -= shown.len();
        self.queue(stream, shown);
        if !rest.is_empty() && !self.marked {
            self.marked = true;
            self.queue(stream, MARKER);
        }
        self.pass_on();
    }

    fn queue(&mut self, stream: Stream, bytes: &[u8]) {
        match self.waiting.back_mut() {
            Some(last) if last.stream == stream => last.bytes.extend_from_slice(bytes),
            _ if bytes.is_empty() => {}
            _ => self.waiting.push_back(Chunk { stream, bytes: bytes.to_vec() }),
        }
    }

    fn pass_on(&mut self) {
        while let Some(chunk) = self.waiting.pop_front() {
            match self.chunks.try_send(chunk) {
                Ok(()) => {}
                Err(TrySendError::Full(chunk)) => return self.waiting.push_front(chunk),
                Err(TrySendError::Closed(_)) => {
                    self.left = 0;
                    self.marked = true;
                    self.waiting.clear();
                }
            }
        }
    }

    /// Gives a slow receiver a moment for the queued chunks.
    async fn finish(&mut self) {
        let _ = timeout(LAST_CHUNKS, async {
            while let Some(chunk) = self.waiting.pop_front() {
                if self.chunks.send(chunk).await.is_err() {
                    return;
                }
            }
        })
        .await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_reported_in_the_largest_unit_that_fits() {
        for (limit, amount) in [(4 << 30, "4 GiB"), (1536 << 20, "1536 MiB"), ((64 << 20) + 1, "67108865 bytes")] {
            let text = memory_text(limit);
            assert!(text.contains(&format!("more than the {amount} of memory that `limits.memory` allows")), "{text}");
        }
    }
}
