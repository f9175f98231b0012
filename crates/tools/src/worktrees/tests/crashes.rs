//! The program is killed at every step at which it writes or removes something, and the next one sweeps.

use std::time::SystemTime;

use codex_files::testing::crash_at;

use super::*;

/// More steps than there are.
const STEPS: usize = 200;

impl Place {
    /// A repository with a file that is not committed, so that a worktree begins with a commit of its own.
    fn changed() -> Self {
        let place = Self::new();
        fs::write(place.repository.join("sub/new.txt"), "new\n").unwrap();
        place
    }

    /// Another process sweeps, long after the last one was killed.
    fn sweep_later(&mut self, is_known: bool) {
        self.kill();
        for path in
            files(&self.repository.join(".git")).filter(|path| path.extension().is_some_and(|end| end == "lock"))
        {
            let hour_ago = SystemTime::now() - Duration::from_secs(3600);
            File::options().write(true).open(path).unwrap().set_modified(hour_ago).unwrap();
        }
        self.worktrees.sweep(&|_| is_known);
    }

    /// Everything that is left of worktrees, apart from records of those that are closed.
    fn remains(&self) -> Vec<String> {
        let git = self.repository.join(".git");
        let mut found: Vec<String> =
            self.branches().lines().filter(|name| *name != "main").map(str::to_owned).collect();
        found.extend(
            ["worktrees", "refs/heads/codex"].into_iter().filter(|name| git.join(name).exists()).map(str::to_owned),
        );
        let locks = files(&git).filter(|path| path.extension().is_some_and(|end| end == "lock"));
        let home = self.temp.path().canonicalize().unwrap().join("home/worktrees");
        let kept = files(&home).filter(|path| path.file_name().is_none_or(|name| name != "record.json"));
        found.extend(locks.chain(kept).map(|path| path.display().to_string()));
        let records = fs::read_dir(&home).into_iter().flatten().flatten().map(|entry| Record::read(&entry.path()));
        found.extend(
            records
                .filter(|record| record.as_ref().is_none_or(|record| !record.stage.is_over()))
                .map(|record| format!("a record: {record:?}")),
        );
        assert_eq!(super::git(&self.repository, &["fsck", "--strict", "--no-dangling"]), "");
        found
    }
}

fn files(folder: &Path) -> Box<dyn Iterator<Item = PathBuf>> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    Box::new(entries.flat_map(|entry| {
        if entry.file_type().unwrap().is_dir() { files(&entry.path()) } else { Box::new(std::iter::once(entry.path())) }
    }))
}

/// Plays a case with a crash at every step, until nothing crashes any more. Returns the number of steps.
fn at_every_step(mut case: impl FnMut(usize) -> bool) -> usize {
    let steps = (0..STEPS).find(|step| !case(*step));
    steps.expect("the work ends")
}

#[test]
fn killed_while_a_worktree_is_made() {
    for is_known in [true, false] {
        let steps = at_every_step(|step| {
            let mut place = Place::changed();
            let (thread, cwd) = (ThreadId::fresh(), place.repository.join("sub"));
            let made = crash_at(step, || place.worktrees.create(thread, &cwd, "new one"));
            if let Some(made) = made {
                assert!(made.unwrap().join("new.txt").is_file());
                return false;
            }
            place.sweep_later(is_known);
            assert_eq!(place.remains(), Vec::<String>::new(), "step {step}");
            let at = place.worktrees.create(thread, &cwd, "new one").unwrap();
            assert_eq!(git(&at, &["branch", "--show-current"]), "codex/new-one", "step {step}");
            true
        });
        assert!(steps > 20, "{steps}");
    }
}

