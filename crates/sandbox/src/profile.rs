//! The meaning of a policy in a folder: which folders are writable, and which names in them stay closed.
//!
//! Invariant: roots come only from the policy and the surroundings, with every symbolic link resolved; they are
//! compared by whole components, and stay the folders that they were when the thread named them ([`ResolvedRoots`]).

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use codex_wire::policy::SandboxPolicy;

use crate::error::SpawnError;
use crate::layout::Layout;
use crate::search::{self, Survey};
use codex_guard::findings::Findings;
use codex_guard::names::Names;
use codex_guard::roots::{Found, ResolvedRoots, Root};
use codex_guard::secrets::Secrets;

/// The environment of a session, besides its working directory.
#[derive(Debug, Clone, Default)]
pub struct SandboxContext {
    /// `CODEX_HOME`; never writable from inside, and its secrets are not readable.
    pub codex_home: PathBuf,
    /// `$TMPDIR` of the session, if set.
    pub tmpdir: Option<PathBuf>,
    /// The roots of the thread, if one runs the command; otherwise roots are resolved now.
    pub roots: ResolvedRoots,
    /// The protected names.
    pub names: Names,
    /// Folders that a person has opened beyond the policy.
    pub granted_roots: Vec<PathBuf>,
    /// Whether a person has allowed the network beyond the policy.
    pub granted_network: bool,
    /// Files that the user's configuration names, which this program itself may run.
    pub named_files: Vec<PathBuf>,
}

impl SandboxContext {
    /// The surroundings of a command with this environment: its `TMPDIR` counts, not ours.
    #[must_use]
    pub fn of(codex_home: &Path, env: &[(OsString, OsString)]) -> Self {
        let tmpdir = env.iter().find(|(name, _)| name == "TMPDIR").map(|(_, value)| value.into());
        Self { codex_home: codex_home.to_owned(), tmpdir, ..Self::default() }
    }
}

/// The permissions that a policy grants here: built once per policy and working directory, cheap to clone.
#[derive(Debug, Clone)]
pub struct Profile {
    rules: Arc<Rules>,
    findings: Findings,
}

#[derive(Debug, PartialEq, Eq)]
struct Rules {
    writable: Vec<PathBuf>,
    workspaces: Vec<PathBuf>,
    /// The writable folders, in the same order, with their identities.
    roots: Vec<Root>,
    /// Workspaces that have been replaced by other folders.
    moved: Vec<PathBuf>,
    codex_home: PathBuf,
    names: Names,
    network: bool,
    named_files: Vec<PathBuf>,
}

impl PartialEq for Profile {
    fn eq(&self, other: &Self) -> bool {
        self.rules == other.rules
    }
}

impl Eq for Profile {}

impl Profile {
    /// Computes what `policy` allows in `cwd`. `None` for full access and for external sandboxes.
    #[must_use]
    pub fn new(policy: &SandboxPolicy, cwd: &Path, sandbox_context: &SandboxContext) -> Option<Self> {
        let codex_home = resolved(&sandbox_context.codex_home);
        let (workspaces, scratch, network) = match policy {
            SandboxPolicy::DangerFullAccess | SandboxPolicy::ExternalSandbox { .. } => return None,
            SandboxPolicy::ReadOnly => (Vec::new(), Vec::new(), false),
            SandboxPolicy::WorkspaceWrite(limits) => {
                let workspaces: Vec<PathBuf> = std::iter::once(cwd.to_owned())
                    .chain(limits.writable_roots.iter().map(|root| cwd.join(root)))
                    .collect();
                let tmp = (!limits.exclude_slash_tmp).then(|| PathBuf::from("/tmp"));
                let tmpdir = sandbox_context.tmpdir.clone().filter(|_| !limits.exclude_tmpdir_env_var);
                (workspaces, tmp.into_iter().chain(tmpdir).collect(), limits.network_access)
            }
        };
        let granted = sandbox_context.granted_roots.iter().cloned();
        let workspaces = workspaces.into_iter().chain(granted).collect();
        let network = network || sandbox_context.granted_network;
        let mut moved = Vec::new();
        let mut roots = folders(workspaces, &codex_home, &sandbox_context.roots, &mut moved);
        let workspaces: Vec<PathBuf> = roots.iter().map(|root| root.path.clone()).collect();
        // A temporary folder that was replaced is left out; commands can do without.
        let scratch = folders(scratch, &codex_home, &sandbox_context.roots, &mut Vec::new());
        roots.extend(scratch.into_iter().filter(|root| !workspaces.contains(&root.path)));
        let writable = roots.iter().map(|root| root.path.clone()).collect();
        let has_home = std::env::home_dir().is_some_and(|home| workspaces.iter().any(|root| home.starts_with(root)));
        let names = if has_home { sandbox_context.names.with_home() } else { sandbox_context.names.clone() };
        let named_files = sandbox_context.named_files.clone();
        let rules = Rules { writable, workspaces, roots, moved, codex_home, names, network, named_files };
        Some(Self { rules: Arc::new(rules), findings: Findings::default() })
    }

