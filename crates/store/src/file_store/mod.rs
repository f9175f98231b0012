//! The threads of a home as files, behind the trait of all stores.

mod known;
mod metadata;

use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use codex_log::history::{ForkPoint, History};
use codex_log::state::Interrupted;
use codex_log::store::{
    Imported, LineSource, ListQuery, Located, Opened, Page, PromptHistory, PromptHistoryState, ReadFrom, SearchQuery,
    SearchResults, StoreError, StoreErrorKind, ThreadStore, ThreadSummary, UnsavedWriter,
};
use codex_wire::history::HistoryEntry;
use codex_wire::ids::ThreadId;
use codex_wire::rollout::SessionMeta;

use crate::export::export_bundle;
use crate::handover;
use crate::index::{StoredThreadError, ThreadIndex};
use crate::partial_file;
use crate::prompt_file::PromptFile;
use crate::rollout::{RolloutLines, ends_line, fork, history_after_answer, read_history, read_meta};
use crate::rollout_file::{RolloutError, RolloutFile};
use crate::threads::{SESSIONS, check_path};
use known::KnownPlaces;

/// The prompt history below a home.
const PROMPTS: &str = "history.jsonl";

/// The threads of a home, each in its file. Clones share the cached paths.
#[derive(Debug, Clone)]
pub struct FileStore {
    index: ThreadIndex,
    known: Arc<KnownPlaces>,
}

impl FileStore {
    /// The threads of a home. Nothing is opened or read before the first request.
    #[must_use]
    pub fn of(home: &Path) -> Self {
        Self { index: ThreadIndex::open(home), known: Arc::default() }
    }

    /// The index of the threads.
    #[must_use]
    pub fn index(&self) -> &ThreadIndex {
        &self.index
    }

    fn home(&self) -> &Path {
        self.index.home()
    }

    /// The path of a thread that starts now.
    fn new_path(&self, thread: ThreadId) -> PathBuf {
        RolloutFile::place(&self.home().join(SESSIONS), thread, codex_wire::time::now().into())
    }

    /// The file of a thread. A thread that existed a moment ago is opened by its cached path, so that an error can name
    /// it.
    fn path(&self, thread: ThreadId) -> Result<PathBuf, StoreError> {
        let known = self.known.path(thread);
        if let Some(path) = known.as_ref().filter(|path| path.symlink_metadata().is_ok()) {
            return Ok(path.clone());
        }
        let found = self.index.find(thread)?.map(|found| found.path);
        if let Some(path) = &found {
            self.known.found(thread, path);
        }
        Ok(found.or(known).ok_or(StoredThreadError::Missing { thread })?)
    }

    /// Adds a thread that was created here to the index, and again until it has a preview: the first turn brings it.
    fn announce(&self, thread: ThreadId) -> Result<(), StoreError> {
        if let Some(path) = self.known.unannounced(thread) {
            self.index.record(&path)?;
            if self.index.find(thread)?.is_some_and(|found| !found.preview.is_empty()) {
                self.known.announced(thread);
            }
        }
        Ok(())
    }

    fn announce_all(&self) -> Result<(), StoreError> {
        self.known.all_unannounced().into_iter().try_for_each(|thread| self.announce(thread))
    }

    /// Forgets the paths of a thread and of those that it has started, because their files are about to move.
    fn forget(&self, thread: ThreadId) -> Result<(), StoreError> {
        for moved in self.descendants(thread)?.into_iter().chain([thread]) {
            self.known.forget(moved);
        }
        Ok(())
    }

    fn prompt_file(&self, max_bytes: Option<u64>) -> PromptFile {
        PromptFile::new(self.home().join(PROMPTS), max_bytes)
    }
}

fn opened(file: RolloutFile) -> Opened {
    let (place, cut_bytes) = (file.path().to_owned(), file.cut_bytes());
    Opened { writer: Box::new(file), place, cut_bytes }
}

impl ThreadStore for FileStore {
    fn create(&self, thread: ThreadId) -> Result<Opened, StoreError> {
        let file = RolloutFile::create_in(self.home(), self.new_path(thread))?;
        self.known.began(thread, file.path());
        Ok(opened(file))
    }

    fn open(&self, thread: ThreadId) -> Result<Opened, StoreError> {
        let path = self.path(thread)?;
        let left = partial_file::hold(&path);
        let mut file = RolloutFile::reopen_in(self.home(), path).inspect_err(|error| {
            if matches!(error, RolloutError::Locked { .. }) {
                handover::ask(self.home(), thread);
            }
        })?;
        if left.is_some() {
            partial_file::take_up(&mut file);
        }
        Ok(opened(file))
    }

