//! Corrections to the stored information about a thread's repository.

use codex_log::store::{RepositoryChange, ThreadSummary};
use codex_wire::ids::ThreadId;
use codex_wire::rollout::GitInfo;

use super::{NoteError, Notes, check_text};

/// The maximum length of a commit, a branch or an address, in bytes.
const MOST_BYTES: usize = 4096;

fn check(change: &RepositoryChange) -> Result<(), NoteError> {
    for (what, text) in [("sha", &change.commit), ("branch", &change.branch), ("originUrl", &change.url)] {
        if let Some(Some(text)) = text {
            check_text(what, text, MOST_BYTES)?;
        }
    }
    Ok(())
}

impl Notes {
    /// Changes the stored information about a thread's repository.
    pub fn change_repository(&self, thread: &ThreadSummary, change: RepositoryChange) -> Result<(), NoteError> {
        check(&change)?;
        self.repository_file(thread.id).change(|note: &mut Option<GitInfo>| {
            let mut git = note.take().or_else(|| thread.git.clone()).unwrap_or_default();
            change.apply(&mut git);
            *note = Some(git);
            Ok(())
        })
    }

    /// The noted information about a thread's repository. An unreadable note counts as empty.
    pub(crate) fn repository(&self, thread: ThreadId) -> Option<GitInfo> {
        self.repository_file(thread).read().unwrap_or_default()
    }
}
