//! A pending inspection: what was there when a command started, for comparison after it has ended.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::accepted::Accepted;
use super::inspector::{self, Known};
use crate::layout::{Kind, Layout};
use crate::linux::settle;
use crate::profile::Profile;
use codex_guard::findings::{Finding, Report};
use codex_guard::fingerprint;
use codex_guard::walk::Stamp;

/// File systems use a clock that may lag by a few milliseconds.
const CLOCK_SLACK: Duration = Duration::from_millis(50);

/// The commands that were not inspected yet, by number.
static ACTIVE: Mutex<BTreeMap<u64, Started>> = Mutex::new(BTreeMap::new());

/// The state when a command started.
#[derive(Debug)]
struct Started {
    roots: Vec<PathBuf>,
    accepted: Arc<Accepted>,
}

fn active() -> MutexGuard<'static, BTreeMap<u64, Started>> {
    // Every critical section leaves the map consistent.
    ACTIVE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Registers a command as not inspected yet.
#[derive(Debug)]
struct Active(u64);

impl Active {
    /// Also leaves out of `accepted` what another registered command may have written.
    fn new(roots: &[PathBuf], mut accepted: Accepted) -> (Self, Arc<Accepted>) {
        let mut active = active();
        for other in active.values() {
            accepted.intersect(&other.accepted, |path| other.roots.iter().any(|root| path.starts_with(root)));
        }
        let number = active.last_key_value().map_or(0, |(last, _)| last + 1);
        let accepted = Arc::new(accepted);
        active.insert(number, Started { roots: roots.to_vec(), accepted: Arc::clone(&accepted) });
        (Self(number), accepted)
    }
}

impl Drop for Active {
    fn drop(&mut self) {
        active().remove(&self.0);
    }
}

/// The places that a command could have changed, and what was in them.
#[derive(Debug, Clone)]
pub(crate) struct Due {
    pub(super) profile: Profile,
    /// The start time of the command, in nanoseconds.
    since: i128,
    /// The places of its layout, and whether they were closed.
    places: HashMap<PathBuf, bool>,
    /// The git folders that the layout closes in part.
    pub(super) git_folders: Vec<PathBuf>,
    /// The files that have to stay what they are.
    pub(super) bound: Vec<PathBuf>,
    /// The things that were there and are not harmless.
    pub(super) accepted: Arc<Accepted>,
    /// The folders that were in each folder for temporary files.
    pub(super) scratch: Vec<(PathBuf, HashSet<OsString>)>,
    /// The entries that were found at the start of the command, by path and identity.
    known: Arc<HashSet<(PathBuf, (u64, u64))>>,
    /// Protected names whose files were replaced, and the first content that they got.
    replaced: Arc<Mutex<HashMap<PathBuf, Option<u64>>>>,
    _active: Arc<Active>,
}

