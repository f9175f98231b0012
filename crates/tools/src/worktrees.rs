//! The worktrees of isolated agents, below `CODEX_HOME/worktrees`: one folder for each agent, named like its thread.
//!
//! The folder holds the checkout, a record of how far it is, and a lock of the process that owns it. A checkout goes
//! with its agent or with the program; changes that were not applied stay on its branch. The worktrees of a killed
//! program are removed by a later one, which finds their locks free: the record comes before everything else that is
//! written and goes after it, so it tells what there may be to remove, at whatever step the program has ended.
//!
//! Invariant: nothing is removed that this program has not made, and no change is lost silently.

mod record;

use std::collections::HashMap;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use codex_config::{Env, Home};
use codex_files::crash_point;
use codex_patch::{FileEdit, Plan};
use codex_wire::ids::ThreadId;
use codex_workspace::git::{Left, Merge, MergedFile, NewWorktree, Worktree, WorktreeChanges, WorktreeError};
use tokio::task::JoinHandle;

use self::record::{Record, Stage};
use crate::full_message;
use crate::trusted_git::{TrustedGit, writable_folders};

/// The number of changed files that a report lists.
const LISTED: usize = 50;
/// The number of bytes of a diff in a report.
const SHOWN_BYTES: usize = 16 * 1024;
/// The number of worktrees that a sweep lists, and the number that it looks at more closely.
const MOST_LISTED: usize = 10_000;
const MOST_SWEPT: usize = 1000;
/// The time that the end of a tree waits for a sweep.
const SWEEP_TIME: Duration = Duration::from_secs(8);
/// The time to wait for a worktree that is swept, and the time between two attempts.
const LOCKED_TIME: Duration = Duration::from_secs(5);
const LOCKED_PAUSE: Duration = Duration::from_millis(20);

/// The worktrees of one tree of agents.
#[derive(Debug)]
pub struct Worktrees {
    home: Home,
    open: Mutex<HashMap<ThreadId, Arc<Mutex<Owned>>>>,
    /// The sweep that was started here, while it runs.
    sweep: tokio::sync::Mutex<Option<JoinHandle<()>>>,
}

/// A worktree that this process owns.
#[derive(Debug)]
struct Owned {
    place: PathBuf,
    name: String,
    record: Record,
    /// Held as long as the worktree has an owner.
    _lock: PlaceLock,
}

/// The lock of the folder of a worktree.
#[derive(Debug)]
struct PlaceLock(File);

impl Drop for PlaceLock {
    fn drop(&mut self) {
        // A program that is being started has the files of this one for a moment, and would hold the lock so long.
        let _ = self.0.unlock();
    }
}

/// The changes of an agent in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    pub text: String,
    pub has_changes: bool,
}

/// The fate of the record of a worktree that is removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordFate {
    /// It stays, because the agent may work again.
    Kept,
    /// It goes with the agent.
    Removed,
}

impl Worktrees {
    #[must_use]
    pub fn new(home: &Home) -> Self {
        Self { home: home.clone(), open: Mutex::default(), sweep: tokio::sync::Mutex::default() }
    }

    /// Whether an agent has a worktree that is open.
    #[must_use]
    pub fn has(&self, thread: ThreadId) -> bool {
        self.find(thread).is_some()
    }

    /// Makes a worktree for an agent whose parent works in `cwd`, and returns the folder that corresponds to it.
    ///
    /// # Errors
    /// If there is no repository with a commit, or no git, or the files cannot be written.
    pub fn create(&self, thread: ThreadId, cwd: &Path, branch: &str) -> Result<PathBuf, String> {
        let (place, lock) = self.place_with_patience(thread)?;
        let record = self.make(&place, cwd, branch, &thread.to_string()).inspect_err(|_| {
            // If it could not be taken back, its record stays for the next sweep.
            if Record::read(&place).is_none_or(|record| record.stage == Stage::Closed) {
                self.remove_place(&place);
            }
        })?;
        let at = record.cwd();
        self.add(thread, Owned { name: thread.to_string(), place, record, _lock: lock });
        Ok(at)
    }

