//! The write path of a thread's log: first to disk, then to its feeds.
//!
//! Invariants: an event is published only after its rollout write has returned. If the write fails, the results of a
//! turn are not published, and the turn fails; events outside of turns are published after the failure was announced.
//! In both cases their lines are written before any others once the file accepts them, so the file never has a gap, and
//! whatever was not published before is published then, so no subscriber has one either.

use std::sync::Arc;

use codex_log::encode::{encode, encode_mark};
use codex_log::replay_buffer::ReplayBuffer;
use codex_log::store::{Commit, LogWriter, Pending, StoreError, StoreErrorKind};
use codex_log::{Body, Class, Event, Item, LogId, MOST_WITHOUT_LINE, Outcome, Seq, TurnId};
use codex_thread::{Feed, FeedWriter, feed};
use codex_wire::ids::ThreadId;

use codex_tools::full_message;

use crate::drafting::Drafting;
use crate::lent_writer::LentWriter;

/// Numbers, saves and publishes the events of one thread.
pub(crate) struct Journal {
    thread: ThreadId,
    log: LogId,
    writer: Box<dyn LogWriter>,
    /// Completes when another process may take the thread over.
    revoked: Option<Pending<String>>,
    /// Completes when another process asks for the thread.
    wanted: Option<Pending<()>>,
    /// Whether the thread was given away, so that another process may write it.
    is_lent: bool,
    /// Events that wait for the write of their lines. They are numbered when they are published; until then, an event
    /// with lines has the offset at which its lines would end.
    waiting: Vec<Event>,
    /// The distance from that offset to the actual end of the lines, because another process has written too.
    shift: u64,
    /// The reason why the lines of the waiting events cannot be written.
    failed: Option<StoreError>,
    /// Events whose write has failed, oldest first. Their lines are written before all others.
    unsaved: Vec<Unsaved>,
    /// Whether the next write contains the lines of the unsaved events.
    is_making_up: bool,
    /// Events that are in the file, but may not survive a crash of the machine. They are published once they do.
    held: Vec<Event>,
    /// Whether it was announced that the thread is not being saved, which happens once and not for every event.
    is_announced: bool,
    /// The drafts of open items.
    drafting: Drafting,
    /// The latest events, for subscribers that reconnect.
    recent: ReplayBuffer,
    feeds: Vec<FeedWriter>,
}

/// An event whose write has failed.
struct Unsaved {
    event: Event,
    /// Whether it was published all the same.
    is_told: bool,
}

impl Journal {
    /// Opens the log of a thread.
    pub(crate) fn new(thread: ThreadId, writer: Box<dyn LogWriter>) -> Self {
        let incarnation = if writer.is_kept() { thread } else { ThreadId::fresh() };
        let recent = ReplayBuffer::at(writer.position());
        let (revoked, wanted) = (writer.revoked(), writer.wanted());
        Self {
            thread,
            log: LogId::new(incarnation, ThreadId::fresh()),
            writer,
            revoked,
            wanted,
            is_lent: false,
            waiting: Vec::new(),
            shift: 0,
            failed: None,
            unsaved: Vec::new(),
            is_making_up: false,
            held: Vec::new(),
            is_announced: false,
            drafting: Drafting::default(),
            recent,
            feeds: Vec::new(),
        }
    }

    /// Closes the log, and returns the events that are kept in memory.
    pub(crate) fn delete(self) {
        self.writer.discard();
    }

    /// Keeps this many bytes of the events that were published last.
    pub(crate) fn keep_recent(&mut self, bytes: usize) {
        self.recent.keep(bytes);
    }

    /// Whether another process can take the thread over while it is loaded.
    pub(crate) fn is_revocable(&self) -> bool {
        self.revoked.is_some()
    }

    /// Waits until another process may take the thread over, or asks for it if it may be given away. Cancelling it loses
    /// nothing.
    pub(crate) async fn claimed(&mut self, is_lendable: bool) -> Alarm {
        tokio::select! {
            biased;
            reason = revoked(&mut self.revoked) => Alarm::Revoked(reason),
            () = wanted(&mut self.wanted), if is_lendable => Alarm::Wanted,
        }
    }

    /// Whether another process can ask for the thread.
    pub(crate) fn can_be_wanted(&self) -> bool {
        self.wanted.is_some()
    }

    /// Gives the log away. Every event is in it, and none with lines can be added until it is taken up again.
    pub(crate) fn lend(&mut self) {
        self.writer = Box::new(LentWriter::at(self.writer.position()));
        (self.revoked, self.wanted, self.is_lent) = (None, None, true);
    }

