//! `gitDiffToRemote`.

use std::sync::Arc;

use codex_wire::methods::ClientRequest;
use codex_wire::rpc::ErrorObject;
use codex_wire::v1::git::{GitDiffToRemoteParams, GitDiffToRemoteResponse};

use super::{Passed, explain, group, with_host};
use crate::app::connection::{Connection, Unanswered};

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
    with_host(connection, move |host| {
        let cwd = host.start.cwd.join(params.cwd);
        codex_git::git_diff_to_remote(&cwd).map_err(|error| {
            let (cwd, why) = (cwd.display(), explain(&error, None));
            ErrorObject::invalid(format!("failed to compute git diff to remote for cwd: {cwd}: {why}"))
        })
    })
    .await
}