    /// Opens the worktree of an agent that starts again, and returns its folder; `None` if it never had one. If its branch
    /// is gone, it begins with the files of its parent again.
    ///
    /// # Errors
    /// If another process owns it, or it cannot be made again.
    pub fn reopen(&self, thread: ThreadId, cwd: &Path) -> Result<Option<PathBuf>, String> {
        if let Some(owned) = self.find(thread) {
            return Ok(Some(lock(&owned).record.cwd()));
        }
        let place = self.folder().join(thread.to_string());
        if Record::read(&place).is_none() {
            return Ok(None);
        }
        let (place, lock) = self.place_with_patience(thread)?;
        let Some(mut record) = Record::read(&place) else { return Ok(None) };
        let name = thread.to_string();
        if record.stage != Stage::Open || !record.worktree.folder.is_dir() {
            record = self.open_again(record, &place, cwd, &name)?;
        }
        let at = record.cwd();
        self.add(thread, Owned { name, place, record, _lock: lock });
        Ok(Some(at))
    }

    fn open_again(&self, mut record: Record, place: &Path, cwd: &Path, name: &str) -> Result<Record, String> {
        match record.stage {
            Stage::Making => record.worktree.undo(name).map_err(|error| full_message(&error))?,
            Stage::Closed => {}
            Stage::Restoring | Stage::Open | Stage::Saved => {
                let git = self.git(cwd)?;
                record.advance(Stage::Restoring, place)?;
                if record.worktree.restore(name, git.runner()).map_err(|error| full_message(&error))? {
                    record.advance(Stage::Open, place)?;
                    return Ok(record);
                }
            }
        }
        self.make(place, cwd, record.worktree.branch.trim_start_matches("codex/"), name)
    }

    /// Describes the changes of an agent for its parent, which works in `cwd`; `None` if the agent has no worktree.
    #[must_use]
    pub fn report(&self, thread: ThreadId, cwd: &Path) -> Option<Report> {
        let owned = self.find(thread)?;
        let owned = lock(&owned);
        let worktree = &owned.record.worktree;
        let told = self.git(cwd).and_then(|git| {
            let changes = worktree.changes(git.runner()).map_err(|error| full_message(&error))?;
            if changes.files.is_empty() {
                return Ok(Report { text: "It changed no files in its worktree.".to_owned(), has_changes: false });
            }
            let merge = worktree.merge(cwd, git.runner()).map_err(|error| full_message(&error))?;
            Ok(Report { text: described(worktree, &changes, &merge), has_changes: true })
        });
        Some(told.unwrap_or_else(|error| {
            let text = format!("The changes in its worktree could not be determined: {error}");
            Report { text, has_changes: false }
        }))
    }

    /// Plans the changes of an agent in the files of another, which works in `cwd`. Nothing is written.
    ///
    /// # Errors
    /// If there are no changes, or they do not apply.
    pub fn plan(&self, thread: ThreadId, cwd: &Path) -> Result<Plan, String> {
        let owned = self.find(thread).ok_or(NONE)?;
        let owned = lock(&owned);
        let (worktree, git) = (&owned.record.worktree, self.git(cwd)?);
        let merge = || worktree.merge(cwd, git.runner()).map_err(|error| full_message(&error));
        let files = match merge()? {
            Merge::Clean(files) if files.is_empty() => return Err("there are no changes to apply".to_owned()),
            Merge::Clean(files) => files,
            Merge::Conflict(why) => return Err(conflict(worktree, &why)),
        };
        let edit = |file: MergedFile| FileEdit { path: file.path, content: file.content };
        let edits = files.iter().cloned().map(edit).collect();
        let root = cwd.canonicalize().unwrap_or_else(|_| cwd.to_owned());
        let plan = Plan::of_files(&root, edits).map_err(|error| full_message(&error))?;
        // The plan checks that no file changes from here on; this checks that none has changed before.
        if merge()? != Merge::Clean(files) {
            return Err("the files have changed in the meantime; try again".to_owned());
        }
        Ok(plan)
    }