    fn fork(&self, of: ThreadId, point: ForkPoint, meta: &SessionMeta) -> Result<Opened, StoreError> {
        let file = fork(self.home(), &self.path(of)?, point, meta, &self.new_path(meta.id))?;
        self.known.began(meta.id, file.path());
        Ok(opened(file))
    }

    fn unsaved(&self, thread: ThreadId) -> Opened {
        Opened { writer: Box::new(UnsavedWriter::default()), place: self.new_path(thread), cut_bytes: 0 }
    }

    fn meta(&self, thread: ThreadId) -> Result<SessionMeta, StoreError> {
        Ok(read_meta(&self.path(thread)?)?)
    }

    fn history(&self, thread: ThreadId, interrupted: Interrupted) -> Result<History, StoreError> {
        Ok(read_history(&self.path(thread)?, interrupted)?)
    }

    fn history_after_answer(&self, response: &str, interrupted: Interrupted) -> Option<History> {
        history_after_answer(self.home(), response, interrupted)
    }

    fn read(&self, thread: ThreadId, from: ReadFrom) -> Result<Box<dyn LineSource>, StoreError> {
        let path = self.path(thread)?;
        Ok(Box::new(match from {
            ReadFrom::Start => RolloutLines::open(&path)?,
            ReadFrom::Position(position) => {
                let lines = RolloutLines::open_at(&path, position)?;
                if !ends_line(&path, position) {
                    let text = format!("no line of thread {thread} ends at {position}");
                    return Err(StoreError::new(StoreErrorKind::Refused, text));
                }
                lines
            }
        }))
    }

    fn place(&self, thread: ThreadId) -> Option<PathBuf> {
        self.path(thread).ok()
    }

    fn locate(&self, place: &Path) -> Result<Located, StoreError> {
        let file = check_path(self.home(), place)?;
        self.known.named(file.id, &file.path);
        Ok(Located { thread: file.id, archived: file.archived })
    }

    fn find(&self, thread: ThreadId) -> Result<Option<ThreadSummary>, StoreError> {
        self.announce(thread)?;
        let found = self.index.find(thread)?;
        if let Some(found) = &found {
            self.known.found(thread, &found.path);
        }
        Ok(found)
    }

    fn list(&self, query: &ListQuery) -> Result<Page, StoreError> {
        self.announce_all()?;
        Ok(self.index.list(query)?)
    }

    fn search(&self, query: &SearchQuery) -> Result<SearchResults, StoreError> {
        self.announce_all()?;
        Ok(self.index.search(query)?)
    }

    fn descendants(&self, thread: ThreadId) -> Result<Vec<ThreadId>, StoreError> {
        Ok(self.index.descendants(thread)?)
    }

    fn archive(&self, thread: ThreadId) -> Result<ThreadSummary, StoreError> {
        self.announce(thread)?;
        self.forget(thread)?;
        Ok(self.index.archive(thread)?)
    }

    fn unarchive(&self, thread: ThreadId) -> Result<ThreadSummary, StoreError> {
        self.forget(thread)?;
        Ok(self.index.unarchive(thread)?)
    }

    fn delete(&self, thread: ThreadId) -> Result<(), StoreError> {
        self.announce(thread)?;
        self.forget(thread)?;
        Ok(self.index.delete(thread)?)
    }

    fn rename(&self, thread: ThreadId, name: &str) -> Result<(), StoreError> {
        self.announce(thread)?;
        Ok(self.index.rename(thread, name)?)
    }

    fn import(&self, bundle: &mut dyn BufRead) -> Result<Imported, StoreError> {
        Ok(self.index.import(bundle)?)
    }

    fn export(&self, thread: ThreadId, name: Option<&str>, out: &mut dyn Write) -> Result<(), StoreError> {
        let agents = self.descendants(thread)?;
        export_bundle(&self.path(thread)?, name, &agents, out)?;
        for agent in agents {
            let name = self.index.find(agent)?.and_then(|found| found.name);
            export_bundle(&self.path(agent)?, name.as_deref(), &[], out)?;
        }
        Ok(())
    }
}

impl PromptHistory for FileStore {
    fn prompts(&self) -> PromptHistoryState {
        self.prompt_file(None).look()
    }

    fn prompt(&self, log_id: u64, offset: usize) -> Option<HistoryEntry> {
        self.prompt_file(None).entry(log_id, offset)
    }

    fn add_prompt(&self, thread: ThreadId, text: &str, max_bytes: Option<u64>) -> Result<(), StoreError> {
        Ok(self.prompt_file(max_bytes).add(thread, text)?)
    }
}
