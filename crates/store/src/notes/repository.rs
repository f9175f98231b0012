//! What is known of the repository that a thread works in, where somebody knows better than its file.

use codex_wire::ids::ThreadId;
use codex_wire::rollout::GitInfo;

use super::{NoteError, Notes, check_text};
use crate::threads::ThreadSummary;

/// How long the name of a commit, a branch or an address may be, in bytes.
const MOST_BYTES: usize = 4096;

/// What changes of a repository: what is not said stays, and nothing takes away.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RepositoryChange {
    /// The commit.
    pub commit: Option<Option<String>>,
    /// The branch.
    pub branch: Option<Option<String>>,
    /// Where it came from.
    pub url: Option<Option<String>>,
}

impl RepositoryChange {
    fn check(&self) -> Result<(), NoteError> {
        for (what, text) in [("sha", &self.commit), ("branch", &self.branch), ("originUrl", &self.url)] {
            if let Some(Some(text)) = text {
                check_text(what, text, MOST_BYTES)?;
            }
        }
        Ok(())
    }

    fn make(self, git: &mut GitInfo) {
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

impl Notes {
    /// Changes what is known of a thread's repository.
    pub fn change_repository(&self, thread: &ThreadSummary, change: RepositoryChange) -> Result<(), NoteError> {
        change.check()?;
        self.repository_file(thread.id).change(|note: &mut Option<GitInfo>| {
            let mut git = note.take().or_else(|| thread.git.clone()).unwrap_or_default();
            change.make(&mut git);
            *note = Some(git);
            Ok(())
        })
    }

    /// What is noted of a thread's repository. A note that cannot be read says nothing.
    pub(crate) fn repository(&self, thread: ThreadId) -> Option<GitInfo> {
        self.repository_file(thread).read().unwrap_or_default()
    }
}
