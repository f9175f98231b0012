//! The trait of those who keep threads.

use std::fmt::Debug;
use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};

use codex_wire::history::HistoryEntry;
use codex_wire::ids::ThreadId;
use codex_wire::rollout::SessionMeta;
use serde_json::Value;

use super::error::StoreError;
use super::listing::{ListQuery, Page, SearchResults};
use super::log_writer::{LogWriter, UnsavedWriter};
use super::metadata::{Appearance, Attachment, ReadMark, RepositoryChange, Section};
use super::summary::ThreadSummary;
use crate::ReadState;
use crate::history::{ForkPoint, History};
use crate::line::{BadLine, Line};
use crate::state::Interrupted;

/// Keeps threads, by their ids. All calls may block; make them off the async threads.
///
/// Invariant: a thread has one writer at a time, and what was committed is read back as it was written, in its order.
pub trait ThreadStore: ThreadMetadata + PromptHistory {
    /// Makes room for a thread that begins now. Nothing is written yet.
    fn create(&self, thread: ThreadId) -> Result<Opened, StoreError>;

    /// Opens a thread to go on with it.
    fn open(&self, thread: ThreadId) -> Result<Opened, StoreError>;

    /// Copies a thread up to a point into a new one that begins with these words of its own. The copy is durable.
    fn fork(&self, of: ThreadId, point: ForkPoint, meta: &SessionMeta) -> Result<Opened, StoreError>;

    /// A thread that is not kept, with the place where it would be.
    fn unsaved(&self, thread: ThreadId) -> Opened {
        Opened { writer: Box::new(UnsavedWriter::default()), place: store_place(thread), cut_bytes: 0 }
    }

    /// The first words of a thread.
    fn meta(&self, thread: ThreadId) -> Result<SessionMeta, StoreError>;

    /// The data for resuming a thread.
    fn history(&self, thread: ThreadId, interrupted: Interrupted) -> Result<History, StoreError>;

    /// The newest thread in which a turn has ended with an answer of this name, up to there.
    fn history_after_answer(&self, response: &str, interrupted: Interrupted) -> Option<History>;

    /// The lines of a thread.
    fn read(&self, thread: ThreadId, from: ReadFrom) -> Result<Box<dyn LineSource>, StoreError>;

    /// Where a thread is, for those who show it.
    fn place(&self, thread: ThreadId) -> Option<PathBuf>;

    /// The thread that lies at a place that somebody names.
    fn locate(&self, place: &Path) -> Result<Located, StoreError>;

    /// A thread as lists show it; none if there is no such thread.
    fn find(&self, thread: ThreadId) -> Result<Option<ThreadSummary>, StoreError>;

    /// A page of threads.
    fn list(&self, query: &ListQuery) -> Result<Page, StoreError>;

    /// Threads in which the words were said or run, the best first.
    fn search(&self, words: &str, limit: usize) -> Result<SearchResults, StoreError>;

    /// Archives a thread. An archived one is left alone.
    fn archive(&self, thread: ThreadId) -> Result<ThreadSummary, StoreError>;

    /// Restores an archived thread. An active one is left alone.
    fn unarchive(&self, thread: ThreadId) -> Result<ThreadSummary, StoreError>;

    /// Deletes a thread, archived or not, with all its metadata.
    fn delete(&self, thread: ThreadId) -> Result<(), StoreError>;

    /// Names a thread. An empty name takes its name away.
    fn rename(&self, thread: ThreadId, name: &str) -> Result<(), StoreError>;

    /// Takes in a bundle. If there is such a thread already, the new one is a fork of it.
    fn import(&self, bundle: &mut dyn BufRead) -> Result<Imported, StoreError>;

    /// Writes a thread as a bundle, with the name that it is to have elsewhere.
    fn export(&self, thread: ThreadId, name: Option<&str>, out: &mut dyn Write) -> Result<(), StoreError>;
}

/// Keeps what clients note about threads. Of a thread that is gone nothing is kept.
pub trait ThreadMetadata: Debug + Send + Sync {
    /// The read state of a thread.
    fn read_state(&self, thread: ThreadId) -> ReadState;

    /// Notes that a turn has ended with something to read.
    fn turn_ended(&self, thread: ThreadId, turn: &str) -> Result<ReadState, StoreError>;

    /// Marks a thread, unless something has happened in it since the revision that the user has seen. Returns what
    /// holds now, and whether that is new.
    fn mark(&self, thread: ThreadId, seen: &str, mark: ReadMark) -> Result<(ReadState, bool), StoreError>;

