//! The threads of a database, behind the trait of all stores.

use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use codex_log::ReadState;
use codex_log::history::{ForkPoint, History};
use codex_log::state::Interrupted;
use codex_log::store::{
    Appearance, Attachment, Imported, LineSource, ListQuery, Located, Opened, Page, PromptHistory, PromptHistoryState,
    ReadFrom, ReadMark, RepositoryChange, SearchQuery, SearchResults, Section, StoreError, ThreadMetadata, ThreadStore,
    ThreadSummary, store_place,
};
use codex_store::StoredMetadata;
use codex_wire::history::HistoryEntry;
use codex_wire::ids::ThreadId;
use codex_wire::rollout::SessionMeta;
use serde_json::Value;

use crate::address::StoreOptions;
use crate::changes::Changes;
use crate::database::{Connect, Database};
use crate::documents::Rows;
use crate::errors::PostgresError;
use crate::lease::Lease;
use crate::reader::Reader;
use crate::{folding, listing, prompts, schema, search, threads, transfer};

/// The shared state of the parts of a store.
#[derive(Debug, Clone)]
pub(crate) struct Parts {
    pub(crate) database: Database,
    pub(crate) lease: Lease,
    /// Whether texts are being indexed in the background.
    pub(crate) is_indexing: Arc<AtomicBool>,
}

/// The threads of a database. Clones share its connections and its lease.
#[derive(Debug, Clone)]
pub struct PostgresStore {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    parts: Parts,
    metadata: StoredMetadata<Rows>,
    changes: Changes,
}

impl PostgresStore {
    /// The store in a database. Its tables are created or migrated.
    ///
    /// # Errors
    /// When the settings are wrong, or the database cannot be used.
    pub fn open(options: &StoreOptions) -> Result<Self, PostgresError> {
        Self::of(Database::new(options)?, options)
    }

    /// The store in a database that is reached in a way of its own.
    ///
    /// # Errors
    /// As above.
    pub fn open_with(
        options: &StoreOptions,
        place: String,
        connector: Box<dyn Connect>,
    ) -> Result<Self, PostgresError> {
        Self::of(Database::with_connector(options, place, connector)?, options)
    }

    fn of(database: Database, options: &StoreOptions) -> Result<Self, PostgresError> {
        let uses_locks = database.uses_locks();
        database.wait(move |pool| async move { schema::migrate(&pool, uses_locks).await })?;
        let metadata = StoredMetadata::new(Rows { database: database.clone() });
        let lease = Lease::new(options.server_name.clone(), options.command_deadline);
        let parts = Parts { database, lease, is_indexing: Arc::default() };
        Ok(Self { shared: Arc::new(Shared { parts, metadata, changes: Changes::default() }) })
    }

    pub(crate) fn changes(&self) -> &Changes {
        &self.shared.changes
    }

    pub(crate) fn parts(&self) -> &Parts {
        &self.shared.parts
    }

    pub(crate) fn metadata(&self) -> &StoredMetadata<Rows> {
        &self.shared.metadata
    }

    fn with_metadata(&self, mut summary: ThreadSummary) -> Result<ThreadSummary, StoreError> {
        self.metadata().add_to(&mut summary, &self.metadata().sorted()?);
        Ok(summary)
    }

    /// The threads that a thread has started. Nobody writes to it or to them.
    fn unused_descendants(&self, thread: ThreadId) -> Result<Vec<ThreadId>, StoreError> {
        let children = self.descendants(thread)?;
        for unused in children.iter().chain([&thread]) {
            threads::check_unused(self.parts(), *unused)?;
        }
        Ok(children)
    }

    fn summary(&self, thread: ThreadId) -> Result<ThreadSummary, StoreError> {
        self.find(thread)?.ok_or_else(|| PostgresError::Missing { thread }.into())
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        drop(self.parts.lease.release(&self.parts.database));
    }
}

