//! A survey of the workspace: the locations of repositories, protected names and hooks at any depth.
//!
//! One survey serves both lines of defence. Its findings are closed while a command runs; the next one, after the
//! command, finds the changes. It is cached for the process, because walking a large workspace takes longer than a
//! command does.
//!
//! Invariant: shallow folders come first, so the budget cuts off the deepest ones.

use std::collections::{HashSet, VecDeque};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::git;
use crate::layout::Builder;
use codex_files::GitMarks;
use codex_guard::names::{DEPENDENCIES, DOT_GIT, GIT_HOOKS, Names, Protection};
use codex_guard::walk::{EntryKind, Folder, Root, Stamp};

/// The maximum number of folders visited, and the time for it. Folders beyond count as dangerous if a command made them.
const MAX_FOLDERS: usize = 2_000_000;
const MAX_TIME: Duration = Duration::from_secs(20);
/// The maximum number of findings. The first ones are the closest to the root. Folders that were not visited count too.
const MAX_POINTS: usize = 200_000;
/// The maximum number of findings that are only reported.
const MAX_ORDINARY: usize = 1000;
/// The folders in one folder of a temporary folder that may be repositories, and the number of folders, from the top down,
/// in which such folders are looked for.
const MAX_SCRATCH: usize = 1000;
const MAX_SCRATCH_DEEPER: usize = 32;
/// The maximum number of nested repositories that stay usable; the git folders of the others are closed as a whole.
const MAX_REPOSITORIES: usize = 16;
/// The maximum number of places that are closed because of a survey.
const MAX_CLOSED: usize = 300;
/// A survey that took less is repeated for every command.
const QUICK: Duration = Duration::from_micros(500);
/// A survey is valid for at least this long, or for this many times its own duration.
const LEAST_AGE: Duration = Duration::from_secs(1);
const AGE_PER_TIME: u32 = 20;
/// The maximum number of cached workspaces.
const REMEMBERED: usize = 8;

/// The kind of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FindingKind {
    /// A `.git` of any file type.
    DotGit(EntryKind),
    /// A folder that git would recognise as a git folder. The name is that of the folder.
    Bare,
    Setting,
    /// A file that git runs if its folder is used for hooks.
    Hook,
    /// A file that may be changed, but not unnoticed.
    Ordinary,
    /// A folder that cannot be read.
    Unreadable,
    /// A folder that there was no time to look into.
    Unvisited,
}

/// A finding of the survey.
#[derive(Debug, Clone)]
pub(crate) struct SurveyFinding {
    pub(crate) what: FindingKind,
    /// The root that contains it.
    pub(crate) root: PathBuf,
    /// Its path below that root; empty for the root itself.
    pub(crate) below: PathBuf,
    pub(crate) stamp: Stamp,
    /// The latest change of any folder between the root and it.
    pub(crate) folders_changed: i128,
}

impl SurveyFinding {
    pub(crate) fn path(&self) -> PathBuf {
        if self.below.as_os_str().is_empty() { self.root.clone() } else { self.root.join(&self.below) }
    }
}

/// The findings in the folders of a workspace.
#[derive(Debug, Default)]
pub(crate) struct Survey {
    pub(crate) points: Vec<SurveyFinding>,
    /// Roots that were too large to survey completely.
    pub(crate) unfinished: Vec<PathBuf>,
    took: Duration,
    /// The things in its repositories that are not harmless, as far as somebody has looked.
    #[cfg(target_os = "linux")]
    pub(crate) accepted: std::sync::OnceLock<crate::inspect::Accepted>,
}

/// Closes the findings: dangerous names of nested repositories, and settings.
pub(crate) fn protect(builder: &mut Builder, survey: &Survey) {
    protect_points(builder, &survey.points);
    for root in &survey.unfinished {
        builder.note(format!("{}: too large to be searched entirely for repositories and settings", root.display()));
    }
}

