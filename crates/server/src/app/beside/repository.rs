//! `gitDiffToRemote`.

use std::sync::Arc;

use codex_protocol::methods::ClientRequest;
use codex_protocol::rpc::ErrorObject;
use codex_protocol::v1::git::{GitDiffToRemoteParams, GitDiffToRemoteResponse};

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
    let cwd = connection.host.start.cwd.join(params.cwd);
    in_place(&connection.host.places.files, disk::LONG, move || {
        let found = codex_git::git_diff_to_remote(&cwd).map_err(|error| {
            let (cwd, why) = (cwd.display(), explain(&error, None));
            ErrorObject::invalid(format!("failed to compute git diff to remote for cwd: {cwd}: {why}"))
        })?;
        Ok(GitDiffToRemoteResponse { sha: found.sha, diff: found.diff })
    })
    .await
}