    /// Notes that the changes of an agent were applied: later ones count from here.
    ///
    /// # Errors
    /// If they cannot be committed to its branch.
    pub fn settle(&self, thread: ThreadId) -> Result<(), String> {
        let owned = self.find(thread).ok_or(NONE)?;
        let mut owned = lock(&owned);
        let git = self.git(&owned.record.worktree.origin)?;
        owned.record.worktree.settle(git.runner()).map_err(|error| full_message(&error))?;
        owned.record.write(&owned.place)
    }

    /// Removes the worktree of an agent with all changes that were not applied.
    ///
    /// # Errors
    /// If the repository is not there any more.
    pub fn discard(&self, thread: ThreadId) -> Result<(), String> {
        let owned = self.take(thread).ok_or(NONE)?;
        let owned = lock(&owned);
        owned.record.worktree.discard(&owned.name).map_err(|error| full_message(&error))?;
        self.remove_place(&owned.place);
        Ok(())
    }

    /// Removes the worktree of an agent. Changes that were not applied stay on its branch, whose name is returned.
    ///
    /// # Errors
    /// If the changes cannot be kept; then the worktree stays.
    pub fn remove(&self, thread: ThreadId, fate: RecordFate) -> Result<Option<String>, String> {
        if let Some(owned) = self.take(thread) {
            return self.close(&mut lock(&owned), fate);
        }
        if fate == RecordFate::Kept || Record::read(&self.folder().join(thread.to_string())).is_none() {
            return Ok(None);
        }
        let (place, lock) = self.place_with_patience(thread)?;
        match Record::read(&place) {
            Some(record) => self.close(&mut Owned { name: thread.to_string(), place, record, _lock: lock }, fate),
            None => Ok(None),
        }
    }

    /// Removes all open worktrees, because their tree ends. Returns what could not be removed.
    pub fn remove_all(&self) -> Vec<String> {
        let open = std::mem::take(&mut *self.open.lock().unwrap_or_else(PoisonError::into_inner));
        open.into_values().filter_map(|owned| self.close(&mut lock(&owned), RecordFate::Kept).err()).collect()
    }

    /// Sweeps in the background. It needs a runtime.
    pub fn start_sweep(self: &Arc<Self>, is_known: impl Fn(ThreadId) -> bool + Send + 'static) {
        let worktrees = Arc::clone(self);
        let sweep = tokio::task::spawn_blocking(move || worktrees.sweep(&is_known));
        if let Ok(mut started) = self.sweep.try_lock() {
            *started = Some(sweep);
        }
    }

    /// Waits for the sweep that was started here, within a time limit: a program that ends sooner leaves the rest to the
    /// next one.
    pub async fn swept(&self) {
        if let Some(sweep) = self.sweep.lock().await.take() {
            let _: Result<_, _> = tokio::time::timeout(SWEEP_TIME, sweep).await;
        }
    }

    /// Removes the worktrees that ended programs have left, and the records of threads that are gone.
    pub fn sweep(&self, is_known: &dyn Fn(ThreadId) -> bool) {
        let Ok(entries) = fs::read_dir(self.folder()) else { return };
        let threads = entries.flatten().take(MOST_LISTED).filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let mut threads: Vec<(bool, ThreadId)> = threads
            .map(|thread: ThreadId| {
                let record = Record::read(&self.folder().join(thread.to_string()));
                (record.is_some_and(|record| record.stage.is_over()), thread)
            })
            .collect();
        // Those with files come first.
        threads.sort_unstable_by_key(|(is_over, _)| *is_over);
        for (_, thread) in threads.into_iter().take(MOST_SWEPT) {
            // A worktree whose owner lives is locked.
            let Ok((place, lock)) = self.place(thread) else { continue };
            Record::remove_draft(&place);
            let Some(record) = Record::read(&place) else {
                // Nothing else was begun there, and other files in it stay.
                let _ = fs::remove_dir(&place);
                self.remove_empty();
                continue;
            };
            let fate = if is_known(thread) { RecordFate::Kept } else { RecordFate::Removed };
            if record.stage.is_over() && fate == RecordFate::Kept {
                continue;
            }
            let mut owned = Owned { name: thread.to_string(), place, record, _lock: lock };
            // Changes that cannot be kept now stay for the next sweep.
            if self.close(&mut owned, fate).is_err() && owned.record.stage.is_over() {
                self.remove_place(&owned.place);
            }
        }
    }

