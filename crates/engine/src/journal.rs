//! The thread's log on its way out: first to disk, then to whoever reads along.
//!
//! Invariant: an event is published only after its rollout write has returned, or after the loss was announced.

use std::path::PathBuf;
use std::sync::Arc;

use codex_store::{RolloutError, RolloutFile};
use codex_wire::ids::ThreadId;

use crate::feed::{Feed, FeedWriter, feed};
use crate::log::{Body, Event, TurnId};
use crate::recent::Recent;
use crate::rollout;

/// Numbers, saves and publishes the events of one thread.
pub(crate) struct Journal {
    thread: ThreadId,
    /// The name of this log: numbers begin anew whenever a thread is loaded.
    log: ThreadId,
    next: u64,
    file: Option<RolloutFile>,
    /// Whether the last attempt to save failed. It is announced once, not at every event.
    unsaved: bool,
    /// Events that wait for the write of their lines.
    waiting: Vec<Arc<Event>>,
    /// What was published last, for readers that come back.
    recent: Recent,
    feeds: Vec<FeedWriter>,
}

impl Journal {
    /// Opens the log of a new thread. When its file cannot be made, the thread lives in memory, and the warning that
    /// is returned says so; it is for the caller to append, after the event that starts the thread.
    pub(crate) fn create(thread: ThreadId, path: PathBuf) -> (Self, Option<String>) {
        let (file, warning) = match RolloutFile::create(path) {
            Ok(file) => (Some(file), None),
            Err(error) => (None, Some(not_saved(&error))),
        };
        let unsaved = file.is_none();
        (Self::of(thread, file, unsaved), warning)
    }

    /// Opens the log of a thread that goes on. Without its file it lives in memory, and the warning says why.
    pub(crate) fn resume(
        thread: ThreadId,
        file: Option<RolloutFile>,
        unsaved: Option<RolloutError>,
    ) -> (Self, Option<String>) {
        let is_unsaved = file.is_none();
        (Self::of(thread, file, is_unsaved), unsaved.as_ref().map(not_saved))
    }

    fn of(thread: ThreadId, file: Option<RolloutFile>, unsaved: bool) -> Self {
        let (waiting, recent, feeds) = (Vec::new(), Recent::default(), Vec::new());
        Self { thread, log: ThreadId::fresh(), next: 0, file, unsaved, waiting, recent, feeds }
    }

    /// Keeps so many bytes of what was published last.
    pub(crate) fn keep_recent(&mut self, bytes: usize) {
        self.recent.keep(bytes);
    }

    /// Whether the thread has no file.
    pub(crate) fn is_in_memory(&self) -> bool {
        self.file.is_none()
    }

    /// Whether everything that was said is in the file.
    pub(crate) fn is_saved(&self) -> bool {
        !self.unsaved
    }

    /// The name of this log.
    pub(crate) fn log(&self) -> ThreadId {
        self.log
    }

    /// The number of the event that was published last.
    pub(crate) fn last(&self) -> Option<u64> {
        self.recent.last()
    }

    /// What was open after an event, or after the one that was published last.
    pub(crate) fn standing(&self, after: Option<u64>) -> Vec<Arc<Event>> {
        self.recent.standing(after)
    }

    /// Lets someone read along who has seen everything up to an event; none if what came since is forgotten.
    pub(crate) fn subscribe_after(&mut self, seq: u64) -> Option<Feed> {
        let (writer, reader) = feed();
        for event in self.recent.after(seq)? {
            writer.push(event);
        }
        self.add(writer);
        Some(reader)
    }

    /// Lets someone read along from here on.
    pub(crate) fn subscribe(&mut self) -> Feed {
        let (writer, reader) = feed();
        self.add(writer);
        reader
    }

    /// Takes a reader in, and lets go of those who have left: in a quiet thread nothing else would.
    fn add(&mut self, writer: FeedWriter) {
        self.feeds.retain(FeedWriter::is_read);
        self.feeds.push(writer);
    }

    /// How many read along.
    pub(crate) fn listeners(&mut self) -> usize {
        self.feeds.retain(FeedWriter::is_read);
        self.feeds.len()
    }

    /// Adds an event. It is neither saved nor published before [`Journal::publish`].
    pub(crate) fn append(&mut self, turn: Option<TurnId>, body: Body) {
        let event = self.number(turn, body);
        let saved = self.file.as_mut().map_or(Ok(()), |file| rollout::append(&event, file));
        self.waiting.push(event);
        if let Err(error) = saved {
            self.lost(&error);
        }
    }

    /// Writes what was appended, then lets the readers have it.
    pub(crate) fn publish(&mut self) {
        let written = self.file.as_mut().map_or(Ok(()), RolloutFile::flush);
        self.settle(written);
    }

    /// Like [`Journal::publish`], but what is published then survives a crash of the machine too.
    pub(crate) async fn publish_durably(&mut self) {
        // At the end of a turn that could not be saved the client hears it again, in case it came too late before.
        self.unsaved = self.file.is_none();
        let written = match &mut self.file {
            Some(file) => match file.flush() {
                // The task is cut off only when the program ends, and then nobody waits for the word.
                Ok(()) => tokio::task::spawn_blocking(file.sync()).await.unwrap_or(Ok(())),
                Err(error) => Err(error),
            },
            None => Ok(()),
        };
        self.settle(written);
    }

    /// Notes whether the write went well, then lets the readers have what waits.
    fn settle(&mut self, written: Result<(), RolloutError>) {
        match written {
            Ok(()) => self.unsaved = self.file.is_none(),
            Err(error) => self.lost(&error),
        }
        for event in self.waiting.drain(..) {
            self.recent.push(&event);
            self.feeds.retain(|feed| feed.push(&event));
        }
    }

    fn lost(&mut self, error: &RolloutError) {
        if !std::mem::replace(&mut self.unsaved, true) {
            let event = self.number(None, Body::Warning { message: not_saved(error) });
            self.waiting.push(event);
        }
    }

    fn number(&mut self, turn: Option<TurnId>, body: Body) -> Arc<Event> {
        let event = Arc::new(Event { thread: self.thread, seq: self.next, at_ms: now_ms(), turn, body });
        self.next += 1;
        event
    }
}

/// A clock before 1970 gives 0, which no reader trips over.
pub(crate) fn now_ms() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

fn not_saved(error: &RolloutError) -> String {
    let cause = std::error::Error::source(error).map(|cause| format!(": {cause}")).unwrap_or_default();
    format!("this thread is not being saved: {error}{cause}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers_who_have_left_are_let_go_though_nothing_is_said() {
        let mut journal = Journal::of(ThreadId::fresh(), None, true);
        journal.keep_recent(1000);
        journal.append(None, Body::Warning { message: String::new() });
        journal.publish();
        let stayer = journal.subscribe();
        for _ in 0..1000 {
            drop(journal.subscribe());
            drop(journal.subscribe_after(0).expect("it is known"));
        }
        assert!(journal.feeds.len() <= 2, "{} feeds", journal.feeds.len());
        drop(stayer);
        assert_eq!(journal.listeners(), 0);
    }
}