impl ThreadStore for PostgresStore {
    fn create(&self, thread: ThreadId) -> Result<Opened, StoreError> {
        let writer = threads::create(self.parts(), thread, threads::now_as_began())?;
        Ok(Opened { writer: Box::new(writer), place: store_place(thread), cut_bytes: 0 })
    }

    fn open(&self, thread: ThreadId) -> Result<Opened, StoreError> {
        let writer = threads::open(self.parts(), thread)?;
        Ok(Opened { writer: Box::new(writer), place: store_place(thread), cut_bytes: 0 })
    }

    fn fork(&self, of: ThreadId, point: ForkPoint, meta: &SessionMeta) -> Result<Opened, StoreError> {
        let writer = transfer::fork(self.parts(), of, point, meta)?;
        Ok(Opened { writer: Box::new(writer), place: store_place(meta.id), cut_bytes: 0 })
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn last_server(&self, thread: ThreadId) -> Result<Option<String>, StoreError> {
        Ok(threads::last_server(self.parts(), thread)?)
    }

    fn meta(&self, thread: ThreadId) -> Result<SessionMeta, StoreError> {
        folding::meta(self.parts(), thread)
    }

    fn history(&self, thread: ThreadId, interrupted: Interrupted) -> Result<History, StoreError> {
        folding::history(self.parts(), thread, interrupted)
    }

    fn history_after_answer(&self, response: &str, interrupted: Interrupted) -> Option<History> {
        folding::history_after_answer(self.parts(), response, interrupted).ok().flatten()
    }

    fn read(&self, thread: ThreadId, from: ReadFrom) -> Result<Box<dyn LineSource>, StoreError> {
        Ok(Box::new(Reader::open(self.parts(), thread, from)?))
    }

    fn place(&self, thread: ThreadId) -> Option<PathBuf> {
        self.find(thread).ok().flatten().map(|_| store_place(thread))
    }

    fn locate(&self, place: &Path) -> Result<Located, StoreError> {
        let shown = place.display().to_string();
        let thread: Option<ThreadId> = shown.strip_prefix("store:").and_then(|id| id.parse().ok());
        let thread = thread.ok_or(PostgresError::NotAPlace { place: shown })?;
        Ok(Located { thread, archived: self.summary(thread)?.archived })
    }

    fn find(&self, thread: ThreadId) -> Result<Option<ThreadSummary>, StoreError> {
        let found = listing::find(self.parts(), thread)?;
        found.map(|summary| self.with_metadata(summary)).transpose()
    }

    fn list(&self, query: &ListQuery) -> Result<Page, StoreError> {
        listing::list(self, query)
    }

    fn search(&self, query: &SearchQuery) -> Result<SearchResults, StoreError> {
        search::search(self.parts(), query)
    }

    fn descendants(&self, thread: ThreadId) -> Result<Vec<ThreadId>, StoreError> {
        Ok(listing::descendants(self.parts(), thread)?)
    }

    fn archive(&self, thread: ThreadId) -> Result<ThreadSummary, StoreError> {
        for child in self.unused_descendants(thread)? {
            threads::archive(self.parts(), child, true)?;
        }
        threads::archive(self.parts(), thread, true)?;
        self.summary(thread)
    }

    fn unarchive(&self, thread: ThreadId) -> Result<ThreadSummary, StoreError> {
        threads::archive(self.parts(), thread, false)?;
        for child in self.descendants(thread)? {
            threads::archive(self.parts(), child, false)?;
        }
        self.summary(thread)
    }

    fn delete(&self, thread: ThreadId) -> Result<(), StoreError> {
        for child in self.unused_descendants(thread)? {
            threads::delete(self.parts(), child)?;
            self.metadata().forget(child)?;
        }
        threads::delete(self.parts(), thread)?;
        Ok(self.metadata().forget(thread)?)
    }

    fn rename(&self, thread: ThreadId, name: &str) -> Result<(), StoreError> {
        Ok(threads::rename(self.parts(), thread, name)?)
    }

    fn import(&self, bundle: &mut dyn BufRead) -> Result<Imported, StoreError> {
        transfer::import(self, bundle)
    }

    fn export(&self, thread: ThreadId, name: Option<&str>, out: &mut dyn Write) -> Result<(), StoreError> {
        let agents = self.descendants(thread)?;
        transfer::export(self.parts(), thread, name, &agents, out)?;
        for agent in agents {
            let name = self.find(agent)?.and_then(|found| found.name);
            transfer::export(self.parts(), agent, name.as_deref(), &[], out)?;
        }
        Ok(())
    }
}

impl ThreadMetadata for PostgresStore {
    fn read_state(&self, thread: ThreadId) -> ReadState {
        self.metadata().read_state(thread)
    }

