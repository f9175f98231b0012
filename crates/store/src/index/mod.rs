//! The index of all threads of a home, which answers lists and searches.
//!
//! Invariant: it is a cache. Everything in it can be derived from the rollouts, so any defect (missing, broken, of
//! another release, stale) is fixed by rebuilding it, and never causes an error for the user.

mod database;
mod listing;
mod refresh;
mod rows;
mod search;
mod sectioned;
mod stored_thread;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use codex_log::store::{ListQuery, Page, SearchQuery, SearchResults, SectionFilter, ThreadSummary};
use codex_wire::ids::ThreadId;

pub use search::TextReader;
pub use sectioned::Members;
pub use stored_thread::StoredThreadError;

use crate::thread_metadata::{MetadataError, MetadataFolder, StoredMetadata};
use database::Database;

/// The time that a search spends on texts that are not indexed yet while lists wait.
const SEARCH_CATCH_UP: Duration = Duration::from_millis(10);
/// The time that it spends on them besides, which is enough for some ten thousand threads.
const SEARCH_PATIENCE: Duration = Duration::from_secs(10);
/// The time that it reads texts before it lets others write.
const READING_STEP: Duration = Duration::from_millis(50);

/// The reason why the index could not answer.
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    /// The database failed, even after a rebuild.
    #[error("could not use the index of threads of {home}", home = .home.display())]
    Database { home: PathBuf, source: rusqlite::Error },
    #[error("could not read {path}", path = .path.display())]
    Read { path: PathBuf, source: std::io::Error },
    /// A cursor that no list has returned.
    #[error("invalid cursor: {cursor}")]
    Cursor { cursor: String },
    /// The sections could not be read, or the section does not exist.
    #[error(transparent)]
    Metadata(#[from] MetadataError),
}

/// The index of all threads of a home. Clones share it. Its calls block; make them off the async threads.
#[derive(Debug, Clone)]
pub struct ThreadIndex {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    home: PathBuf,
    database: Mutex<Option<Database>>,
    /// Held by the search that reads texts, so that each is read once.
    reading: Mutex<()>,
}

impl ThreadIndex {
    /// The index of a home. Nothing is opened or read before the first query.
    #[must_use]
    pub fn open(home: &Path) -> Self {
        let (home, database, reading) = (home.to_owned(), Mutex::default(), Mutex::default());
        Self { shared: Arc::new(Shared { home, database, reading }) }
    }

    #[must_use]
    pub fn home(&self) -> &Path {
        &self.shared.home
    }

    /// The metadata that clients store about the threads.
    #[must_use]
    pub fn metadata(&self) -> StoredMetadata<MetadataFolder> {
        StoredMetadata::of(&self.shared.home)
    }

    /// A page of threads, including changes that other processes have made by now.
    pub fn list(&self, query: &ListQuery) -> Result<Page, IndexError> {
        let metadata = self.metadata();
        let sections = match query.section {
            // If the sections cannot be read, the threads are listed anyway.
            SectionFilter::Any => metadata.sorted().unwrap_or_default(),
            SectionFilter::Outside | SectionFilter::In(_) => metadata.sorted()?,
        };
        let members = Members::of(&query.section, &sections)?;
        let mut page = self.with(|database| listing::list(database, query, &members))?;
        for thread in &mut page.threads {
            metadata.add_to(thread, &sections);
        }
        Ok(page)
    }

    /// Threads that contain some words. Additions of another release to a known thread may be found some
    /// seconds later; recorded files are found at once. The first search of a home reads all threads; if that takes long,
    /// the results are not complete, and another search continues.
    pub fn search(&self, query: &SearchQuery) -> Result<SearchResults, IndexError> {
        let found = self.search_indexed(query)?;
        if found.complete {
            return Ok(found);
        }
        self.read_texts(SEARCH_PATIENCE)?;
        self.search_indexed(query)
    }

    /// Reads texts that are not indexed yet.
    fn read_texts(&self, patience: Duration) -> Result<(), IndexError> {
        let begun = Instant::now();
        let _reading = self.shared.reading.lock().unwrap_or_else(PoisonError::into_inner);
        // A separate connection, so that lists are answered in the meantime.
        let index = Self::open(&self.shared.home);
        while begun.elapsed() < patience && !index.with(|database| search::catch_up(database, READING_STEP))? {}
        Ok(())
    }

    fn search_indexed(&self, query: &SearchQuery) -> Result<SearchResults, IndexError> {
        self.with(|database| {
            refresh::folders(database)?;
            refresh::files_now_and_then(database)?;
            let complete = search::catch_up(database, SEARCH_CATCH_UP)?;
            search::search(database, query, complete)
        })
    }

    /// The threads that a thread has started, with those that they have started, oldest first.
    pub fn descendants(&self, thread: ThreadId) -> Result<Vec<ThreadId>, IndexError> {
        self.with(|database| {
            refresh::folders(database)?;
            let mut found = Vec::new();
            let mut open = vec![thread];
            while let Some(parent) = open.pop() {
                let children = listing::children(database, parent)?;
                // Files may name each other in a circle.
                let new: Vec<ThreadId> =
                    children.into_iter().filter(|id| *id != thread && !found.contains(id)).collect();
                found.extend(&new);
                open.extend(new);
            }
            Ok(found)
        })
    }

    /// Finds a thread by its id, preferring an active one over an archived one.
    pub fn find(&self, thread: ThreadId) -> Result<Option<ThreadSummary>, IndexError> {
        let mut found = self.with(|database| {
            refresh::names(database)?;
            if let Some(found) = listing::find(database, thread)? {
                return Ok(Some(found));
            }
            refresh::folders(database)?;
            listing::find(database, thread)
        })?;
        let metadata = self.metadata();
        if let Some(thread) = &mut found {
            metadata.add_to(thread, &metadata.sorted().unwrap_or_default());
        }
        Ok(found)
    }

    /// Updates a rollout that was created or written.
    pub fn record(&self, path: &Path) -> Result<(), IndexError> {
        self.with(|database| refresh::file(database, path))
    }

    /// Compares the whole index with the files.
    pub fn refresh(&self) -> Result<(), IndexError> {
        self.with(|database| {
            refresh::folders(database)?;
            refresh::files(database)
        })
    }

    /// Queries the database. If it fails, it is rebuilt, once.
    fn with<T>(&self, mut ask: impl FnMut(&mut Database) -> Result<T, IndexError>) -> Result<T, IndexError> {
        let mut slot = self.shared.database.lock().unwrap_or_else(PoisonError::into_inner);
        let mut database = match slot.take().filter(Database::is_current) {
            Some(database) => database,
            None => Database::open(&self.shared.home)?,
        };
        let mut answer = ask(&mut database);
        if let Err(IndexError::Database { source, .. }) = &answer
            && !database::is_busy(source)
        {
            tracing::warn!(%source, "the index of threads failed and is rebuilt");
            database.discard();
            database = Database::open(&self.shared.home)?;
            answer = ask(&mut database);
        }
        *slot = Some(database);
        answer
    }
}