/// The same, for some findings.
pub(crate) fn protect_points(builder: &mut Builder, points: &[SurveyFinding]) {
    let (mut repositories, mut closed) = (0, 0);
    for point in points {
        let (path, at_root) = (point.path(), point.below.components().count() < 2);
        let is_repository = matches!(point.what, FindingKind::DotGit(_) if !at_root) || point.what == FindingKind::Bare;
        if closed >= MAX_CLOSED || !is_repository && point.what != FindingKind::Setting {
            continue;
        }
        closed += 1;
        repositories += usize::from(is_repository);
        match point.what {
            FindingKind::DotGit(_) if repositories <= MAX_REPOSITORIES => {
                let checkout = path.parent().unwrap_or(&path);
                git::protect_checkout(builder, checkout, git::Outside::Left);
            }
            FindingKind::Bare if repositories <= MAX_REPOSITORIES => git::protect_git_folder(builder, &path, &path),
            _ => builder.close(&path, None),
        }
    }
}

/// The cached surveys, the latest last.
static REMEMBERED_SURVEYS: Mutex<Vec<Remembered>> = Mutex::new(Vec::new());

struct Remembered {
    roots: Vec<PathBuf>,
    names: Names,
    when: Instant,
    survey: Arc<Survey>,
}

/// Returns the survey of the workspaces; repeats it if that is quick or it is old.
pub(crate) fn known(roots: &[PathBuf], names: &Names) -> Arc<Survey> {
    let remembered = REMEMBERED_SURVEYS.lock().unwrap_or_else(PoisonError::into_inner);
    let found = remembered.iter().find(|it| it.roots == roots && it.names == *names);
    let is_good = |it: &&Remembered| {
        let took = it.survey.took;
        took > QUICK && it.when.elapsed() < LEAST_AGE.max(took * AGE_PER_TIME)
    };
    if let Some(found) = found.filter(is_good) {
        return Arc::clone(&found.survey);
    }
    drop(remembered);
    remember(roots, names)
}

/// Surveys the workspaces after a command.
#[cfg(target_os = "linux")]
pub(crate) fn renew(roots: &[PathBuf], names: &Names) -> Arc<Survey> {
    remember(roots, names)
}

fn remember(roots: &[PathBuf], names: &Names) -> Arc<Survey> {
    let survey = Arc::new(survey(roots, names));
    let mut remembered = REMEMBERED_SURVEYS.lock().unwrap_or_else(PoisonError::into_inner);
    remembered.retain(|it| it.roots != roots || it.names != *names);
    if remembered.len() >= REMEMBERED {
        remembered.remove(0);
    }
    let (roots, names) = (roots.to_vec(), names.clone());
    remembered.push(Remembered { roots, names, when: Instant::now(), survey: Arc::clone(&survey) });
    survey
}

fn survey(roots: &[PathBuf], names: &Names) -> Survey {
    let since = Instant::now();
    let mut survey = Survey::default();
    for root in roots {
        // Another root contains this one and covers it.
        if roots.iter().any(|other| other != root && root.starts_with(other)) {
            continue;
        }
        let Some(open) = Root::open(root) else { continue };
        let mut walk = Walk::new(&open, names);
        walk.queue.push_back(Waiting { below: PathBuf::new(), changed: i128::MIN, contents: Contents::Work });
        if !walk.run(since + MAX_TIME) {
            survey.unfinished.push(root.clone());
            walk.note_unvisited();
        }
        survey.points.append(&mut walk.points);
    }
    survey.took = since.elapsed();
    survey
}

/// A walk through one root.
struct Walk<'a> {
    root: &'a Root,
    names: &'a Names,
    queue: VecDeque<Waiting>,
    points: Vec<SurveyFinding>,
    ordinary: usize,
}

/// A folder to visit.
struct Waiting {
    below: PathBuf,
    changed: i128,
    contents: Contents,
}

/// The contents of a folder, which say what counts in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Contents {
    /// Everything counts.
    Work,
    /// Dependencies or build output: everything but ordinary files.
    Dependencies,
    /// The folder is a finding as a whole, or a temporary one: only repositories count.
    Anything,
}

