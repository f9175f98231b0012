//! `fuzzyFileSearch`: searches, and sessions whose latest results are kept for the client.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use codex_protocol::v2::search::{FuzzyFileSearchMatchType, FuzzyFileSearchResult};
use codex_workspace::search::{DEFAULT_LIMIT, Match, Report, Scope, Session};

/// The folders to search.
#[derive(Debug)]
pub struct FileSearch {
    scope: Scope,
}

impl FileSearch {
    /// A search below these folders, for files and, if the client knows them, for folders.
    #[must_use]
    pub fn new(cwd: &Path, roots: Vec<PathBuf>, folders: bool) -> Self {
        let roots = roots.into_iter().map(|root| cwd.join(root)).collect();
        Self { scope: Scope { roots, limit: DEFAULT_LIMIT, folders } }
    }

    /// Searches once, until it is cancelled. This blocks.
    #[must_use]
    pub fn run(&self, query: &str, is_cancelled: &AtomicBool) -> Vec<FuzzyFileSearchResult> {
        let found = codex_workspace::search::search(query, &self.scope, is_cancelled);
        found.into_iter().map(|found| result(found, self.scope.folders)).collect()
    }

    /// Starts a session, which reports how its results change.
    ///
    /// # Errors
    /// If its thread cannot be started.
    pub fn start(self, change: impl Fn(&dyn Fn(&mut SearchState)) + Send + 'static) -> std::io::Result<SearchSession> {
        let folders = self.scope.folders;
        let report = move |report| {
            change(&|state| match &report {
                Report::Updated { query, files } => {
                    let files = files.iter().cloned().map(|found| result(found, folders)).collect();
                    let (updates, query) = (state.updates + 1, query.clone());
                    *state = SearchState { updates, query, files, is_complete: false };
                }
                Report::Completed => state.is_complete = true,
            });
        };
        Session::start(self.scope, report).map(SearchSession)
    }
}

/// A session. It ends when it is dropped.
#[derive(Debug)]
pub struct SearchSession(Session);

impl SearchSession {
    /// Searches for something else.
    pub fn update(&self, query: String) {
        self.0.update(query);
    }
}

/// A match. Clients of releases that list only files know the type of every match.
fn result(found: Match, tells_type: bool) -> FuzzyFileSearchResult {
    let Match { root, path, is_folder, file_name, score, indices } = found;
    let kind = if is_folder { FuzzyFileSearchMatchType::Directory } else { FuzzyFileSearchMatchType::File };
    let match_type = tells_type.then_some(kind);
    FuzzyFileSearchResult { root, path, match_type, file_name, score, indices: Some(indices) }
}

/// The latest results of a session. Earlier ones are dropped, so a client that does not read costs nothing.
#[derive(Debug, Default)]
pub struct SearchState {
    /// The number of changes.
    pub updates: u64,
    pub query: String,
    pub files: Vec<FuzzyFileSearchResult>,
    pub is_complete: bool,
}
