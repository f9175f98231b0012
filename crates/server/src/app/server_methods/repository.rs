//! `gitDiffToRemote`.

use std::sync::Arc;

use codex_protocol::rpc::ErrorObject;
use codex_protocol::v1::git::{GitDiffToRemoteParams, GitDiffToRemoteResponse};
use codex_tools::trusted_git::{TrustedGit, writable_folders};

use super::explain;
use crate::app::connection::Connection;
use crate::app::disk::{self, in_place};
use crate::app::dispatch::serve;

serve! {
    waits {
        GitDiffToRemote => diff_to_remote,
    }
}

async fn diff_to_remote(
    connection: &Arc<Connection>,
    params: GitDiffToRemoteParams,
) -> Result<GitDiffToRemoteResponse, ErrorObject> {
    let host = Arc::clone(&connection.host);
    in_place(&connection.host.places.files, disk::LONG, move || {
        let cwd = host.start.cwd.join(params.cwd);
        let failed = |error: &(dyn std::error::Error + 'static)| {
            let (cwd, why) = (cwd.display(), explain(error, None));
            ErrorObject::invalid(format!("failed to compute git diff to remote for cwd: {cwd}: {why}"))
        };
        let policy = host.config().ok().map(|config| config.sandbox_policy());
        let mut writable = host.workspaces();
        writable.push(host.start.cwd.clone());
        writable.extend(writable_folders(&cwd, policy.as_ref()));
        let git = TrustedGit::find(host.start.config.home(), host.start.config.env(), &writable)
            .map_err(|error| failed(&error))?;
        let found = git.diff_to_remote(&cwd).map_err(|error| failed(&error))?;
        Ok(GitDiffToRemoteResponse { sha: found.sha, diff: found.diff })
    })
    .await
}
