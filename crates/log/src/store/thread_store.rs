//! The trait of thread stores.

use std::fmt::Debug;
use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};

use codex_wire::history::HistoryEntry;
use codex_wire::ids::ThreadId;
use codex_wire::rollout::SessionMeta;
use serde_json::Value;

use super::error::StoreError;
use super::listing::{ListQuery, Page, SearchQuery, SearchResults};
use super::log_writer::{LogWriter, UnsavedWriter};
use super::metadata::{Appearance, Attachment, ReadMark, RepositoryChange, Section};
use super::summary::ThreadSummary;
use crate::ReadState;
use crate::history::{ForkPoint, History};
use crate::line::{BadLine, Line};
use crate::state::Interrupted;

/// Stores threads, by their ids. All calls may block; make them off the async threads.
///
/// Invariant: a thread has one writer at a time, and committed lines are read back unchanged and in order.
pub trait ThreadStore: ThreadMetadata + PromptHistory {
    /// Prepares a new thread. Nothing is written yet.
    fn create(&self, thread: ThreadId) -> Result<Opened, StoreError>;

    /// Opens a thread for appending.
    fn open(&self, thread: ThreadId) -> Result<Opened, StoreError>;

    /// Copies a thread up to a point into a new one with its own first line. The copy is written when this returns, and
    /// durable after the next durable commit of its writer.
    fn fork(&self, of: ThreadId, point: ForkPoint, meta: &SessionMeta) -> Result<Opened, StoreError>;

    /// An unsaved thread, with the path where it would be.
    fn unsaved(&self, thread: ThreadId) -> Opened {
        Opened { writer: Box::new(UnsavedWriter::default()), place: store_place(thread), cut_bytes: 0 }
    }

    /// Whether several machines share it.
    fn is_shared(&self) -> bool {
        false
    }

    /// The name of the server that had a thread open last, in a store that several machines share. `None` in a store of
    /// this machine alone.
    fn last_server(&self, _thread: ThreadId) -> Result<Option<String>, StoreError> {
        Ok(None)
    }

    /// The first line of a thread.
    fn meta(&self, thread: ThreadId) -> Result<SessionMeta, StoreError>;

    /// The data for resuming a thread.
    fn history(&self, thread: ThreadId, interrupted: Interrupted) -> Result<History, StoreError>;

    /// The latest thread with a turn that ended with this answer, up to that turn.
    fn history_after_answer(&self, response: &str, interrupted: Interrupted) -> Option<History>;

    /// The lines of a thread.
    fn read(&self, thread: ThreadId, from: ReadFrom) -> Result<Box<dyn LineSource>, StoreError>;

    /// The path of a thread, for display.
    fn place(&self, thread: ThreadId) -> Option<PathBuf>;

    /// The thread at a path.
    fn locate(&self, place: &Path) -> Result<Located, StoreError>;

    /// The summary of a thread; `None` if there is no such thread.
    fn find(&self, thread: ThreadId) -> Result<Option<ThreadSummary>, StoreError>;

    /// A page of threads.
    fn list(&self, query: &ListQuery) -> Result<Page, StoreError>;

    /// Threads with some words in a message or a command.
    fn search(&self, query: &SearchQuery) -> Result<SearchResults, StoreError>;

    /// The threads that a thread has started, and those that they have started, each after its parent.
    fn descendants(&self, thread: ThreadId) -> Result<Vec<ThreadId>, StoreError>;

    /// Archives a thread and those that it has started, unless one of them is being written. Archived ones are unchanged.
    fn archive(&self, thread: ThreadId) -> Result<ThreadSummary, StoreError>;

    /// Restores an archived thread and those that it has started. Active ones are unchanged.
    fn unarchive(&self, thread: ThreadId) -> Result<ThreadSummary, StoreError>;

    /// Deletes a thread and those that it has started, archived or not, with all their metadata, unless one of them is
    /// being written.
    fn delete(&self, thread: ThreadId) -> Result<(), StoreError>;

    /// Sets the name of a thread. An empty name removes it.
    fn rename(&self, thread: ThreadId, name: &str) -> Result<(), StoreError>;

    /// Imports a bundle. If one of its threads exists already, all get new ids, and the first one is a fork.
    fn import(&self, bundle: &mut dyn BufRead) -> Result<Imported, StoreError>;

    /// Writes a thread and those that it has started as a bundle, with the name that it should have elsewhere.
    fn export(&self, thread: ThreadId, name: Option<&str>, out: &mut dyn Write) -> Result<(), StoreError>;
}

/// Stores metadata of threads. The metadata of a deleted thread is deleted.
pub trait ThreadMetadata: Debug + Send + Sync {
    /// The read state of a thread.
    fn read_state(&self, thread: ThreadId) -> ReadState;

