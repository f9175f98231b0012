//! Checks that the folder of a thread is on this machine, if its store is shared with others.
//!
//! A thread of another machine can be read here in any case. To continue it, its commands need the files that it is
//! about: the same folder, with the same repository.

use std::path::Path;

use codex_config::{Env, Home};
use codex_tools::trusted_git::{Checkout, TrustedGit, writable_folders};
use codex_wire::ids::ThreadId;
use codex_wire::rollout::GitInfo;
use codex_workspace::git::git_info;

use crate::open_error::OpenError;
use crate::setup::Setup;

/// Fails if a thread works in a folder that this machine does not have.
pub(crate) fn check(setup: &Setup, thread: ThreadId) -> Result<(), OpenError> {
    let Some(server) = setup.store.last_server(thread)? else { return Ok(()) };
    let meta = setup.store.meta(thread)?;
    let problem = if meta.cwd.is_dir() {
        meta.git.as_ref().and_then(|git| difference(git, &meta.cwd, &setup.home))
    } else {
        Some("does not exist here")
    };
    problem.map_or(Ok(()), |problem| Err(OpenError::Elsewhere { thread, cwd: meta.cwd, problem, server }))
}

/// The repository of a new thread. Another machine recognizes it by its root commits.
pub(crate) fn repository(setup: &Setup) -> Option<GitInfo> {
    let git = git_info(&setup.cwd)?;
    let root_commits = if setup.store.is_shared() { roots(&git, &setup.cwd, &setup.home) } else { None };
    Some(GitInfo { root_commits: root_commits.unwrap_or_default(), ..git })
}

fn roots(git: &GitInfo, cwd: &Path, home: &Home) -> Option<Vec<String>> {
    Some(trusted_git(cwd, home)?.root_commits(&Checkout::find(cwd)?, git.commit_hash.as_deref()?))
}

fn trusted_git(cwd: &Path, home: &Home) -> Option<TrustedGit> {
    TrustedGit::find(home, &Env::process(), &writable_folders(cwd, None)).ok()
}

/// The reason why the repository of a folder is not the one that a thread has started in.
fn difference(before: &GitInfo, cwd: &Path, home: &Home) -> Option<&'static str> {
    let (Some(here), Some(now)) = (Checkout::find(cwd), git_info(cwd)) else {
        return Some("is no git repository here");
    };
    let commit = before.commit_hash.as_ref().filter(|commit| now.commit_hash.as_ref() != Some(commit))?;
    // A shallow clone does not have the root, and a long history was not walked. The origin has to do then.
    let has_roots = !before.root_commits.is_empty() && !here.is_shallow();
    if !has_roots && before.repository_url.as_deref().is_some_and(|origin| here.has_origin(origin)) {
        return None;
    }
    // Without git nobody can tell.
    let git = trusted_git(cwd, home)?;
    let is_same = before.root_commits.iter().chain([commit]).any(|commit| git.has_commit(&here, commit));
    (!is_same).then_some("is another git repository here")
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::process::Command;

    use super::*;

    /// Repositories in a folder, and a home.
    struct World {
        temp: tempfile::TempDir,
        home: Home,
    }

    impl World {
        fn new() -> Self {
            let temp = tempfile::tempdir().expect("a folder");
            let home = Home::at(temp.path().join("home"));
            home.ensure().expect("a home");
            Self { temp, home }
        }

        fn path(&self, name: &str) -> PathBuf {
            self.temp.path().join(name)
        }

        /// Runs git in a folder as its user does.
        fn git(&self, folder: &str, words: &[&str]) {
            std::fs::create_dir_all(self.path(folder)).expect("a folder can be made");
            let mut command = Command::new("git");
            command.args(words).current_dir(self.path(folder));
            command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
            for who in ["AUTHOR", "COMMITTER"] {
                command.env(format!("GIT_{who}_NAME"), "a").env(format!("GIT_{who}_EMAIL"), "a@b");
            }
            let output = command.output().expect("git runs");
            assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
        }

        /// A repository with two commits.
        fn repository(&self, name: &str) {
            self.git(name, &["init", "-q", "-b", "main"]);
            for message in ["first", "second"] {
                self.git(name, &["commit", "-q", "--allow-empty", "-m", &format!("{message} of {name}")]);
            }
        }

        /// The record of a thread that starts in a folder.
        fn recorded(&self, name: &str) -> GitInfo {
            let git = git_info(&self.path(name)).expect("it is a repository");
            let root_commits = roots(&git, &self.path(name), &self.home).expect("git runs");
            GitInfo { root_commits, ..git }
        }

        fn difference(&self, before: &GitInfo, name: &str) -> Option<&'static str> {
            difference(before, &self.path(name), &self.home)
        }
    }

    const OTHER: Option<&str> = Some("is another git repository here");

    #[test]
    fn a_clone_that_is_behind_or_ahead_is_the_same_repository() {
        let world = World::new();
        world.repository("a");
        world.git(".", &["clone", "-q", "a", "clone"]);
        world.git("a", &["commit", "-q", "--allow-empty", "-m", "third"]);
        let before = world.recorded("a");
        assert_eq!(before.root_commits.len(), 1);
        assert_eq!(world.difference(&before, "clone"), None, "it does not have the commit of the thread yet");
        assert_eq!(world.difference(&before, "a"), None);
        world.repository("other");
        assert_eq!(world.difference(&before, "other"), OTHER);
        world.git("plain", &["--version"]);
        assert_eq!(world.difference(&before, "plain"), Some("is no git repository here"));
    }

    #[test]
    fn another_repository_at_the_same_address_is_another_one() {
        let world = World::new();
        let origin = ["remote", "add", "origin", "https://example.org/o/r.git"];
        for name in ["a", "b"] {
            world.repository(name);
            world.git(name, &origin);
        }
        let before = world.recorded("a");
        assert_eq!(world.difference(&before, "b"), OTHER);
        // A release that did not record roots leaves only the address.
        let unknown = GitInfo { root_commits: Vec::new(), ..before };
        assert_eq!(world.difference(&unknown, "b"), None);
    }

    #[test]
    fn one_root_of_several_is_enough() {
        let world = World::new();
        world.repository("a");
        world.repository("b");
        world.git("a", &["fetch", "-q", "../b", "main"]);
        world.git("a", &["merge", "-q", "--allow-unrelated-histories", "-m", "joined", "FETCH_HEAD"]);
        let before = world.recorded("a");
        assert_eq!(before.root_commits.len(), 2);
        assert_eq!(world.difference(&before, "b"), None);
    }

    #[test]
    fn a_shallow_clone_is_recognized_by_its_origin_or_its_commit() {
        let world = World::new();
        world.repository("a");
        let url = format!("file://{}", world.path("a").display());
        world.git(".", &["clone", "-q", "--depth", "1", &url, "shallow"]);
        let before = world.recorded("a");
        assert_eq!(world.difference(&before, "shallow"), None, "it has the commit");
        world.git("a", &["commit", "-q", "--allow-empty", "-m", "third"]);
        let before = GitInfo { repository_url: Some(url), ..world.recorded("a") };
        assert_eq!(world.difference(&before, "shallow"), None, "it has the origin");
        let before = GitInfo { repository_url: None, ..before };
        assert_eq!(world.difference(&before, "shallow"), OTHER, "nothing speaks for it");
        assert_eq!(world.recorded("shallow").root_commits, [""; 0], "its oldest commit is not the root");
    }
}
