//! The prompt history, newest first: the prompts of this run, and those that the home folder keeps.

use codex_wire::ids::ThreadId;

/// The maximum number of unreadable lines skipped in search of an earlier prompt.
const MOST_UNREADABLE: usize = 100;

/// The prompts that the home folder keeps.
pub trait SavedPrompts: Send + std::fmt::Debug {
    /// The number of prompts when the run started.
    fn count(&self) -> usize;

    /// The prompt at a position, starting with the oldest; `None` if it cannot be read.
    fn get(&self, position: usize) -> Option<String>;

    /// Adds a prompt. The error is for people.
    fn add(&self, thread: ThreadId, text: &str) -> Result<(), String>;
}

/// The prompt history, and the position in it.
#[derive(Debug, Default)]
pub struct History {
    saved: Option<Box<dyn SavedPrompts>>,
    /// The number of saved prompts when the run started.
    entries: usize,
    /// The prompts of this run, oldest first.
    here: Vec<String>,
    /// The number of steps back, and the text that was typed before.
    back: Option<(usize, String)>,
}

impl History {
    /// The history with saved prompts, or of this run alone.
    #[must_use]
    pub fn new(saved: Option<Box<dyn SavedPrompts>>) -> Self {
        let entries = saved.as_ref().map_or(0, |saved| saved.count());
        Self { saved, entries, ..Self::default() }
    }

    /// Adds a prompt. A write error is reported once, and nothing more is saved.
    pub fn add(&mut self, thread: Option<ThreadId>, text: &str) -> Option<String> {
        self.back = None;
        if self.here.last().is_none_or(|last| last != text) {
            self.here.push(text.to_owned());
        }
        let (saved, thread) = (self.saved.as_ref()?, thread?);
        let error = saved.add(thread, text).err()?;
        self.saved = None;
        Some(error)
    }

    /// The latest prompts, the newest first, each once.
    #[must_use]
    pub fn latest(&self, most: usize) -> Vec<String> {
        let mut found: Vec<String> = Vec::new();
        for step in 1..=(self.here.len() + self.entries).min(most) {
            found.extend(self.get(step).filter(|text| !found.contains(text)));
        }
        found
    }

    /// The next older prompt, if there is one. `typed` is the current input.
    pub fn older(&mut self, typed: &str) -> Option<String> {
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
    pub fn newer(&mut self) -> Option<String> {
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
        self.saved.as_ref()?.get(place)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    /// Prompts in memory. Empty ones cannot be read, and long ones cannot be saved.
    #[derive(Debug, Clone, Default)]
    struct Prompts(Arc<Mutex<Vec<String>>>);

    impl SavedPrompts for Prompts {
        fn count(&self) -> usize {
            self.0.lock().unwrap().len()
        }

        fn get(&self, position: usize) -> Option<String> {
            self.0.lock().unwrap().get(position).filter(|text| !text.is_empty()).cloned()
        }

        fn add(&self, _: ThreadId, text: &str) -> Result<(), String> {
            if text.len() > 10 {
                return Err("the disk is full".to_owned());
            }
            self.0.lock().unwrap().push(text.to_owned());
            Ok(())
        }
    }

    #[test]
    fn prompts_of_other_runs_come_after_those_of_this_one() {
        let saved = Prompts::default();
        saved.0.lock().unwrap().extend(["old".to_owned(), String::new()]);
        let mut history = History::new(Some(Box::new(saved.clone())));
        assert_eq!(history.add(Some(ThreadId::fresh()), "new"), None);
        assert_eq!(history.older("draft").as_deref(), Some("new"));
        assert_eq!(history.older("new").as_deref(), Some("old"));
        assert_eq!(history.older("old"), None);
        assert_eq!(history.newer().as_deref(), Some("new"));
        assert_eq!(history.newer().as_deref(), Some("draft"));
        assert_eq!(history.newer(), None);
        assert_eq!(saved.0.lock().unwrap().as_slice(), ["old", "", "new"]);
    }

    #[test]
    fn a_failure_to_save_is_reported_once() {
        let mut history = History::new(Some(Box::new(Prompts::default())));
        let long = "more than fits";
        assert_eq!(history.add(Some(ThreadId::fresh()), long).as_deref(), Some("the disk is full"));
        assert_eq!(history.add(Some(ThreadId::fresh()), "one more that is long"), None);
        assert_eq!(history.older("").as_deref(), Some("one more that is long"));
        assert_eq!(history.older("").as_deref(), Some(long));
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
