//! Checks that the folder of a thread is on this machine, if its store is shared with others.
//!
//! A thread of another machine can be read here in any case. To continue it, its commands need the files that it is
//! about: the same folder, with the same repository.

use std::path::Path;

use codex_config::{Env, Home};
use codex_tools::trusted_git::{Checkout, TrustedGit, writable_folders};
use codex_wire::ids::ThreadId;
use codex_wire::rollout::GitInfo;
use codex_workspace::git::git_info;

use crate::open_error::OpenError;
use crate::setup::Setup;

/// Fails if a thread works in a folder that this machine does not have.
pub(crate) fn check(setup: &Setup, thread: ThreadId) -> Result<(), OpenError> {
    let Some(server) = setup.store.last_server(thread)? else { return Ok(()) };
    let meta = setup.store.meta(thread)?;
    let problem = if meta.cwd.is_dir() {
        meta.git.as_ref().and_then(|git| difference(git, &meta.cwd, &setup.home))
    } else {
        Some("does not exist here")
    };
    problem.map_or(Ok(()), |problem| Err(OpenError::Elsewhere { thread, cwd: meta.cwd, problem, server }))
}

/// The reason why the repository of a folder is not the one that a thread has started in.
fn difference(before: &GitInfo, cwd: &Path, home: &Home) -> Option<&'static str> {
    let Some(now) = git_info(cwd) else { return Some("is no git repository here") };
    let same_origin = before.repository_url.is_some() && before.repository_url == now.repository_url;
    if same_origin || before.commit_hash.is_none() || before.commit_hash == now.commit_hash {
        return None;
    }
    let commit = before.commit_hash.as_deref().unwrap_or_default();
    let has_commit = || {
        let git = TrustedGit::find(home, &Env::process(), &writable_folders(cwd, None)).ok()?;
        Some(git.has_commit(&Checkout::find(cwd)?, commit))
    };
    // Without git nobody can tell.
    (has_commit() == Some(false)).then_some("is another git repository here")
}
