//! Inspects one git folder: the files that git would execute, or read to learn what to execute.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

use super::workspace::Inspector;
use codex_guard::disarm;
use codex_guard::git::allowed::{self, Place};
use codex_guard::git::config::{self, Entry};
use codex_guard::git::sequencer;
use codex_guard::names::GIT_HOOKS;
use codex_guard::walk::{EntryKind, Folder, Root};

/// The maximum nesting depth of submodules in `modules`, in folders.
const MAX_MODULE_DEPTH: usize = 4;
/// The maximum number of folders in one git folder that are searched for links.
const MAX_FOLDERS: usize = 20_000;

/// The relation of a git folder to its checkout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// It existed before the command, with its dangerous names closed.
    Planned,
    /// It has a checkout elsewhere, usually around it.
    Checkout,
    /// It has no checkout.
    Bare,
}

impl Inspector<'_> {
    /// Inspects a git folder. With `all`, everything in it counts as changed.
    pub(super) fn git_folder(&mut self, git: &Path, role: Role, all: bool) {
        if !self.seen.insert(git.to_owned()) || Instant::now() > self.until {
            return;
        }
        let Some(root) = Root::open(git) else { return };
        let Some(folder) = root.folder(Path::new("")) else { return };
        for name in ["config", "config.worktree"] {
            self.settings(&folder, git, name, role == Role::Bare, all);
        }
        self.common_folder(&folder, git, all);
        self.hooks(&root, git, all);
        self.attributes(&root, git, all);
        self.links(&root, git, all);
        self.lists(git, all);
        self.worktrees(&root, git, all);
        self.modules(&root, git, all);
    }

    /// Keeps only the harmless settings of a configuration.
    fn settings(&mut self, folder: &Folder, git: &Path, name: &str, is_bare: bool, all: bool) {
        let Some(stamp) = self.is_changed(folder, git, name, all) else { return };
        let (path, name) = (git.join(name), OsStr::new(name));
        if stamp.kind() != EntryKind::File {
            return self.move_aside(folder, git, name, "a git configuration that is not a file");
        }
        let Some(text) = disarm::read(folder, name) else { return };
        let parsed = config::parse(&text);
        let roots = self.due.profile.writable_roots();
        let root = roots.iter().find(|root| git.starts_with(root)).map_or(git, PathBuf::as_path);
        let place = Place { git, root, is_bare };
        let is_allowed = |entry: &Entry| allowed::is_allowed(entry, place);
        let (safe, removed): (Vec<Entry>, Vec<Entry>) = parsed.entries.into_iter().partition(is_allowed);
        let is_whole = !parsed.is_broken && text.len() < disarm::MAX_FILE;
        if removed.is_empty() && is_whole {
            return;
        }
        let what = if removed.is_empty() { "a broken configuration of git".to_owned() } else { named(&removed) };
        match disarm::replace(folder, name, &config::print(&safe)) {
            Ok(aside) => self.report(path, &format!("{what}; replaced, the original is {}", aside.display())),
            Err(errno) => self.report_failure(path, &what, errno),
        }
    }

    /// A git folder that is not a linked worktree must not take its settings from elsewhere.
    fn common_folder(&mut self, folder: &Folder, git: &Path, all: bool) {
        if self.is_changed(folder, git, "commondir", all).is_none() {
            return;
        }
        let text = disarm::read(folder, "commondir").unwrap_or_default();
        if text.trim_ascii() != b"." {
            self.move_aside(folder, git, OsStr::new("commondir"), "takes the settings of another git folder");
        }
    }

    fn hooks(&mut self, root: &Root, git: &Path, all: bool) {
        let at = git.join("hooks");
        if self.due.was_closed(&at) {
            return;
        }
        let Some(folder) = root.folder(Path::new("hooks")) else { return };
        let all = all || folder.stamp().is_some_and(|stamp| self.due.is_since(&stamp));
        for (name, kind) in entries(&folder) {
            let Some(stamp) = folder.stamp_of(&name) else { continue };
            let is_sample = name.as_bytes().ends_with(b".sample");
            let is_hook = GIT_HOOKS.iter().any(|hook| name == *hook) || stamp.mode & 0o111 != 0;
            let is_active = !is_sample && (kind == EntryKind::Link || kind == EntryKind::File && is_hook);
            if is_active && !is_disarmed(&name) && (all || self.due.is_since(&stamp)) {
                self.move_aside(&folder, &at, &name, "a git hook");
            }
        }
    }

    fn attributes(&mut self, root: &Root, git: &Path, all: bool) {
        let at = git.join("info");
        let Some(folder) = root.folder(Path::new("info")) else { return };
        let all = all || folder.stamp().is_some_and(|stamp| self.due.is_since(&stamp));
        if self.is_changed(&folder, &at, "attributes", all).is_some_and(|stamp| stamp.size > 0) {
            self.move_aside(&folder, &at, OsStr::new("attributes"), "attributes that choose programs to run");
        }
    }

    /// Links let git write elsewhere. Files in `objects` are never rewritten.
    fn links(&mut self, root: &Root, git: &Path, all: bool) {
        let mut waiting = vec![(PathBuf::new(), all)];
        let mut folders = 0;
        while let Some((below, all)) = waiting.pop() {
            folders += 1;
            if folders > MAX_FOLDERS || folders % 64 == 0 && Instant::now() > self.until {
                return;
            }
            let Some(folder) = root.folder(&below) else { continue };
            let is_top = below.as_os_str().is_empty();
            let all = all || !is_top && folder.stamp().is_some_and(|stamp| self.due.is_since(&stamp));
            let at = if is_top { git.to_owned() } else { git.join(&below) };
            for (name, kind) in entries(&folder) {
                match kind {
                    EntryKind::Link => {
                        let is_new = |name: &OsStr| {
                            let stamp = folder.stamp_of(name)?;
                            ((all && !is_top || self.due.is_since(&stamp)) && !self.due.was_closed(&at.join(name)))
                                .then_some(())
                        };
                        // A branch may have any name, so the suffix means nothing there.
                        let is_branch = below.starts_with("refs") || below.starts_with("logs/refs");
                        if (is_branch || !is_disarmed(&name)) && is_new(&name).is_some() {
                            self.move_aside(&folder, &at, &name, "a link in a git folder");
                        }
                    }
                    EntryKind::Folder if is_top && (name == "objects" || name == "modules" || name == "lfs") => {}
                    EntryKind::Folder => waiting.push((below.join(name), all)),
                    EntryKind::File | EntryKind::Other => {}
                }
            }
        }
    }

    /// The todo lists of operations in progress.
    fn lists(&mut self, git: &Path, all: bool) {
        for (name, list) in sequencer::LISTS {
            let at = git.join(name);
            let Some(folder) = Root::open(&at).and_then(|root| root.folder(Path::new(""))) else { continue };
            let all = all || folder.stamp().is_some_and(|stamp| self.due.is_since(&stamp));
            if self.is_changed(&folder, &at, list, all).is_some() {
                self.list(&folder, &at, list);
            }
            if self.is_changed(&folder, &at, "strategy", all).is_some()
                && disarm::read(&folder, "strategy").is_some_and(|text| !sequencer::is_known_strategy(&text))
            {
                self.move_aside(&folder, &at, OsStr::new("strategy"), "a merge strategy that is not part of git");
            }
            if self.is_changed(&folder, &at, "opts", all).is_some() && has_foreign_strategy(&folder) {
                self.move_aside(&folder, &at, OsStr::new("opts"), "a merge strategy that is not part of git");
            }
        }
    }

    fn list(&mut self, folder: &Folder, at: &Path, list: &str) {
        let path = at.join(list);
        let before = self.due.executed.get(&path).map(Vec::as_slice).unwrap_or_default();
        let Some(text) = disarm::read(folder, list) else { return };
        let Some(safe) = sequencer::without_execution(&text, before) else { return };
        let what = "commands that `git rebase --continue` would run";
        match disarm::replace(folder, OsStr::new(list), &safe) {
            Ok(aside) => {
                self.report(path, &format!("{what}; commented out, the original is {}", aside.display()));
            }
            Err(errno) => self.report_failure(path, what, errno),
        }
    }

    /// The folders of linked worktrees: each has its own state and takes its settings from here.
    fn worktrees(&mut self, root: &Root, git: &Path, all: bool) {
        let Some(folder) = root.folder(Path::new("worktrees")) else { return };
        let at = git.join("worktrees");
        for (name, _) in entries(&folder).into_iter().filter(|(_, kind)| *kind == EntryKind::Folder) {
            if Instant::now() > self.until {
                return;
            }
            let own = at.join(&name);
            let Some(worktree) = root.folder(&Path::new("worktrees").join(&name)) else { continue };
            let all = all || worktree.stamp().is_some_and(|stamp| self.due.is_since(&stamp));
            self.settings(&worktree, &own, "config.worktree", false, all);
            self.lists(&own, all);
            if self.is_changed(&worktree, &own, "commondir", all).is_some() {
                let text = disarm::read(&worktree, "commondir").unwrap_or_default();
                let common = own.join(OsStr::from_bytes(text.trim_ascii())).canonicalize();
                if common.is_ok_and(|common| common != git) {
                    self.move_aside(
                        &worktree,
                        &own,
                        OsStr::new("commondir"),
                        "takes the settings of another git folder",
                    );
                }
            }
        }
    }

    /// The git folders of submodules.
    fn modules(&mut self, root: &Root, git: &Path, all: bool) {
        let mut waiting = vec![(PathBuf::from("modules"), MAX_MODULE_DEPTH)];
        while let Some((below, depth)) = waiting.pop() {
            let Some(folder) = root.folder(&below) else { continue };
            if folder.stamp_of("HEAD").is_some() {
                self.git_folder(&git.join(&below), Role::Checkout, all);
            } else if depth > 0 {
                let folders = entries(&folder).into_iter().filter(|(_, kind)| *kind == EntryKind::Folder);
                waiting.extend(folders.map(|(name, _)| (below.join(name), depth - 1)));
            }
        }
    }
}

