//! The names that make programs outside the sandbox run code, as data.
//!
//! Invariant: one list for every platform and every rung. Review it with each release.

/// What stands in for a protected name that does not exist yet, so that it cannot be created.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StandIn {
    /// An empty folder.
    Folder,
    /// A file with this text, harmless to the programs that read it.
    File(&'static str),
}

/// One protected name.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Name {
    /// Relative to the folder that the list is about.
    pub(crate) path: &'static str,
    /// How it is kept from being created.
    pub(crate) stand_in: StandIn,
}

const fn folder(path: &'static str) -> Name {
    Name { path, stand_in: StandIn::Folder }
}

const fn file(path: &'static str, text: &'static str) -> Name {
    Name { path, stand_in: StandIn::File(text) }
}

/// The folder or file that marks a git checkout. Its inside is judged by [`GIT`].
pub(crate) const DOT_GIT: Name = folder(".git");

/// Below a workspace root: settings of agents and editors that name programs to run.
///
/// All stand-ins are empty folders, because git does not see those: `git add -A` must not commit them.
pub(crate) const PROJECT: &[Name] = &[
    folder(".codex"),
    folder(".agents"),
    folder(".claude"),
    folder(".cursor"),
    folder(".gemini"),
    folder(".vscode"),
    folder(".mcp.json"),
    folder(".envrc"),
];

/// Directly below `CODEX_HOME`: logins, those of other releases included, and what belongs to a running server.
pub(crate) const SECRETS: &[&str] = &["auth.json", ".credentials.json", "run"];

/// The names that are protected in every folder of people: those of settings, and that of a git checkout.
pub fn protected_names() -> impl Iterator<Item = &'static str> {
    PROJECT.iter().chain([&DOT_GIT]).map(|name| name.path)
}

/// Below a git folder: what git executes, or reads to learn what to execute.
///
/// `commondir` would move the whole configuration elsewhere. A file with `.` means the folder itself, so git goes on
/// working while the stand-in is there. `modules` may not get new entries, because git would take a planted folder for
/// the submodule of that name; those that exist are opened one by one, with these same names closed.
pub(crate) const GIT: &[Name] = &[
    folder("hooks"),
    file("config", ""),
    file("config.worktree", ""),
    file("commondir", ".\n"),
    file("info/attributes", ""),
    folder("modules"),
];

/// Below the folder of one linked worktree, `worktrees/NAME`: which repository and which checkout it belongs to.
pub(crate) const GIT_WORKTREE: &[Name] =
    &[file("config.worktree", ""), file("commondir", "../..\n"), file("gitdir", "")];

/// Below the shared git folder when the workspace is a linked worktree: the state of the main checkout.
pub(crate) const GIT_MAIN_CHECKOUT: &[&str] = &["HEAD", "index"];

/// Folders that the search for nested repositories does not enter: big, and made by package managers.
pub(crate) const NOT_SEARCHED: &[&str] = &["node_modules", "target", ".venv", "venv", "__pycache__"];
