//! The prompts of the user, which all threads share.

use std::path::PathBuf;

use codex_store::{PromptHistory, PromptHistoryError};
use codex_wire::history::HistoryEntry;
use codex_wire::ids::ThreadId;
use codex_wire::prompt::CustomPrompt;

/// The prompts of the user: those typed before, and those kept in files.
#[derive(Debug, Clone)]
pub struct Prompts {
    /// The prompts typed before; none when the user does not want them kept.
    history: Option<PromptHistory>,
    /// The folder of the files.
    folder: PathBuf,
}

impl Prompts {
    /// The prompts of a home. Without a history file none are kept.
    #[must_use]
    pub fn new(history: Option<PathBuf>, max_bytes: Option<u64>, folder: PathBuf) -> Self {
        Self { history: history.map(|path| PromptHistory::new(path, max_bytes)), folder }
    }

    pub(super) fn add(&self, thread: ThreadId, text: &str) -> Result<(), PromptHistoryError> {
        self.history.as_ref().map_or(Ok(()), |history| history.add(thread, text))
    }

    pub(super) fn entry(&self, log_id: u64, offset: usize) -> Option<HistoryEntry> {
        self.history.as_ref().and_then(|history| history.entry(log_id, offset))
    }

    pub(super) fn custom(&self) -> std::io::Result<Vec<CustomPrompt>> {
        codex_config::custom_prompts(&self.folder)
    }
}
