//! A pending inspection: the state when a command starts, for comparison after it has ended.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::layout::{Kind, Layout};
use crate::profile::Profile;
use crate::search::{FindingKind, Survey, SurveyFinding};
use codex_guard::git::sequencer::{self, Executed};
use codex_guard::walk::Stamp;

/// File systems use a clock that may lag by a few milliseconds.
const CLOCK_SLACK: Duration = Duration::from_millis(50);

/// The commands that were not inspected yet, by number: their start time and their profile.
static ACTIVE: Mutex<BTreeMap<u64, (i128, Profile)>> = Mutex::new(BTreeMap::new());

fn active() -> MutexGuard<'static, BTreeMap<u64, (i128, Profile)>> {
    // Every critical section leaves the map consistent.
    ACTIVE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Registers a command as not inspected yet.
#[derive(Debug)]
struct Active(u64);

impl Active {
    /// Also returns the earliest time at which any registered command may have written to this one's folders.
    fn new(since: i128, profile: &Profile) -> (Self, i128) {
        let roots = profile.writable_roots();
        let shares = |other: &Profile| {
            let theirs = other.writable_roots();
            theirs.iter().any(|their| roots.iter().any(|root| root.starts_with(their) || their.starts_with(root)))
        };
        let mut active = active();
        let earliest = active.values().filter(|(_, other)| shares(other)).map(|(start, _)| *start).min();
        let number = active.last_key_value().map_or(0, |(last, _)| last + 1);
        active.insert(number, (since, profile.clone()));
        (Self(number), earliest.map_or(since, |earliest| earliest.min(since)))
    }
}

impl Drop for Active {
    fn drop(&mut self) {
        active().remove(&self.0);
    }
}

/// The places that a command could have changed, and since when.
#[derive(Debug, Clone)]
pub(crate) struct Due {
    pub(super) profile: Profile,
    /// The start time of the command, in nanoseconds.
    since: i128,
    /// The places of its layout, and whether they were closed.
    places: HashMap<PathBuf, bool>,
    /// The git folders that the layout closes in part.
    pub(super) git_folders: Vec<PathBuf>,
    /// The survey of the workspace at the start of the command.
    before: Arc<Survey>,
    /// The commands in git's todo lists at the start, for lists that no command has written.
    pub(super) executed: Executed,
    _active: Arc<Active>,
}

impl Due {
    /// Records the current state. `None` if nothing is writable.
    pub(crate) fn new(profile: &Profile, layout: &Layout) -> Option<Self> {
        if profile.writable_roots().is_empty() {
            return None;
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let since = now.saturating_sub(CLOCK_SLACK).as_nanos();
        let since = i128::try_from(since).unwrap_or(i128::MAX);
        let (active, earliest) = Active::new(since, profile);
        let git_folders: Vec<PathBuf> = layout.git_folders().map(Path::to_owned).collect();
        Some(Self {
            profile: profile.clone(),
            since,
            places: layout.places.iter().map(|place| (place.path.clone(), place.kind == Kind::Closed)).collect(),
            executed: sequencer::executed(&git_folders, earliest),
            git_folders,
            before: profile.nested(),
            _active: Arc::new(active),
        })
    }

    /// Whether the path was closed to the command.
    pub(super) fn was_closed(&self, path: &Path) -> bool {
        path.ancestors().find_map(|folder| self.places.get(folder)).is_some_and(|closed| *closed)
    }

    /// Whether something was changed after the command started.
    pub(super) fn is_since(&self, stamp: &Stamp) -> bool {
        self.is_time_since(stamp.changed)
    }

    pub(super) fn is_time_since(&self, time: i128) -> bool {
        time >= self.since
    }

    /// Whether the survey from before the command is complete.
    pub(super) fn knows_all(&self) -> bool {
        self.before.unfinished.is_empty()
    }

    /// The entries that existed before, so they cannot have arrived with a moved folder.
    pub(super) fn known(&self) -> HashSet<(PathBuf, (u64, u64))> {
        self.before.points.iter().map(|point| (point.path(), point.stamp.identity())).collect()
    }

    /// The bare git folders that existed before.
    pub(super) fn known_bare(&self) -> HashSet<PathBuf> {
        self.before.points.iter().filter(|point| point.what == FindingKind::Bare).map(SurveyFinding::path).collect()
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
        // The earlier survey is the reference.
        if other.since < self.since {
            self.since = other.since;
            self.before = other.before;
            self.executed = other.executed;
        }
    }
}
