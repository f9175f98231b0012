//! The names that make programs outside the sandbox run code, as data.
//!
//! Invariant: one table for every platform, every level and every line of defence. Review it with each release.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, LazyLock};

/// A placeholder for a protected name that does not exist yet, so that it cannot be created.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placeholder {
    /// An empty folder.
    Folder,
    /// A file with this text, harmless to the programs that read it.
    File(&'static str),
}

/// One name below a git folder.
#[derive(Debug, Clone, Copy)]
pub struct Name {
    /// Relative to the folder that the list is about.
    pub path: &'static str,
    /// The placeholder that keeps it from being created.
    pub placeholder: Placeholder,
}

const fn folder(path: &'static str) -> Name {
    Name { path, placeholder: Placeholder::Folder }
}

const fn file(path: &'static str, text: &'static str) -> Name {
    Name { path, placeholder: Placeholder::File(text) }
}

/// The protection of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Protection {
    /// It cannot be changed, nor created in the root of a workspace. If created elsewhere, it is renamed after the
    /// command.
    Reserved,
    /// It cannot be changed. If a command creates one, it is renamed after the command.
    Reverted,
    /// It may be changed, because that is ordinary work. The user is warned.
    Reported,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProtectedName {
    /// One or more path components, at any depth of a workspace. A trailing `*` matches every file.
    pub name: &'static str,
    pub protection: Protection,
    /// The program that reads it and runs code.
    pub why: &'static str,
}

const AGENT: &str = "settings of an agent";
const EDITOR: &str = "settings of an editor";
const SHELL: &str = "read by a shell on entering the folder";
const HOOKS: &str = "commands of a hook manager";
const PACKAGES: &str = "settings of a package manager";
const BUILD: &str = "settings of a build tool";
const INSTRUCTIONS: &str = "instructions for agents";
const VERSIONS: &str = "settings of a version manager";
const STARTUP: &str = "run by a program that starts in the folder";
const RUN_BY_BUILD: &str = "run by builds, tests or installs";
const RUN_BY_CI: &str = "run by a CI service";
const READ_BY_GIT: &str = "read by git";