    /// Whether it was given away.
    pub(crate) fn is_lent(&self) -> bool {
        self.is_lent
    }

    /// Continues the log as it was opened again. The feeds have not seen the lines of the other process, so clients
    /// that reconnect read them.
    pub(crate) fn take_up(&mut self, opened: Self, recent_bytes: usize) {
        let Self { writer, log, revoked, wanted, recent, .. } = opened;
        (self.writer, self.log, self.revoked, self.wanted) = (writer, log, revoked, wanted);
        self.recent = std::mem::take(&mut self.recent).after_reopening(recent);
        self.is_lent = false;
        self.keep_recent(recent_bytes);
    }

    /// Whether the thread is not saved.
    pub(crate) fn is_in_memory(&self) -> bool {
        !self.writer.is_kept()
    }

    /// Whether every event is in the file.
    pub(crate) fn is_saved(&self) -> bool {
        self.unsaved.is_empty()
    }

    /// The end of the last line, including those that are not written yet.
    pub(crate) fn position(&self) -> u64 {
        self.writer.position()
    }

    /// The id of this log.
    pub(crate) fn log(&self) -> LogId {
        self.log
    }

    /// The number of the event that was published last.
    pub(crate) fn last(&self) -> Seq {
        self.recent.last()
    }

    /// The position of the log when it was loaded, if every event since then is in memory.
    pub(crate) fn whole_since(&self) -> Option<Seq> {
        self.recent.whole_since()
    }

    /// The number up to which a subscriber that stopped earlier has to read the lines, to miss nothing of what follows;
    /// `None` if the lines do not record everything.
    pub(crate) fn lines_upto(&self, has_turn: bool) -> Option<Seq> {
        let is_whole = !self.is_in_memory() && self.is_saved();
        let quiet = || (!has_turn).then(|| self.last());
        is_whole.then(|| self.recent.whole_since().or_else(quiet))?
    }

    /// The items that were open after an event, or after the latest one.
    pub(crate) fn open_items(&self, after: Option<Seq>) -> Vec<Arc<Event>> {
        self.recent.open_items(after)
    }

    /// Subscribes a client that has seen everything up to an event; `None` if later events are no longer in memory.
    pub(crate) fn subscribe_after(&mut self, seq: Seq) -> Option<Feed> {
        let (writer, reader) = feed();
        for event in self.recent.after(seq)? {
            writer.push(event);
        }
        self.add(writer);
        Some(reader)
    }

    /// Subscribes a client from here on.
    pub(crate) fn subscribe(&mut self) -> Feed {
        let (writer, reader) = feed();
        self.add(writer);
        reader
    }

    /// Adds a feed, and removes closed ones: in a quiet thread nothing else would.
    fn add(&mut self, writer: FeedWriter) {
        self.feeds.retain(FeedWriter::is_read);
        self.feeds.push(writer);
    }

    /// The number of subscribers.
    pub(crate) fn listeners(&mut self) -> usize {
        self.feeds.retain(FeedWriter::is_read);
        self.feeds.len()
    }

    /// Adds an event, and returns it. It is neither saved nor published before [`Journal::publish`].
    pub(crate) fn append(&mut self, turn: Option<TurnId>, body: Body) -> &Event {
        if self.waiting.is_empty() {
            self.append_unsaved();
        }
        let mut event = self.event(turn, body);
        let before = self.writer.position();
        self.append_lines(&event);
        if self.writer.position() == before {
            self.append_mark(event.at_ms);
        }
        if self.writer.position() != before {
            event.seq = Seq::at(self.writer.position());
        }
        self.drafting.take(&event, self.writer.position());
        self.waiting.push(event);
        &self.waiting[self.waiting.len() - 1]
    }

    /// The published part of open messages and reasoning.
    pub(crate) fn broken_off(&self) -> Vec<Item> {
        self.drafting.broken_off()
    }

    /// Whether there is something that [`Journal::alarm`] waits for.
    pub(crate) fn has_alarm(&self) -> bool {
        self.has_draft() || self.is_revocable()
    }

    /// Waits until it is time to write drafts, or another process may take the thread over. Cancelling it loses nothing.
    pub(crate) async fn alarm(&mut self) -> Alarm {
        let has_draft = self.has_draft();
        tokio::select! {
            biased;
            reason = revoked(&mut self.revoked) => Alarm::Revoked(reason),
            () = self.drafting.due(), if has_draft => Alarm::DraftDue,
        }
    }

    /// Whether drafts should be written before their items are complete.
    fn has_draft(&self) -> bool {
        self.drafting.has_unsaved() && self.writer.is_kept()
    }

