//! Worktrees that this program makes for agents: created, compared, merged and removed, without running anything that
//! a repository names.
//!
//! `git` works on a stage, as everywhere here. Only four things are written into the repository, by descriptors: a pack
//! of new objects, a branch below `codex/`, and the folder and index of the worktree.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use codex_files::crash_point;

use super::{
    GitError, branch,
    changes::{MAX_DIFF, MAX_LIST},
    folder::Folder,
    refs,
    repository::Repository,
    run::{Git, RunError, Runner},
    snapshot,
    stage::Stage,
};

/// The time limit for all runs of `git` of one operation.
const WITHIN: Duration = Duration::from_secs(120);
/// The message of the commit that a worktree begins with.
const BEGINNING: &str = "Uncommitted changes of the parent agent";
/// The message of the commit that keeps the changes of a worktree.
const END: &str = "Changes of the agent";

/// A worktree of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Worktree {
    /// The checkout that it was made from. It may be gone, if it was a worktree too.
    pub origin: PathBuf,
    /// The git folder of the repository.
    pub repository: PathBuf,
    /// Its own folder.
    pub folder: PathBuf,
    /// Its branch.
    pub branch: String,
    /// The commit that its changes count from.
    pub base: String,
}

/// The place and the branch of a new worktree.
#[derive(Debug, Clone, Copy)]
pub struct NewWorktree<'a> {
    /// The checkout that it begins with, or a folder in it.
    pub from: &'a Path,
    /// A folder that does not exist yet, in one that nobody else can write.
    pub folder: &'a Path,
    /// The name of the branch below `codex/`, roughly.
    pub branch: &'a str,
}

/// The changes in a worktree.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorktreeChanges {
    /// The changed files, one line for each: lines added, lines removed and the name.
    pub files: Vec<String>,
    /// The diff.
    pub diff: String,
}

/// The changes of a worktree, merged into another checkout's files. Nothing is written there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Merge {
    /// The new contents of the files that change.
    Clean(Vec<MergedFile>),
    /// The reason why the changes do not apply.
    Conflict(String),
}

/// A file after a merge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MergedFile {
    pub path: PathBuf,
    /// The content, and whether it is executable; `None` if the file is removed.
    pub content: Option<(Vec<u8>, bool)>,
}

/// The rest of a worktree after its removal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Left {
    Nothing,
    /// Its branch, with changes that were not applied.
    Branch(String),
}