const fn rows<const N: usize>(
    protection: Protection,
    why: &'static str,
    names: [&'static str; N],
) -> [ProtectedName; N] {
    let mut rows = [ProtectedName { name: "", protection, why }; N];
    let mut at = 0;
    while at < N {
        rows[at].name = names[at];
        at += 1;
    }
    rows
}

use Protection::{Reported, Reserved, Reverted};

/// The table, grouped by kind. The name of a git checkout is [`DOT_GIT`]; its contents follow [`GIT`].
static TABLE: &[&[ProtectedName]] = &[
    &rows(Reserved, AGENT, [".codex", ".agents", ".claude", ".cursor", ".gemini", ".mcp.json"]),
    &rows(Reserved, EDITOR, [".vscode"]),
    &rows(Reserved, SHELL, [".envrc"]),
    &rows(Reverted, SHELL, [".autoenv.zsh", ".autoenv", ".autoenv_leave.zsh"]),
    &rows(
        Reverted,
        AGENT,
        [
            ".opencode",
            "opencode.json",
            "opencode.jsonc",
            ".kiro",
            ".windsurf",
            ".continue",
            ".roo",
            ".clinerules",
            ".kilocode",
            ".qwen",
            ".factory",
            ".amazonq",
            ".augment",
            ".junie",
            ".trae",
            ".crush",
            ".crush.json",
            "gptme.toml",
            "crush.json",
            ".aider.conf.yml",
            ".goosehints",
            ".github/hooks",
        ],
    ),
    &rows(
        Reverted,
        EDITOR,
        [
            ".zed",
            ".vs",
            ".run/*",
            ".idea",
            ".fleet",
            ".helix",
            ".devcontainer",
            ".devcontainer.json",
            ".nvim.lua",
            ".nvimrc",
            ".lazy.lua",
            ".exrc",
            ".vimrc",
            ".gvimrc",
            ".lvimrc",
            ".dir-locals.el",
            ".dir-locals-2.el",
        ],
    ),
    &rows(
        Reverted,
        HOOKS,
        [
            ".husky",
            ".pre-commit-config.yaml",
            "prek.toml",
            ".overcommit.yml",
            "hk.pkl",
            ".lefthook",
            "lefthook.yml",
            "lefthook.yaml",
            "lefthook.toml",
            "lefthook.json",
            "lefthook-local.yml",
            "lefthook-local.yaml",
            "lefthook-local.toml",
            "lefthook-local.json",
            ".lefthook.yml",
            ".lefthook.yaml",
            ".lefthook-local.yml",
            ".lefthook-local.yaml",
        ],
    ),
    &rows(
        Reverted,
        PACKAGES,
        [
            ".npmrc",
            ".yarnrc",
            ".yarnrc.yml",
            ".yarn/plugins",
            ".pnpmfile.cjs",
            ".pnpmfile.mjs",
            "pnpmfile.js",
            "bunfig.toml",
        ],
    ),
    &rows(
        Reverted,
        BUILD,
        [
            ".cargo/config.toml",
            ".cargo/config",
            ".bazelrc",
            ".bazeliskrc",
            "tools/bazel",
            ".mvn/extensions.xml",
            ".mvn/maven.config",
            ".bundle/config",
            ".mvn/jvm.config",
        ],
    ),
    &rows(
        Reverted,
        VERSIONS,
        [
            ".tool-versions",
            "mise.toml",
            "mise.local.toml",
            ".mise.toml",
            ".mise.local.toml",
            ".mise",
            ".config/mise",
            ".config/mise.toml",
        ],
    ),
    &rows(
        Reverted,
        STARTUP,
        [
            ".gdbinit",
            ".lldbinit",
            ".pdbrc",
            ".irbrc",
            ".pryrc",
            ".Rprofile",
            ".ghci",
            ".ocamlinit",
            ".iex.exs",
            ".erlang",
        ],
    ),
    &rows(
        Reverted,
        "settings of a version control system",
        [".hg/hgrc", ".hg/hgrc-not-shared", ".sl/config", ".jj/repo/config.toml"],
    ),
    &rows(Reported, READ_BY_GIT, [".gitattributes", ".gitmodules"]),
    &rows(
        Reported,
        RUN_BY_BUILD,
        [
            "package.json",
            "Makefile",
            "GNUmakefile",
            "makefile",
            "justfile",
            "build.rs",
            "rust-toolchain.toml",
            "rust-toolchain",
            "setup.py",
            "conftest.py",
        ],
    ),
    &rows(
        Reported,
        RUN_BY_CI,
        [".github/workflows/*", ".gitlab-ci.yml", ".circleci/config.yml", "Jenkinsfile", "azure-pipelines.yml"],
    ),
    &rows(
        Reported,
        INSTRUCTIONS,
        ["AGENTS.md", "AGENTS.override.md", "CLAUDE.md", "GEMINI.md", ".cursorrules", ".windsurfrules"],
    ),
];

/// In a home: read by shells, at a login, or by programs that run commands. They count where a home is a workspace.
const OF_A_HOME: &[&str] = &[
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".bash_aliases",
    ".profile",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".zlogin",
    ".zlogout",
    ".kshrc",
    ".cshrc",
    ".tcshrc",
    ".login",
    ".inputrc",
    ".pam_environment",
    ".xprofile",
    ".xinitrc",
    ".xsession",
    ".xsessionrc",
    ".gitconfig",
    ".git-credentials",
    ".netrc",
    ".ssh",
    ".gnupg",
    ".aws",
    ".kube",
    ".docker",
    ".config/git",
    ".config/fish",
    ".config/systemd",
    ".config/autostart",
    ".config/environment.d",
    ".config/nvim",
    ".local/bin",
    ".local/share/systemd",
    ".local/share/applications",
    ".cargo/bin",
    ".cargo/env",
    ".vim",
    ".emacs",
    ".emacs.d",
    ".tmux.conf",
    ".screenrc",
    ".pypirc",
    ".pythonrc.py",
    ".gemrc",
    ".condarc",
];

/// The folder or file that marks a git checkout. Its contents follow [`GIT`].
pub const DOT_GIT: Name = folder(".git");

/// The names that the user cannot unprotect.
const ALWAYS: [&str; 2] = [DOT_GIT.path, ".codex"];

/// Directly below `CODEX_HOME`: logins, including those of other releases, and files of a running server.
pub const SECRETS: &[&str] = &["auth.json", ".credentials.json", "run"];

/// The table of protected names, for display.
pub fn protected_names() -> impl Iterator<Item = &'static ProtectedName> {
    static GIT_ROW: ProtectedName =
        ProtectedName { name: DOT_GIT.path, protection: Reserved, why: "hooks and configuration of git" };
    std::iter::once(&GIT_ROW).chain(TABLE.iter().copied().flatten())
}

