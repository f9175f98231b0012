use std::process::Command;

use tempfile::TempDir;

use super::*;

mod crashes;

struct Place {
    temp: TempDir,
    repository: PathBuf,
    worktrees: Worktrees,
}

impl Place {
    fn new() -> Self {
        // Programs below `/tmp` are not trusted, but folders may be anywhere.
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().canonicalize().unwrap();
        let repository = root.join("repository");
        fs::create_dir_all(repository.join("sub")).unwrap();
        fs::write(repository.join("sub/a.txt"), "one\n").unwrap();
        git(&repository, &["init", "-q", "-b", "main"]);
        git(&repository, &["add", "-A"]);
        git(&repository, &["commit", "-q", "-m", "first"]);
        let worktrees = Worktrees::new(&Home::at(root.join("home")));
        Self { temp, repository, worktrees }
    }

    /// The same folders as another process sees them.
    fn again(&self) -> Worktrees {
        Worktrees::new(&Home::at(self.temp.path().join("home")))
    }

    /// The process was killed, and another one begins.
    fn kill(&mut self) {
        self.worktrees = self.again();
    }

    fn branches(&self) -> String {
        git(&self.repository, &["branch", "--format=%(refname:short)"])
    }

    fn left(&self) -> bool {
        self.temp.path().join("home/worktrees").exists() || self.repository.join(".git/worktrees").exists()
    }
}