/// Whether `sequencer/opts`, which has the syntax of a configuration, names a strategy that is not part of git.
fn has_foreign_strategy(folder: &Folder) -> bool {
    let parsed = config::parse(&disarm::read(folder, "opts").unwrap_or_default());
    let is_foreign = |entry: &Entry| !sequencer::is_known_strategy(entry.value.as_deref().unwrap_or_default());
    parsed.is_broken || parsed.entries.iter().any(|entry| entry.is("options", "strategy") && is_foreign(entry))
}

/// Lists the removed settings.
fn named(removed: &[Entry]) -> String {
    let name = |entry: &Entry| {
        let subsection = entry.subsection.as_ref().map(|name| format!(".{}", String::from_utf8_lossy(name)));
        format!("{}{}.{}", entry.section, subsection.unwrap_or_default(), entry.key)
    };
    let mut names: Vec<String> = removed.iter().map(name).collect();
    names.dedup();
    names.truncate(4);
    format!("settings of git that are not known to be harmless ({})", names.join(", "))
}

fn is_disarmed(name: &OsStr) -> bool {
    name.to_string_lossy().contains(".disabled-by-codex")
}

fn entries(folder: &Folder) -> Vec<(OsString, EntryKind)> {
    let mut entries = Vec::new();
    folder.each(&mut |name, kind| {
        entries.push((name.to_owned(), kind));
        true
    });
    entries
}