/// The names that apply to a session: the table with the user's changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Names {
    inner: Arc<Inner>,
}

#[derive(Debug, PartialEq, Eq)]
struct Inner {
    /// By the last component: the folders that must precede it, and its protection.
    by_last: HashMap<OsString, Vec<(PathBuf, Protection)>>,
    /// In table order.
    all: Vec<(PathBuf, Protection)>,
}

static DEFAULT: LazyLock<Names> = LazyLock::new(|| Names::made(&[], &[]));

impl Default for Names {
    fn default() -> Self {
        DEFAULT.clone()
    }
}

impl Names {
    /// The table with some names added and some removed. Anything but a relative path is ignored, and so is
    /// unprotecting `.git` or `.codex`.
    #[must_use]
    pub fn new(more: &[String], less: &[String]) -> Self {
        if more.is_empty() && less.is_empty() { Self::default() } else { Self::made(more, less) }
    }

    /// These names, and those that matter in a home.
    #[must_use]
    pub fn with_home(&self) -> Self {
        let mut all = self.inner.all.clone();
        for path in OF_A_HOME.iter().map(PathBuf::from) {
            if !all.iter().any(|(known, _)| *known == path) {
                all.push((path, Reverted));
            }
        }
        Self::of(all)
    }

    fn made(more: &[String], less: &[String]) -> Self {
        let is_wanted =
            |name: &str| ALWAYS.contains(&name) || !less.iter().any(|less| less.trim_end_matches('/') == name);
        let known = TABLE.iter().copied().flatten().filter(|row| is_wanted(row.name));
        let mut all: Vec<(PathBuf, Protection)> = known.map(|row| (row.name.into(), row.protection)).collect();
        let is_plain = |path: &PathBuf| {
            let mut components = path.components();
            path.file_name().is_some() && components.all(|component| matches!(component, Component::Normal(_)))
        };
        for path in more.iter().map(PathBuf::from).filter(is_plain) {
            // An added name is closed, even if the table only warns about it.
            match all.iter_mut().find(|(known, _)| *known == path) {
                Some((_, protection @ Reported)) => *protection = Reverted,
                Some(_) => {}
                None => all.push((path, Reverted)),
            }
        }
        Self::of(all)
    }

    fn of(all: Vec<(PathBuf, Protection)>) -> Self {
        let mut by_last: HashMap<OsString, Vec<(PathBuf, Protection)>> = HashMap::new();
        for (path, protection) in &all {
            let Some(last) = path.file_name() else { continue };
            let before = path.parent().map(Path::to_owned).unwrap_or_default();
            by_last.entry(last.to_owned()).or_default().push((before, *protection));
        }
        Self { inner: Arc::new(Inner { by_last, all }) }
    }

    /// The protection of `name` in `folder`.
    #[must_use]
    pub fn protection(&self, folder: &Path, name: &OsStr) -> Option<Protection> {
        let find = |last: &OsStr| {
            let known = self.inner.by_last.get(last)?;
            known.iter().find(|(before, _)| folder.ends_with(before)).map(|(_, protection)| *protection)
        };
        find(name).or_else(|| find(OsStr::new("*")))
    }

    /// The names that are held in the root of a workspace.
    pub fn reserved(&self) -> impl Iterator<Item = &Path> {
        self.inner.all.iter().filter(|(_, protection)| *protection == Reserved).map(|(path, _)| path.as_path())
    }

    /// The names that may not be created without an approval, `.git` included.
    pub fn closed(&self) -> impl Iterator<Item = &Path> {
        let closed = self.inner.all.iter().filter(|(_, protection)| *protection != Reported);
        closed.map(|(path, _)| path.as_path()).chain([Path::new(DOT_GIT.path)])
    }
}