fn git(folder: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new("git");
    command.args(["-c", "user.name=a", "-c", "user.email=a@b"]).args(arguments).current_dir(folder);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

#[test]
fn an_agent_works_in_the_corresponding_folder_and_its_changes_are_reported() {
    let place = Place::new();
    let (thread, cwd) = (ThreadId::fresh(), place.repository.join("sub"));
    let at = place.worktrees.create(thread, &cwd, "Fix it").unwrap();
    assert!(at.ends_with("repository/sub") && at.join("a.txt").is_file());
    assert_eq!(place.worktrees.report(thread, &cwd).unwrap().text, "It changed no files in its worktree.");
    fs::write(at.join("a.txt"), "one\ntwo\n").unwrap();
    let report = place.worktrees.report(thread, &cwd).unwrap().text;
    let begin = "It changed 1 files in its worktree, on the branch codex/fix-it. They apply cleanly to your folder.\n\
                 1 0 sub/a.txt\n\ndiff --git";
    assert!(report.starts_with(begin) && report.contains("+two"), "{report}");
    assert_eq!(place.worktrees.report(ThreadId::fresh(), &cwd), None);
    let plan = place.worktrees.plan(thread, &cwd).unwrap();
    assert_eq!(plan.paths(), [cwd.join("a.txt")]);
    fs::write(cwd.join("a.txt"), "another\n").unwrap();
    assert!(
        place.worktrees.report(thread, &cwd).unwrap().text.contains("do not apply to your folder as it is: error: ")
    );
    let error = place.worktrees.plan(thread, &cwd).unwrap_err();
    assert!(error.contains("sub/a.txt") && error.contains("branch codex/fix-it"), "{error}");
}

#[test]
fn nothing_is_left_of_a_worktree_without_changes() {
    let place = Place::new();
    let thread = ThreadId::fresh();
    let at = place.worktrees.create(thread, &place.repository, "x").unwrap();
    fs::write(at.join("sub/a.txt"), "two\n").unwrap();
    place.worktrees.settle(thread).unwrap();
    assert_eq!(place.worktrees.remove(thread, RecordFate::Removed), Ok(None), "everything was applied");
    assert_eq!((place.branches().as_str(), place.left()), ("main", false));
    let thread = ThreadId::fresh();
    let at = place.worktrees.create(thread, &place.repository, "x").unwrap();
    fs::write(at.join("new"), "").unwrap();
    place.worktrees.discard(thread).unwrap();
    assert_eq!((place.branches().as_str(), place.left()), ("main", false));
    assert!(place.worktrees.plan(thread, &place.repository).is_err());
}

#[test]
fn an_agent_that_starts_again_has_its_files() {
    let place = Place::new();
    let (kept, unchanged) = (ThreadId::fresh(), ThreadId::fresh());
    let at = place.worktrees.create(kept, &place.repository, "kept").unwrap();
    fs::write(at.join("new"), "mine\n").unwrap();
    let other = place.worktrees.create(unchanged, &place.repository, "unchanged").unwrap();
    assert_eq!(place.worktrees.remove_all(), Vec::<String>::new());
    assert!(!at.exists() && !other.exists() && !place.repository.join(".git/worktrees").exists());
    assert_eq!(place.branches(), "codex/kept\nmain");
    fs::write(place.repository.join("sub/a.txt"), "later\n").unwrap();
    let again = place.again();
    assert_eq!(again.reopen(kept, &place.repository), Ok(Some(at.clone())));
    assert_eq!(fs::read_to_string(at.join("new")).unwrap(), "mine\n");
    assert_eq!(again.reopen(unchanged, &place.repository), Ok(Some(other.clone())));
    assert_eq!(fs::read_to_string(other.join("sub/a.txt")).unwrap(), "later\n");
    assert_eq!(again.reopen(ThreadId::fresh(), &place.repository), Ok(None));
    assert_eq!(again.remove(kept, RecordFate::Removed), Ok(Some("codex/kept".to_owned())));
    assert_eq!(again.remove(unchanged, RecordFate::Removed), Ok(None));
    assert!(!place.left());
}

/// They begin with the same commit, and share the folders of branches and worktrees with those that are removed.
#[test]
fn worktrees_are_made_and_removed_side_by_side() {
    let place = Place::new();
    fs::write(place.repository.join("new"), "new\n").unwrap();
    std::thread::scope(|scope| {
        for number in 0..8 {
            let place = &place;
            scope.spawn(move || {
                for _ in 0..3 {
                    let thread = ThreadId::fresh();
                    let at = place.worktrees.create(thread, &place.repository, "x").unwrap();
                    assert_eq!(fs::read_to_string(at.join("new")).unwrap(), "new\n");
                    fs::write(at.join("mine"), number.to_string()).unwrap();
                    place.worktrees.discard(thread).unwrap();
                }
            });
        }
    });
    assert_eq!((place.branches().as_str(), place.left()), ("main", false));
    assert_eq!(git(&place.repository, &["fsck", "--strict", "--no-dangling"]), "");
}

/// A program that was killed leaves its worktrees, and the next one removes them, but none whose owner lives.
#[test]
fn a_sweep_removes_what_has_no_owner_and_keeps_the_changes() {
    let place = Place::new();
    let (dead, deleted, alive) = (ThreadId::fresh(), ThreadId::fresh(), ThreadId::fresh());
    let killed = place.again();
    let at = killed.create(dead, &place.repository, "dead").unwrap();
    fs::write(at.join("new"), "mine\n").unwrap();
    killed.create(deleted, &place.repository, "deleted").unwrap();
    let living = place.worktrees.create(alive, &place.repository, "alive").unwrap();
    let foreign = place.temp.path().join("home/worktrees/of-another-program");
    fs::create_dir(&foreign).unwrap();
    place.again().sweep(&|_| true);
    assert!(at.exists(), "its owner lives");
    drop(killed);
    place.again().sweep(&|thread| thread != deleted);
    assert!(!at.exists() && living.exists() && foreign.exists());
    assert_eq!(place.branches(), "codex/alive\ncodex/dead\nmain");
    assert_eq!(git(&place.repository, &["show", "codex/dead:new"]), "mine");
    assert!(at.parent().unwrap().exists() && !at.parent().unwrap().with_file_name(deleted.to_string()).exists());
    place.again().sweep(&|_| false);
    assert!(!at.parent().unwrap().exists(), "the record goes with the thread, and the branch stays");
    assert_eq!(place.branches(), "codex/alive\ncodex/dead\nmain");
}

#[test]
fn a_folder_without_a_repository_is_refused_and_leaves_nothing() {
    let place = Place::new();
    let lone = place.temp.path().join("lone");
    fs::create_dir(&lone).unwrap();
    let error = place.worktrees.create(ThreadId::fresh(), &lone, "x").unwrap_err();
    assert!(error.ends_with("lone is not in a git repository"), "{error}");
    assert!(!place.left());
}

/// A record is in a folder of ours, but another program of the user may have written it.
#[test]
fn a_record_that_names_a_foreign_folder_is_ignored() {
    let place = Place::new();
    let thread = ThreadId::fresh();
    let at = place.worktrees.create(thread, &place.repository, "x").unwrap();
    let record = at.with_file_name("record.json");
    let text = fs::read_to_string(&record).unwrap();
    fs::write(&record, text.replace(&*at.to_string_lossy(), &place.repository.to_string_lossy())).unwrap();
    assert!(Record::read(at.parent().unwrap()).is_none());
}