    /// Ends a worktree at whatever stage it is. The record comes last, so that the next sweep does what this leaves.
    fn close(&self, owned: &mut Owned, fate: RecordFate) -> Result<Option<String>, String> {
        let (worktree, name) = (&owned.record.worktree, &owned.name);
        let failed = |error: &WorktreeError| {
            format!("the worktree {} was not removed: {}", worktree.folder.display(), full_message(error))
        };
        let left = match owned.record.stage {
            Stage::Making => worktree.undo(name).map(|()| Left::Nothing),
            Stage::Closed => Ok(Left::Nothing),
            stage @ (Stage::Restoring | Stage::Open | Stage::Saved) => {
                let git = self.git(&worktree.origin)?;
                let withdrawn = if stage == Stage::Restoring { worktree.withdraw(name) } else { Ok(()) };
                withdrawn.and_then(|()| worktree.remove(name, git.runner()))
            }
        };
        let left = left.map_err(|error| failed(&error))?;
        match fate {
            RecordFate::Kept => {
                let stage = if left == Left::Nothing { Stage::Closed } else { Stage::Saved };
                owned.record.advance(stage, &owned.place)?;
            }
            RecordFate::Removed => self.remove_place(&owned.place),
        }
        Ok(match left {
            Left::Nothing => None,
            Left::Branch(branch) => Some(branch),
        })
    }

    fn make(&self, place: &Path, cwd: &Path, branch: &str, name: &str) -> Result<Record, String> {
        let cwd = cwd.canonicalize().map_err(|error| format!("{}: {error}", cwd.display()))?;
        let git = self.git(&cwd)?;
        let root = codex_config::project_doc::repository_root(&cwd).unwrap_or_else(|| cwd.clone());
        // Some programs use the name of the folder.
        let folder = place.join(root.file_name().unwrap_or("checkout".as_ref()));
        let new = NewWorktree { from: &cwd, folder: &folder, branch };
        let worktree = Worktree::plan(new, git.runner()).map_err(|error| full_message(&error))?;
        let below = cwd.strip_prefix(&worktree.origin).map(Path::to_owned).unwrap_or_default();
        let mut record = Record { worktree, below, stage: Stage::Making };
        let completed = complete(&mut record, place, name, &git);
        if let Err(error) = completed {
            if record.worktree.undo(name).is_ok() {
                let _: Result<(), String> = record.advance(Stage::Closed, place);
            }
            return Err(error);
        }
        Ok(record)
    }

    /// The folder of an agent, created if need be, and its lock.
    fn place(&self, thread: ThreadId) -> Result<(PathBuf, PlaceLock), String> {
        let place = self.folder().join(thread.to_string());
        let failed = |error: std::io::Error| format!("could not create {}: {error}", place.display());
        let mut builder = fs::DirBuilder::new();
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.recursive(true).create(&place).map_err(failed)?;
        crash_point();
        let lock = File::open(&place).map_err(failed)?;
        let is_used = || format!("the worktree {} is used by another process", place.display());
        lock.try_lock().map_err(|_| is_used())?;
        let lock = PlaceLock(lock);
        // A sweep may have removed the folder a moment before it was locked.
        let (locked, named) = (lock.0.metadata().map_err(failed)?, fs::metadata(&place).map_err(failed)?);
        if (locked.dev(), locked.ino()) != (named.dev(), named.ino()) {
            return Err(is_used());
        }
        Ok((place, lock))
    }

