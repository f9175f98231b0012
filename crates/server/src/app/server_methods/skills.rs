//! `skills/*` and `hooks/list`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use codex_config::SkillSelector;
use codex_protocol::methods::call;
use codex_protocol::rpc::ErrorObject;
use codex_protocol::v2::empty::Empty;
use codex_protocol::v2::hooks::{HooksListEntry, HooksListParams, HooksListResponse};
use codex_protocol::v2::notification::ServerNotification;
use codex_protocol::v2::skills::{
    SkillMetadata, SkillsConfigWriteParams, SkillsConfigWriteResponse, SkillsExtraRootsSetParams, SkillsListEntry,
    SkillsListParams, SkillsListResponse,
};

use super::{config, with_host};
use crate::app::connection::Connection;
use crate::app::dispatch::{Request, Serve, answer_and_tell, serve};
use crate::app::host::Host;
use crate::app::thread_metadata::WithNotification;

/// The maximum length of a skill's name in bytes, and the maximum number of skill folders that a client may add.
const MOST_NAME_BYTES: usize = 256;
const MOST_ROOTS: usize = 32;

serve! {
    tells {
        SkillsConfigWrite => switch,
    }
    sure {
        HooksList => hooks,
    }
    waits {
        SkillsList => skills,
    }
}

impl Serve for call::SkillsExtraRootsSet {
    async fn serve(request: Request<Self>, params: SkillsExtraRootsSetParams) {
        let done = set_roots(&request.connection, params.extra_roots);
        answer_and_tell(request, done).await;
    }
}

/// The folders that a request names.
fn folders(host: &Host, named: Vec<PathBuf>) -> Vec<PathBuf> {
    let own = &host.start.cwd;
    if named.is_empty() { vec![own.clone()] } else { named.iter().map(|folder| own.join(folder)).collect() }
}

/// Skills are read from disk each time, so there is nothing to reload.
async fn skills(connection: &Arc<Connection>, params: SkillsListParams) -> Result<SkillsListResponse, ErrorObject> {
    with_host(connection, move |host| {
        let config = host.config()?;
        let entry = |cwd: PathBuf| {
            let found = codex_config::skill_list::find(&config, host.start.config.home(), &cwd);
            let shown = found.skills.into_iter().map(|skill| {
                let enabled = codex_config::skill_list::is_wanted(&config, &skill);
                SkillMetadata { enabled, ..SkillMetadata::from(skill) }
            });
            let mut entry = SkillsListEntry { skills: shown.collect(), errors: found.errors, cwd: cwd.clone() };
            // Pickers show the skills of a project, but the model does not get them before the user trusts the project.
            let untrusted = codex_config::skill_list::untrusted(&config, &cwd);
            let shown = untrusted.skills.into_iter().map(SkillMetadata::from);
            entry.skills.extend(shown.map(|skill| SkillMetadata { enabled: false, ..skill }));
            entry.errors.extend(untrusted.errors);
            entry
        };
        Ok(SkillsListResponse { data: folders(host, params.cwds).into_iter().map(entry).collect() })
    })
    .await
}

/// Enables or disables a skill for threads that start later, and returns whether it is enabled now.
async fn switch(
    connection: &Connection,
    params: SkillsConfigWriteParams,
) -> WithNotification<SkillsConfigWriteResponse> {
    let SkillsConfigWriteParams { name, path, enabled } = params;
    let which = match (name, path) {
        (Some(name), None) if name.trim().is_empty() => return Err(ErrorObject::invalid("name must not be empty")),
        (Some(name), None) if name.len() > MOST_NAME_BYTES => {
            return Err(ErrorObject::invalid(format!("name has {} bytes; the limit is {MOST_NAME_BYTES}", name.len())));
        }
        (Some(name), None) => SkillSelector::Name(name),
        (None, Some(path)) if path.is_absolute() => SkillSelector::Path(path),
        (None, Some(path)) => return Err(ErrorObject::invalid(format!("path is not absolute: {}", path.display()))),
        (Some(_), Some(_)) | (None, None) => {
            return Err(ErrorObject::invalid("a skill is switched by its name or its path, one of them"));
        }
    };
    let written = which.clone();
    config::write(connection, move |config| config.switch_skill(&written, enabled)).await?;
    with_host(connection, move |host| {
        let config = host.config()?;
        // The command line takes precedence over the written value.
        let effective_enabled = match &which {
            SkillSelector::Name(name) => config.skills.is_enabled(name, Path::new("")),
            SkillSelector::Path(path) => config.skills.is_enabled("", path),
        };
        Ok((SkillsConfigWriteResponse { effective_enabled }, Some(ServerNotification::SkillsChanged(Empty {}))))
    })
    .await
}

/// Adds skill folders for threads that start later, until the server ends.
fn set_roots(connection: &Connection, roots: Vec<PathBuf>) -> WithNotification<Empty> {
    if roots.len() > MOST_ROOTS {
        return Err(ErrorObject::invalid(format!(
            "extraRoots has {} folders; at most {MOST_ROOTS} are looked into",
            roots.len()
        )));
    }
    if let Some(root) = roots.iter().find(|root| !root.is_absolute()) {
        return Err(ErrorObject::invalid(format!("extraRoots: path is not absolute: {}", root.display())));
    }
    let is_new = connection.host.start.config.look_for_skills_in(roots);
    Ok((Empty {}, is_new.then_some(ServerNotification::SkillsChanged(Empty {}))))
}

/// This program runs no hooks.
fn hooks(connection: &Arc<Connection>, params: HooksListParams) -> HooksListResponse {
    let none = |cwd| HooksListEntry { cwd, hooks: Vec::new(), warnings: Vec::new(), errors: Vec::new() };
    let folders = folders(&connection.host, params.cwds);
    HooksListResponse { data: folders.into_iter().map(none).collect() }
}
