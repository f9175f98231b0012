//! One way through everything that git would read back, for three purposes: to record what is there before commands can
//! write, to find out whether anything is harmful, and to disarm it.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::hash::Hash;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::io::Errno;

use super::accepted::{self, Accepted};
use super::due::Due;
use crate::layout::Layout;
use crate::profile::Profile;
use crate::search::{self, Scratch, Survey, SurveyFinding};
use codex_guard::findings::{Finding, Report};
use codex_guard::walk::{CannotOpen, EntryKind, Folder, Root};
use codex_guard::{disarm, fingerprint};

/// The treatment of something that is not harmless.
pub(super) enum Purpose<'a> {
    /// It is recorded.
    Record(Accepted),
    /// It is noted that there is something.
    Probe { is_harmful: bool },
    /// It is disarmed, unless it was there before. The rest is recorded.
    Disarm { due: &'a Due, kept: Accepted, live: Option<&'a mut Seen> },
}

pub(super) struct Inspector<'a> {
    pub(super) profile: &'a Profile,
    pub(super) purpose: Purpose<'a>,
    /// The git folders that were already inspected.
    pub(super) seen: HashSet<PathBuf>,
    /// Whether no command can write meanwhile, so that what is known about a file holds until it changes.
    pub(super) is_alone: bool,
    pub(super) report: Report,
    /// The last thing that had to be disarmed.
    harm: Option<(PathBuf, u64)>,
}

/// The parts of a layout that are recorded for each command.
pub(super) struct Known<'a> {
    pub(super) git_folders: &'a [PathBuf],
    pub(super) layout: &'a Layout,
    pub(super) alone: bool,
}

/// Records everything that is not harmless in the repositories of a layout, before a command.
pub(super) fn record(profile: &Profile, known: &Known<'_>) -> Accepted {
    let mut inspector = Inspector::new(profile, Purpose::Record(Accepted::default()), known.alone);
    for git in known.git_folders {
        inspector.git_folder(git, false);
    }
    for path in &known.layout.bound {
        inspector.bound(path);
    }
    for folder in profile.around_workspaces() {
        for point in search::repositories_in(folder, Path::new("")) {
            inspector.point(&point);
        }
    }
    for point in known.layout.scratch.iter().flat_map(|scratch| &scratch.points) {
        inspector.point(point);
    }
    inspector.recorded()
}

/// Records everything that is not harmless in the other repositories of a survey.
pub(super) fn record_others(profile: &Profile, points: &[SurveyFinding], known: &Known<'_>) -> Accepted {
    let mut inspector = Inspector::new(profile, Purpose::Record(Accepted::default()), known.alone);
    inspector.seen.extend(known.git_folders.iter().cloned());
    for point in points {
        inspector.point(point);
    }
    inspector.recorded()
}

/// The things that a command which goes on has left, the last time and now. It may be in the middle of making the new
/// ones, so those are not disarmed.
#[derive(Debug, Default)]
pub(super) struct Seen {
    before: HashSet<(PathBuf, u64)>,
    now: HashSet<(PathBuf, u64)>,
}

/// The inspections of a command that goes on.
pub(super) struct LiveInspection {
    due: Due,
    seen: Seen,
}

impl LiveInspection {
    pub(super) fn new(due: Due) -> Self {
        Self { due, seen: Seen::default() }
    }

    /// Disarms what was there the last time already.
    pub(super) fn inspect(&mut self) {
        let report = disarm_all(&self.due, Some(&mut self.seen));
        self.due.profile.findings().add(&report);
        self.seen.before = std::mem::take(&mut self.seen.now);
    }
}

/// Inspects what a command could have changed and disarms it.
pub(super) fn inspect(due: &Due) -> Report {
    disarm_all(due, None)
}

fn disarm_all(due: &Due, live: Option<&mut Seen>) -> Report {
    let alone = Due::is_alone() && live.is_none();
    let purpose = Purpose::Disarm { due, kept: Accepted::default(), live };
    let mut inspector = Inspector::new(&due.profile, purpose, alone);
    let mut survey = surveyed(due);
    if inspector.open_up(&survey) {
        survey = surveyed(due);
    }
    // The deepest first, because a folder that is moved aside has to be examined before.
    for point in survey.points.iter().rev() {
        inspector.point(point);
    }
    for git in &due.git_folders {
        inspector.git_folder(git, false);
    }
    for path in &due.bound {
        inspector.bound(path);
    }
    for folder in due.profile.around_workspaces() {
        for point in search::repositories_in(folder, Path::new("")) {
            inspector.point(&point);
        }
    }
    for (root, folders) in &due.scratch {
        for point in Scratch::of(root, due.profile.names(), Some(folders)).points.iter().rev() {
            inspector.point(point);
        }
    }
    inspector.note_limits(&survey);
    let (kept, report) = inspector.done();
    if alone {
        let _ = survey.accepted.set(kept);
    }
    report
}

fn surveyed(due: &Due) -> Arc<Survey> {
    search::renew(due.profile.workspaces(), due.profile.names())
}

impl<'a> Inspector<'a> {
    pub(super) fn new(profile: &'a Profile, purpose: Purpose<'a>, is_alone: bool) -> Self {
        Self { profile, purpose, seen: HashSet::new(), is_alone, report: Report::default(), harm: None }
    }

    fn recorded(self) -> Accepted {
        match self.purpose {
            Purpose::Record(accepted) => accepted,
            Purpose::Probe { .. } | Purpose::Disarm { .. } => Accepted::default(),
        }
    }