    /// The same. A sweep after the end of another program may have the lock for a moment.
    fn place_with_patience(&self, thread: ThreadId) -> Result<(PathBuf, PlaceLock), String> {
        let begun = Instant::now();
        loop {
            match self.place(thread) {
                Err(_) if begun.elapsed() < LOCKED_TIME => std::thread::park_timeout(LOCKED_PAUSE),
                placed => return placed,
            }
        }
    }

    fn git(&self, cwd: &Path) -> Result<TrustedGit, String> {
        let mut writable = writable_folders(cwd, None);
        writable.push(self.folder());
        TrustedGit::find(&self.home, &Env::process(), &writable).map_err(|error| full_message(&error))
    }

    /// The folder of all worktrees, without links.
    fn folder(&self) -> PathBuf {
        let home = self.home.path();
        let home = home.canonicalize().or_else(|_| std::path::absolute(home)).unwrap_or_else(|_| home.to_owned());
        home.join("worktrees")
    }

    /// Removes the folder of an agent whose checkout is gone. The record goes before the folder.
    fn remove_place(&self, place: &Path) {
        let _ = fs::remove_dir_all(place);
        crash_point();
        self.remove_empty();
    }

    fn remove_empty(&self) {
        // This fails while another one is there.
        let _ = fs::remove_dir(self.folder());
    }

    fn add(&self, thread: ThreadId, owned: Owned) {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).insert(thread, Arc::new(Mutex::new(owned)));
    }

    fn take(&self, thread: ThreadId) -> Option<Arc<Mutex<Owned>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).remove(&thread)
    }

    fn find(&self, thread: ThreadId) -> Option<Arc<Mutex<Owned>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).get(&thread).cloned()
    }
}

/// Makes a worktree as planned, and records each step before it.
fn complete(record: &mut Record, place: &Path, name: &str, git: &TrustedGit) -> Result<(), String> {
    loop {
        record.write(place)?;
        if record.worktree.create_branch().map_err(|error| full_message(&error))? {
            break;
        }
    }
    record.worktree.restore(name, git.runner()).map_err(|error| full_message(&error))?;
    // A folder without tracked files is not in the checkout.
    fs::create_dir_all(record.cwd()).map_err(|error| error.to_string())?;
    record.advance(Stage::Open, place)
}

const NONE: &str = "the agent has no worktree of its own; it works in your folder";

fn lock(owned: &Arc<Mutex<Owned>>) -> std::sync::MutexGuard<'_, Owned> {
    owned.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The changes of an agent in words.
fn described(worktree: &Worktree, changes: &WorktreeChanges, merge: &Merge) -> String {
    let verdict = match merge {
        Merge::Clean(_) => "They apply cleanly to your folder.".to_owned(),
        Merge::Conflict(why) => format!("They do not apply to your folder as it is: {why}"),
    };
    let mut files: Vec<String> = changes.files.iter().take(LISTED).cloned().collect();
    if changes.files.len() > LISTED {
        files.push(format!("… and {} more", changes.files.len() - LISTED));
    }
    let mut end = changes.diff.len().min(SHOWN_BYTES);
    while !changes.diff.is_char_boundary(end) {
        end -= 1;
    }
    let (diff, rest) = changes.diff.split_at(end);
    let rest = if rest.is_empty() {
        String::new()
    } else {
        format!("\n… {} more bytes; see {}", rest.len(), worktree.folder.display())
    };
    format!(
        "It changed {} files in its worktree, on the branch {}. {verdict}\n{}\n\n{diff}{rest}",
        changes.files.len(),
        worktree.branch,
        files.join("\n"),
    )
}

fn conflict(worktree: &Worktree, why: &str) -> String {
    format!(
        "the changes do not apply to your folder as it is: {why}\nMake them yourself, from {} or from the branch {}, or ask \
         the agent to adapt them.",
        worktree.folder.display(),
        worktree.branch,
    )
}

#[cfg(test)]
mod tests;