    /// Records that a turn has ended with an unread result.
    fn turn_ended(&self, thread: ThreadId, turn: &str) -> Result<ReadState, StoreError>;

    /// Marks a thread, unless it has changed since the revision that the user has seen. Returns the current read state,
    /// and whether it is new.
    fn mark(&self, thread: ThreadId, seen: &str, mark: ReadMark) -> Result<(ReadState, bool), StoreError>;

    /// Records that only these turns of a thread are left. Returns the current read state if it is new.
    fn turns_left(&self, thread: ThreadId, turns: &[&str]) -> Result<Option<ReadState>, StoreError>;

    /// The attachments of a thread, oldest first.
    fn attachments(&self, thread: ThreadId) -> Result<Vec<Attachment>, StoreError>;

    /// Attaches a value to a thread, unless there is one of that type and key. Returns the current one, and whether it
    /// is new.
    fn attach(&self, thread: ThreadId, kind: &str, key: &str, payload: Value)
    -> Result<(Attachment, bool), StoreError>;

    /// Removes an attachment from a thread, and returns it if it existed.
    fn detach(&self, thread: ThreadId, kind: &str, key: &str) -> Result<Option<Attachment>, StoreError>;

    /// The threads with an attachment of this type and key, oldest first.
    fn attached_to(&self, kind: &str, key: &str) -> Result<Vec<ThreadId>, StoreError>;

    /// Changes the repository information of a thread.
    fn change_repository(&self, thread: &ThreadSummary, change: RepositoryChange) -> Result<(), StoreError>;

    /// The sections, oldest first.
    fn sections(&self) -> Result<Vec<Section>, StoreError>;

    /// Creates a section.
    fn create_section(&self, name: String, appearance: Option<Appearance>) -> Result<Section, StoreError>;

    /// Renames a section, and changes its appearance if one is given.
    fn update_section(
        &self,
        section: &str,
        name: String,
        appearance: Option<Option<Appearance>>,
    ) -> Result<Section, StoreError>;

    /// Deletes a section. Its threads are in no section then.
    fn delete_section(&self, section: &str) -> Result<(), StoreError>;

    /// Moves a thread into a section, before another thread or at the end, or removes it from its section.
    fn move_thread(&self, thread: ThreadId, section: Option<&str>, before: Option<ThreadId>) -> Result<(), StoreError>;
}

/// Stores the prompt history of all threads.
pub trait PromptHistory: Debug + Send + Sync {
    /// The state of the prompt history for clients when a thread starts.
    fn prompts(&self) -> PromptHistoryState;

    /// The prompt at an index, from the oldest; `None` if there is none, or if the history is not the one that the
    /// client knows.
    fn prompt(&self, log_id: u64, offset: usize) -> Option<HistoryEntry>;

    /// Adds a prompt. If the history exceeds this many bytes, the oldest prompts are removed.
    fn add_prompt(&self, thread: ThreadId, text: &str, max_bytes: Option<u64>) -> Result<(), StoreError>;
}

/// The prompt history as clients see it when a thread starts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PromptHistoryState {
    /// Its identity, so that a client notices when it was replaced; 0 if there is none.
    pub log_id: u64,
    /// The number of prompts.
    pub entries: usize,
}

/// A thread that is open for appending.
#[derive(Debug)]
pub struct Opened {
    pub writer: Box<dyn LogWriter>,
    /// Its path, for display.
    pub place: PathBuf,
    /// The number of bytes of an incomplete last line that were removed.
    pub cut_bytes: u64,
}

/// The position from which a thread is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadFrom {
    /// Its beginning.
    Start,
    /// The end of a line, see [`LogWriter::position`].
    Position(u64),
}

/// An iterator over the lines of a thread.
pub trait LineSource: Debug + Send {
    /// The next line; `None` at the end.
    ///
    /// # Errors
    /// When the rest cannot be read.
    fn next_entry(&mut self) -> Result<Option<Entry<'_>>, StoreError>;
}

/// A line of a thread, or an unreadable one.
#[derive(Debug)]
pub enum Entry<'a> {
    Line(Line<'a>),
    /// A line that cannot be read. Skip it, and report it.
    Bad(BadLine),
}

/// The thread at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Located {
    pub thread: ThreadId,
    /// Whether it is archived.
    pub archived: bool,
}

/// An imported thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Imported {
    /// Its id here.
    pub id: ThreadId,
    /// Its path, for display.
    pub path: PathBuf,
    /// Its previous id, if that one already existed here.
    pub renamed_from: Option<ThreadId>,
    /// The ids of the threads that it has started.
    pub agents: Vec<ThreadId>,
}

/// The path of a thread in a store without files.
#[must_use]
pub fn store_place(thread: ThreadId) -> PathBuf {
    PathBuf::from(format!("store:{thread}"))
}
