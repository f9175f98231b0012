//! The prompt history, newest first: the prompts of this run, and those that the home folder keeps.

use codex_store::PromptFile;
use codex_wire::ids::ThreadId;

/// The maximum number of unreadable lines skipped in search of an earlier prompt.
const MOST_UNREADABLE: usize = 100;

/// The prompt history, and the position in it.
#[derive(Debug, Default)]
pub(crate) struct History {
    file: Option<PromptFile>,
    /// The identity of the file when the run started.
    log_id: u64,
    entries: usize,
    /// The prompts of this run, oldest first.
    here: Vec<String>,
    /// The number of steps back, and the text that was typed before.
    back: Option<(usize, String)>,
}

impl History {
    /// The history of a file, or of this run alone.
    pub(crate) fn new(file: Option<PromptFile>) -> Self {
        let state = file.as_ref().map(PromptFile::look).unwrap_or_default();
        Self { file, log_id: state.log_id, entries: state.entries, ..Self::default() }
    }

    /// Adds a prompt. A write error is reported once, and the file is given up.
    pub(crate) fn add(&mut self, thread: Option<ThreadId>, text: &str) -> Option<String> {
        self.back = None;
        if self.here.last().is_none_or(|last| last != text) {
            self.here.push(text.to_owned());
        }
        let (file, thread) = (self.file.as_ref()?, thread?);
        let error = file.add(thread, text).err()?;
        self.file = None;
        Some(error.to_string())
    }

    /// The next older prompt, if there is one. `typed` is the current input.
    pub(crate) fn older(&mut self, typed: &str) -> Option<String> {
        let (from, draft) = self.back.clone().unwrap_or_else(|| (0, typed.to_owned()));
        for step in from + 1..=from + MOST_UNREADABLE {
            if step > self.here.len() + self.entries {
                return None;
            }
            if let Some(text) = self.get(step) {
                self.back = Some((step, draft));
                return Some(text);
            }
        }
        None
    }

    /// The next newer prompt, or the text that was typed before all of them.
    pub(crate) fn newer(&mut self) -> Option<String> {
        let (from, draft) = self.back.take()?;
        let found = (1..from).rev().find_map(|step| Some((step, self.get(step)?)));
        let Some((step, text)) = found else { return Some(draft) };
        self.back = Some((step, draft));
        Some(text)
    }

    /// The prompt at a number of steps back, starting at 1.
    fn get(&self, step: usize) -> Option<String> {
        if let Some(place) = self.here.len().checked_sub(step) {
            return self.here.get(place).cloned();
        }
        let place = self.entries.checked_sub(step - self.here.len())?;
        self.file.as_ref()?.entry(self.log_id, place).map(|entry| entry.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompts_of_other_runs_come_after_those_of_this_one() {
        let folder = tempfile::tempdir().unwrap();
        let file = PromptFile::new(folder.path().join("history.jsonl"), None);
        file.add(ThreadId::fresh(), "old").unwrap();
        std::fs::write(folder.path().join("more"), "").unwrap();
        let mut history = History::new(Some(file.clone()));
        assert_eq!(history.add(Some(ThreadId::fresh()), "new"), None);
        assert_eq!(history.older("draft").as_deref(), Some("new"));
        assert_eq!(history.older("new").as_deref(), Some("old"));
        assert_eq!(history.older("old"), None);
        assert_eq!(history.newer().as_deref(), Some("new"));
        assert_eq!(history.newer().as_deref(), Some("draft"));
        assert_eq!(history.newer(), None);
        assert_eq!(file.look().entries, 2);
    }

    #[test]
    fn without_a_file_this_run_has_a_history_all_the_same() {
        let mut history = History::new(None);
        history.add(None, "one");
        history.add(None, "one");
        assert_eq!(history.older("").as_deref(), Some("one"));
        assert_eq!(history.older("one"), None);
    }
}