    fn done(self) -> (Accepted, Report) {
        match self.purpose {
            Purpose::Disarm { kept, .. } => (kept, self.report),
            Purpose::Record(_) | Purpose::Probe { .. } => (Accepted::default(), self.report),
        }
    }

    /// Whether something that is not harmless has to be disarmed.
    pub(super) fn judge(&mut self, path: &Path, value: impl Hash) -> bool {
        self.judge_fingerprint(path, fingerprint::of(value), None)
    }

    /// The same for an entry of a folder, by its content.
    pub(super) fn judge_entry(&mut self, folder: &Folder, at: &Path, name: &OsStr) -> bool {
        let Some(content) = fingerprint::of_entry(folder, name) else { return false };
        let only = folder.stamp_of(name).and_then(|stamp| fingerprint::of_only_name(&stamp));
        self.judge_fingerprint(&at.join(name), content, only)
    }

    fn judge_fingerprint(&mut self, path: &Path, content: u64, only: Option<u64>) -> bool {
        match &mut self.purpose {
            Purpose::Record(accepted) => {
                for fingerprint in [Some(content), only].into_iter().flatten() {
                    accepted.insert(path, fingerprint);
                }
                false
            }
            Purpose::Probe { is_harmful } => {
                *is_harmful = true;
                false
            }
            Purpose::Disarm { due, kept, live } => {
                // Nobody can have written a closed file that has no other name, except the user.
                let is_same = |only| due.accepted.contains(path, only) && due.was_closed(path);
                let is_accepted = due.accepted.contains(path, content) || only.is_some_and(is_same);
                if is_accepted {
                    kept.insert(path, content);
                } else {
                    let harm = (path.to_owned(), content);
                    let is_settled = live.as_mut().is_none_or(|seen| {
                        seen.now.insert(harm.clone());
                        seen.before.contains(&harm)
                    });
                    self.harm = Some(harm);
                    return is_settled;
                }
                false
            }
        }
    }

    /// Whether a command that may be in the middle of something goes on.
    pub(super) fn is_live(&self) -> bool {
        matches!(&self.purpose, Purpose::Disarm { live: Some(_), .. })
    }

    /// Whether a git folder has anything that is not harmless by itself, whoever has made it.
    pub(super) fn has_harm(&mut self, git: &Path) -> bool {
        let probe = Purpose::Probe { is_harmful: false };
        let mut inspector = Inspector::new(self.profile, probe, self.is_alone);
        inspector.git_folder(git, false);
        matches!(inspector.purpose, Purpose::Probe { is_harmful: true })
    }

    /// Opens a folder below a root. One that cannot be read is made readable, or put out of reach.
    pub(super) fn folder(&mut self, root: &Root, below: &Path) -> Option<Folder> {
        match root.try_folder(below) {
            Ok(folder) => return Some(folder),
            Err(CannotOpen::Absent) => return None,
            Err(CannotOpen::Unknown) => {}
        }
        let (around, name) = (root.folder(below.parent()?)?, below.file_name()?);
        let stamp = around.stamp_of(name).filter(|stamp| stamp.kind() == EntryKind::Folder)?;
        let path = root.path().join(below);
        if !self.judge(&path, ("unreadable", stamp.identity(), stamp.mode)) {
            return None;
        }
        if disarm::make_readable(&around, Path::new(name)).is_ok()
            && let Some(folder) = root.folder(below)
        {
            self.report(path, "a folder that could not be read; it can be read again");
            return Some(folder);
        }
        self.seal(&around, path.parent().unwrap_or(&path), name, "a folder that cannot be examined");
        None
    }

    /// Renames an entry of a folder in place and reports it.
    pub(super) fn move_aside(&mut self, folder: &Folder, at: &Path, name: &OsStr, what: &str) {
        let moved = disarm::move_aside(folder, name);
        self.tell_moved(at.join(name), what, moved);
    }

    /// Renames an entry of a folder, and closes it if it is a folder.
    pub(super) fn seal(&mut self, folder: &Folder, at: &Path, name: &OsStr, what: &str) {
        let moved = disarm::seal(folder, name);
        self.tell_moved(at.join(name), what, moved);
    }

    fn tell_moved(&mut self, path: PathBuf, what: &str, moved: Result<std::ffi::OsString, Errno>) {
        match moved {
            Ok(aside) => self.report(path, &format!("{what}; renamed to {}", aside.display())),
            Err(Errno::NOENT) => {}
            Err(errno) => self.report_failure(path, what, errno),
        }
    }

    pub(super) fn report(&mut self, path: PathBuf, what: &str) {
        self.report.findings.push(Finding { path, what: what.to_owned() });
    }

    pub(super) fn report_failure(&mut self, path: PathBuf, what: &str, errno: Errno) {
        if let Some((path, fingerprint)) = self.harm.take() {
            accepted::refuse(&path, fingerprint);
        }
        self.report(path, &format!("{what}; could not be disarmed: {errno}"));
    }

    /// Reports what was too large to inspect, once for each folder.
    fn note_limits(&mut self, survey: &Survey) {
        static SAID: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());
        let mut said = SAID.lock().unwrap_or_else(PoisonError::into_inner);
        for root in &survey.unfinished {
            if !said.contains(root) {
                said.push(root.clone());
                self.report(
                    root.clone(),
                    "too large to be inspected entirely; new folders that were not reached are closed",
                );
            }
        }
    }
}
