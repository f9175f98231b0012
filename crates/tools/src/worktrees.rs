//! The worktrees of isolated agents, below `CODEX_HOME/worktrees`: one folder for each agent, named like its thread.
//!
//! The folder holds the checkout, a record of how it was made, and a lock of the process that owns it. A checkout goes
//! with its agent or with the program; changes that were not applied stay on its branch. The worktrees of a killed
//! program are removed by a later one, which finds their locks free.
//!
//! Invariant: nothing is removed that this program has not made, and no change is lost silently.

mod record;

use std::collections::HashMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use codex_config::{Env, Home};
use codex_patch::{FileEdit, Plan};
use codex_wire::ids::ThreadId;
use codex_workspace::git::{Left, Merge, MergedFile, NewWorktree, Worktree, WorktreeChanges};

use self::record::Record;
use crate::full_message;
use crate::trusted_git::{TrustedGit, writable_folders};

/// The number of changed files that a report lists.
const LISTED: usize = 50;
/// The number of bytes of a diff in a report.
const SHOWN_BYTES: usize = 16 * 1024;
/// The number of entries that a sweep looks at.
const MOST_SWEPT: usize = 1000;
/// The time to wait for a worktree that is swept, and the time between two attempts.
const LOCKED_TIME: Duration = Duration::from_secs(5);
const LOCKED_PAUSE: Duration = Duration::from_millis(20);

/// The worktrees of one tree of agents.
#[derive(Debug)]
pub struct Worktrees {
    home: Home,
    open: Mutex<HashMap<ThreadId, Arc<Mutex<Owned>>>>,
}

/// A worktree that this process owns.
#[derive(Debug)]
struct Owned {
    place: PathBuf,
    name: String,
    record: Record,
    /// Held as long as the worktree has an owner.
    _lock: File,
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
        Self { home: home.clone(), open: Mutex::default() }
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
        let (place, lock) = self.place(thread)?;
        let made = self.make(&place, cwd, branch, &thread.to_string());
        if made.is_err() {
            let _ = fs::remove_dir_all(&place);
            self.remove_empty();
        }
        let record = made?;
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
        if !record.is_whole {
            let _ = record.worktree.discard(&name);
        }
        if !record.is_whole || !record.worktree.folder.is_dir() {
            let git = self.git(cwd)?;
            let restored = record.worktree.restore(&name, git.runner()).map_err(|error| full_message(&error))?;
            if !restored {
                let branch = record.worktree.branch.trim_start_matches("codex/").to_owned();
                record = self.make(&place, cwd, &branch, &name)?;
            }
        }
        let at = record.cwd();
        self.add(thread, Owned { name, place, record, _lock: lock });
        Ok(Some(at))
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
        let _ = fs::remove_dir_all(&owned.place);
        self.remove_empty();
        Ok(())
    }

    /// Removes the worktree of an agent. Changes that were not applied stay on its branch, whose name is returned.
    ///
    /// # Errors
    /// If the changes cannot be kept; then the worktree stays.
    pub fn remove(&self, thread: ThreadId, fate: RecordFate) -> Result<Option<String>, String> {
        if let Some(owned) = self.take(thread) {
            return self.close(&lock(&owned), fate);
        }
        let place = self.folder().join(thread.to_string());
        match Record::read(&place) {
            Some(record) if fate == RecordFate::Removed => {
                let (place, lock) = self.place(thread)?;
                self.close(&Owned { name: thread.to_string(), place, record, _lock: lock }, fate)
            }
            Some(_) | None => Ok(None),
        }
    }

    /// Removes all open worktrees, because their tree ends. Returns what could not be removed.
    pub fn remove_all(&self) -> Vec<String> {
        let open = std::mem::take(&mut *self.open.lock().unwrap_or_else(PoisonError::into_inner));
        open.into_values().filter_map(|owned| self.close(&lock(&owned), RecordFate::Kept).err()).collect()
    }

    /// Removes the worktrees that ended programs have left, and the records of threads that are gone.
    pub fn sweep(&self, is_known: &dyn Fn(ThreadId) -> bool) {
        let Ok(entries) = fs::read_dir(self.folder()) else { return };
        for entry in entries.flatten().take(MOST_SWEPT) {
            let thread = entry.file_name().to_str().and_then(|name| name.parse::<ThreadId>().ok());
            let Some(thread) = thread else { continue };
            // A worktree whose owner lives is locked.
            let Ok((place, lock)) = self.place(thread) else { continue };
            let Some(record) = Record::read(&place) else {
                // Nothing was begun there. Anything else stays.
                let _ = fs::remove_dir(&place);
                continue;
            };
            let fate = if is_known(thread) { RecordFate::Kept } else { RecordFate::Removed };
            let _ = fs::remove_dir_all(record.worktree.leftover());
            let has_files = record.worktree.folder.exists() || !record.is_whole;
            if has_files || fate == RecordFate::Removed {
                let owned = Owned { name: thread.to_string(), place, record, _lock: lock };
                // Changes that cannot be kept now stay for the next sweep.
                if self.close(&owned, fate).is_err() && !has_files {
                    let _ = fs::remove_dir_all(&owned.place);
                }
            }
        }
    }

    fn close(&self, owned: &Owned, fate: RecordFate) -> Result<Option<String>, String> {
        let worktree = &owned.record.worktree;
        if !owned.record.is_whole {
            worktree.discard(&owned.name).map_err(|error| full_message(&error))?;
            let _ = fs::remove_dir_all(&owned.place);
            return Ok(None);
        }
        let git = self.git(&worktree.origin)?;
        let left = worktree.remove(&owned.name, git.runner()).map_err(|error| {
            format!("the worktree {} was not removed: {}", worktree.folder.display(), full_message(&error))
        })?;
        if fate == RecordFate::Removed {
            let _ = fs::remove_dir_all(&owned.place);
            self.remove_empty();
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
        let worktree = Worktree::begin(new, git.runner()).map_err(|error| full_message(&error))?;
        let below = cwd.strip_prefix(&worktree.origin).map(Path::to_owned).unwrap_or_default();
        let mut record = Record { worktree, below, is_whole: false };
        let mut complete = || {
            record.write(place)?;
            record.worktree.restore(name, git.runner()).map_err(|error| full_message(&error))?;
            // A folder without tracked files is not in the checkout.
            fs::create_dir_all(record.cwd()).map_err(|error| error.to_string())?;
            record.is_whole = true;
            record.write(place)
        };
        if let Err(error) = complete() {
            let _ = record.worktree.discard(name);
            return Err(error);
        }
        Ok(record)
    }

    /// The folder of an agent, created if need be, and its lock.
    fn place(&self, thread: ThreadId) -> Result<(PathBuf, File), String> {
        let place = self.folder().join(thread.to_string());
        let failed = |error: std::io::Error| format!("could not create {}: {error}", place.display());
        let mut builder = fs::DirBuilder::new();
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.recursive(true).create(&place).map_err(failed)?;
        let lock = File::open(&place).map_err(failed)?;
        lock.try_lock().map_err(|_| format!("the worktree {} is used by another process", place.display()))?;
        Ok((place, lock))
    }

    /// The same. A sweep after the end of another program may have the lock for a moment.
    fn place_with_patience(&self, thread: ThreadId) -> Result<(PathBuf, File), String> {
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