    /// Notes that of a thread only these turns are left. Returns what holds now if that is new.
    fn turns_left(&self, thread: ThreadId, turns: &[&str]) -> Result<Option<ReadState>, StoreError>;

    /// The attachments of a thread, oldest first.
    fn attachments(&self, thread: ThreadId) -> Result<Vec<Attachment>, StoreError>;

    /// Attaches a value to a thread, unless there is one of that type and key. Returns what is there now, and whether
    /// it is new.
    fn attach(&self, thread: ThreadId, kind: &str, key: &str, payload: Value)
    -> Result<(Attachment, bool), StoreError>;

    /// Takes an attachment from a thread, and returns it if it was there.
    fn detach(&self, thread: ThreadId, kind: &str, key: &str) -> Result<Option<Attachment>, StoreError>;

    /// The threads that have an attachment of a type and a key, oldest first.
    fn attached_to(&self, kind: &str, key: &str) -> Result<Vec<ThreadId>, StoreError>;

    /// Changes the repository information of a thread.
    fn change_repository(&self, thread: &ThreadSummary, change: RepositoryChange) -> Result<(), StoreError>;

    /// The sections, oldest first.
    fn sections(&self) -> Result<Vec<Section>, StoreError>;

    /// Creates a section.
    fn create_section(&self, name: String, appearance: Option<Appearance>) -> Result<Section, StoreError>;

    /// Names a section, and changes how it is shown if that is said.
    fn update_section(
        &self,
        section: &str,
        name: String,
        appearance: Option<Option<Appearance>>,
    ) -> Result<Section, StoreError>;

    /// Deletes a section. Its threads are in none then.
    fn delete_section(&self, section: &str) -> Result<(), StoreError>;

    /// Puts a thread into a section before another one or at its end, or takes it out of the one it is in.
    fn move_thread(&self, thread: ThreadId, section: Option<&str>, before: Option<ThreadId>) -> Result<(), StoreError>;
}

/// Keeps the prompts that people have typed, of all threads together.
pub trait PromptHistory: Debug + Send + Sync {
    /// The state of the prompt history for clients when a thread starts.
    fn prompts(&self) -> PromptHistoryState;

    /// The prompt at a place, counted from the oldest; none if there is none, or if the history is not the one that the
    /// client knows.
    fn prompt(&self, log_id: u64, offset: usize) -> Option<HistoryEntry>;

    /// Adds a prompt. Where that makes them more than so many bytes, the oldest go.
    fn add_prompt(&self, thread: ThreadId, text: &str, max_bytes: Option<u64>) -> Result<(), StoreError>;
}

/// The prompt history as a client is told of it when a thread starts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PromptHistoryState {
    /// Its identity, so that a client notices when it was replaced; 0 when there is none.
    pub log_id: u64,
    /// How many prompts it holds.
    pub entries: usize,
}

/// A thread that can be written.
#[derive(Debug)]
pub struct Opened {
    pub writer: Box<dyn LogWriter>,
    /// Where it is, for those who show it.
    pub place: PathBuf,
    /// How many bytes of a line that was not whole were removed.
    pub cut_bytes: u64,
}

/// From where on a thread is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadFrom {
    /// Its beginning.
    Start,
    /// The end of a line, see [`LogWriter::position`].
    Position(u64),
}

/// The lines of a thread, one after the other.
pub trait LineSource: Debug + Send {
    /// The next line; none at the end.
    ///
    /// # Errors
    /// When the rest cannot be read.
    fn next_entry(&mut self) -> Result<Option<Entry<'_>>, StoreError>;
}

/// A line of a thread, or what stands in its place.
#[derive(Debug)]
pub enum Entry<'a> {
    /// A line.
    Line(Line<'a>),
    /// A line that cannot be read. Pass over it, and tell someone.
    Bad(BadLine),
}

/// The thread at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Located {
    /// Which one it is.
    pub thread: ThreadId,
    /// Whether it is archived.
    pub archived: bool,
}

/// A thread that was taken in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Imported {
    /// Its id here.
    pub id: ThreadId,
    /// Where it is, for those who show it.
    pub path: PathBuf,
    /// Its previous id, if that one was already taken here.
    pub renamed_from: Option<ThreadId>,
}

/// The place of a thread in a store that has no files.
#[must_use]
pub fn store_place(thread: ThreadId) -> PathBuf {
    PathBuf::from(format!("store:{thread}"))
}
