//! The prompts of the user, which all threads share.

use std::path::PathBuf;
use std::sync::Arc;

use codex_log::store::{StoreError, ThreadStore};
use codex_wire::history::HistoryEntry;
use codex_wire::ids::ThreadId;
use codex_wire::prompt::CustomPrompt;

/// The prompts of the user: the prompt history, and custom prompts in files.
#[derive(Debug, Clone)]
pub struct Prompts {
    /// The store of the prompt history; `None` if the user has disabled it.
    history: Option<Arc<dyn ThreadStore>>,
    /// The maximum size of the history in bytes.
    max_bytes: Option<u64>,
    /// The folder of the files.
    folder: PathBuf,
}

impl Prompts {
    /// The prompts of a home. Without a store the history is not saved.
    #[must_use]
    pub fn new(history: Option<Arc<dyn ThreadStore>>, max_bytes: Option<u64>, folder: PathBuf) -> Self {
        Self { history, max_bytes, folder }
    }

    pub(super) fn add(&self, thread: ThreadId, text: &str) -> Result<(), StoreError> {
        self.history.as_ref().map_or(Ok(()), |history| history.add_prompt(thread, text, self.max_bytes))
    }

    pub(super) fn entry(&self, log_id: u64, offset: usize) -> Option<HistoryEntry> {
        self.history.as_ref().and_then(|history| history.prompt(log_id, offset))
    }

    pub(super) fn custom(&self) -> std::io::Result<Vec<CustomPrompt>> {
        codex_config::custom_prompts(&self.folder)
    }
}
