//! Metadata of threads: read states, and data that clients store with threads.

use codex_wire::rollout::GitInfo;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A section: a group of threads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Section {
    /// Its id, which never changes.
    pub id: String,
    /// Its name for people.
    pub name: String,
    /// Its appearance.
    #[serde(default)]
    pub appearance: Option<Appearance>,
}

/// The appearance of a section.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Appearance {
    /// Its colour, a string chosen by the client.
    #[serde(default)]
    pub color: Option<String>,
    /// Its icon, a string chosen by the client.
    #[serde(default)]
    pub icon: Option<String>,
}

/// The section of a thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InSection {
    pub section: Section,
    /// The time when the thread was added, in seconds of Unix time.
    pub since: i64,
}

/// A value that a client has attached to a thread.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Attachment {
    /// Its unique id.
    pub id: String,
    /// Its type, chosen by the client.
    pub kind: String,
    /// Its key. A thread has at most one attachment of a type and key.
    pub key: String,
    /// The value.
    pub payload: Value,
    /// The time when it was attached, in seconds of Unix time.
    pub created_at: i64,
}

impl Attachment {
    /// Whether it has this type and this key.
    #[must_use]
    pub fn is(&self, kind: &str, key: &str) -> bool {
        self.kind == kind && self.key == key
    }
}

/// A change of repository information: an outer `None` leaves a value, an inner one removes it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RepositoryChange {
    /// The commit.
    pub commit: Option<Option<String>>,
    /// The branch.
    pub branch: Option<Option<String>>,
    /// The URL of the remote.
    pub url: Option<Option<String>>,
}

impl RepositoryChange {
    /// Applies the change.
    pub fn apply(self, git: &mut GitInfo) {
        let change = |old: &mut Option<String>, new: Option<Option<String>>| {
            if let Some(new) = new {
                *old = new;
            }
        };
        change(&mut git.commit_hash, self.commit);
        change(&mut git.branch, self.branch);
        change(&mut git.repository_url, self.url);
    }
}

/// A mark of the user on a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadMark {
    /// Read.
    Read,
    /// Unread.
    Unread,
}
