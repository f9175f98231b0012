//! The writer of one thread.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use chrono::{DateTime, Utc};
use codex_log::line::{Head, Line};
use codex_log::store::{
    Commit, LineError, LogWriter, Payload, Pending, StoreError, StoreErrorKind, store_place, write_numbered_line,
};
use codex_store::{Mark, SummaryReader};
use codex_wire::ids::ThreadId;
use tokio::time::Instant;
use uuid::Uuid;

use crate::append::{Holding, Lines};
use crate::errors::PostgresError;
use crate::lease::Revocation;
use crate::store::Parts;
use crate::threads;

/// Gives a thread back.
const RELEASE: &str = "UPDATE @.threads SET owner = NULL WHERE id = $1 AND owner = $2 AND epoch = $3";

/// The time limit for giving a thread back. After that, its lease expires.
const RELEASE_TIME: Duration = Duration::from_secs(5);

/// Appends to a thread of which this server is the owner.
#[derive(Debug)]
pub(crate) struct Writer {
    parts: Parts,
    thread: ThreadId,
    state: Arc<Mutex<State>>,
    revocation: Arc<Revocation>,
    /// The lines that wait for a commit.
    waiting: Lines,
    waiting_bytes: u64,
    /// The reader of the summary, until later lines cannot change it.
    summary: Option<SummaryReader>,
    /// The number of lines that were appended, for the summary.
    lines: u64,
}

#[derive(Debug)]
struct State {
    holding: Holding,
    /// The end of the log, including lines that are being written.
    position: u64,
    /// The number of the last line, if lines have one.
    ordinal: Option<u64>,
}

impl Writer {
    pub(crate) fn new(
        parts: Parts,
        holding: Holding,
        revocation: Arc<Revocation>,
        summary: Option<SummaryReader>,
        last_line: Option<&[u8]>,
    ) -> Self {
        let ordinal = last_line.and_then(Head::of).and_then(|head| head.ordinal);
        let (thread, position) = (holding.thread, u64::try_from(holding.end).unwrap_or_default());
        let state = Arc::new(Mutex::new(State { holding, position, ordinal }));
        let waiting = Lines::default();
        Self { parts, thread, state, revocation, waiting, waiting_bytes: 0, summary, lines: 0 }
    }

    /// Adds a line as it is.
    pub(crate) fn append_text(&mut self, line: &[u8]) {
        let end = self.position() + line.len() as u64 + 1;
        if let (Some(reader), Ok(text)) = (&mut self.summary, std::str::from_utf8(line))
            && let Ok(parsed) = Line::parse(text)
        {
            self.lines += 1;
            let range = end - line.len() as u64 - 1..end;
            let is_done = reader.line(&Line { number: self.lines, range, ..parsed });
            let began = began_at(&lock(&self.state).holding.began);
            self.waiting.summary =
                reader.summary(&store_place(self.thread), began, DateTime::<Utc>::from(codex_wire::time::now()));
            if is_done {
                self.summary = None;
            }
        }
        self.waiting.numbers.push(i64::try_from(end).unwrap_or(i64::MAX));
        self.waiting.marks.push(mark_code(Mark::of(line)));
        self.waiting.payloads.push(line.to_vec());
        self.waiting_bytes += line.len() as u64 + 1;
    }

    /// The number of bytes that wait.
    pub(crate) fn waiting_bytes(&self) -> u64 {
        self.waiting_bytes
    }

    /// Writes the waiting lines, and waits for it.
    pub(crate) fn flush(&mut self) -> Result<(), PostgresError> {
        if self.waiting.numbers.is_empty() {
            return Ok(());
        }
        let (send, database) = (self.send(), self.parts.database.clone());
        let (reply, answer) = std::sync::mpsc::sync_channel(1);
        drop(database.spawn(move |pool| async move { drop(reply.send(send(pool).await)) }));
        answer.recv().unwrap_or_else(|_| Err(database.ended()))
    }