#[test]
fn killed_while_a_worktree_is_removed() {
    for (is_changed, fate) in
        [(true, RecordFate::Kept), (false, RecordFate::Kept), (true, RecordFate::Removed), (false, RecordFate::Removed)]
    {
        let steps = at_every_step(|step| {
            let mut place = Place::changed();
            let thread = ThreadId::fresh();
            let at = place.worktrees.create(thread, &place.repository, "x").unwrap();
            // A commit that is taken back is no change.
            git(&at, &["commit", "-q", "--allow-empty", "-m", "nothing"]);
            if is_changed {
                fs::write(at.join("sub/a.txt"), "mine\n").unwrap();
            }
            if crash_at(step, || place.worktrees.remove(thread, fate).unwrap()).is_some() {
                return false;
            }
            place.sweep_later(fate == RecordFate::Kept);
            let left: &[&str] = if is_changed { &["codex/x", "refs/heads/codex"] } else { &[] };
            assert_eq!(place.remains(), left, "step {step}");
            if is_changed {
                assert_eq!(git(&place.repository, &["show", "codex/x:sub/a.txt"]), "mine", "step {step}");
            }
            if fate == RecordFate::Kept {
                let again = place.worktrees.reopen(thread, &place.repository).unwrap().unwrap();
                let text = fs::read_to_string(again.join("sub/a.txt")).unwrap();
                assert_eq!(text, if is_changed { "mine\n" } else { "one\n" }, "step {step}");
            }
            true
        });
        assert!(steps > 5, "{steps}");
    }
}

/// Its branch has the only copy of the changes.
#[test]
fn killed_while_a_worktree_is_made_again() {
    at_every_step(|step| {
        let mut place = Place::changed();
        let thread = ThreadId::fresh();
        let at = place.worktrees.create(thread, &place.repository, "x").unwrap();
        fs::write(at.join("sub/a.txt"), "mine\n").unwrap();
        place.worktrees.remove(thread, RecordFate::Kept).unwrap();
        if crash_at(step, || place.worktrees.reopen(thread, &place.repository).unwrap()).is_some() {
            return false;
        }
        place.sweep_later(true);
        assert_eq!(place.remains(), ["codex/x", "refs/heads/codex"], "step {step}");
        let again = place.worktrees.reopen(thread, &place.repository).unwrap().unwrap();
        assert_eq!(fs::read_to_string(again.join("sub/a.txt")).unwrap(), "mine\n", "step {step}");
        true
    });
}

/// A sweep may be killed too, whether it finishes the removal of a worktree or takes back one that was half made.
#[test]
fn killed_while_it_sweeps() {
    let half_made = at_every_step(|step| {
        let place = Place::changed();
        crash_at(step, || place.worktrees.create(ThreadId::fresh(), &place.repository, "x")).is_none()
    }) - 1;
    for is_whole in [true, false] {
        at_every_step(|step| {
            let mut place = Place::changed();
            let create = || place.worktrees.create(ThreadId::fresh(), &place.repository, "x");
            match if is_whole { Some(create()) } else { crash_at(half_made, create) } {
                Some(at) => fs::write(at.unwrap().join("sub/a.txt"), "mine\n").unwrap(),
                None => assert!(!is_whole),
            }
            place.kill();
            if crash_at(step, || place.worktrees.sweep(&|_| true)).is_some() {
                return false;
            }
            place.sweep_later(true);
            let left: &[&str] = if is_whole { &["codex/x", "refs/heads/codex"] } else { &[] };
            assert_eq!(place.remains(), left, "step {step}");
            true
        });
    }
}

/// The worktree that another one was made from may go first.
#[test]
fn a_worktree_of_a_worktree_that_is_gone() {
    let mut place = Place::changed();
    let (parent, child) = (ThreadId::fresh(), ThreadId::fresh());
    let at = place.worktrees.create(parent, &place.repository, "parent").unwrap();
    let below = place.worktrees.create(child, &at, "child").unwrap();
    fs::write(below.join("sub/a.txt"), "of the child\n").unwrap();
    place.worktrees.remove(parent, RecordFate::Kept).unwrap();
    place.sweep_later(true);
    assert_eq!(place.remains(), ["codex/child", "refs/heads/codex"]);
    assert_eq!(git(&place.repository, &["show", "codex/child:sub/a.txt"]), "of the child");
}

#[tokio::test]
async fn the_end_of_a_tree_waits_for_the_sweep() {
    let mut place = Place::changed();
    place.worktrees.create(ThreadId::fresh(), &place.repository, "x").unwrap();
    place.kill();
    let worktrees = Arc::new(place.again());
    worktrees.start_sweep(|_| false);
    worktrees.swept().await;
    assert_eq!(place.remains(), Vec::<String>::new());
    worktrees.swept().await;
}
