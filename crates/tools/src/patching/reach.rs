//! The places where a patch may write without a question: those that the policy allows, and those that people have
//! granted in this thread.
//!
//! Invariants: roots come from the session and from people, never from a patch alone; no grant covers a protected name
//! or the program's own home, whatever its folder.

use std::path::{Path, PathBuf};

use codex_patch::{Guard, Plan};
use codex_sandbox::{Profile, SandboxContext};
use codex_wire::policy::{AskForApproval, SandboxPolicy, WorkspaceWrite};

use crate::command::LaunchContext;

/// The minimum depth of a root. Anything above contains more than anybody means to grant.
const LEAST_DEPTH: usize = 2;

/// The places where patches may write.
#[derive(Debug)]
pub(crate) struct Reach {
    policy: Guard,
    /// The places that the policy allows without a question, without protected names.
    judged: Guard,
    /// The places that people have granted.
    granted: Guard,
    /// Folders that no root may contain: the homes of the user and of the program.
    homes: Vec<PathBuf>,
    codex_home: PathBuf,
}

/// The permission for a patch to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Permission {
    /// Given by the policy.
    Policy,
    /// Given by an earlier grant.
    Grant,
    /// Given by a person, for this patch only, wherever it writes.
    Person,
    /// Not given yet. An approval for the session would grant this root; `None` if only this patch can be allowed.
    Missing { root: Option<PathBuf> },
}

impl Reach {
    /// Reads the protected places from the disk. The granted folders are those of the current policy.
    pub(crate) fn new(context: &LaunchContext, granted: Vec<PathBuf>) -> Self {
        let policy = match context.profile() {
            Some(profile) => {
                let (roots, forbidden) = (profile.writable_roots().to_vec(), profile.protected());
                Guard { roots: Some(roots), forbidden, names: Vec::new() }
            }
            None => Guard::anywhere(),
        };
        let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let codex_home = real(&context.codex_home);
        let mut forbidden = policy.forbidden.clone();
        forbidden.extend(protected_below(&granted, &codex_home));
        forbidden.push(codex_home.clone());
        let names: Vec<String> = context.names.closed().map(|name| name.display().to_string()).collect();
        let homes = std::env::home_dir().map(|home| real(&home)).into_iter().chain([codex_home.clone()]).collect();
        let mut judged = policy.clone();
        if judged.roots.is_some() {
            judged.names.clone_from(&names);
        }
        Self { policy, judged, granted: Guard { roots: Some(granted), forbidden, names }, homes, codex_home }
    }

    /// Finds the permission for a patch. If everything needs an approval, only a grant counts.
    pub(crate) fn judge(&self, plan: &Plan, approval: AskForApproval) -> Permission {
        let places = plan.real_paths();
        let is_granted = |place: &PathBuf| self.granted.allows(place);
        let is_within = |place: &PathBuf| self.judged.allows(place);
        let asks_about_all = approval == AskForApproval::UnlessTrusted;
        let all_granted = !places.is_empty() && places.iter().all(is_granted);
        let all_within = places.iter().all(is_within);
        let outside: Vec<PathBuf> =
            places.into_iter().filter(|place| !is_within(place) && !is_granted(place)).collect();
        if !outside.is_empty() {
            Permission::Missing { root: self.root_for(&outside) }
        } else if all_granted && asks_about_all || !all_within && !asks_about_all {
            Permission::Grant
        } else {
            Permission::Policy
        }
    }

    /// The guard for applying a patch.
    pub(crate) fn guard(&self, permission: &Permission) -> Guard {
        let Guard { roots, forbidden, names } = self.policy.clone();
        match permission {
            Permission::Policy => self.judged.clone(),
            Permission::Person => Guard { roots: None, forbidden, names },
            Permission::Missing { .. } => Guard { roots: Some(Vec::new()), forbidden, names },
            Permission::Grant => {
                let granted = self.granted.roots.iter().flatten().cloned();
                let roots = roots.map(|roots| roots.into_iter().chain(granted).collect());
                Guard { roots, forbidden: self.granted.forbidden.clone(), names }
            }
        }
    }

    /// The folder that contains all these places, if it may be granted at all.
    fn root_for(&self, places: &[PathBuf]) -> Option<PathBuf> {
        let anywhere = Guard { roots: None, ..self.granted.clone() };
        if !places.iter().all(|place| anywhere.allows(place)) {
            return None;
        }
        let folders = places.iter().filter_map(|place| place.parent()).map(Path::to_owned);
        let root = folders.reduce(|one, other| shared(&one, &other))?;
        let holds_home = self.homes.iter().any(|home| home.starts_with(&root));
        let is_deep = root.components().count() > LEAST_DEPTH;
        (is_deep && !holds_home && !root.starts_with(&self.codex_home)).then_some(root)
    }
}

/// The folder without links, if a person may open it to commands: it is neither a protected name nor below one, and
/// contains no home.
pub(crate) fn grantable(context: &LaunchContext, folder: &Path) -> Result<PathBuf, String> {
    let shown = folder.display();
    let root = folder.canonicalize().map_err(|error| format!("{shown} cannot be granted: {error}"))?;
    if !root.is_dir() {
        return Err(format!("{shown} cannot be granted: it is not a folder"));
    }
    let reach = Reach::new(context, Vec::new());
    // The folder is that of a file in it.
    match reach.root_for(&[root.join("file")]) {
        Some(granted) if granted == root => Ok(root),
        _ => Err(format!("{shown} cannot be granted: it is protected, or contains more than one project")),
    }
}

/// The protected places below granted folders.
fn protected_below(granted: &[PathBuf], codex_home: &Path) -> Vec<PathBuf> {
    let Some((first, others)) = granted.split_first() else { return Vec::new() };
    let limits = WorkspaceWrite {
        writable_roots: others.to_vec(),
        exclude_slash_tmp: true,
        exclude_tmpdir_env_var: true,
        ..WorkspaceWrite::default()
    };
    let sandbox_context = SandboxContext { codex_home: codex_home.to_owned(), ..SandboxContext::default() };
    let profile = Profile::new(&SandboxPolicy::WorkspaceWrite(limits), first, &sandbox_context);
    profile.map(|profile| profile.protected()).unwrap_or_default()
}

/// The deepest common folder.
fn shared(one: &Path, other: &Path) -> PathBuf {
    let parts = one.components().zip(other.components());
    parts.take_while(|(one, other)| one == other).map(|(part, _)| part).collect()
}
