//! The clients' metadata about the threads of a home.

use codex_log::ReadState;
use codex_log::store::{
    Appearance, Attachment, ReadMark, RepositoryChange, Section, StoreError, ThreadMetadata, ThreadSummary,
};
use codex_wire::ids::ThreadId;
use serde_json::Value;

use super::FileStore;

impl ThreadMetadata for FileStore {
    fn read_state(&self, thread: ThreadId) -> ReadState {
        self.index.metadata().read_state(thread)
    }

    fn turn_ended(&self, thread: ThreadId, turn: &str) -> Result<ReadState, StoreError> {
        Ok(self.index.metadata().turn_ended(thread, turn)?)
    }

    fn mark(&self, thread: ThreadId, seen: &str, mark: ReadMark) -> Result<(ReadState, bool), StoreError> {
        Ok(self.index.metadata().mark(thread, seen, mark)?)
    }

    fn turns_left(&self, thread: ThreadId, turns: &[&str]) -> Result<Option<ReadState>, StoreError> {
        Ok(self.index.metadata().turns_left(thread, turns)?)
    }

    fn attachments(&self, thread: ThreadId) -> Result<Vec<Attachment>, StoreError> {
        Ok(self.index.metadata().attachments(thread)?)
    }

    fn attach(
        &self,
        thread: ThreadId,
        kind: &str,
        key: &str,
        payload: Value,
    ) -> Result<(Attachment, bool), StoreError> {
        Ok(self.index.metadata().attach(thread, kind, key, payload)?)
    }

    fn detach(&self, thread: ThreadId, kind: &str, key: &str) -> Result<Option<Attachment>, StoreError> {
        Ok(self.index.metadata().detach(thread, kind, key)?)
    }

    fn attached_to(&self, kind: &str, key: &str) -> Result<Vec<ThreadId>, StoreError> {
        Ok(self.index.metadata().attached_to(kind, key)?)
    }

    fn change_repository(&self, thread: &ThreadSummary, change: RepositoryChange) -> Result<(), StoreError> {
        Ok(self.index.metadata().change_repository(thread, change)?)
    }

    fn sections(&self) -> Result<Vec<Section>, StoreError> {
        Ok(self.index.metadata().sections()?)
    }

    fn create_section(&self, name: String, appearance: Option<Appearance>) -> Result<Section, StoreError> {
        Ok(self.index.metadata().create_section(name, appearance)?)
    }

    fn update_section(
        &self,
        section: &str,
        name: String,
        appearance: Option<Option<Appearance>>,
    ) -> Result<Section, StoreError> {
        Ok(self.index.metadata().update_section(section, name, appearance)?)
    }

    fn delete_section(&self, section: &str) -> Result<(), StoreError> {
        Ok(self.index.metadata().delete_section(section)?)
    }

    fn move_thread(&self, thread: ThreadId, section: Option<&str>, before: Option<ThreadId>) -> Result<(), StoreError> {
        Ok(self.index.metadata().move_thread(thread, section, before)?)
    }
}
