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
    pub history: Option<PromptHistory>,
    /// The folder of the files.
    pub folder: PathBuf,
}

impl Prompts {
    pub(super) fn add(&self, thread: ThreadId, text: &str) -> Result<(), PromptHistoryError> {
        self.history.as_ref().map_or(Ok(()), |history| history.add(thread, text))
    }

    pub(super) fn entry(&self, log_id: u64, offset: usize) -> Option<HistoryEntry> {
        self.history.as_ref().and_then(|history| history.entry(log_id, offset))
    }

    pub(super) fn custom(&self) -> std::io::Result<Vec<CustomPrompt>> {
        codex_store::custom_prompts(&self.folder)
    }
}
