//! Inspects a workspace: goes through a survey and disarms everything dangerous that a command has changed.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::io::Errno;

use super::due::Due;
use super::repository::Role;
use crate::layout::is_placeholder_mode;
use crate::search::{self, FindingKind, Survey, SurveyFinding};
use codex_guard::disarm;
use codex_guard::findings::{Finding, Report};
use codex_guard::walk::{EntryKind, Folder, Root, Stamp};

/// The time limit for the git folders, after the survey.
const MAX_TIME: Duration = Duration::from_secs(1);
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

pub(super) struct Inspector<'a> {
    pub(super) due: &'a Due,
    known: HashSet<(PathBuf, (u64, u64))>,
    /// The git folders that were already inspected.
    pub(super) seen: HashSet<PathBuf>,
    pub(super) until: Instant,
    report: Report,
}

/// Inspects the changes of a command and disarms the dangerous ones.
pub(super) fn inspect(due: &Due) -> Report {
    let mut survey = look(due);
    let mut inspector = Inspector {
        due,
        known: due.known(),
        seen: HashSet::new(),
        until: Instant::now() + MAX_TIME,
        report: Report::default(),
    };
    if inspector.open_up(&survey) {
        survey = look(due);
    }
    for git in &due.git_folders {
        inspector.git_folder(git, Role::Planned, false);
    }
    for point in &survey.points {
        inspector.point(point);
    }
    let outside = due.profile.writable_roots().iter().filter(|root| !due.profile.workspaces().contains(root));
    for folder in outside.map(PathBuf::as_path).chain(due.profile.around_workspaces()) {
        for point in search::repositories_in(folder) {
            inspector.point(&point);
        }
    }
    inspector.note_limits(&survey);
    inspector.report
}

fn look(due: &Due) -> Arc<Survey> {
    search::renew(due.profile.workspaces(), due.profile.names())
}

