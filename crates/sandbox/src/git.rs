//! Finds the git folders that belong to a workspace, and the paths in them that must not be written.
//!
//! A linked worktree or a submodule keeps its git folder elsewhere. That folder is made writable only if it points back
//! at the workspace, because the sandbox cannot have written it: a forged `.git` file gains nothing.
//!
//! Invariant: git is not run, and its configuration is used only to protect more.

pub(crate) mod effective;

use std::fs;
use std::path::{Path, PathBuf};

use codex_files::is_git_folder;
use codex_guard::git::config::Entry;
use codex_guard::git::{allowed, config};
use codex_guard::names::{DOT_GIT, GIT, GIT_MAIN_CHECKOUT, GIT_WORKTREE, Placeholder};

use self::effective::Effective;
use crate::layout::Builder;

/// The maximum number of bytes read from a git file.
const MAX_FILE: u64 = 1024 * 1024;
/// The maximum nesting depth of submodules in `modules`, in folders.
const MAX_MODULE_DEPTH: usize = 4;
/// With more linked worktrees or submodules than this, the folder that contains them is closed as a whole.
const MAX_ENTRIES: usize = 32;
/// The maximum number of files that are closed because one repository's configuration names them.
const MAX_NAMED: usize = 64;

/// Whether a git folder outside the workspace may be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outside {
    /// If it points back: for the roots of the session.
    Opened,
    /// Never: for repositories that are merely inside a root.
    Left,
}

/// Protects the repository whose checkout is `root`, or the name of a missing one.
pub(crate) fn protect_checkout(builder: &mut Builder, root: &Path, outside: Outside) {
    if is_git_folder(root) {
        protect_git_folder(builder, root, root);
    }
    let dot_git = root.join(DOT_GIT.path);
    match fs::symlink_metadata(&dot_git) {
        Ok(found) if found.is_dir() && is_git_folder(&dot_git) => protect_git_folder(builder, &dot_git, root),
        Ok(found) if found.is_symlink() => {
            // The link stays; its target gets the rules of a git folder if it is inside.
            builder.close(&dot_git, None);
            if let Ok(real) = dot_git.canonicalize()
                && builder.root_of(&real).is_some()
            {
                protect_git_folder(builder, &real, root);
            }
        }
        Ok(found) if found.is_file() => {
            builder.close(&dot_git, None);
            protect_linked(builder, root, &dot_git, outside);
        }
        // A folder that is no git folder yet is closed as a whole.
        _ => builder.close_existing(&dot_git),
    }
}

/// Closes everything that git executes from `git`, whose checkout is `checkout`.
pub(crate) fn protect_git_folder(builder: &mut Builder, git: &Path, checkout: &Path) {
    builder.pin(git);
    for name in GIT {
        builder.close(&git.join(name.path), Some(name.placeholder));
    }
    bind_hooks(builder, &git.join("hooks"));
    protect_configured(builder, git, checkout);
    protect_modules(builder, &git.join("modules"), checkout, MAX_MODULE_DEPTH);
    protect_worktrees(builder, &git.join("worktrees"));
}

/// Closes the files that the configuration makes git run or read, if they are in a writable folder.
fn protect_configured(builder: &mut Builder, git: &Path, checkout: &Path) {
    let mut own = Effective::default();
    for name in ["config", "config.worktree"] {
        own.add(&git.join(name));
    }
    let user = builder.user_config();
    let included = user.included.iter().chain(&own.included).cloned().collect::<Vec<_>>();
    let entries: Vec<Entry> = user.entries.iter().cloned().chain(own.entries).collect();
    for file in included.iter().take(MAX_NAMED) {
        // Git would fail on a folder here, so this placeholder is a file and visible to `git add`.
        builder.bind(file, Some(Placeholder::File("")));
    }
    let mut left = MAX_NAMED;
    for entry in entries.iter().filter(|entry| allowed::may_run(entry)) {
        let is_folder = entry.is("core", "hookspath") || entry.is("init", "templatedir");
        if let Some(folder) = entry.path(checkout).filter(|_| is_folder) {
            // A folder around the checkout cannot be closed; hooks in it are found after the command.
            if !checkout.starts_with(&folder) {
                builder.close(&folder, Some(Placeholder::Folder));
                bind_hooks(builder, &folder);
            }
            continue;
        }
        for file in named_files(entry, checkout) {
            if left > 0 && builder.root_of(&file).is_some() && file.is_file() {
                left -= 1;
                builder.bind(&file, None);
            }
        }
    }
}

