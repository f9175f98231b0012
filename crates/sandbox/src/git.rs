//! Finds the git folders that belong to a workspace, and what in them must not be written.
//!
//! A linked worktree or a submodule keeps its git folder elsewhere. It is opened only when that folder, which the
//! sandbox cannot have written, points back at the workspace: a forged `.git` file opens nothing.
//!
//! Invariant: git is not run, and no configuration is obeyed except to close more.

use std::fs;
use std::path::{Component, Path, PathBuf};

use crate::layout::Builder;
use crate::names::{DOT_GIT, GIT, GIT_MAIN_CHECKOUT, GIT_WORKTREE, StandIn};

/// How much of a git file is read.
const MAX_FILE: u64 = 64 * 1024;
/// How deep submodules may be nested in `modules`, in folders.
const MAX_MODULE_DEPTH: usize = 4;
/// Above this many linked worktrees or submodules the folder that holds them is closed as a whole.
const MAX_ENTRIES: usize = 32;

/// Whether a git folder outside the workspace may be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outside {
    /// If it points back: for the roots of the session.
    Opened,
    /// Never: for what merely lies in a root.
    Left,
}

/// Protects the repository whose checkout is `root`, or the missing name of one.
pub(crate) fn protect_checkout(builder: &mut Builder, root: &Path, outside: Outside) {
    if is_git_folder(root) {
        protect_git_folder(builder, root, root);
    }
    let dot_git = root.join(DOT_GIT.path);
    match fs::symlink_metadata(&dot_git) {
        Ok(found) if found.is_dir() && !is_empty(&dot_git) => protect_git_folder(builder, &dot_git, root),
        Ok(found) if found.is_symlink() => {
            // The link stays; what it leads to gets the rules of a git folder, if it is inside.
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
        _ => builder.close(&dot_git, Some(DOT_GIT.stand_in)),
    }
}

/// Closes what git executes below `git`, whose checkout is `checkout`.
pub(crate) fn protect_git_folder(builder: &mut Builder, git: &Path, checkout: &Path) {
    builder.pin(git);
    for name in GIT {
        builder.close(&git.join(name.path), Some(name.stand_in));
    }
    let config = read(&git.join("config")).unwrap_or_default();
    for value in values(&config, "core", "hookspath") {
        builder.close(&plain(&checkout.join(value)), Some(StandIn::Folder));
    }
    for value in values(&config, "include", "path") {
        // A folder would be an error to git, so this one stand-in can be seen by `git add`.
        builder.close(&plain(&git.join(value)), Some(StandIn::File("")));
    }
    protect_modules(builder, &git.join("modules"), checkout, MAX_MODULE_DEPTH);
    for worktree in entries(&git.join("worktrees")) {
        protect_worktree_folder(builder, &worktree);
    }
}

/// Opens the submodules that exist in a closed `modules` folder, each with its own names closed.
fn protect_modules(builder: &mut Builder, modules: &Path, checkout: &Path, depth: usize) {
    let found = entries(modules);
    if found.len() > MAX_ENTRIES {
        return builder.note(format!("{}: too many submodules, their git folders stay read-only", modules.display()));
    }
    for module in found {
        if module.join("HEAD").is_file() {
            let work = values(&read(&module.join("config")).unwrap_or_default(), "core", "worktree").pop();
            let work = work.map_or_else(|| checkout.to_owned(), |work| module.join(work));
            builder.open(&module);
            protect_git_folder(builder, &module, &work.canonicalize().unwrap_or(work));
        } else if depth > 0 {
            protect_modules(builder, &module, checkout, depth - 1);
        }
    }
}

fn protect_worktree_folder(builder: &mut Builder, folder: &Path) {
    for name in GIT_WORKTREE {
        let stand_in = (name.path == "config.worktree").then_some(name.stand_in);
        builder.close(&folder.join(name.path), stand_in);
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
        for worktree in entries(&common.join("worktrees")) {
            if worktree != git {
                builder.close(&worktree, None);
            }
        }
        protect_git_folder(builder, &common, root);
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

/// Reads `gitdir: PATH`.
fn pointed_at(dot_git: &Path, checkout: &Path) -> Option<PathBuf> {
    let text = read(dot_git)?;
    let path = text.strip_prefix("gitdir:")?.trim();
    checkout.join(path).canonicalize().ok()
}

/// The shared folder of the linked worktree `git`, if it belongs to the checkout with this `.git` file.
fn common_of_worktree(git: &Path, dot_git: &Path) -> Option<PathBuf> {
    let common = git.join(read(&git.join("commondir"))?.trim()).canonicalize().ok()?;
    let back = git.join(read(&git.join("gitdir"))?.trim()).canonicalize().ok()?;
    let listed = git.parent()? == common.join("worktrees");
    (listed && back == dot_git && is_git_folder(&common)).then_some(common)
}

/// Whether `git` is the folder of a submodule that is checked out in `root`.
fn is_submodule_of(git: &Path, root: &Path) -> bool {
    let config = read(&git.join("config")).unwrap_or_default();
    let works_in_root = |value: &String| git.join(value).canonicalize().is_ok_and(|path| path == root);
    is_git_folder(git) && values(&config, "core", "worktree").iter().any(works_in_root)
}

/// The path without `.` and `..`.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            other => plain.push(other),
        }
    }
    plain
}