impl Inspector<'_> {
    /// Makes folders readable that the command has made unreadable, and returns whether there were any.
    fn open_up(&mut self, survey: &Survey) -> bool {
        let mut opened = false;
        let unreadable = survey.points.iter().filter(|point| point.what == FindingKind::Unreadable);
        for point in unreadable.filter(|point| self.due.is_since(&point.stamp)) {
            let Some((folder, name)) = around(point) else { continue };
            if disarm::make_readable(&folder, Path::new(name)).is_ok() {
                opened = true;
                self.report(point.path(), "a folder that could not be read; it can be read again");
            }
        }
        opened
    }

    fn point(&mut self, point: &SurveyFinding) {
        let path = point.path();
        let is_suspect = self.is_suspect(point) && !self.due.was_closed(&path);
        match point.what {
            FindingKind::DotGit(EntryKind::Folder) => {
                let is_new = is_suspect && !self.is_known(point);
                self.git_folder(&path, Role::Checkout, is_new);
            }
            FindingKind::DotGit(EntryKind::File) if is_suspect => self.git_file(point),
            FindingKind::DotGit(_) if is_suspect => {
                self.move_point_aside(point, "a `.git` that is neither a folder nor a file");
            }
            FindingKind::Bare => self.bare(point),
            FindingKind::Setting if is_suspect && !is_placeholder(point) => {
                self.move_point_aside(point, "a protected name that a command created");
            }
            FindingKind::Hook if is_suspect => self.hook(point),
            FindingKind::Ordinary if self.due.is_since(&point.stamp) && self.report.changed.len() < MAX_CHANGED => {
                self.report.changed.push(path);
            }
            _ => {}
        }
    }

    /// Whether the command has changed it, or moved it here inside a folder.
    fn is_suspect(&self, point: &SurveyFinding) -> bool {
        self.due.is_since(&point.stamp) || self.due.is_time_since(point.folders_changed) && !self.is_known(point)
    }

    /// Whether it existed before. If the earlier survey is incomplete, it may have.
    fn is_known(&self, point: &SurveyFinding) -> bool {
        !self.due.knows_all() || self.known.contains(&(point.path(), point.stamp.identity()))
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

    /// A folder that git recognises as a git folder although it is not called `.git`.
    fn bare(&mut self, point: &SurveyFinding) {
        let path = point.path();
        let Some(folder) = Root::open(&path).and_then(|root| root.folder(Path::new(""))) else { return };
        let parts = ["HEAD", "objects", "refs", "commondir", "config"].map(|name| folder.stamp_of(name));
        let parts_changed = parts.iter().flatten().any(|part| self.due.is_since(part));
        let is_touched = self.is_suspect(point) || self.due.knows_all() && parts_changed;
        if self.due.known_bare().contains(&path) || !is_touched || self.due.was_closed(&path.join("config")) {
            return self.git_folder(&path, Role::Bare, false);
        }
        let has_objects = parts.iter().skip(1).take(2).all(Option::is_some);
        if has_objects && is_git_alone(&folder) {
            return self.git_folder(&path, Role::Bare, true);
        }
        self.move_aside(&folder, &path, OsStr::new("HEAD"), "a git folder among other files");
    }

    /// A `.git` file. If it points to a folder that commands can write, the two must belong together.
    fn git_file(&mut self, point: &SurveyFinding) {
        let path = point.path();
        let Some((folder, name)) = around(point) else { return };
        let Some(text) = disarm::read(&folder, name) else { return };
        let Some(target) = text.strip_prefix(b"gitdir:") else { return };
        let (target, checkout) = (Path::new(OsStr::from_bytes(target.trim_ascii())), path.parent().unwrap_or(&path));
        let Ok(git) = checkout.join(target).canonicalize() else {
            // Nothing is there yet, and a folder created later could not be traced to this file.
            return self.move_point_aside(point, "a `.git` file that leads nowhere");
        };
        if !self.due.profile.writable_roots().iter().any(|root| git.starts_with(root)) {
            return;
        }
        if let Some(common) = crate::git::common_of_worktree(&git, &path) {
            self.git_folder(&common, Role::Checkout, false);
        } else if crate::git::is_submodule_of(&git, checkout) && git.iter().any(|part| part == "modules") {
            self.git_folder(&git, Role::Checkout, false);
        } else {
            self.move_point_aside(point, "a `.git` file that leads to a folder which does not belong to it");
        }
    }

    fn move_point_aside(&mut self, point: &SurveyFinding, what: &str) {
        if let Some((folder, name)) = around(point) {
            let path = point.path();
            self.move_aside(&folder, path.parent().unwrap_or(&path), name, what);
        }
    }

    /// Renames an entry of a folder in place and reports it.
    pub(super) fn move_aside(&mut self, folder: &Folder, at: &Path, name: &OsStr, what: &str) {
        match disarm::move_aside(folder, name) {
            Ok(aside) => self.report(at.join(name), &format!("{what}; renamed to {}", aside.display())),
            Err(Errno::NOENT) => {}
            Err(errno) => self.report_failure(at.join(name), what, errno),
        }
    }

    pub(super) fn report(&mut self, path: PathBuf, what: &str) {
        self.report.findings.push(Finding { path, what: what.to_owned() });
    }

    pub(super) fn report_failure(&mut self, path: PathBuf, what: &str, errno: Errno) {
        self.report(path, &format!("{what}; could not be disarmed: {errno}"));
    }

    /// Reports what was too large to inspect, once for each folder.
    fn note_limits(&mut self, survey: &Survey) {
        static SAID: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());
        let is_late = Instant::now() > self.until;
        let late = self.due.profile.workspaces().first().filter(|_| is_late);
        let mut said = SAID.lock().unwrap_or_else(PoisonError::into_inner);
        for root in survey.unfinished.iter().chain(late) {
            if !said.contains(root) {
                said.push(root.clone());
                self.report(
                    root.clone(),
                    "too large to be inspected entirely after a command; the rest was not looked at",
                );
            }
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
            || name.windows(16).any(|part| part == b".disabled-by-cod");
        is_alone
    });
    is_alone
}

impl Inspector<'_> {
    /// Whether the command has changed an entry.
    pub(super) fn is_changed(&self, folder: &Folder, at: &Path, name: &str, all: bool) -> Option<Stamp> {
        let stamp = folder.stamp_of(name)?;
        ((all || self.due.is_since(&stamp)) && !self.due.was_closed(&at.join(name))).then_some(stamp)
    }
}
