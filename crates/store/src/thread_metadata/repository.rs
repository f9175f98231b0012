//! Corrections to the stored information about a thread's repository.

use codex_log::store::{RepositoryChange, ThreadSummary};
use codex_wire::ids::ThreadId;
use codex_wire::rollout::GitInfo;

use super::{Document, Documents, MetadataError, StoredMetadata, check_text};

/// The maximum length of a commit, a branch or an address, in bytes.
const MOST_BYTES: usize = 4096;

fn check(change: &RepositoryChange) -> Result<(), MetadataError> {
    for (what, text) in [("sha", &change.commit), ("branch", &change.branch), ("originUrl", &change.url)] {
        if let Some(Some(text)) = text {
            check_text(what, text, MOST_BYTES)?;
        }
    }
    Ok(())
}

impl<D: Documents> StoredMetadata<D> {
    /// Changes the stored information about a thread's repository.
    pub fn change_repository(&self, thread: &ThreadSummary, change: RepositoryChange) -> Result<(), MetadataError> {
        check(&change)?;
        self.documents.change(Document::Repository(thread.id), |stored: &mut Option<GitInfo>| {
            let mut git = stored.take().or_else(|| thread.git.clone()).unwrap_or_default();
            change.clone().apply(&mut git);
            *stored = Some(git);
            Ok(())
        })
    }

    /// The corrected information about a thread's repository. An unreadable file counts as empty.
    pub(crate) fn repository(&self, thread: ThreadId) -> Option<GitInfo> {
        self.documents.read(Document::Repository(thread)).unwrap_or_default()
    }
}
