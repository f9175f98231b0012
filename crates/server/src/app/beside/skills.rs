//! `skills/list` and `hooks/list`.

use std::path::PathBuf;
use std::sync::Arc;

use codex_protocol::methods::ClientRequest;
use codex_protocol::rpc::ErrorObject;
use codex_protocol::v2::hooks::{HooksListEntry, HooksListParams, HooksListResponse};
use codex_protocol::v2::skills::{SkillMetadata, SkillsListEntry, SkillsListParams, SkillsListResponse};

use super::{Passed, group, with_host};
use crate::app::connection::{Connection, Unanswered};
use crate::app::host::Host;

/// Serves the requests of this group.
pub(super) async fn serve(connection: &Arc<Connection>, unanswered: Unanswered, request: ClientRequest) -> Passed {
    group! {
        connection, unanswered, request;
        sure { HooksList => hooks, }
        now {}
        aside { SkillsList => skills, }
    }
}

/// The folders that a client means.
fn folders(host: &Host, named: Vec<PathBuf>) -> Vec<PathBuf> {
    let own = &host.start.cwd;
    if named.is_empty() { vec![own.clone()] } else { named.iter().map(|folder| own.join(folder)).collect() }
}

/// Skills are read from disk each time, so there is nothing to reload.
async fn skills(connection: &Arc<Connection>, params: SkillsListParams) -> Result<SkillsListResponse, ErrorObject> {
    with_host(connection, move |host| {
        let config = host.config()?;
        let entry = |cwd: PathBuf| {
            let mut entry = SkillsListEntry::from(codex_engine::skills::list(&config, &host.start.home, &cwd));
            // Pickers show what a project brings along, but no model hears of it before the user trusts the project.
            let untrusted = codex_engine::skills::untrusted(&config, &cwd);
            let shown = untrusted.skills.into_iter().map(SkillMetadata::from);
            entry.skills.extend(shown.map(|skill| SkillMetadata { enabled: false, ..skill }));
            entry.errors.extend(untrusted.errors);
            entry
        };
        Ok(SkillsListResponse { data: folders(host, params.cwds).into_iter().map(entry).collect() })
    })
    .await
}

/// This program runs no hooks.
fn hooks(connection: &Arc<Connection>, params: HooksListParams) -> HooksListResponse {
    let none = |cwd| HooksListEntry { cwd, hooks: Vec::new(), warnings: Vec::new(), errors: Vec::new() };
    let folders = folders(&connection.host, params.cwds);
    HooksListResponse { data: folders.into_iter().map(none).collect() }
}
