//! Computes the effect of a patch before anything is written.
//!
//! Invariant: a plan contains everything it will write and everything it expects to find, so that exactly what was
//! shown for approval is applied, or nothing is.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use codex_wire::change::FileChange;

use crate::edit::{edited, edits};
use crate::error::PlanError;
use crate::grammar::{Chunk, Operation, Patch};
use crate::guard::{Guard, Refused};
use crate::ledger::{Ledger, Net};
use crate::place::place;
use crate::seek::Index;
use crate::snapshot::{Found, ReadError, Snapshot, locate, normal, read};
use crate::text::{Text, not_text};
use crate::unified::{between, deadline, unified};

/// The maximum total size of the files of one patch, in bytes.
const MAX_TOTAL_BYTES: usize = 256 * 1024 * 1024;

/// The effect of a patch: read and checked, with nothing written yet.
#[derive(Debug, Default)]
pub struct Plan {
    pub(crate) ledger: Ledger<Snapshot>,
    places: BTreeMap<PathBuf, Place>,
    /// The diffs of updated files, by their old paths.
    diffs: BTreeMap<PathBuf, String>,
    /// The paths that the patch adds, whether they existed or not.
    added: BTreeSet<PathBuf>,
}

/// A path of the patch, resolved.
#[derive(Debug)]
struct Place {
    /// The path without any links.
    real: PathBuf,
    /// Whether the path itself is a link.
    link: bool,
    /// The path as written.
    shown: PathBuf,
    /// The number of paths mentioned before it.
    order: usize,
}

/// One file that applying the plan creates, replaces or removes.
#[derive(Debug)]
pub(crate) struct Step {
    pub(crate) path: PathBuf,
    pub(crate) real: PathBuf,
    pub(crate) before: Option<Snapshot>,
    pub(crate) after: Option<Snapshot>,
}

impl Patch {
    /// Reads the files of the patch and computes their new contents. Nothing is written.
    ///
    /// `cwd` is absolute; relative paths in the patch are resolved against it.
    pub fn plan(&self, cwd: &Path) -> Result<Plan, PlanError> {
        let mut planner = Planner::new(cwd);
        for operation in &self.operations {
            planner.operation(operation)?;
        }
        Ok(planner.finish())
    }
}

impl Plan {
    /// The change of each file, by absolute path.
    #[must_use]
    pub fn changes(&self) -> BTreeMap<PathBuf, FileChange> {
        let text = |snapshot: &Snapshot| match not_text(&snapshot.bytes) {
            Some(what) => format!("({what}, {} bytes)\n", snapshot.bytes.len()),
            None => String::from_utf8_lossy(&snapshot.bytes).into_owned(),
        };
        let change = |net| match net {
            Net::Add { path, after } => (path.to_owned(), FileChange::Add { content: text(after) }),
            Net::Delete { path, before } => (path.to_owned(), FileChange::Delete { content: text(before) }),
            Net::Update { path, to, .. } => {
                let unified_diff = self.diffs.get(path).cloned().unwrap_or_default();
                let move_path = (to != path).then(|| to.to_owned());
                (path.to_owned(), FileChange::Update { unified_diff, move_path })
            }
        };
        self.ledger.net().into_iter().map(change).collect()
    }

    /// Every path that is written or removed, absolute, without `.` and `..`, and with links unresolved.
    #[must_use]
    pub fn paths(&self) -> Vec<PathBuf> {
        let changed = self.ledger.entries().filter(|(_, entry)| entry.before.is_some() || entry.after.is_some());
        changed.filter(|(_, entry)| entry.touched).map(|(path, _)| path.to_owned()).collect()
    }

    /// The resolved target of every path that is written or removed, as of the time of planning.
    #[must_use]
    pub fn real_paths(&self) -> Vec<PathBuf> {
        self.paths().iter().filter_map(|path| self.places.get(path)).map(|place| place.real.clone()).collect()
    }

    /// Whether every file that is written or removed is below one of the roots and none is forbidden.
    ///
    /// This concerns the resolved paths, as of the time of planning.
    #[must_use]
    pub fn is_within(&self, roots: &[PathBuf], forbidden: &[PathBuf]) -> bool {
        let (roots, forbidden) = (Some(roots.to_vec()), forbidden.to_vec());
        self.check(&Guard { roots, forbidden, names: Vec::new() }).is_ok()
    }

    /// Fails with the first file that a guard refuses.
    pub fn check(&self, guard: &Guard) -> Result<(), Refused> {
        let checker = guard.checker();
        for path in self.paths() {
            let Some(place) = self.places.get(&path) else { continue };
            checker.check(&path, &place.real)?;
        }
        Ok(())
    }

