//! Threads that another program or user has written. They may name their folder, but not grant commands write access to
//! it.

use std::path::Path;

use codex_config::{Config, TrustLevel};
use codex_wire::policy::SandboxPolicy;
use codex_wire::rollout::SessionMeta;

use crate::setup::Setup;
use codex_config::project_doc::repository_root;
use codex_config::skill_list::is_distrusted;
use codex_log::settings::Settings;
use codex_thread::ExplicitOverrides;

/// Restricts the sandbox of a foreign thread to reading if its folder is not the current one and the user has neither
/// named nor trusted it. Returns a warning for the user.
pub(crate) fn withhold(
    settings: &mut Settings,
    meta: &SessionMeta,
    setup: &Setup,
    explicit: ExplicitOverrides,
) -> Option<String> {
    let Setup { config, cwd: stands, .. } = setup;
    let is_confirmed = explicit.cwd || is_near(stands, &settings.cwd) || is_trusted(config, &settings.cwd);
    let has_no_limits =
        matches!(settings.sandbox_policy, SandboxPolicy::DangerFullAccess | SandboxPolicy::ExternalSandbox { .. });
    // A request for no limits applies to every folder.
    let is_free = explicit.sandbox_policy && has_no_limits;
    if is_confirmed || is_free || !is_foreign(meta, config, &settings.cwd) {
        return None;
    }
    let withheld = std::mem::replace(&mut settings.sandbox_policy, SandboxPolicy::ReadOnly);
    let is_tightened = withheld != SandboxPolicy::ReadOnly;
    settings.withheld = Some(withheld);
    is_tightened.then(|| {
        format!(
            "this thread comes from elsewhere and works in {}: commands can only read until you name the folder yourself \
             or trust it",
            settings.cwd.display()
        )
    })
}

/// Whether a thread was imported, or was written by another release in a folder that the user does not trust.
fn is_foreign(meta: &SessionMeta, config: &Config, cwd: &Path) -> bool {
    let is_ours = meta.cli_version == env!("CARGO_PKG_VERSION");
    meta.lineage.imported_at.is_some() || (!is_ours && is_distrusted(config, cwd))
}

fn is_trusted(config: &Config, cwd: &Path) -> bool {
    let root = repository_root(cwd);
    let is_trusted = |folder: &Path| config.projects.get(folder) == Some(&TrustLevel::Trusted);
    is_trusted(cwd) || root.is_some_and(|root| is_trusted(&root))
}

/// Whether two folders are the same, or one contains the other in the same repository.
fn is_near(one: &Path, other: &Path) -> bool {
    let (Ok(one), Ok(other)) = (one.canonicalize(), other.canonicalize()) else { return false };
    let holds = one.starts_with(&other) || other.starts_with(&one);
    one == other || (holds && repository_root(&one).is_some() && codex_workspace::git::is_same_repository(&one, &other))
}
