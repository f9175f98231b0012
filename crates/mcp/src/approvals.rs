//! Tools that a person has allowed for good, on disk.
//!
//! Invariant: an approval is for a digest of the tool and of its server, so that a tool or a server that changes in any
//! way is asked about again. A file that is broken or too long allows nothing.

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::private_file;

/// The most approvals that are kept; older ones are asked about again.
const MOST_KEPT: usize = 1_000;
/// The longest file.
const MOST_BYTES: u64 = 256 * 1024;

/// The approvals below a home.
#[derive(Debug)]
pub(crate) struct Approvals {
    file: PathBuf,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Stored {
    /// Digests, the oldest first.
    approved: Vec<Box<str>>,
}

impl Approvals {
    pub(crate) fn below(home: &Path) -> Self {
        Self { file: home.join("mcp_approvals.json") }
    }

    /// Whether a tool was allowed, by the digest of it and of its server.
    pub(crate) fn allow(&self, digest: &str) -> bool {
        self.read().approved.iter().any(|approved| **approved == *digest)
    }

    /// Allows a tool. Two programs that do so at the same time may keep only one of the approvals.
    pub(crate) fn add(&self, digest: &str) -> io::Result<()> {
        let mut stored = self.read();
        stored.approved.retain(|approved| **approved != *digest);
        let surplus = (stored.approved.len() + 1).saturating_sub(MOST_KEPT);
        stored.approved.drain(..surplus);
        stored.approved.push(digest.into());
        private_file::replace(&self.file, &serde_json::to_vec(&stored)?)
    }

    fn read(&self) -> Stored {
        let text = codex_files::read_text(&self.file, MOST_BYTES).unwrap_or_default();
        serde_json::from_str(&text).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_approval_is_kept_for_exactly_one_digest() {
        let home = tempfile::tempdir().unwrap();
        let approvals = Approvals::below(home.path());
        assert!(!approvals.allow("a"));
        approvals.add("a").unwrap();
        approvals.add("b").unwrap();
        let again = Approvals::below(home.path());
        assert!(again.allow("a") && again.allow("b") && !again.allow("c"));
    }

    #[test]
    fn the_oldest_are_forgotten_and_a_broken_file_allows_nothing() {
        let home = tempfile::tempdir().unwrap();
        let approvals = Approvals::below(home.path());
        let approved = (0..MOST_KEPT).map(|number| number.to_string().into()).collect();
        private_file::replace(&approvals.file, &serde_json::to_vec(&Stored { approved }).unwrap()).unwrap();
        approvals.add("new").unwrap();
        assert!(!approvals.allow("0") && approvals.allow("1") && approvals.allow("new"));
        std::fs::write(&approvals.file, "{\"approved\":[\"new\"").unwrap();
        assert!(!approvals.allow("new"));
    }
}
