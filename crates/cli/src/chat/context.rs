//! The answers to the questions of the chat: from the configuration, the stored threads and the prompt history.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

use codex_config::{Config, Env, Home, Programs, TrustLevel};
use codex_dialogue::SavedPrompts;
use codex_log::store::{PromptHistoryState, ThreadStore};
use codex_store::{Drafts, PromptFile, locate};
use codex_tui::chat::ChatContext;
use codex_wire::ids::ThreadId;
use codex_wire::policy::{SandboxMode, SandboxPolicy};

use super::trust;
use crate::memory;

/// The home and the configuration of a chat.
pub(crate) struct HomeContext {
    pub(crate) home: Home,
    pub(crate) store: Arc<dyn ThreadStore>,
    pub(crate) config: Config,
    pub(crate) cwd: PathBuf,
    /// Whether the server is elsewhere, and with it all threads.
    pub(crate) is_elsewhere: bool,
    pub(crate) drafts: Drafts,
    pub(crate) env: Env,
}

impl ChatContext for HomeContext {
    fn rest(&self) {
        memory::give_back_free_memory();
        memory::let_go_of_start();
    }

    fn find_thread(&self, word: &str) -> Result<String, String> {
        if self.is_elsewhere {
            return Ok(word.to_owned());
        }
        let found = locate::active(&*self.store, word);
        found.map(|id| id.to_string()).map_err(|error| format!("{error:#}"))
    }

    fn sandbox_policy(&self, mode: SandboxMode) -> SandboxPolicy {
        self.config.sandbox.policy_of(mode)
    }

    fn project(&self) -> PathBuf {
        trust::project(&self.cwd)
    }

    fn trust(&self) -> Option<&'static str> {
        trust::level(&self.config, &self.project()).map(TrustLevel::as_str)
    }

    fn config_file(&self) -> PathBuf {
        self.home.config_file()
    }

    fn export(&self, name: Option<&str>, text: &str) -> Result<PathBuf, String> {
        let path = self.cwd.join(name.unwrap_or("codex-thread.md"));
        let failed = |error: std::io::Error| format!("could not write {}: {error}", path.display());
        let mut file = std::fs::OpenOptions::new().write(true).create_new(true).open(&path).map_err(failed)?;
        file.write_all(text.as_bytes()).map_err(failed)?;
        Ok(path)
    }

    fn variable(&self, name: &str) -> Option<String> {
        self.env.text(name)
    }

    fn programs(&self) -> OsString {
        Programs::new(&self.env, &[self.project(), self.cwd.clone()]).path()
    }

    fn keep_picture(&self, picture: &[u8]) -> Result<PathBuf, String> {
        self.drafts.keep_picture(picture).map_err(|error| format!("could not save the picture: {error}"))
    }

    fn server_socket(&self) -> Option<PathBuf> {
        (!self.is_elsewhere).then(|| self.home.server_socket())
    }

    fn draft(&self, name: &str) -> Option<String> {
        self.drafts.read(name)
    }

    fn keep_draft(&self, name: &str, draft: Option<&str>) -> Result<(), String> {
        self.drafts.keep(name, draft).map_err(|error| format!("could not save the draft: {error}"))
    }

    fn write(&self, text: &str) -> Result<String, String> {
        let program = ["VISUAL", "EDITOR"].iter().find_map(|name| self.env.text(name)).filter(|name| !name.is_empty());
        let program = program.ok_or("set VISUAL or EDITOR to the program that you want to write in")?;
        let error = |error: std::io::Error| format!("could not write in `{program}`: {error}");
        let scratch = self.drafts.scratch(text).map_err(error)?;
        // The shell splits the words of the variable, as it does for other programs.
        let mut command = Command::new("/bin/sh");
        command.arg("-c").arg(format!("{program} \"$1\"")).arg("sh").arg(scratch.path()).current_dir(&self.cwd);
        let status = command.status().map_err(error)?;
        if !status.success() {
            return Err(format!("`{program}` has failed ({status}); the text is as it was"));
        }
        scratch.read().map_err(error)
    }
}

/// A prompt history, and its state when the run started.
#[derive(Debug)]
pub(crate) struct PromptHistory {
    file: PromptFile,
    state: PromptHistoryState,
}

impl PromptHistory {
    pub(crate) fn new(file: PromptFile) -> Self {
        let state = file.look();
        Self { file, state }
    }
}

impl SavedPrompts for PromptHistory {
    fn count(&self) -> usize {
        self.state.entries
    }

    fn get(&self, position: usize) -> Option<String> {
        self.file.entry(self.state.log_id, position).map(|entry| entry.text)
    }

    fn add(&self, thread: ThreadId, text: &str) -> Result<(), String> {
        self.file.add(thread, text).map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompts_are_counted_once_and_read_from_the_same_file_only() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("history.jsonl");
        let file = PromptFile::new(path.clone(), None);
        file.add(ThreadId::fresh(), "old").unwrap();
        let saved = PromptHistory::new(file.clone());
        assert_eq!(saved.add(ThreadId::fresh(), "new"), Ok(()));
        assert_eq!(saved.count(), 1, "those of this run are not counted");
        assert_eq!(saved.get(0).as_deref(), Some("old"));
        assert_eq!(file.look().entries, 2);
        std::fs::rename(&path, folder.path().join("before")).unwrap();
        file.add(ThreadId::fresh(), "other").unwrap();
        assert_eq!(saved.get(0), None, "the file was replaced");
    }
}