/// Binds the files in a folder for hooks. Some of them are links to scripts of the checkout.
fn bind_hooks(builder: &mut Builder, folder: &Path) {
    let Ok(found) = fs::read_dir(folder) else { return };
    let names = found.flatten().filter(|entry| !entry.file_name().as_encoded_bytes().ends_with(b".sample"));
    for entry in names.take(MAX_NAMED) {
        builder.bind(&entry.path(), None);
        if let Ok(script) = entry.path().canonicalize()
            && script != entry.path()
            && script.is_file()
        {
            builder.bind(&script, None);
        }
    }
}

/// The files that the words of a command could refer to. Git runs commands in the checkout.
fn named_files(entry: &Entry, checkout: &Path) -> Vec<PathBuf> {
    let value = entry.value.as_deref().unwrap_or_default();
    let words = value.split(|byte| byte.is_ascii_whitespace() || b"'\"!;|&()<>=".contains(byte));
    words.filter(|word| !word.is_empty()).filter_map(|word| config::resolve(word, checkout)).collect()
}

/// Opens the existing submodules in a closed `modules` folder, each with its own protected names.
fn protect_modules(builder: &mut Builder, modules: &Path, checkout: &Path, depth: usize) {
    let Some(found) = entries(modules) else {
        return builder.note(format!("{}: too many submodules, their git folders stay read-only", modules.display()));
    };
    for module in found {
        if module.join("HEAD").is_file() {
            let work = worktree_of(&module).unwrap_or_else(|| checkout.to_owned());
            builder.open(&module);
            protect_git_folder(builder, &module, &work.canonicalize().unwrap_or(work));
        } else if depth > 0 {
            protect_modules(builder, &module, checkout, depth - 1);
        }
    }
}

/// Closes the files that link each worktree to its repository and checkout, or all worktrees if there are too many.
fn protect_worktrees(builder: &mut Builder, worktrees: &Path) {
    let Some(found) = entries(worktrees) else {
        builder.close(worktrees, None);
        return builder.note(format!("{}: too many worktrees, they stay read-only", worktrees.display()));
    };
    for worktree in found {
        protect_worktree_folder(builder, &worktree);
    }
}

fn protect_worktree_folder(builder: &mut Builder, folder: &Path) {
    for name in GIT_WORKTREE {
        let placeholder = (name.path == "config.worktree").then_some(name.placeholder);
        builder.close(&folder.join(name.path), placeholder);
    }
}

/// Follows a `.git` file. A folder outside the workspace is opened only if it points back.
fn protect_linked(builder: &mut Builder, root: &Path, dot_git: &Path, outside: Outside) {
    let Some(git) = pointed_at(dot_git, root) else { return };
    if builder.root_of(&git).is_some() {
        return protect_git_folder(builder, &git, root);
    }
    if outside == Outside::Left {
        return;
    }
    if let Some(common) = common_of_worktree(&git, dot_git) {
        builder.open(&common);
        let others = entries(&common.join("worktrees"));
        for worktree in others.iter().flatten().filter(|worktree| **worktree != git) {
            builder.close(worktree, None);
        }
        protect_git_folder(builder, &common, root);
        if others.is_none() {
            // The folder of all worktrees is closed, except for ours.
            builder.open(&git);
            protect_worktree_folder(builder, &git);
        }
        // The checkout's own settings.
        protect_configured(builder, &git, root);
        for name in GIT_MAIN_CHECKOUT {
            builder.close(&common.join(name), None);
        }
    } else if is_submodule_of(&git, root) {
        builder.open(&git);
        protect_git_folder(builder, &git, root);
    } else {
        builder.note(format!("{}: this git folder does not point back, so it stays read-only", git.display()));
    }
}

