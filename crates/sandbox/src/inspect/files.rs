//! Inspects single files of a git folder: settings, lists of a rebase, the index.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::inspector::{Inspector, Purpose};
use codex_guard::git::allowed::{self, Place};
use codex_guard::git::config::{self, Entry};
use codex_guard::git::{index, sequencer};
use codex_guard::walk::{EntryKind, Folder, Stamp};
use codex_guard::{disarm, fingerprint};

/// Indexes in which every name is known to be harmless, and how many are remembered.
static CHECKED: Mutex<VecDeque<Stamp>> = Mutex::new(VecDeque::new());
const MAX_CHECKED: usize = 64;
/// A file that changed less than this before it was read may have changed since without a trace.
const RACY: Duration = Duration::from_millis(50);
/// The maximum number of files of one kind that are read for one repository.
const MAX_MERGED: usize = 100_000;

impl Inspector<'_> {
    /// Keeps only the harmless settings of a configuration, and those that were there. Returns the harmless ones.
    pub(super) fn settings(&mut self, folder: &Folder, git: &Path, name: &str, is_bare: bool) -> Vec<Entry> {
        let Some(stamp) = folder.stamp_of(name) else { return Vec::new() };
        let (path, name) = (git.join(name), OsStr::new(name));
        let is_readable = stamp.kind() == EntryKind::File && stamp.size < disarm::MAX_FILE as u64;
        let Some(text) = disarm::read(folder, name).filter(|_| is_readable) else {
            if self.judge_entry(folder, git, name) {
                self.move_aside(folder, git, name, "a git configuration that cannot be read");
            }
            return Vec::new();
        };
        let parsed = config::parse(&text);
        let roots = self.profile.writable_roots();
        let root = roots.iter().find(|root| git.starts_with(root)).map_or(git, PathBuf::as_path);
        let place = Place { git, root, is_bare };
        let is_broken = parsed.is_broken && self.judge(&path, ("broken", &text));
        let (mut kept, mut safe, mut removed) = (Vec::new(), Vec::new(), Vec::new());
        for entry in parsed.entries {
            if allowed::is_allowed(&entry, place) {
                safe.push(entry.clone());
                kept.push(entry);
            } else if self.judge(&path, &entry) {
                removed.push(entry);
            } else {
                kept.push(entry);
            }
        }
        if removed.is_empty() && !is_broken {
            return safe;
        }
        let what = if removed.is_empty() { "a broken configuration of git".to_owned() } else { named(&removed) };
        match disarm::replace(folder, name, &config::print(&kept)) {
            Ok(aside) => self.report(path, &format!("{what}; replaced, the original is {}", aside.display())),
            Err(errno) => self.report_failure(path, &what, errno),
        }
        safe
    }

    /// The todo lists of operations in progress. A command that goes on may be in the middle of its own rebase.
    pub(super) fn lists(&mut self, root: &codex_guard::walk::Root, below: &Path) {
        if self.is_live() {
            return;
        }
        for (name, list) in sequencer::LISTS {
            let Some(folder) = self.folder(root, &below.join(name)) else { continue };
            let at = root.path().join(below).join(name);
            self.list(&folder, &at, list);
            let foreign = |text: Vec<u8>| !sequencer::is_known_strategy(&text);
            let has_strategy = folder.stamp_of("strategy").is_some();
            if has_strategy && disarm::read(&folder, "strategy").is_none_or(foreign) {
                self.unwanted(&folder, &at, "strategy", "a merge strategy that is not part of git");
            }
            if folder.stamp_of("opts").is_some() && has_foreign_strategy(&folder) {
                self.unwanted(&folder, &at, "opts", "a merge strategy that is not part of git");
            }
        }
    }

    fn list(&mut self, folder: &Folder, at: &Path, list: &str) {
        let path = at.join(list);
        if folder.stamp_of(list).is_none() {
            return;
        }
        let Some(text) = disarm::read(folder, list).filter(|text| text.len() < disarm::MAX_FILE) else {
            return self.unwanted(folder, at, list, "a list of a rebase that cannot be read");
        };
        let unwanted: Vec<&[u8]> = sequencer::executed(&text).filter(|line| self.judge(&path, line)).collect();
        if unwanted.is_empty() {
            return;
        }
        let what = "commands that `git rebase --continue` would run";
        match disarm::replace(folder, OsStr::new(list), &sequencer::without(&text, &unwanted)) {
            Ok(aside) => {
                self.report(path, &format!("{what}; commented out, the original is {}", aside.display()));
            }
            Err(errno) => self.report_failure(path, what, errno),
        }
    }

    /// Moves an entry aside that is not harmless, unless it was there.
    pub(super) fn unwanted(&mut self, folder: &Folder, at: &Path, name: &str, what: &str) {
        if self.judge_entry(folder, at, OsStr::new(name)) {
            self.move_aside(folder, at, OsStr::new(name), what);
        }
    }

    /// An index in which git would not accept every name.
    pub(super) fn index(&mut self, folder: &Folder, at: &Path, name: &OsStr, id_length: usize) {
        let Some(stamp) = folder.stamp_of(name) else { return };
        if self.is_alone && (is_checked(&stamp) || self.is_untouched(&at.join(name), &stamp)) {
            return;
        }
        let opened = disarm::open(folder, Path::new(name));
        let checked = opened.ok_or(index::IndexError::Broken);
        let checked = checked.and_then(|file| index::check(&mut BufReader::with_capacity(64 * 1024, file), id_length));
        match checked {
            Ok(()) if self.is_alone => remember(stamp),
            Ok(()) => {}
            Err(error) => {
                if self.judge_entry(folder, at, name) {
                    self.move_aside(folder, at, name, &format!("{error}; `git reset` makes a new one"));
                }
            }
        }
    }

    /// Whether a large file is what it was before the command. Nobody else can write meanwhile, and the kernel alone sets
    /// the time of the last change, so its state stands for its content.
    fn is_untouched(&mut self, path: &Path, stamp: &Stamp) -> bool {
        let state = fingerprint::of(("state", stamp));
        match &mut self.purpose {
            Purpose::Record(accepted) if !is_racy(stamp) => {
                accepted.insert(path, state);
                true
            }
            Purpose::Disarm { due, .. } => due.accepted.contains(path, state),
            Purpose::Record(_) | Purpose::Probe { .. } => false,
        }
    }

    /// The list of conflicts that git resolves by itself, which names files to write.
    pub(super) fn conflicts(&mut self, folder: &Folder, at: &Path) {
        let name = "MERGE_RR";
        if folder.stamp_of(name).is_none() {
            return;
        }
        let is_safe = |text: &Vec<u8>| {
            let entries = text.split(|byte| *byte == 0).filter(|entry| !entry.is_empty()).take(MAX_MERGED);
            entries
                .map(|entry| entry.splitn(2, |byte| *byte == b'\t').nth(1))
                .all(|path| path.is_some_and(index::is_safe_path))
        };
        if !disarm::read(folder, name).is_some_and(|text| text.len() < disarm::MAX_FILE && is_safe(&text)) {
            self.unwanted(folder, at, name, "a list of conflicts with names that git would not accept");
        }
    }
}

fn is_racy(stamp: &Stamp) -> bool {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    stamp.changed >= i128::try_from(now.saturating_sub(RACY).as_nanos()).unwrap_or_default()
}

fn is_checked(stamp: &Stamp) -> bool {
    CHECKED.lock().unwrap_or_else(PoisonError::into_inner).contains(stamp)
}

fn remember(stamp: Stamp) {
    if is_racy(&stamp) {
        return;
    }
    let mut checked = CHECKED.lock().unwrap_or_else(PoisonError::into_inner);
    if checked.len() >= MAX_CHECKED {
        checked.pop_front();
    }
    checked.push_back(stamp);
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
