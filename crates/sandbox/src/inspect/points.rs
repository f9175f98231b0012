//! Inspects the findings of a survey, each at its place.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use super::inspector::{Inspector, Purpose};
use crate::layout::is_placeholder_mode;
use crate::search::{FindingKind, Survey, SurveyFinding};
use codex_guard::disarm;
use codex_guard::walk::{EntryKind, Folder, Root};

/// The maximum number of ordinary files in a report.
const MAX_CHANGED: usize = 100;

/// The names in a git folder. A folder with other names contains work of the user.
const GIT_ENTRIES: &[&str] = &[
    "HEAD",
    "branches",
    "config",
    "config.worktree",
    "commondir",
    "description",
    "hooks",
    "index",
    "info",
    "lfs",
    "logs",
    "modules",
    "objects",
    "packed-refs",
    "refs",
    "reftable",
    "shallow",
    "worktrees",
    "COMMIT_EDITMSG",
    "FETCH_HEAD",
    "ORIG_HEAD",
    "gc.log",
    "gitdir",
];

impl Inspector<'_> {
    /// Makes folders readable that a command has made unreadable, and returns whether there were any.
    pub(super) fn open_up(&mut self, survey: &Survey) -> bool {
        let mut opened = false;
        for point in survey.points.iter().filter(|point| point.what == FindingKind::Unreadable) {
            let Some(root) = Root::open(&point.root) else { continue };
            opened |= self.folder(&root, &point.below).is_some();
        }
        opened
    }

    pub(super) fn point(&mut self, point: &SurveyFinding) {
        let path = point.path();
        match point.what {
            FindingKind::DotGit(EntryKind::Folder) => {
                // A command may be about to make one.
                if !self.is_live()
                    && !codex_files::is_git_folder(&path)
                    && self.judge(&path, ("no git folder", point.stamp.identity()))
                {
                    return self.move_point_aside(point, "a `.git` that is not yet a git folder");
                }
                self.git_folder(&path, false);
            }
            FindingKind::DotGit(EntryKind::File) => self.git_file(point),
            FindingKind::DotGit(_) => self.git_link(point),
            FindingKind::Bare => self.bare(point),
            FindingKind::Unreadable => {
                if let Some(root) = Root::open(&point.root) {
                    self.folder(&root, &point.below);
                }
            }
            FindingKind::Unvisited => {
                if self.judge(&path, ("unvisited", point.stamp.identity()))
                    && let Some((folder, name)) = around(point)
                {
                    self.seal(&folder, path.parent().unwrap_or(&path), name, "a folder that there was no time for");
                }
            }
            FindingKind::Setting | FindingKind::Hook if !self.is_suspect(point) => {}
            FindingKind::Setting if is_placeholder(point) => {}
            FindingKind::Setting | FindingKind::Hook
                if self.is_live() && !self.judge(&path, point.stamp.identity()) => {}
            FindingKind::Setting => self.move_point_aside(point, "a protected name that a command created"),
            FindingKind::Hook => self.hook(point),
            FindingKind::Ordinary => {
                if let Purpose::Disarm { due, .. } = &self.purpose
                    && due.is_since(&point.stamp)
                    && self.report.changed.len() < MAX_CHANGED
                {
                    self.report.changed.push(path);
                }
            }
        }
    }

    /// Whether a command has changed it, or moved it here inside a folder.
    fn is_suspect(&self, point: &SurveyFinding) -> bool {
        let Purpose::Disarm { due, .. } = &self.purpose else { return false };
        let path = point.path();
        let is_known = due.is_known(&path, &point.stamp);
        if due.was_closed(&path) {
            return !is_known && !due.is_users(&path);
        }
        due.is_since(&point.stamp) || due.is_time_since(point.folders_changed) && !is_known
    }

    /// A file that has to stay what it is.
    pub(super) fn bound(&mut self, path: &Path) {
        let (Some(at), Some(name)) = (path.parent(), path.file_name()) else { return };
        let Some(folder) = Root::open(at).and_then(|root| root.folder(Path::new(""))) else { return };
        if self.judge_entry(&folder, at, name) {
            let what = "it is named by a configuration or a hook of the user, and is not what it was";
            self.move_aside(&folder, at, name, what);
        }
    }

    /// A file with the name of a hook, outside of git folders. A configuration may point git to it.
    fn hook(&mut self, point: &SurveyFinding) {
        if point.stamp.kind() == EntryKind::Link {
            return self.move_point_aside(point, "a link with the name of a git hook");
        }
        if point.stamp.mode & 0o111 == 0 {
            return;
        }
        let Some((folder, name)) = around(point) else { return };
        let what = "a file with the name of a git hook";
        match disarm::take_execute_bits(&folder, name) {
            Ok(()) => self.report(point.path(), &format!("{what}; it is no longer executable")),
            Err(_) => self.move_point_aside(point, what),
        }
    }

    /// A `.git` that is a link, or something else that is neither a folder nor a file.
    fn git_link(&mut self, point: &SurveyFinding) {
        let (path, Some((folder, name))) = (point.path(), around(point)) else { return };
        if self.judge_entry(&folder, path.parent().unwrap_or(&path), name) {
            return self.move_point_aside(point, "a `.git` that is neither a folder nor a file");
        }
        if let Ok(git) = path.canonicalize()
            && self.is_writable(&git)
        {
            self.git_folder(&git, false);
        }
    }

    /// A folder that git recognises as a git folder although it is not called `.git`.
    fn bare(&mut self, point: &SurveyFinding) {
        let path = point.path();
        let Some(folder) = Root::open(&path).and_then(|root| root.folder(Path::new(""))) else { return };
        if self.judge(&path, "a git folder") {
            let has_objects = ["objects", "refs"].iter().all(|name| folder.stamp_of(name).is_some());
            if !has_objects || !is_git_alone(&folder) {
                return self.move_aside(&folder, &path, OsStr::new("HEAD"), "a git folder among other files");
            }
        }
        self.git_folder(&path, true);
    }

    /// A `.git` file. The folder that it leads to must belong to it, and is examined too.
    fn git_file(&mut self, point: &SurveyFinding) {
        let path = point.path();
        let Some((folder, name)) = around(point) else { return };
        let is_new = self.judge_entry(&folder, path.parent().unwrap_or(&path), name);
        let Some(text) = disarm::read(&folder, name) else {
            if is_new {
                self.move_point_aside(point, "a `.git` file that cannot be read");
            }
            return;
        };
        let Some(target) = text.strip_prefix(b"gitdir:") else {
            if is_new {
                self.move_point_aside(point, "a `.git` file that leads to no folder");
            }
            return;
        };
        let (target, checkout) = (Path::new(OsStr::from_bytes(target.trim_ascii())), path.parent().unwrap_or(&path));
        let Ok(git) = checkout.join(target).canonicalize() else {
            // Nothing is there yet, and a folder created later could not be traced to this file.
            if is_new {
                self.move_point_aside(point, "a `.git` file that leads nowhere");
            }
            return;
        };
        let own = if let Some(common) = crate::git::common_of_worktree(&git, &path) {
            Some(common)
        } else if crate::git::is_submodule_of(&git, checkout) && git.iter().any(|part| part == "modules") {
            Some(git.clone())
        } else {
            None
        };
        match own {
            None if is_new => {
                self.move_point_aside(point, "a `.git` file that leads to a folder which does not belong to it");
            }
            // Programs that settings name are found from the checkout, so those of another one are foreign here.
            Some(own) if is_new && !self.is_planned(&own) && self.has_harm(&own) => {
                self.move_point_aside(point, "a `.git` file that leads to settings which are not known to be harmless");
            }
            Some(own) if self.is_writable(&own) => self.git_folder(&own, false),
            Some(_) => {}
            None if self.is_writable(&git) => self.git_folder(&git, false),
            None => {}
        }
    }

    /// Whether it is a repository of the workspace, whose settings belong to the user.
    fn is_planned(&self, git: &Path) -> bool {
        let Purpose::Disarm { due, .. } = &self.purpose else { return true };
        let is_in_workspace = |folder: &Path| self.profile.workspaces().iter().any(|root| folder.starts_with(root));
        due.git_folders.iter().any(|planned| git.starts_with(planned)) && is_in_workspace(git)
    }

    fn is_writable(&self, path: &Path) -> bool {
        self.profile.writable_roots().iter().any(|root| path.starts_with(root))
    }

    fn move_point_aside(&mut self, point: &SurveyFinding, what: &str) {
        if let Some((folder, name)) = around(point) {
            let path = point.path();
            self.move_aside(&folder, path.parent().unwrap_or(&path), name, what);
        }
    }
}

/// The parent folder of a place, and its name in it.
fn around(point: &SurveyFinding) -> Option<(Folder, &OsStr)> {
    let folder = Root::open(&point.root)?.folder(point.below.parent()?)?;
    Some((folder, point.below.file_name()?))
}

/// Whether this is a placeholder of another command.
fn is_placeholder(point: &SurveyFinding) -> bool {
    let is_empty = || {
        let mut is_empty = true;
        if let Some(folder) = Root::open(&point.path()).and_then(|root| root.folder(Path::new(""))) {
            folder.each(&mut |_, _| {
                is_empty = false;
                false
            });
        }
        is_empty
    };
    is_placeholder_mode(point.stamp.mode) && point.stamp.kind() == EntryKind::Folder && is_empty()
}

/// Whether a folder contains only the names of a git folder.
fn is_git_alone(folder: &Folder) -> bool {
    let mut is_alone = true;
    folder.each(&mut |name, _| {
        let name = name.as_bytes();
        is_alone = GIT_ENTRIES.iter().any(|known| known.as_bytes() == name)
            || name.ends_with(b".lock")
            || name.windows(disarm::SUFFIX.len()).any(|part| part == disarm::SUFFIX.as_bytes());
        is_alone
    });
    is_alone
}