    /// Writes the drafts.
    pub(crate) fn write_draft(&mut self) {
        self.drafting.write(&mut *self.writer);
    }

    /// Raises the number when too many consecutive events have no lines.
    fn append_mark(&mut self, at_ms: i64) {
        let count = self.recent.last().count() + self.waiting.len() as u64;
        if count < MOST_WITHOUT_LINE || self.failed.is_some() {
            return;
        }
        self.failed = encode_mark(at_ms, &mut *self.writer).err();
    }

    fn append_unsaved(&mut self) {
        for mut unsaved in std::mem::take(&mut self.unsaved) {
            self.append_lines(&unsaved.event);
            unsaved.event.seq = Seq::at(self.writer.position());
            self.unsaved.push(unsaved);
        }
        self.is_making_up = !self.unsaved.is_empty();
    }

    fn append_lines(&mut self, event: &Event) {
        if self.failed.is_some() {
            return;
        }
        match encode(event, &mut *self.writer) {
            Ok(()) => {}
            // Another attempt would not help.
            Err(error) if error.kind() == StoreErrorKind::Unencodable => self.announce(&error),
            Err(error) => self.failed = Some(error),
        }
    }

    /// Writes the appended events, then publishes them.
    ///
    /// # Errors
    /// If they could not be written. The results of the turn are not published then.
    pub(crate) async fn publish(&mut self) -> Result<(), StoreError> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        let written = self.write().await;
        let is_in_file = written.is_ok();
        self.settle(written, is_in_file)
    }

    /// Like [`Journal::publish`], but the published events also survive a crash of the machine.
    ///
    /// # Errors
    /// The same as for [`Journal::publish`].
    pub(crate) async fn publish_durably(&mut self) -> Result<(), StoreError> {
        let (saved, is_in_file) = match self.commit(true) {
            Commit::Done(written) => {
                let is_in_file = written.is_ok();
                (written, is_in_file)
            }
            // The task is cut off only when the program ends, and then nothing waits for the result.
            Commit::Sync(sync) => (tokio::task::spawn_blocking(sync).await.unwrap_or(Ok(())), true),
            Commit::Later(written) => {
                let written = written.await;
                let is_in_file = written.is_ok();
                (written, is_in_file)
            }
        };
        self.settle(saved, is_in_file)
    }

    /// Publishes pending events and saves unsaved ones, for the last time.
    pub(crate) async fn close(&mut self) {
        let published = self.publish().await;
        if published.is_ok() && !self.unsaved.is_empty() {
            self.append_unsaved();
            let written = self.write().await;
            let is_in_file = written.is_ok();
            // Nobody is left to announce a failure to.
            let _ = self.settle(written, is_in_file);
        }
    }

    /// Removes the end of a turn that was not published, because it could not be saved.
    pub(crate) fn withdraw_end(&mut self) {
        self.unsaved.retain(|unsaved| !matches!(unsaved.event.body, Body::TurnEnded(_)));
        self.held.retain(|event| !matches!(event.body, Body::TurnEnded(_)));
    }

    async fn write(&mut self) -> Result<(), StoreError> {
        match self.commit(false) {
            Commit::Done(written) => written,
            // The write succeeded; durability was not requested.
            Commit::Sync(_) => Ok(()),
            Commit::Later(written) => written.await,
        }
    }

    fn commit(&mut self, durably: bool) -> Commit {
        if let Some(error) = self.failed.take() {
            return Commit::Done(Err(error));
        }
        let expected = self.writer.position();
        let commit = self.writer.commit(durably);
        self.shift = self.writer.position().wrapping_sub(expected);
        if let Some(message) = self.writer.take_warning() {
            // The feeds have not seen the lines of the other process.
            self.log = LogId::new(ThreadId::fresh(), ThreadId::fresh());
            let event = self.event(None, Body::Warning { message });
            self.waiting.push(event);
        }
        commit
    }

    /// Publishes the waiting events. If they were not saved, the results of the turn are left out.
    fn settle(&mut self, saved: Result<(), StoreError>, is_in_file: bool) -> Result<(), StoreError> {
        // Their lines come first.
        if std::mem::take(&mut self.is_making_up) && is_in_file {
            let late = std::mem::take(&mut self.unsaved).into_iter().filter(|unsaved| !unsaved.is_told);
            self.waiting.splice(..0, late.map(|unsaved| unsaved.event));
        }
        match &saved {
            Ok(()) => {
                self.is_announced = false;
                self.waiting.splice(..0, std::mem::take(&mut self.held));
            }
            Err(error) => {
                if self.waiting.iter().any(is_live_only) {
                    self.announce(error);
                }
                for event in std::mem::take(&mut self.waiting) {
                    let is_told = event.turn.is_none() || !is_done(&event.body);
                    if is_told {
                        self.waiting.push(event.clone());
                    }
                    if !is_in_file && event.body.class() == Class::Kept {
                        self.unsaved.push(Unsaved { event, is_told });
                    } else if !is_told {
                        self.held.push(event);
                    }
                }
            }
        }
        // An idle thread does not keep their buffers.
        for mut event in std::mem::take(&mut self.waiting) {
            event.seq = self.number(&event, saved.is_ok());
            let event = Arc::new(event);
            self.recent.push(&event);
            // With one subscriber there is nothing to share.
            let encodings = (self.feeds.len() > 1).then(Arc::default);
            self.feeds.retain(|feed| feed.push_shared(&event, encodings.as_ref()));
        }
        if is_in_file {
            self.drafting.settle(&mut *self.writer);
        }
        saved
    }

    /// The number of an event that is published now. While others have to wait, it is no position of a line behind
    /// theirs, so a subscriber that continues from there elsewhere receives them too.
    fn number(&self, event: &Event, is_saved: bool) -> Seq {
        let next = self.recent.last().next();
        if event.seq == Seq::default() || !is_saved {
            return next;
        }
        next.max(Seq::at(event.seq.position().wrapping_add(self.shift)))
    }

    fn announce(&mut self, error: &StoreError) {
        if !std::mem::replace(&mut self.is_announced, true) {
            let event = self.event(None, Body::Warning { message: not_saved(error) });
            self.waiting.insert(0, event);
        }
    }

    fn event(&self, turn: Option<TurnId>, body: Body) -> Event {
        Event { thread: self.thread, seq: Seq::default(), at_ms: now_ms(), turn, body }
    }
}