    /// The work of a commit, on the thread of the connections.
    fn send(
        &mut self,
    ) -> impl FnOnce(
        std::rc::Rc<crate::database::Pool>,
    ) -> crate::database::LocalFuture<'static, Result<(), PostgresError>>
    + Send
    + use<> {
        let (lines, bytes) = (std::mem::take(&mut self.waiting), std::mem::take(&mut self.waiting_bytes));
        let (state, revocation) = (Arc::clone(&self.state), Arc::clone(&self.revocation));
        let patience = self.parts.database.patience();
        lock(&state).position += bytes;
        let ordinal = lines.payloads.last().and_then(|line| Head::of(line)).and_then(|head| head.ordinal);
        move |pool| {
            Box::pin(async move {
                let mut holding = lock(&state).holding.clone();
                let written = holding.append(&pool, &lines, &revocation, Instant::now() + patience).await;
                let mut state = lock(&state);
                state.holding = holding;
                match &written {
                    Ok(()) => state.ordinal = ordinal.or(state.ordinal),
                    Err(_) => state.position -= bytes,
                }
                written
            })
        }
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The code of a mark in the table: positive for lines that matter when a thread is resumed.
pub(crate) fn mark_code(mark: Mark) -> i16 {
    match mark {
        Mark::Other => 0,
        Mark::Compacted => 1,
        Mark::TurnContext => 2,
        Mark::TokenCount => 3,
        Mark::RateLimits => 4,
        Mark::UserMessage => 5,
        Mark::RolledBack => 6,
        Mark::AgentCall => 7,
    }
}

/// The moment of a start, as in file names.
pub(crate) fn began_at(began: &str) -> DateTime<Utc> {
    let parsed = chrono::NaiveDateTime::parse_from_str(began, "%Y-%m-%dT%H-%M-%S");
    parsed.map(|time| time.and_utc()).unwrap_or_default()
}

impl LogWriter for Writer {
    fn append(&mut self, at_ms: i64, kind: &str, payload: Payload<'_>) -> Result<(), StoreError> {
        let waiting = self.waiting.numbers.len() as u64;
        let ordinal = lock(&self.state).ordinal.map(|last| last + waiting + 1);
        let mut line = Vec::new();
        write_numbered_line(&mut line, at_ms, ordinal, kind, payload).map_err(|error| match error {
            LineError::Encode(source) => PostgresError::Encode { kind: kind.to_owned(), source }.into(),
            LineError::Write(source) => StoreError::new(StoreErrorKind::Unwritable, source),
        })?;
        line.pop();
        self.append_text(&line);
        Ok(())
    }

    fn position(&self) -> u64 {
        lock(&self.state).position + self.waiting_bytes
    }

    fn commit(&mut self, _durably: bool) -> Commit {
        if self.waiting.numbers.is_empty() {
            return Commit::Done(Ok(()));
        }
        let send = self.send();
        let database = self.parts.database.clone();
        Commit::Later(Box::pin(async move {
            let written = database.spawn(send).await;
            Ok(written.unwrap_or_else(|_| Err(database.ended()))?)
        }))
    }

    fn revoked(&self) -> Option<Pending<String>> {
        let revocation = Arc::clone(&self.revocation);
        Some(Box::pin(async move { revocation.revoked().await }))
    }

    fn discard(self: Box<Self>) {
        let (parts, thread) = (self.parts.clone(), self.thread);
        drop(self);
        // A leftover empty thread is better than an error about an error.
        drop(threads::delete(&parts, thread));
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.parts.lease.leave(self.thread, &self.revocation);
        let (state, thread) = (Arc::clone(&self.state), Uuid::from(self.thread));
        drop(self.parts.database.spawn(move |pool| async move {
            let (owner, epoch) = {
                let state = lock(&state);
                (state.holding.owner, state.holding.epoch)
            };
            let deadline = Instant::now() + RELEASE_TIME;
            let released = pool
                .run_until(deadline, async |connection| connection.execute(RELEASE, &[&thread, &owner, &epoch]).await);
            // Otherwise it stays with this server until it is opened here, or the lease ends.
            drop(released.await);
        }));
    }
}