impl<'a> Walk<'a> {
    fn new(root: &'a Root, names: &'a Names) -> Self {
        Self { root, names, queue: VecDeque::new(), points: Vec::new(), ordinary: 0 }
    }

    /// Records the folders that were not visited.
    fn note_unvisited(&mut self) {
        for Waiting { below, changed, .. } in std::mem::take(&mut self.queue) {
            let Some(name) = below.file_name() else { continue };
            let around = self.root.folder(below.parent().unwrap_or(Path::new("")));
            if let Some(stamp) = around.and_then(|folder| folder.stamp_of(name)) {
                self.point(FindingKind::Unvisited, below, stamp, changed);
            }
        }
    }

    /// Returns whether everything was visited.
    fn run(&mut self, until: Instant) -> bool {
        let mut folders = 0;
        while let Some(waiting) = self.queue.pop_front() {
            folders += 1;
            let is_late = folders % 64 == 0 && Instant::now() > until;
            if folders > MAX_FOLDERS || self.points.len() > MAX_POINTS || is_late {
                return false;
            }
            self.look_into(&waiting);
        }
        true
    }

    fn look_into(&mut self, waiting: &Waiting) {
        let Waiting { below, contents, .. } = waiting;
        let Some(folder) = self.root.folder(below) else {
            let stamp =
                self.root.folder(below.parent().unwrap_or(below)).and_then(|it| it.stamp_of(below.file_name()?));
            return stamp
                .map_or((), |stamp| self.point(FindingKind::Unreadable, below.clone(), stamp, waiting.changed));
        };
        let Some(stamp) = folder.stamp() else { return };
        let is_root = below.as_os_str().is_empty();
        let changed = if is_root { i128::MIN } else { waiting.changed.max(stamp.changed) };
        let (mut found, mut folders) = (Vec::new(), Vec::new());
        let mut marks = GitMarks::default();
        folder.each(&mut |name, kind| {
            marks.note(name);
            let what = self.judge(below, name, kind, *contents);
            found.extend(what.map(|what| (what, name.to_owned())));
            if kind == EntryKind::Folder && !matches!(what, Some(FindingKind::DotGit(_))) {
                folders.push((name.to_owned(), what.is_some()));
            }
            true
        });
        if marks.is_git_folder() {
            let stamp = folder.stamp_of("HEAD").unwrap_or(stamp);
            self.point(FindingKind::Bare, below.clone(), stamp, changed);
        }
        for (what, name) in found {
            let Some(stamp) = folder.stamp_of(&name) else { continue };
            self.point(what, below.join(&name), stamp, changed);
        }
        for (name, is_setting) in folders {
            let contents = match contents {
                _ if is_setting => Contents::Anything,
                Contents::Work if DEPENDENCIES.iter().any(|known| name == *known) => Contents::Dependencies,
                contents => *contents,
            };
            self.queue.push_back(Waiting { below: below.join(name), changed, contents });
        }
    }

    fn judge(&self, below: &Path, name: &OsStr, kind: EntryKind, contents: Contents) -> Option<FindingKind> {
        if name == DOT_GIT.path {
            return Some(FindingKind::DotGit(kind));
        }
        if contents == Contents::Anything {
            return None;
        }
        match self.names.protection(below, name) {
            Some(Protection::Reserved | Protection::Reverted) => return Some(FindingKind::Setting),
            Some(Protection::Reported) if kind == EntryKind::File && contents == Contents::Work => {
                return Some(FindingKind::Ordinary);
            }
            _ => {}
        }
        let is_file = matches!(kind, EntryKind::File | EntryKind::Link);
        (is_file && is_hook(below, name)).then_some(FindingKind::Hook)
    }

    fn point(&mut self, what: FindingKind, below: PathBuf, stamp: Stamp, folders_changed: i128) {
        if what == FindingKind::Ordinary {
            self.ordinary += 1;
            if self.ordinary > MAX_ORDINARY {
                return;
            }
        }
        let root = self.root.path().to_owned();
        self.points.push(SurveyFinding { what, root, below, stamp, folders_changed });
    }
}