/// A reason to interrupt the wait for other work.
pub(crate) enum Alarm {
    /// Drafts should be written before their items are complete.
    DraftDue,
    /// Another process may take the thread over, and why.
    Revoked(String),
    /// Another process asks for the thread.
    Wanted,
}

async fn wanted(by_others: &mut Option<Pending<()>>) {
    match by_others {
        Some(waiting) => waiting.await,
        None => std::future::pending().await,
    }
    *by_others = None;
}

async fn revoked(by_others: &mut Option<Pending<String>>) -> String {
    match by_others {
        Some(waiting) => {
            let reason = waiting.await;
            *by_others = None;
            reason
        }
        None => std::future::pending().await,
    }
}

/// Whether an event reports work of a turn, which may only be published if it was saved. The start and the failure of a
/// turn are published anyway.
fn is_done(body: &Body) -> bool {
    let is_told = matches!(body, Body::TurnStarted { .. } | Body::TurnEnded(Outcome::Failed(_) | Outcome::Aborted(_)));
    body.class() == Class::Kept && !is_told
}

/// Whether a failed write of this event must be announced, because no turn fails for it.
fn is_live_only(event: &Event) -> bool {
    let is_outside = event.turn.is_none() || matches!(event.body, Body::TurnEnded(Outcome::Aborted(_)));
    is_outside && event.body.class() == Class::Kept
}

/// A clock before 1970 gives 0, which every reader accepts.
pub(crate) fn now_ms() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