    /// The same profile with a collector for what had to be disarmed after its commands.
    #[must_use]
    pub fn reporting_to(self, findings: &Findings) -> Self {
        Self { findings: findings.clone(), ..self }
    }

    /// The collector of what had to be disarmed after commands under this profile.
    #[must_use]
    pub fn findings(&self) -> &Findings {
        &self.findings
    }

    /// Fails if a workspace is a different folder than when the thread named it.
    pub(crate) fn check_roots(&self) -> Result<(), SpawnError> {
        match self.rules.moved.first() {
            Some(path) => Err(SpawnError::Moved { path: path.clone() }),
            None => Ok(()),
        }
    }

    /// The writable folders with their identities.
    #[cfg(target_os = "linux")]
    pub(crate) fn roots(&self) -> &[Root] {
        &self.rules.roots
    }

    /// The writable folders, with links resolved: workspaces first, then temporary folders.
    #[must_use]
    pub fn writable_roots(&self) -> &[PathBuf] {
        &self.rules.writable
    }

    /// The paths inside the writable folders that stay closed, whether they exist or not, as of now.
    #[must_use]
    pub fn protected(&self) -> Vec<PathBuf> {
        self.layout().closed().map(Path::to_owned).collect()
    }

    #[must_use]
    pub fn network(&self) -> bool {
        self.rules.network
    }

    /// The writable folders that contain projects: the working directory and the roots in the policy.
    pub(crate) fn workspaces(&self) -> &[PathBuf] {
        &self.rules.workspaces
    }

    /// The files that the user's configuration names.
    pub(crate) fn named_files(&self) -> &[PathBuf] {
        &self.rules.named_files
    }

    /// The writable folders for temporary files.
    pub(crate) fn scratch_roots(&self) -> impl Iterator<Item = &PathBuf> {
        self.rules.writable.iter().filter(|root| !self.rules.workspaces.contains(root))
    }

    /// `CODEX_HOME` with links resolved; empty if the caller named none.
    pub(crate) fn codex_home(&self) -> &Path {
        &self.rules.codex_home
    }

    /// The files that no command may read, as of now.
    pub(crate) fn secrets(&self) -> Secrets {
        Secrets::of(self.codex_home())
    }

    /// The survey of the workspaces.
    pub(crate) fn nested(&self) -> Arc<Survey> {
        search::known(self.workspaces(), self.names())
    }

    pub(crate) fn names(&self) -> &Names {
        &self.rules.names
    }

    /// The folders around workspaces that are writable because they are inside a writable folder: git looks there too.
    pub(crate) fn around_workspaces(&self) -> impl Iterator<Item = &Path> {
        let is_writable = |folder: &&Path| self.rules.writable.iter().any(|root| folder.starts_with(root));
        let is_root = |folder: &&Path| self.rules.writable.iter().any(|root| folder == root);
        let around = self.workspaces().iter().flat_map(|workspace| workspace.ancestors().skip(1));
        around.filter(is_writable).filter(move |folder| !is_root(folder))
    }

    /// Computes which places are opened and closed, in order, from the current state of the disk.
    pub(crate) fn layout(&self) -> Layout {
        Layout::of(self)
    }
}

/// Keeps existing folders, resolved and deduplicated. Neither `CODEX_HOME` nor anything but a folder can be a root.
fn folders(names: Vec<PathBuf>, codex_home: &Path, roots: &ResolvedRoots, moved: &mut Vec<PathBuf>) -> Vec<Root> {
    let mut kept: Vec<Root> = Vec::new();
    for name in names {
        match roots.find(name) {
            Found::Folder(root) if root.path == codex_home || kept.contains(&root) => {}
            Found::Folder(root) => kept.push(root),
            Found::Moved(path) => moved.push(path),
            Found::Nothing => {}
        }
    }
    kept
}

/// Resolves the links in the existing part of `path`. An empty path stays empty.
fn resolved(path: &Path) -> PathBuf {
    if path.as_os_str().is_empty() {
        return PathBuf::new();
    }
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    for known in path.ancestors() {
        if let (Ok(real), Ok(rest)) = (known.canonicalize(), path.strip_prefix(known)) {
            return if rest.as_os_str().is_empty() { real } else { real.join(rest) };
        }
    }
    path
}