/// Parses `gitdir: PATH`.
fn pointed_at(dot_git: &Path, checkout: &Path) -> Option<PathBuf> {
    let text = read_text(dot_git)?;
    let path = text.strip_prefix("gitdir:")?.trim();
    checkout.join(path).canonicalize().ok()
}

/// The git folder of a checkout, wherever it is; the folder itself if it is one.
#[cfg(target_os = "linux")]
pub(crate) fn git_folder_of(checkout: &Path) -> Option<PathBuf> {
    let dot_git = checkout.join(DOT_GIT.path);
    match fs::metadata(&dot_git) {
        Ok(found) if found.is_dir() => dot_git.canonicalize().ok(),
        Ok(_) => pointed_at(&dot_git, checkout),
        Err(_) => is_git_folder(checkout).then(|| checkout.to_owned()),
    }
}

/// The folder that a git folder takes its settings from.
#[cfg(target_os = "linux")]
pub(crate) fn common_of(git: &Path) -> Option<PathBuf> {
    match fs::symlink_metadata(git.join("commondir")) {
        Ok(_) => git.join(read_text(&git.join("commondir"))?.trim()).canonicalize().ok(),
        Err(_) => Some(git.to_owned()),
    }
}

/// The length of the object ids of a repository, in bytes.
#[cfg(target_os = "linux")]
pub(crate) fn id_length(common: &Path) -> usize {
    let entries = config::parse(&read(&common.join("config")).unwrap_or_default()).entries;
    let is_long = |entry: &Entry| entry.is("extensions", "objectformat") && entry.value.as_deref() == Some(b"sha256");
    if entries.iter().any(is_long) { 32 } else { 20 }
}

/// Returns the common folder of the linked worktree `git`, if it belongs to the checkout with this `.git` file.
pub(crate) fn common_of_worktree(git: &Path, dot_git: &Path) -> Option<PathBuf> {
    let common = git.join(read_text(&git.join("commondir"))?.trim()).canonicalize().ok()?;
    let back = git.join(read_text(&git.join("gitdir"))?.trim()).canonicalize().ok()?;
    let listed = git.parent()? == common.join("worktrees");
    (listed && back == dot_git && is_git_folder(&common)).then_some(common)
}

/// Whether `git` is the folder of a submodule that is checked out in `root`.
pub(crate) fn is_submodule_of(git: &Path, root: &Path) -> bool {
    let works_in_root = |path: PathBuf| path.canonicalize().is_ok_and(|path| path == root);
    is_git_folder(git) && worktree_of(git).is_some_and(works_in_root)
}

/// The checkout that a git folder names as its own.
fn worktree_of(git: &Path) -> Option<PathBuf> {
    let config = config::parse(&read(&git.join("config"))?);
    config.entries.iter().rev().find(|entry| entry.is("core", "worktree"))?.path(git)
}

/// The real folders directly below, sorted; `None` if there are too many.
fn entries(folder: &Path) -> Option<Vec<PathBuf>> {
    let Ok(found) = fs::read_dir(folder) else { return Some(Vec::new()) };
    let folders = found.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let mut folders: Vec<PathBuf> = folders.map(|entry| entry.path()).take(MAX_ENTRIES + 1).collect();
    folders.sort();
    (folders.len() <= MAX_ENTRIES).then_some(folders)
}

/// Reads the start of a regular file. Never blocks on anything else with that name.
pub(crate) fn read(path: &Path) -> Option<Vec<u8>> {
    codex_files::read_start(path, MAX_FILE).ok().map(|(text, _)| text)
}

fn read_text(path: &Path) -> Option<String> {
    String::from_utf8(read(path)?).ok()
}