    fn turn_ended(&self, thread: ThreadId, turn: &str) -> Result<ReadState, StoreError> {
        Ok(self.metadata().turn_ended(thread, turn)?)
    }

    fn mark(&self, thread: ThreadId, seen: &str, mark: ReadMark) -> Result<(ReadState, bool), StoreError> {
        Ok(self.metadata().mark(thread, seen, mark)?)
    }

    fn turns_left(&self, thread: ThreadId, turns: &[&str]) -> Result<Option<ReadState>, StoreError> {
        Ok(self.metadata().turns_left(thread, turns)?)
    }

    fn attachments(&self, thread: ThreadId) -> Result<Vec<Attachment>, StoreError> {
        Ok(self.metadata().attachments(thread)?)
    }

    fn attach(
        &self,
        thread: ThreadId,
        kind: &str,
        key: &str,
        payload: Value,
    ) -> Result<(Attachment, bool), StoreError> {
        Ok(self.metadata().attach(thread, kind, key, payload)?)
    }

    fn detach(&self, thread: ThreadId, kind: &str, key: &str) -> Result<Option<Attachment>, StoreError> {
        Ok(self.metadata().detach(thread, kind, key)?)
    }

    fn attached_to(&self, kind: &str, key: &str) -> Result<Vec<ThreadId>, StoreError> {
        Ok(self.metadata().attached_to(kind, key)?)
    }

    fn change_repository(&self, thread: &ThreadSummary, change: RepositoryChange) -> Result<(), StoreError> {
        Ok(self.metadata().change_repository(thread, change)?)
    }

    fn sections(&self) -> Result<Vec<Section>, StoreError> {
        Ok(self.metadata().sections()?)
    }

    fn create_section(&self, name: String, appearance: Option<Appearance>) -> Result<Section, StoreError> {
        Ok(self.metadata().create_section(name, appearance)?)
    }

    fn update_section(
        &self,
        section: &str,
        name: String,
        appearance: Option<Option<Appearance>>,
    ) -> Result<Section, StoreError> {
        Ok(self.metadata().update_section(section, name, appearance)?)
    }

    fn delete_section(&self, section: &str) -> Result<(), StoreError> {
        Ok(self.metadata().delete_section(section)?)
    }

    fn move_thread(&self, thread: ThreadId, section: Option<&str>, before: Option<ThreadId>) -> Result<(), StoreError> {
        Ok(self.metadata().move_thread(thread, section, before)?)
    }
}

impl PromptHistory for PostgresStore {
    fn prompts(&self) -> PromptHistoryState {
        // An unreadable history must not keep a thread from starting.
        prompts::state(self.parts()).unwrap_or_default()
    }

    fn prompt(&self, log_id: u64, offset: usize) -> Option<HistoryEntry> {
        prompts::entry(self.parts(), log_id, offset).ok().flatten()
    }

    fn add_prompt(&self, thread: ThreadId, text: &str, max_bytes: Option<u64>) -> Result<(), StoreError> {
        Ok(prompts::add(self.parts(), thread, text, max_bytes)?)
    }
}