    /// The report after applying the patch: the added, modified and deleted files from the perspective of the patch. So a file
    /// that replaces another one counts as added, and one that was moved over another does not count as deleted.
    pub(crate) fn summary(&self) -> String {
        let mut lines: Vec<(u8, usize, String)> = Vec::new();
        for net in self.ledger.net() {
            let (rank, letter, path) = match net {
                Net::Add { path, .. } => (0, 'A', path),
                Net::Update { path, to, .. } if path == to && self.added.contains(to) => (0, 'A', to),
                Net::Delete { path, .. } if self.ledger.is_elsewhere(path) => continue,
                Net::Update { to, .. } => (1, 'M', to),
                Net::Delete { path, .. } => (2, 'D', path),
            };
            if let Some(place) = self.places.get(path) {
                lines.push((rank, place.order, format!("{letter} {}\n", place.shown.display())));
            }
        }
        lines.sort();
        let lines: String = lines.into_iter().map(|(_, _, line)| line).collect();
        format!("Success. Updated the following files:\n{lines}")
    }

    /// The changes on disk: first writes, then removals.
    pub(crate) fn steps(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        for (path, entry) in self.ledger.entries().filter(|(_, entry)| entry.touched) {
            let same = match (&entry.before, &entry.after) {
                (None, None) => true,
                (Some(before), Some(after)) => before.bytes == after.bytes && before.mode == after.mode,
                (None, Some(_)) | (Some(_), None) => false,
            };
            if let Some(place) = self.places.get(path).filter(|_| !same) {
                let (before, after) = (entry.before.clone(), entry.after.clone());
                steps.push(Step { path: path.to_owned(), real: place.real.clone(), before, after });
            }
        }
        steps.sort_by_key(|step| step.after.is_none());
        steps
    }

    /// The diff of an updated file, by its old path.
    pub(crate) fn diff(&self, path: &Path) -> Option<&str> {
        self.diffs.get(path).map(String::as_str)
    }
}

/// A plan in progress.
pub(crate) struct Planner<'a> {
    cwd: &'a Path,
    pub(crate) plan: Plan,
    /// The paths under which files are recorded, by their resolved paths.
    known: HashMap<PathBuf, PathBuf>,
    bytes: usize,
    deadline: Instant,
    /// Diffs of single updates, with the contents before and after.
    fresh: BTreeMap<PathBuf, (Snapshot, Snapshot, String)>,
}

impl<'a> Planner<'a> {
    pub(crate) fn new(cwd: &'a Path) -> Self {
        let (known, fresh) = (HashMap::new(), BTreeMap::new());
        Self { cwd, plan: Plan::default(), known, bytes: 0, deadline: deadline(), fresh }
    }

    fn operation(&mut self, operation: &Operation) -> Result<(), PlanError> {
        match operation {
            Operation::Add { path, content } => {
                let path = self.free(path)?;
                let content = content.clone().into_bytes();
                let before = self.plan.ledger.get(&path).and_then(|entry| entry.before.as_ref());
                let new =
                    before.map_or_else(|| Snapshot::new_file(content.clone()), |before| before.with(content.clone()));
                self.plan.ledger.set(&path, Some(new));
                self.plan.added.insert(path);
            }
            Operation::Delete { path } => {
                let (path, _) = self.existing(path)?;
                self.refuse_link(&path)?;
                self.plan.ledger.set(&path, None);
            }
            Operation::Update { path, move_to, chunks } => {
                let (path, old) = self.existing(path)?;
                let new = self.updated(&path, &old, chunks)?;
                match move_to {
                    Some(to) if normal(self.cwd, to) != path => {
                        self.refuse_link(&path)?;
                        let to = self.free(to)?;
                        if to == path {
                            // Another name of the same file, through a link.
                            return Err(PlanError::ExistsAlready { path });
                        }
                        self.plan.ledger.shift(&path, &to, new);
                    }
                    _ => self.plan.ledger.set(&path, Some(new)),
                }
            }
        }
        Ok(())
    }

    /// The path of a file that has to exist, and its content.
    fn existing(&mut self, given: &Path) -> Result<(PathBuf, Snapshot), PlanError> {
        let path = self.look(given, true)?;
        let after = self.plan.ledger.get(&path).and_then(|entry| entry.after.clone());
        let snapshot = after.ok_or_else(|| PlanError::NoSuchFile { path: path.clone() })?;
        match not_text(&snapshot.bytes) {
            Some(what) => Err(PlanError::NotText { path, what }),
            None => Ok((path, snapshot)),
        }
    }