/// Whether git would run a file with this name if its folder were used for hooks. The name `update` has many uses, so
/// it counts only in a folder for hooks.
fn is_hook(folder: &Path, name: &OsStr) -> bool {
    if !GIT_HOOKS.iter().any(|hook| name == *hook) {
        return false;
    }
    let is_for_hooks = |folder: &OsStr| folder.to_string_lossy().contains("hook");
    name != "update" || folder.file_name().is_some_and(is_for_hooks)
}

/// The repositories in a folder for temporary files, which is not searched as a whole: any program may keep a great deal
/// in it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Scratch {
    pub(crate) root: PathBuf,
    pub(crate) points: Vec<SurveyFinding>,
    /// The folders directly in it.
    pub(crate) folders: HashSet<OsString>,
}

impl Scratch {
    /// Looks for repositories from the top down, as far as is cheap. Folders that are not among the `known` ones are
    /// searched as a whole.
    pub(crate) fn of(root: &Path, names: &Names, known: Option<&HashSet<OsString>>) -> Self {
        let mut scratch =
            Self { root: root.to_owned(), points: repositories_in(root, Path::new("")), ..Self::default() };
        let Some(open) = Root::open(root) else { return scratch };
        let mut walk = Walk::new(&open, names);
        let Some(folder) = open.folder(Path::new("")) else { return scratch };
        scratch.folders = folders_in(&folder);
        for name in scratch.folders.iter().take(MAX_SCRATCH) {
            if known.is_some_and(|known| !known.contains(name)) {
                walk.queue.push_back(Waiting { below: name.into(), changed: i128::MIN, contents: Contents::Anything });
            } else if has_repository(&folder, Path::new(name)) {
                scratch.points.extend(repositories_in(root, Path::new(name)));
            }
        }
        let mut waiting: VecDeque<PathBuf> = scratch.folders.iter().map(PathBuf::from).collect();
        for _ in 0..MAX_SCRATCH_DEEPER {
            let Some(below) = waiting.pop_front() else { break };
            let Some(folder) = open.folder(&below) else { continue };
            for deeper in folders_in(&folder).iter().take(MAX_SCRATCH) {
                let path = below.join(deeper);
                if has_repository(&folder, Path::new(deeper)) {
                    scratch.points.extend(repositories_in(root, &path));
                }
                waiting.push_back(path);
            }
        }
        if !walk.run(Instant::now() + MAX_TIME) {
            walk.note_unvisited();
        }
        scratch.points.append(&mut walk.points);
        scratch
    }
}

fn folders_in(folder: &Folder) -> HashSet<OsString> {
    let mut folders = HashSet::new();
    folder.each(&mut |name, kind| {
        if kind == EntryKind::Folder && name != DOT_GIT.path {
            folders.insert(name.to_owned());
        }
        true
    });
    folders
}

/// Whether a folder in another one may be a repository: two looks, because there may be many folders.
fn has_repository(folder: &Folder, name: &Path) -> bool {
    [DOT_GIT.path, "HEAD"].iter().any(|mark| folder.stamp_of(name.join(mark)).is_some())
}

/// The names directly in a folder by which git recognises a repository: the folder's own, if it is a git folder, and
/// `.git`.
pub(crate) fn repositories_in(root: &Path, below: &Path) -> Vec<SurveyFinding> {
    let folder = root.join(below);
    let point = |what, below: PathBuf, stamp| SurveyFinding {
        what,
        root: root.to_owned(),
        below,
        stamp,
        folders_changed: i128::MIN,
    };
    let head = Stamp::of(&folder.join("HEAD")).filter(|_| codex_files::is_git_folder(&folder));
    let bare = head.map(|stamp| point(FindingKind::Bare, below.to_owned(), stamp));
    let git = Stamp::of(&folder.join(DOT_GIT.path));
    let dot_git = git.map(|stamp| point(FindingKind::DotGit(stamp.kind()), below.join(DOT_GIT.path), stamp));
    bare.into_iter().chain(dot_git).collect()
}