/// Below a git folder: files that git executes, or reads to learn what to execute.
///
/// `commondir` would move the whole configuration elsewhere. A file with `.` means the folder itself, so git keeps
/// working while the placeholder is there. `modules` may not get new entries, because git would use a planted folder as
/// the submodule of that name; existing ones are opened one by one, with these same names closed.
pub const GIT: &[Name] = &[
    folder("hooks"),
    file("config", ""),
    file("config.worktree", ""),
    file("commondir", ".\n"),
    file("info/attributes", ""),
    folder("modules"),
];

/// Below the folder of one linked worktree, `worktrees/NAME`: the files that name its repository and its checkout.
pub const GIT_WORKTREE: &[Name] = &[file("config.worktree", ""), file("commondir", "../..\n"), file("gitdir", "")];

/// Below the common git folder if the workspace is a linked worktree: the state of the main checkout.
pub const GIT_MAIN_CHECKOUT: &[&str] = &["HEAD", "index"];

/// The hook names in githooks(5), and the one that git's own samples suggest for `core.fsmonitor`.
pub const GIT_HOOKS: &[&str] = &[
    "applypatch-msg",
    "pre-applypatch",
    "post-applypatch",
    "pre-commit",
    "pre-merge-commit",
    "prepare-commit-msg",
    "commit-msg",
    "post-commit",
    "pre-rebase",
    "post-checkout",
    "post-merge",
    "pre-push",
    "pre-receive",
    "update",
    "proc-receive",
    "post-receive",
    "post-update",
    "reference-transaction",
    "push-to-checkout",
    "pre-auto-gc",
    "post-rewrite",
    "sendemail-validate",
    "fsmonitor-watchman",
    "p4-changelist",
    "p4-prepare-changelist",
    "p4-post-changelist",
    "p4-pre-submit",
    "post-index-change",
];

/// Folders of dependencies and build output: repositories and settings in them count, ordinary files in them do not.
pub const DEPENDENCIES: &[&str] =
    &["node_modules", "target", "vendor", ".venv", "venv", "site-packages", "dist", "build", "__pycache__"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_add_names_and_take_names_away_but_not_all() {
        let names = |more: &[&str], less: &[&str]| {
            let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
            Names::new(&owned(more), &owned(less))
        };
        let protection = |names: &Names, path: &str| {
            let path = Path::new(path);
            path.parent().and_then(|folder| names.protection(folder, path.file_name()?))
        };
        let table = names(&[], &[]);
        assert_eq!(protection(&table, "/w/.vscode"), Some(Reserved));
        assert_eq!(protection(&table, "/w/a/.idea"), Some(Reverted));
        assert_eq!(protection(&table, "/w/a/.cargo/config.toml"), Some(Reverted));
        assert_eq!(protection(&table, "/w/a/config.toml"), None);
        assert_eq!(protection(&table, "/w/.github/workflows/ci.yml"), Some(Reported));
        assert_eq!(protection(&table, "/w/workflows/ci.yml"), None);
        let changed = names(&["x", "Makefile", "../up", "/abs", ""], &[".idea", ".git", ".codex", ".vscode/"]);
        assert_eq!(protection(&changed, "/w/x"), Some(Reverted));
        assert_eq!(protection(&changed, "/w/Makefile"), Some(Reverted));
        assert_eq!(protection(&changed, "/w/.idea"), None);
        assert_eq!(protection(&changed, "/w/.vscode"), None);
        assert_eq!(protection(&changed, "/w/.codex"), Some(Reserved));
        assert_eq!(protection(&table, "/home/me/.bashrc"), None);
        assert_eq!(protection(&table.with_home(), "/home/me/.bashrc"), Some(Reverted));
        assert_eq!(protection(&changed.with_home(), "/home/me/x"), Some(Reverted));
        assert!(changed.closed().any(|name| name == Path::new(".git")));
        assert!(!changed.closed().any(|name| name.ends_with("up") || name.is_absolute()));
    }

    #[test]
    fn every_name_is_in_the_table_once() {
        let mut names: Vec<&str> = protected_names().map(|row| row.name).collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
    }
}