fn is_git_folder(path: &Path) -> bool {
    path.join("HEAD").is_file() && path.join("objects").is_dir() && path.join("refs").is_dir()
}

fn is_empty(folder: &Path) -> bool {
    fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_none())
}

/// The folders directly below, real ones only, in order.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let Ok(found) = fs::read_dir(folder) else { return Vec::new() };
    let folders = found.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let mut folders: Vec<PathBuf> = folders.map(|entry| entry.path()).collect();
    folders.sort();
    folders
}

fn read(path: &Path) -> Option<String> {
    let (text, _) = codex_files::read_start(path, MAX_FILE).ok()?;
    String::from_utf8(text).ok()
}

/// All values of `key` in sections named `section`, whatever their subsection.
fn values(config: &str, section: &str, key: &str) -> Vec<String> {
    let mut inside = false;
    let mut found = Vec::new();
    for line in config.lines().map(str::trim) {
        if let Some(heading) = line.strip_prefix('[') {
            let name = heading.split([' ', '\t', ']', '"', '.']).next().unwrap_or_default();
            inside = name.eq_ignore_ascii_case(section) || name.eq_ignore_ascii_case(&format!("{section}If"));
        }
        let Some((name, value)) = line.split_once('=') else { continue };
        let name = name.rsplit(']').next().unwrap_or_default().trim();
        if inside && name.eq_ignore_ascii_case(key) {
            found.push(value.trim().trim_matches('"').to_owned());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::values;

    #[test]
    fn values_are_found_in_their_section_only() {
        let config = "[core]\n\tbare = false\n hooksPath = \".husky/_\"\n[remote \"path\"]\n path = no\n\
                      [includeIf \"gitdir:~/x\"]\n path = ../a\n[include] path=b\n";
        assert_eq!(values(config, "core", "hookspath"), [".husky/_"]);
        assert_eq!(values(config, "include", "path"), ["../a", "b"]);
    }

    #[test]
    fn a_file_that_never_ends_says_nothing() {
        use codex_files::testing::{Endless, soon};

        for kind in Endless::ALL {
            let folder = tempfile::tempdir().expect("a folder");
            let path = folder.path().join("config");
            kind.make(&path).expect("a file");
            let text = soon(move || super::read(&path)).expect("it is not waited for");
            assert!(text.is_none_or(|text| values(&text, "core", "hookspath").is_empty()), "{kind:?}");
        }
    }
}