/// The reason why something about a worktree failed.
#[derive(Debug, thiserror::Error)]
pub enum WorktreeError {
    #[error(transparent)]
    Git(#[from] GitError),
    #[error("the branch `{0}` is in the way of branches below `{0}/`; rename it")]
    BranchInTheWay(&'static str),
    #[error("there are too many branches `codex/{0}-…`")]
    NoBranch(String),
    #[error("{} stores its branches in a format that is not supported", .0.display())]
    Branches(PathBuf),
    #[error("could not write {}", .path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error("could not remove {}", .path.display())]
    Remove { path: PathBuf, source: io::Error },
    #[error("{} is not the worktree that it was", .0.display())]
    Broken(PathBuf),
    #[error("{} belongs to another repository", .0.display())]
    Foreign(PathBuf),
}

impl Worktree {
    /// Plans a worktree with the files of a checkout as they are, uncommitted and new ones included. Only objects are
    /// written, so whoever makes a note of the plan knows everything that there may be to remove.
    pub fn plan(new: NewWorktree<'_>, runner: &Runner) -> Result<Self, WorktreeError> {
        let repository = find(new.from)?;
        let session = Session::new(&repository, runner)?;
        let head = refs::head(&repository).commit.ok_or_else(|| GitError::NoCommits(repository.root.clone()))?;
        let git = session.git();
        let tree = snapshot::tree(&repository, &session.stage, &git)?;
        let base = if tree == snapshot::tree_of(&git, &head).map_err(|error| session.failed(error))? {
            head
        } else {
            let commit = snapshot::commit(&git, &tree, &[&head], BEGINNING).map_err(|error| session.failed(error))?;
            snapshot::keep(&repository, &session.stage, &git, &commit, &[&head])?;
            commit
        };
        let branch = branch::free_name(&repository, new.branch)?;
        let (origin, common) = (repository.root.clone(), repository.common.clone());
        Ok(Self { origin, repository: common, folder: new.folder.to_owned(), branch, base })
    }

    /// Creates the branch. If another process has taken its name since it was chosen, the plan gets another name and this
    /// returns false.
    pub fn create_branch(&mut self) -> Result<bool, WorktreeError> {
        let repository = self.shared()?;
        let path = repository.common.join("refs/heads").join(&self.branch);
        let created = branch::create(&repository, &self.branch, &self.base);
        let is_created = created.map_err(|source| WorktreeError::Write { path, source })?;
        if !is_created {
            self.branch = branch::free_name(&repository, branch::wish(&self.branch))?;
        }
        Ok(is_created)
    }

    /// Makes the folder from the branch; false if the branch is gone.
    pub fn restore(&self, name: &str, runner: &Runner) -> Result<bool, WorktreeError> {
        let repository = self.shared()?;
        let Some(tip) = branch::tip(&repository, &self.branch) else { return Ok(false) };
        let session = Session::new(&repository, runner)?;
        self.withdraw(name)?;
        let checked_out = self.check_out(&repository, name, &tip, &session);
        if checked_out.is_err() {
            self.withdraw(name)?;
        }
        checked_out.map(|()| true)
    }

    /// Writes the files of a commit, and links the folder with its repository.
    fn check_out(
        &self,
        repository: &Repository,
        name: &str,
        commit: &str,
        session: &Session<'_>,
    ) -> Result<(), WorktreeError> {
        let write = |source| WorktreeError::Write { path: self.folder.clone(), source };
        fs::create_dir(&self.folder).map_err(write)?;
        crash_point();
        session.stage.forget_index().map_err(write)?;
        let git = session.stage.git(&self.folder, session.deadline);
        git.run(&["read-tree", "--reset", "-u", commit], None, MAX_LIST).map_err(|error| session.failed(error))?;
        crash_point();
        let folder = self.folder.canonicalize().map_err(write)?;
        let write = |source| WorktreeError::Write { path: repository.common.join("worktrees").join(name), source };
        let link = || -> io::Result<()> {
            let own =
                Folder::open(&repository.common)?.create_below("worktrees", |worktrees| worktrees.create(name))?;
            own.write_new("HEAD", format!("ref: refs/heads/{}\n", self.branch).as_bytes())?;
            own.write_new("commondir", b"../..\n")?;
            own.write_new("gitdir", format!("{}\n", folder.join(".git").display()).as_bytes())?;
            own.copy_new("index", &mut fs::File::open(session.stage.path("index"))?)
        };
        link().map_err(write)?;
        let own = repository.common.join("worktrees").join(name);
        let dot_git = folder.join(".git");
        let linked = fs::write(&dot_git, format!("gitdir: {}\n", own.display()));
        linked.map_err(|source| WorktreeError::Write { path: dot_git, source })
    }

    /// Removes what is there of the folder and its entry in the list of worktrees. The branch stays.
    pub fn withdraw(&self, name: &str) -> Result<(), WorktreeError> {
        let repository = self.shared()?;
        let leftover = self.leftover();
        let removed = |result: io::Result<()>, path: &Path| match result {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                Err(WorktreeError::Remove { path: path.to_owned(), source })
            }
            _ => Ok(()),
        };
        removed(fs::remove_dir_all(&leftover), &leftover)?;
        // A folder that is removed only in part must not look like one in which an agent has removed files.
        removed(fs::rename(&self.folder, &leftover), &self.folder)?;
        crash_point();
        removed(fs::remove_dir_all(&leftover), &leftover)?;
        crash_point();
        let own = repository.common.join("worktrees").join(name);
        if own.canonicalize().is_ok_and(|real| real == own) {
            removed(fs::remove_dir_all(&own), &own)?;
            crash_point();
        }
        if let Ok(common) = Folder::open(&repository.common) {
            common.remove_empty("worktrees");
        }
        Ok(())
    }

    /// The name of the folder while it is being removed.
    fn leftover(&self) -> PathBuf {
        self.folder.with_file_name(".removed")
    }

    /// The repository of the worktree, which must be the one that it was made in.
    fn repository(&self) -> Result<Repository, WorktreeError> {
        let found = Repository::find(&self.folder).filter(|found| is_same(&found.root, &self.folder));
        let found = found.ok_or_else(|| WorktreeError::Broken(self.folder.clone()))?;
        if found.common == self.shared()?.common { Ok(found) } else { Err(WorktreeError::Broken(self.folder.clone())) }
    }

    /// The repository that the worktree was made in, apart from all checkouts.
    fn shared(&self) -> Result<Repository, WorktreeError> {
        let found = Repository::without_checkout(&self.repository);
        supported(found.ok_or_else(|| GitError::NoRepository(self.repository.clone()))?)
    }

    /// All changes since the base, committed or not.
    pub fn changes(&self, runner: &Runner) -> Result<WorktreeChanges, WorktreeError> {
        let repository = self.repository()?;
        let session = Session::new(&repository, runner)?;
        let tree = snapshot::tree(&repository, &session.stage, &session.git())?;
        self.changes_to(&tree, &session)
    }

    fn changes_to(&self, tree: &str, session: &Session<'_>) -> Result<WorktreeChanges, WorktreeError> {
        let git = session.git();
        let run = |form: &[&str], most| {
            let common = ["diff", "--no-ext-diff", "--no-textconv", "--no-color", "--no-renames"];
            let arguments: Vec<&str> = common.iter().chain(form).copied().chain([&*self.base, tree, "--"]).collect();
            let printed = git.run(&arguments, None, most).map_err(|error| session.failed(error))?;
            Ok::<_, WorktreeError>(String::from_utf8_lossy(&printed).into_owned())
        };
        let files = run(&["--numstat"], MAX_LIST)?.lines().map(|line| line.replace('\t', " ")).collect();
        Ok(WorktreeChanges { files, diff: run(&["--binary", "--full-index"], MAX_DIFF)? })
    }

    /// Merges the changes into the files of another checkout of the same repository, without writing anything there.
    pub fn merge(&self, into: &Path, runner: &Runner) -> Result<Merge, WorktreeError> {
        let changes = self.changes(runner)?;
        let target = find(into)?;
        if target.common != self.repository()?.common {
            return Err(WorktreeError::Foreign(target.root));
        }
        let session = Session::new(&target, runner)?;
        let git = session.git();
        let before = snapshot::tree(&target, &session.stage, &git)?;
        let read = |source| WorktreeError::Write { path: target.root.clone(), source };
        let diff = session.stage.input("diff", changes.diff.as_bytes()).map_err(read)?;
        let apply = ["apply", "--cached", "--whitespace=nowarn", "-"];
        if !changes.diff.is_empty() {
            match git.run(&apply, Some(&diff), MAX_LIST) {
                Err(RunError::Failed { said, .. }) => return Ok(Merge::Conflict(said.unwrap_or_default())),
                applied => applied.map_err(|error| session.failed(error))?,
            };
        }
        let after = snapshot::id(&git, &["write-tree"]).map_err(|error| session.failed(error))?;
        merged_files(&session, &before, &after)
    }

    /// Commits everything to the branch, and counts later changes from there.
    pub fn settle(&mut self, runner: &Runner) -> Result<(), WorktreeError> {
        let repository = self.repository()?;
        let session = Session::new(&repository, runner)?;
        self.base = self.save(&repository, &session)?.0;
        Ok(())
    }

    /// Commits everything to the branch. Returns the commit, and whether anything differs from the base.
    fn save(&self, repository: &Repository, session: &Session<'_>) -> Result<(String, bool), WorktreeError> {
        let git = session.git();
        let failed = |error| session.failed(error);
        let tree = snapshot::tree(repository, &session.stage, &git)?;
        let head = refs::head(repository).commit.unwrap_or_else(|| self.base.clone());
        let tip = branch::tip(repository, &self.branch).unwrap_or_else(|| head.clone());
        let is_changed = tree != snapshot::tree_of(&git, &self.base).map_err(failed)?;
        // The agent may have left the branch. Its commits on either stay.
        let is_ahead = head == tip || git.run(&["merge-base", "--is-ancestor", &tip, &head], None, MAX_LIST).is_ok();
        if is_ahead && tree == snapshot::tree_of(&git, &head).map_err(failed)? {
            if head != tip {
                self.move_branch(repository, &head)?;
            }
            return Ok((head, is_changed));
        }
        let parents: Vec<&str> = [&*head, &*tip].into_iter().take(if is_ahead { 1 } else { 2 }).collect();
        let commit = snapshot::commit(&git, &tree, &parents, END).map_err(failed)?;
        snapshot::keep(repository, &session.stage, &git, &commit, &parents)?;
        self.move_branch(repository, &commit)?;
        Ok((commit, is_changed))
    }

    fn move_branch(&self, repository: &Repository, commit: &str) -> Result<(), WorktreeError> {
        let path = repository.common.join("refs/heads").join(&self.branch);
        branch::set(repository, &self.branch, commit).map_err(|source| WorktreeError::Write { path, source })
    }

    /// Removes the folder. Changes that were not applied are committed to the branch first, which is kept for them; a
    /// branch without any goes too.
    pub fn remove(&self, name: &str, runner: &Runner) -> Result<Left, WorktreeError> {
        let shared = self.shared()?;
        let is_changed = if self.folder.symlink_metadata().is_err() {
            // It was removed before, perhaps only in part.
            let session = Session::new(&shared, runner)?;
            let tree = |commit: &str| snapshot::tree_of(&session.git(), commit).map_err(|error| session.failed(error));
            match branch::tip(&shared, &self.branch) {
                Some(tip) => tip != self.base && tree(&tip)? != tree(&self.base)?,
                None => false,
            }
        } else {
            let repository = self.repository()?;
            let session = Session::new(&repository, runner)?;
            self.save(&repository, &session)?.1
        };
        self.withdraw(name)?;
        if is_changed {
            return Ok(Left::Branch(self.branch.clone()));
        }
        self.delete_branch(&shared)?;
        Ok(Left::Nothing)
    }

    /// Takes back a worktree in which nobody has worked yet. A branch that is not where it began is not its own.
    pub fn undo(&self, name: &str) -> Result<(), WorktreeError> {
        let shared = self.shared()?;
        self.withdraw(name)?;
        if branch::tip(&shared, &self.branch).is_none_or(|tip| tip == self.base) {
            self.delete_branch(&shared)?;
        }
        Ok(())
    }

    /// Removes the folder and the branch with all changes.
    pub fn discard(&self, name: &str) -> Result<(), WorktreeError> {
        let shared = self.shared()?;
        self.withdraw(name)?;
        self.delete_branch(&shared)
    }

    fn delete_branch(&self, repository: &Repository) -> Result<(), WorktreeError> {
        let path = repository.common.join("refs/heads").join(&self.branch);
        branch::delete(repository, &self.branch).map_err(|source| WorktreeError::Write { path, source })
    }
}

/// A stage for one operation, with its time limit.
struct Session<'a> {
    repository: &'a Repository,
    stage: Stage<'a>,
    deadline: Instant,
}