impl Due {
    /// Records the current state. `None` if nothing is writable.
    pub(crate) fn new(profile: &Profile, layout: &Layout) -> Option<Self> {
        if profile.writable_roots().is_empty() {
            return None;
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let since = i128::try_from(now.saturating_sub(CLOCK_SLACK).as_nanos()).unwrap_or(i128::MAX);
        let git_folders: Vec<PathBuf> = layout.git_folders().map(Path::to_owned).collect();
        let before = profile.nested();
        let alone = active().is_empty();
        // The workspaces' own repositories are looked at anew, because their settings change most often.
        let known = Known { git_folders: &git_folders, layout, alone };
        let mut accepted = inspector::record(profile, &known);
        accepted.extend(before.accepted.get_or_init(|| inspector::record_others(profile, &before.points, &known)));
        let found = before.points.iter().map(|point| (point.path(), point.stamp.identity()));
        // The survey may be a moment older than the layout.
        let closed = layout.closed().filter_map(|path| Some((path.to_owned(), Stamp::of(path)?.identity())));
        let (active, accepted) = Active::new(profile.writable_roots(), accepted);
        Some(Self {
            profile: profile.clone(),
            since,
            places: layout.places.iter().map(|place| (place.path.clone(), place.kind == Kind::Closed)).collect(),
            bound: layout.bound.clone(),
            git_folders,
            accepted,
            scratch: layout.scratch.iter().map(|found| (found.root.clone(), found.folders.clone())).collect(),
            known: Arc::new(found.chain(closed).collect()),
            replaced: Arc::default(),
            _active: Arc::new(active),
        })
    }

    /// Whether no other command is waiting for its inspection.
    pub(super) fn is_alone() -> bool {
        active().len() <= 1
    }

    /// Whether the path was closed to the command.
    pub(super) fn was_closed(&self, path: &Path) -> bool {
        path.ancestors().find_map(|folder| self.places.get(folder)).is_some_and(|closed| *closed)
    }

    /// Whether something was changed after the command started. This decides what the user is told about, and whether a
    /// name that other programs than git read is the command's.
    pub(super) fn is_since(&self, stamp: &Stamp) -> bool {
        self.is_time_since(stamp.changed)
    }

    pub(super) fn is_time_since(&self, time: i128) -> bool {
        time >= self.since
    }

    /// Whether this entry existed before, so it cannot have arrived with a moved folder, or replaced another one.
    pub(super) fn is_known(&self, path: &Path, stamp: &Stamp) -> bool {
        self.known.contains(&(path.to_owned(), stamp.identity()))
    }

    /// Notes that another file has taken a protected name. The first one is the user's: the command could not.
    pub(crate) fn replaced(&self, path: &Path) {
        let mut replaced = self.replaced.lock().unwrap_or_else(PoisonError::into_inner);
        replaced.entry(path.to_owned()).or_insert_with(|| fingerprint::of_tree(path));
        drop(replaced);
        // Everything in a git folder is known by its content.
        if self.git_folders.iter().all(|git| !path.starts_with(git)) && path.symlink_metadata().is_ok() {
            let what = "replaced by another program while a command ran that must not write it, which may have been \
                        quicker: look at it before you trust it";
            let finding = Finding { path: path.to_owned(), what: what.to_owned() };
            self.profile.findings().add(&Report { findings: vec![finding], changed: Vec::new() });
        }
    }

    /// Whether a replaced name still has the content that the user has given it.
    pub(super) fn is_users(&self, path: &Path) -> bool {
        // It may have happened just now.
        settle();
        let first = self.replaced.lock().unwrap_or_else(PoisonError::into_inner).get(path).copied().flatten();
        first.is_some_and(|first| fingerprint::of_tree(path) == Some(first))
    }

    /// The reserved names in the workspaces that do not exist.
    pub(crate) fn missing_names(&self) -> Vec<PathBuf> {
        let names = self.profile.names();
        let all = self.profile.workspaces().iter().flat_map(|root| names.reserved().map(|name| root.join(name)));
        all.filter(|path| !self.places.contains_key(path)).collect()
    }

    /// Whether one inspection can serve both.
    pub(super) fn has_same_cause(&self, other: &Self) -> bool {
        self.profile == other.profile
    }

    /// Merges another pending inspection into this one.
    pub(super) fn join(&mut self, other: Self) {
        // A path counts as closed only if both were closed to it.
        for (path, closed) in &mut self.places {
            *closed &= other.was_closed(path);
        }
        let open = other.places.iter().filter(|(_, closed)| !**closed);
        self.places.extend(open.map(|(path, _)| (path.clone(), false)));
        self.git_folders.extend(other.git_folders);
        self.bound.extend(other.bound);
        let mut accepted = Accepted::clone(&self.accepted);
        accepted.intersect(&other.accepted, |_| true);
        self.accepted = Arc::new(accepted);
        for ((_, known), (_, others)) in self.scratch.iter_mut().zip(other.scratch) {
            known.retain(|name| others.contains(name));
        }
        let others = other.replaced.lock().unwrap_or_else(PoisonError::into_inner).clone();
        self.replaced.lock().unwrap_or_else(PoisonError::into_inner).extend(others);
        // The earlier survey is the reference.
        if other.since < self.since {
            self.since = other.since;
            self.known = other.known;
        }
    }
}