    /// A path where a file can be created. A file from before the patch is replaced, as models expect, and reported as
    /// changed; one that the patch itself has created is not, because that is an error.
    fn free(&mut self, given: &Path) -> Result<PathBuf, PlanError> {
        let path = self.look(given, false)?;
        self.refuse_link(&path)?;
        match self.plan.ledger.get(&path) {
            Some(entry) if entry.touched && entry.after.is_some() => Err(PlanError::ExistsAlready { path }),
            Some(entry) => match entry.after.as_ref().and_then(|there| not_text(&there.bytes)) {
                Some(what) => Err(PlanError::NotText { path, what }),
                None => Ok(path),
            },
            None => Ok(path),
        }
    }

    pub(crate) fn refuse_link(&self, path: &Path) -> Result<(), PlanError> {
        match self.plan.places.get(path) {
            Some(place) if place.link => Err(PlanError::Link { path: path.to_owned() }),
            _ => Ok(()),
        }
    }

    /// Resolves a path and reads the file there, unless it is known. Returns the path under which it is recorded.
    pub(crate) fn look(&mut self, given: &Path, must_exist: bool) -> Result<PathBuf, PlanError> {
        let path = normal(self.cwd, given);
        if self.plan.places.contains_key(&path) {
            return Ok(path);
        }
        let located = locate(&path).map_err(|source| match source.kind() {
            io::ErrorKind::NotFound => PlanError::Dangling { path: path.clone() },
            io::ErrorKind::NotADirectory => PlanError::NotAFolder { path: path.clone() },
            _ => PlanError::Read { path: path.clone(), source: source.into() },
        })?;
        if let Some(known) = self.known.get(&located.real) {
            return Ok(known.clone());
        }
        let snapshot = match located.found {
            Found::Nothing => None,
            Found::Entry | Found::Link if !must_exist && located.real.is_dir() => {
                return Err(PlanError::IsDirectory { path });
            }
            Found::Entry | Found::Link => Some(self.read(&path, &located.real)?),
        };
        self.plan.ledger.look(&path, snapshot);
        self.known.insert(located.real.clone(), path.clone());
        let link = located.found == Found::Link;
        let place = Place { real: located.real, link, shown: given.to_owned(), order: self.plan.places.len() };
        self.plan.places.insert(path.clone(), place);
        Ok(path)
    }

    fn read(&mut self, path: &Path, real: &Path) -> Result<Snapshot, PlanError> {
        let path = || path.to_owned();
        let snapshot = read(real).map_err(|source| match source {
            ReadError::Directory => PlanError::IsDirectory { path: path() },
            source => PlanError::Read { path: path(), source },
        })?;
        self.bytes += snapshot.bytes.len();
        if self.bytes > MAX_TOTAL_BYTES { Err(PlanError::TooMuch { path: path() }) } else { Ok(snapshot) }
    }

    /// The result of applying the chunks of an update.
    fn updated(&mut self, path: &Path, old: &Snapshot, chunks: &[Chunk]) -> Result<Snapshot, PlanError> {
        let index = Index::new(Text::new(&old.bytes));
        let placed =
            place(&index, chunks).map_err(|misplaced| PlanError::no_match(path.to_owned(), chunks.len(), misplaced))?;
        let edits = edits(&index.text, &placed);
        let new = old.with(edited(&index.text, &edits));
        let diff = unified(&index.text, &edits, self.deadline);
        self.fresh.insert(path.to_owned(), (old.clone(), new.clone(), diff));
        Ok(new)
    }

    /// Computes the diff of every update: that of the single update, or of all of them together.
    pub(crate) fn finish(mut self) -> Plan {
        let mut diffs = BTreeMap::new();
        for net in self.plan.ledger.net() {
            let Net::Update { path, before, after, .. } = net else { continue };
            let same = |a: &Snapshot, b: &Snapshot| Arc::ptr_eq(&a.bytes, &b.bytes);
            let diff = match self.fresh.remove(path) {
                Some((old, new, diff)) if same(&old, before) && same(&new, after) => diff,
                _ if not_text(&before.bytes).or_else(|| not_text(&after.bytes)).is_some() => {
                    "Binary files differ\n".to_owned()
                }
                _ => between(&before.bytes, &after.bytes, self.deadline),
            };
            diffs.insert(path.to_owned(), diff);
        }
        self.plan.diffs = diffs;
        self.plan
    }
}