impl<'a> Session<'a> {
    fn new(repository: &'a Repository, runner: &'a Runner) -> Result<Self, WorktreeError> {
        let read = |source| GitError::Read { root: repository.root.clone(), source };
        let stage = Stage::new(runner, Some(repository)).map_err(read)?;
        Ok(Self { repository, stage, deadline: Instant::now() + WITHIN })
    }

    fn git(&self) -> Git<'_> {
        self.stage.git(&self.repository.root, self.deadline)
    }

    fn failed(&self, source: RunError) -> WorktreeError {
        GitError::Git { root: self.repository.root.clone(), source: source.into() }.into()
    }
}

/// The contents of the files that differ between two trees, as a checkout has them. The index of the stage is the
/// second one.
fn merged_files(session: &Session<'_>, before: &str, after: &str) -> Result<Merge, WorktreeError> {
    let git = session.git();
    let list = ["diff-tree", "-r", "-z", "--no-renames", "--raw", before, after];
    let list = git.run(&list, None, MAX_LIST).map_err(|error| session.failed(error))?;
    let mut parts = list.split(|byte| *byte == 0);
    let mut changed = Vec::new();
    while let (Some(about), Some(name)) = (parts.next().filter(|about| !about.is_empty()), parts.next()) {
        let about = String::from_utf8_lossy(about).into_owned();
        let mode = about.split(' ').nth(1).unwrap_or_default().to_owned();
        changed.push((mode, name));
    }
    let shown = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
    if let Some((_, name)) = changed.iter().find(|(mode, _)| !matches!(&**mode, "000000" | "100644" | "100755")) {
        let why = format!("{} is a link or a submodule, which has to be merged by hand", shown(name));
        return Ok(Merge::Conflict(why));
    }
    let read = |source| WorktreeError::Write { path: session.repository.root.clone(), source };
    let written: Vec<&[u8]> = changed.iter().filter(|(mode, _)| mode != "000000").map(|(_, name)| *name).collect();
    let names = session.stage.input("names", &[&*written.join(&0), b"\0"].concat()).map_err(read)?;
    let files = session.stage.path("files");
    let prefix = format!("--prefix={}/", files.display());
    if !written.is_empty() {
        let check_out = ["checkout-index", "-f", "-z", "--stdin", &prefix];
        git.run(&check_out, Some(&names), MAX_LIST).map_err(|error| session.failed(error))?;
    }
    let mut merged = Vec::new();
    for (mode, name) in changed {
        let name = Path::new(<std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(name));
        let content = match &*mode {
            "000000" => None,
            mode => Some((fs::read(files.join(name)).map_err(read)?, mode == "100755")),
        };
        merged.push(MergedFile { path: session.repository.root.join(name), content });
    }
    Ok(Merge::Clean(merged))
}

/// The repository around a folder, if worktrees can be made in it.
fn find(folder: &Path) -> Result<Repository, WorktreeError> {
    supported(Repository::find(folder).ok_or_else(|| GitError::NoRepository(folder.to_owned()))?)
}

fn supported(found: Repository) -> Result<Repository, WorktreeError> {
    if found.settings().get("extensions", "", "refStorage").is_some_and(|format| format != "files") {
        return Err(WorktreeError::Branches(found.root));
    }
    Ok(found)
}

fn is_same(one: &Path, other: &Path) -> bool {
    matches!((one.canonicalize(), other.canonicalize()), (Ok(one), Ok(other)) if one == other)
}
