//! The prompts people have typed, one JSON line each, shared by all threads.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The prompt history as a client is told of it when a thread starts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PromptHistory {
    /// The identity of the file, so that a client notices when it was replaced; 0 when there is none.
    pub log_id: u64,
    /// How many prompts it holds.
    pub entries: usize,
}

impl PromptHistory {
    /// Looks at the file. One that is missing or cannot be read counts as empty: it must not keep a thread from
    /// starting.
    #[must_use]
    pub fn look(path: &Path) -> Self {
        Self::read(path).unwrap_or_default()
    }

    fn read(path: &Path) -> std::io::Result<Self> {
        let file = File::open(path)?;
        let log_id = file.metadata()?.ino();
        let mut lines = BufReader::new(file);
        let mut entries = 0;
        while lines.skip_until(b'\n')? > 0 {
            entries += 1;
        }
        Ok(Self { log_id, entries })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_the_prompts() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("history.jsonl");
        assert_eq!(PromptHistory::look(&path), PromptHistory::default());
        std::fs::write(&path, "{\"text\":\"a\"}\n{\"text\":\"b\"}\n").unwrap();
        let history = PromptHistory::look(&path);
        assert_eq!(history.entries, 2);
        assert_ne!(history.log_id, 0);
    }
}
