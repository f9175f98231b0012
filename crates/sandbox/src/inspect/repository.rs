//! Inspects one git folder: the files that git would execute, or read to learn what to execute or where to write.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::inspector::Inspector;
use codex_files::GitMarks;
use codex_guard::disarm;
use codex_guard::names::GIT_HOOKS;
use codex_guard::walk::{EntryKind, Folder, Root};

/// The maximum nesting depth of submodules in `modules`, in folders.
const MAX_MODULE_DEPTH: usize = 16;
/// The maximum number of folders in one git folder that are searched for links.
const MAX_FOLDERS: usize = 200_000;
/// The folders that are not searched: the files in them are never written a second time. Links to their folders count.
const STORES: [&str; 7] =
    ["objects", "objects/info", "objects/info/commit-graphs", "objects/pack", "lfs", "lfs/objects", "lfs/tmp"];

impl Inspector<'_> {
    /// Inspects a git folder and everything that git reads from it.
    pub(super) fn git_folder(&mut self, git: &Path, is_bare: bool) {
        if !self.seen.insert(git.to_owned()) {
            return;
        }
        let Some((root, folder)) = self.opened(git) else { return };
        let mut settings = Vec::new();
        for name in ["config", "config.worktree"] {
            settings.extend(self.settings(&folder, git, name, is_bare));
        }
        let is_long = |value: &Option<Vec<u8>>| value.as_deref() == Some(b"sha256");
        let has_long_ids = settings.iter().any(|entry| entry.is("extensions", "objectformat") && is_long(&entry.value));
        let id_length = if has_long_ids { 32 } else { 20 };
        self.common_folder(&folder, git);
        self.hooks(&root, git);
        self.remotes(&root, git);
        self.attributes(&root, git);
        self.links(&root, git);
        let top = entries(&folder);
        self.indexes(&folder, git, &top, id_length);
        self.conflicts(&folder, git);
        self.lists(&root, Path::new(""));
        self.worktrees(&root, git, id_length);
        self.modules(&root, git);
    }

    /// Opens a git folder. One that cannot be read is made readable, or put out of reach.
    fn opened(&mut self, git: &Path) -> Option<(Root, Folder)> {
        let (at, name) = (git.parent()?, git.file_name()?);
        let root = Root::open(git).or_else(|| {
            self.folder(&Root::open(at)?, Path::new(name))?;
            Root::open(git)
        })?;
        let folder = root.folder(Path::new(""))?;
        Some((root, folder))
    }

    /// A git folder that is not a linked worktree must not take its settings from elsewhere.
    fn common_folder(&mut self, folder: &Folder, git: &Path) {
        if folder.stamp_of("commondir").is_none() {
            return;
        }
        let text = disarm::read(folder, "commondir").unwrap_or_default();
        if text.trim_ascii() != b"." {
            self.unwanted(folder, git, "commondir", "takes the settings of another git folder");
        }
    }

    fn hooks(&mut self, root: &Root, git: &Path) {
        let at = git.join("hooks");
        let Some(folder) = self.folder(root, Path::new("hooks")) else { return };
        for (name, kind) in entries(&folder) {
            if name.as_bytes().ends_with(b".sample") || matches!(kind, EntryKind::Folder | EntryKind::Other) {
                continue;
            }
            let is_executable = || folder.stamp_of(&name).is_some_and(|stamp| stamp.mode & 0o111 != 0);
            let is_hook = kind == EntryKind::Link || GIT_HOOKS.iter().any(|hook| name == *hook) || is_executable();
            if is_hook && !is_disarmed(&name) && self.judge_entry(&folder, &at, &name) {
                self.move_aside(&folder, &at, &name, "a git hook");
            }
        }
    }

    /// Files that give a name to a remote, as git did it before its configuration.
    fn remotes(&mut self, root: &Root, git: &Path) {
        for kind in ["branches", "remotes"] {
            let Some(folder) = self.folder(root, Path::new(kind)) else { continue };
            let at = git.join(kind);
            for (name, _) in entries(&folder) {
                if !is_disarmed(&name) && self.judge_entry(&folder, &at, &name) {
                    self.move_aside(&folder, &at, &name, "a file that names a remote");
                }
            }
        }
    }

    fn attributes(&mut self, root: &Root, git: &Path) {
        let at = git.join("info");
        let Some(folder) = self.folder(root, Path::new("info")) else { return };
        if folder.stamp_of("attributes").is_some_and(|stamp| stamp.size > 0 || stamp.kind() != EntryKind::File) {
            self.unwanted(&folder, &at, "attributes", "attributes that choose programs to run");
        }
    }

    /// Links let git write elsewhere, and a git folder inside could be led to.
    fn links(&mut self, root: &Root, git: &Path) {
        let mut waiting = vec![PathBuf::new()];
        let mut folders = 0;
        while let Some(below) = waiting.pop() {
            folders += 1;
            if folders > MAX_FOLDERS {
                return self.too_large(git);
            }
            let Some(folder) = self.folder(root, &below) else { continue };
            let is_top = below.as_os_str().is_empty();
            let at = if is_top { git.to_owned() } else { git.join(&below) };
            let is_store = STORES.iter().any(|store| below == Path::new(store));
            let mut marks = GitMarks::default();
            for (name, kind) in entries(&folder) {
                marks.note(&name);
                let path = below.join(&name);
                match kind {
                    EntryKind::Link => {
                        // A branch may have any name, so the suffix means nothing there.
                        let is_branch = below.starts_with("refs") || below.starts_with("logs/refs");
                        if (is_branch || !is_disarmed(&name)) && self.judge_entry(&folder, &at, &name) {
                            self.move_aside(&folder, &at, &name, "a link in a git folder");
                        }
                    }
                    EntryKind::Folder if is_top && name == "modules" => {}
                    EntryKind::Folder if is_store && !STORES.iter().any(|store| path == Path::new(store)) => {}
                    EntryKind::Folder => waiting.push(path),
                    EntryKind::File | EntryKind::Other => {}
                }
            }
            let is_worktree = below.parent() == Some(Path::new("worktrees"));
            if !is_top && !is_worktree && marks.is_git_folder() {
                self.unwanted(&folder, &at, "HEAD", "a git folder in another one");
            }
        }
    }

    /// Puts a git folder with more folders than anybody can look through out of reach.
    fn too_large(&mut self, git: &Path) {
        let (Some(at), Some(name)) = (git.parent(), git.file_name()) else { return };
        let Some(folder) = Root::open(at).and_then(|root| root.folder(Path::new(""))) else { return };
        if self.judge(git, "too large") {
            self.seal(&folder, at, name, "a git folder that is too large to be examined");
        }
    }

    fn indexes(&mut self, folder: &Folder, git: &Path, names: &[(OsString, EntryKind)], id_length: usize) {
        for (name, kind) in names {
            let is_index = name == "index" || name.as_bytes().starts_with(b"sharedindex.");
            if is_index && *kind == EntryKind::File {
                self.index(folder, git, name, id_length);
            }
        }
    }

    /// The folders of linked worktrees: each has its own state and takes its settings from here.
    fn worktrees(&mut self, root: &Root, git: &Path, id_length: usize) {
        let Some(folder) = self.folder(root, Path::new("worktrees")) else { return };
        let at = git.join("worktrees");
        for (name, _) in entries(&folder).into_iter().filter(|(_, kind)| *kind == EntryKind::Folder) {
            let (own, below) = (at.join(&name), Path::new("worktrees").join(&name));
            let Some(worktree) = self.folder(root, &below) else { continue };
            self.settings(&worktree, &own, "config.worktree", false);
            self.lists(root, &below);
            self.indexes(&worktree, &own, &entries(&worktree), id_length);
            self.conflicts(&worktree, &own);
            if worktree.stamp_of("commondir").is_some() {
                let text = disarm::read(&worktree, "commondir").unwrap_or_default();
                let common = own.join(OsStr::from_bytes(text.trim_ascii())).canonicalize();
                if common.is_ok_and(|common| common != git) {
                    self.unwanted(&worktree, &own, "commondir", "takes the settings of another git folder");
                }
            }
        }
    }

    /// The git folders of submodules.
    fn modules(&mut self, root: &Root, git: &Path) {
        let mut waiting = vec![(PathBuf::from("modules"), MAX_MODULE_DEPTH)];
        while let Some((below, depth)) = waiting.pop() {
            let Some(folder) = self.folder(root, &below) else { continue };
            if folder.stamp_of("HEAD").is_some() {
                self.git_folder(&git.join(&below), false);
                continue;
            }
            for (name, kind) in entries(&folder) {
                let path = below.join(&name);
                match kind {
                    EntryKind::Folder if depth > 0 => waiting.push((path, depth - 1)),
                    EntryKind::Folder | EntryKind::Link => {
                        if self.judge_entry(&folder, &git.join(&below), &name) {
                            let what = "a link or a folder that is too deep for a submodule";
                            self.seal(&folder, &git.join(&below), &name, what);
                        }
                    }
                    EntryKind::File | EntryKind::Other => {}
                }
            }
        }
    }
}

fn is_disarmed(name: &OsStr) -> bool {
    name.as_bytes().windows(disarm::SUFFIX.len()).any(|part| part == disarm::SUFFIX.as_bytes())
}

fn entries(folder: &Folder) -> Vec<(OsString, EntryKind)> {
    let mut entries = Vec::new();
    folder.each(&mut |name, kind| {
        entries.push((name.to_owned(), kind));
        true
    });
    entries
}
