//! Where a patch may write without a question: what the policy allows, and what people have granted in this thread.
//!
//! Invariants: roots come from the session and from people, never from a patch alone; no grant reaches a protected
//! name or the program's own home, whatever folder it is for.

use std::path::{Path, PathBuf};

use codex_patch::{Guard, Plan};
use codex_sandbox::{Profile, Surroundings};
use codex_wire::policy::{AskForApproval, SandboxPolicy, WorkspaceWrite};

use crate::command::LaunchContext;

/// A root has to be at least so deep. What is above holds more than anybody means to grant.
const LEAST_DEPTH: usize = 2;

/// Where patches may write.
#[derive(Debug)]
pub(crate) struct Reach {
    policy: Guard,
    /// What the policy allows without a question: no protected name, wherever it is.
    judged: Guard,
    /// What people have granted.
    granted: Guard,
    /// Folders that no root may contain: the home of the user and that of the program.
    homes: Vec<PathBuf>,
    codex_home: PathBuf,
}

/// What lets a patch write where it does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Permission {
    /// The policy.
    Policy,
    /// What a person has granted before.
    Grant,
    /// A person, for just this patch, wherever it writes.
    Person,
    /// Nothing yet. With a yes for the session, this root would be granted; none where only this patch can be allowed.
    Missing {
        /// The folder.
        root: Option<PathBuf>,
    },
}

impl Reach {
    /// Looks at the disk for what is protected. The folders granted are those of the policy in force.
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

    /// Finds what lets a patch write where it does. Where everything is asked about, only a grant does.
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

    /// What a patch is held to while it is applied.
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

    /// The folder that holds all these places, if it may be granted at all.
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

/// What is protected below folders that were granted.
fn protected_below(granted: &[PathBuf], codex_home: &Path) -> Vec<PathBuf> {
    let Some((first, others)) = granted.split_first() else { return Vec::new() };
    let limits = WorkspaceWrite {
        writable_roots: others.to_vec(),
        exclude_slash_tmp: true,
        exclude_tmpdir_env_var: true,
        ..WorkspaceWrite::default()
    };
    let surroundings = Surroundings { codex_home: codex_home.to_owned(), ..Surroundings::default() };
    let profile = Profile::new(&SandboxPolicy::WorkspaceWrite(limits), first, &surroundings);
    profile.map(|profile| profile.protected()).unwrap_or_default()
}

/// The deepest folder that both are in.
fn shared(one: &Path, other: &Path) -> PathBuf {
    let parts = one.components().zip(other.components());
    parts.take_while(|(one, other)| one == other).map(|(part, _)| part).collect()
}
