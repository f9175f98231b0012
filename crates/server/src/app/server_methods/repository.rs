//! `gitDiffToRemote`.

use std::sync::Arc;

use codex_protocol::methods::ClientRequest;
use codex_protocol::rpc::ErrorObject;
use codex_protocol::v1::git::{GitDiffToRemoteParams, GitDiffToRemoteResponse};
use codex_tools::own_git::{OwnGit, writable_folders};

use super::{Passed, explain, group};
use crate::app::connection::{Connection, Unanswered};
use crate::app::disk::{self, in_place};

/// Serves the requests of this group.
pub(super) fn serve(connection: &Arc<Connection>, unanswered: Unanswered, request: ClientRequest) -> Passed {
    group! {
        connection, unanswered, request;
        now {}
        aside { GitDiffToRemote => diff_to_remote, }
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
        let git = OwnGit::find(host.start.config.home(), host.start.config.env(), &writable)
            .map_err(|error| failed(&error))?;
        let found = git.diff_to_remote(&cwd).map_err(|error| failed(&error))?;
        Ok(GitDiffToRemoteResponse { sha: found.sha, diff: found.diff })
    })
    .await
}
