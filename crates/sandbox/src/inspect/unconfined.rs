//! Whether git would run programs that a repository itself names, for git commands outside of a sandbox.

use std::io::BufReader;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::inspector::{Inspector, Purpose};
use crate::git;
use crate::profile::{Profile, SandboxContext};
use codex_guard::disarm;
use codex_guard::git::config;
use codex_guard::git::index;
use codex_guard::walk::Root;
use codex_wire::policy::{SandboxPolicy, WorkspaceWrite};

/// The maximum number of repositories that one command would reach: its own and its submodules.
const MAX_REPOSITORIES: usize = 64;

/// Whether git commands in a folder may run programs that its repository names in its settings, or in those of its
/// submodules. True for anything that cannot be examined.
#[must_use]
pub fn names_programs(folder: &Path) -> bool {
    let Ok(folder) = folder.canonicalize() else { return true };
    let is_repository = |folder: &&Path| codex_files::is_checkout(folder) || codex_files::is_git_folder(folder);
    let Some(root) = folder.ancestors().find(is_repository) else { return false };
    let mut waiting = vec![root.to_owned()];
    let mut examined = 0;
    while let Some(checkout) = waiting.pop() {
        examined += 1;
        match submodules_of_harmless(&checkout) {
            Some(submodules) if examined + waiting.len() + submodules.len() <= MAX_REPOSITORIES => {
                waiting.extend(submodules);
            }
            _ => return true,
        }
    }
    false
}

/// The checked out submodules of a repository whose own settings name nothing that runs; `None` for any other.
fn submodules_of_harmless(checkout: &Path) -> Option<Vec<PathBuf>> {
    let git = git::git_folder_of(checkout)?;
    let common = git::common_of(&git)?;
    let limits = WorkspaceWrite { exclude_slash_tmp: true, exclude_tmpdir_env_var: true, ..WorkspaceWrite::default() };
    let policy = SandboxPolicy::WorkspaceWrite(limits);
    let profile = Profile::new(&policy, checkout, &SandboxContext::default())?;
    let probe = Purpose::Probe { is_harmful: false };
    let mut inspector = Inspector::new(&profile, probe, false);
    inspector.git_folder(&common, false);
    if git != common {
        let folder = Root::open(&git)?.into_folder();
        inspector.settings(&folder, &git, "config.worktree", false);
    }
    if !matches!(inspector.purpose, Purpose::Probe { is_harmful: false }) || fetches_lazily(&common) {
        return None;
    }
    let mut submodules = Vec::new();
    let file = Root::open(&git).map(Root::into_folder).and_then(|folder| disarm::open(&folder, Path::new("index")));
    if let Some(file) = file {
        let add = |path: &[u8]| submodules.push(checkout.join(std::ffi::OsStr::from_bytes(path)));
        index::each(&mut BufReader::new(file), git::id_length(&common), add).ok()?;
    }
    submodules.retain(|folder| folder.join(".git").symlink_metadata().is_ok());
    Some(submodules)
}

/// Whether git would fetch missing objects when it shows them, with the programs that this takes.
fn fetches_lazily(common: &Path) -> bool {
    let entries = config::parse(&git::read(&common.join("config")).unwrap_or_default()).entries;
    entries.iter().any(|entry| entry.is("extensions", "partialclone") || entry.is("remote", "promisor"))
}
