//! The index of all threads of a home: what lists and searches are answered from.
//!
//! Invariant: it is a cache. Whatever it says can be said again from the rollouts, so whatever is wrong with it (gone,
//! broken, of another release, behind the files) is mended by making it anew, and never an error for the user.

mod database;
mod freshen;
mod listing;
mod rows;
mod search;
mod sectioned;
mod shelf;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use codex_log::store::{ListQuery, Page, SearchResults, SectionFilter, ThreadSummary};
use codex_wire::ids::ThreadId;

pub use shelf::ShelfError;

use crate::notes::{NoteError, Notes};
use database::Database;
use sectioned::Members;

/// How long a search may spend on texts that are not in the index yet.
const SEARCH_CATCH_UP: Duration = Duration::from_millis(25);

/// How long the background thread reads texts before it lets others write.
const BACKGROUND_STEP: Duration = Duration::from_millis(200);

/// Why the index could not answer.
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    /// The database failed, even one made anew.
    #[error("could not use the index of threads of {home}", home = .home.display())]
    Database {
        /// The home.
        home: PathBuf,
        /// Why not.
        source: rusqlite::Error,
    },
    /// The folders of the threads could not be read.
    #[error("could not read {path}", path = .path.display())]
    Read {
        /// Which folder or file.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// A cursor that no list has returned.
    #[error("invalid cursor: {cursor}")]
    Cursor {
        /// The cursor.
        cursor: String,
    },
    /// The sections could not be read, or there is none of that name.
    #[error(transparent)]
    Note(#[from] NoteError),
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
}

impl ThreadIndex {
    /// The index of a home. Nothing is opened or read before the first question.
    #[must_use]
    pub fn open(home: &Path) -> Self {
        Self { shared: Arc::new(Shared { home: home.to_owned(), database: Mutex::new(None) }) }
    }

    /// The home.
    #[must_use]
    pub fn home(&self) -> &Path {
        &self.shared.home
    }

    /// What clients note about the threads.
    #[must_use]
    pub fn notes(&self) -> Notes {
        Notes::of(&self.shared.home)
    }

    /// A page of threads. Threads that other processes have begun, moved or deleted by now are seen.
    pub fn list(&self, query: &ListQuery) -> Result<Page, IndexError> {
        let notes = self.notes();
        let sections = match query.section {
            // What was sorted wrongly is listed all the same.
            SectionFilter::Any => notes.sorted().unwrap_or_default(),
            SectionFilter::Outside | SectionFilter::In(_) => notes.sorted()?,
        };
        let members = Members::of(&query.section, &sections)?;
        let mut page = self.with(|database| listing::list(database, query, &members))?;
        for thread in &mut page.threads {
            notes.add_to(thread, &sections);
        }
        Ok(page)
    }

    /// Threads in which the words were said or run, the best first. What another release adds to a thread that is known
    /// already may be found some seconds later; what was noted is found at once.
    pub fn search(&self, words: &str, limit: usize) -> Result<SearchResults, IndexError> {
        self.with(|database| {
            freshen::folders(database)?;
            freshen::files_now_and_then(database)?;
            let complete = search::catch_up(database, SEARCH_CATCH_UP)?;
            search::search(database, words, limit, complete)
        })
    }

    /// A thread by its name, from those in use if it is also among those put away.
    pub fn find(&self, thread: ThreadId) -> Result<Option<ThreadSummary>, IndexError> {
        let mut found = self.with(|database| {
            freshen::names(database)?;
            if let Some(found) = listing::find(database, thread)? {
                return Ok(Some(found));
            }
            freshen::folders(database)?;
            listing::find(database, thread)
        })?;
        let notes = self.notes();
        if let Some(thread) = &mut found {
            notes.add_to(thread, &notes.sorted().unwrap_or_default());
        }
        Ok(found)
    }

    /// Takes note of a rollout that was begun or written.
    pub fn note(&self, path: &Path) -> Result<(), IndexError> {
        self.with(|database| freshen::file(database, path))
    }

    /// Compares the whole index with the files.
    pub fn refresh(&self) -> Result<(), IndexError> {
        self.with(|database| {
            freshen::folders(database)?;
            freshen::files(database)
        })
    }

    /// Brings the index up to date on a thread of its own, texts included, so that no start and no list waits for it.
    pub fn refresh_in_background(&self) -> std::io::Result<JoinHandle<Result<(), IndexError>>> {
        let home = self.shared.home.clone();
        std::thread::Builder::new().name("thread-index".to_owned()).spawn(move || {
            // A connection of its own, so that lists are answered meanwhile.
            let index = Self::open(&home);
            index.refresh()?;
            while !index.with(|database| search::catch_up(database, BACKGROUND_STEP))? {}
            Ok(())
        })
    }

    /// Asks the database. One that fails is made anew, once.
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