fn not_saved(error: &StoreError) -> String {
    format!("this thread is not being saved: {}", full_message(error))
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::atomic::AtomicUsize;
    use std::sync::atomic::Ordering::Relaxed;

    use codex_log::Failure;
    use codex_log::store::{Payload, UnsavedWriter};
    use codex_wire::error_info::CodexErrorInfo;

    use super::*;

    /// A writer whose commits fail as often as it is told.
    #[derive(Debug, Default)]
    struct FailingWriter {
        position: u64,
        waiting: u64,
        failures: Arc<AtomicUsize>,
    }

    impl LogWriter for FailingWriter {
        fn append(&mut self, _: i64, _: &str, payload: Payload<'_>) -> Result<(), StoreError> {
            let mut line = Vec::new();
            payload(&mut line).expect("it is JSON");
            self.waiting += line.len() as u64 + 1;
            Ok(())
        }

        fn position(&self) -> u64 {
            self.position + self.waiting
        }

        fn commit(&mut self, _: bool) -> Commit {
            let bytes = std::mem::take(&mut self.waiting);
            let fails = self.failures.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_ok();
            self.position += if fails { 0 } else { bytes };
            let written =
                if fails { Err(StoreError::new(StoreErrorKind::Unwritable, io::Error::other("away"))) } else { Ok(()) };
            Commit::Later(Box::pin(async { written }))
        }

        fn discard(self: Box<Self>) {}
    }

    /// The events that a subscriber gets, each with its position in the log.
    fn told(feed: &mut Feed) -> Vec<(u64, &'static str)> {
        let kind = |body: &Body| match body {
            Body::TurnStarted { .. } => "started",
            Body::TurnEnded(_) => "ended",
            Body::GoalCleared => "cleared",
            _ => "other",
        };
        std::iter::from_fn(|| feed.try_next()).map(|event| (event.seq.position(), kind(&event.body))).collect()
    }

    #[tokio::test]
    async fn what_is_saved_late_is_published_late_at_its_place() {
        let failures = Arc::new(AtomicUsize::new(0));
        let writer = FailingWriter { failures: Arc::clone(&failures), ..FailingWriter::default() };
        let mut journal = Journal::new(ThreadId::fresh(), Box::new(writer));
        journal.keep_recent(100_000);
        let mut feed = journal.subscribe();
        let turn = Some(TurnId::new("1"));
        journal.append(turn.clone(), Body::TurnStarted { context_window: None });
        journal.publish().await.expect("it is written");
        let begun = journal.last();
        assert_eq!(told(&mut feed), [(begun.position(), "started")]);

        // The database is away for longer than the turn waits.
        failures.store(2, Relaxed);
        journal.append(turn.clone(), Body::GoalCleared);
        journal.publish().await.expect_err("it is not written");
        assert_eq!(told(&mut feed), [], "nothing is told that is not saved");
        let failure = Failure { message: String::new(), hint: None, info: CodexErrorInfo::Other };
        journal.append(turn, Body::TurnEnded(Outcome::Failed(failure)));
        journal.publish().await.expect_err("it is not written");
        let failed = journal.last();
        assert_eq!(
            told(&mut feed),
            [(begun.position(), "ended")],
            "the failure is told, behind nothing that is missing"
        );

        journal.append(None, Body::Warning { message: String::new() });
        journal.publish().await.expect("it is written");
        let late = told(&mut feed);
        assert_eq!(late.iter().map(|(_, kind)| *kind).collect::<Vec<_>>(), ["cleared", "other"]);
        assert!(late[0].0 > begun.position(), "it has the place of its line");
        let mut again = journal.subscribe_after(failed).expect("it is in memory");
        assert_eq!(told(&mut again), late, "a subscriber that comes back gets the same");
        assert!(journal.is_saved());
    }

    #[tokio::test]
    async fn closed_feeds_are_removed_without_an_event() {
        let mut journal = Journal::new(ThreadId::fresh(), Box::new(UnsavedWriter::default()));
        journal.keep_recent(1000);
        journal.append(None, Body::Warning { message: String::new() });
        journal.publish().await.expect("it lives in memory");
        let stayer = journal.subscribe();
        for _ in 0..1000 {
            drop(journal.subscribe());
            drop(journal.subscribe_after(Seq::default()).expect("it is known"));
        }
        assert!(journal.feeds.len() <= 2, "{} feeds", journal.feeds.len());
        drop(stayer);
        assert_eq!(journal.listeners(), 0);
    }

    #[tokio::test]
    async fn events_without_lines_are_counted_until_a_mark_has_to_come() {
        let mut journal = Journal::new(ThreadId::fresh(), Box::new(UnsavedWriter::default()));
        let mut last = journal.last();
        for _ in 0..=MOST_WITHOUT_LINE {
            journal.append(None, Body::Warning { message: String::new() });
            journal.publish().await.expect("nothing is kept");
            assert!(journal.last() > last, "numbers grow");
            last = journal.last();
        }
        assert!(last.position() > 0 && last.count() == 0, "a line has come: {last:?}");
        journal.append(None, Body::Warning { message: String::new() });
        journal.publish().await.expect("nothing is kept");
        assert_eq!(journal.last(), last.next());
    }

    #[tokio::test]
    async fn an_event_with_lines_has_the_number_of_its_place() {
        let mut journal = Journal::new(ThreadId::fresh(), Box::new(UnsavedWriter::default()));
        journal.append(None, Body::TurnStarted { context_window: None });
        journal.append(None, Body::Warning { message: String::new() });
        journal.append(None, Body::GoalCleared);
        let mut feed = journal.subscribe();
        journal.publish().await.expect("nothing is kept");
        let seqs: Vec<_> = std::iter::from_fn(|| feed.try_next()).map(|event| event.seq).collect();
        assert_eq!(seqs[1], seqs[0].next());
        assert_eq!(seqs[2], Seq::at(journal.writer.position()));
    }
}
