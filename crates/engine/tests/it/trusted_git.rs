//! The git program that this program runs, and its folder.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use codex_config::{Env, Home};
use codex_tools::trusted_git::{GitUnavailable, TrustedGit, writable_folders};
use tempfile::TempDir;

/// A checkout with an unpushed change, and a home.
struct Fixture {
    temp: TempDir,
    checkout: PathBuf,
    home: Home,
}

impl Fixture {
    fn new() -> Self {
        let temp = tempfile::tempdir().expect("a folder");
        let root = temp.path().canonicalize().expect("it is there");
        let (checkout, home) = (root.join("checkout"), Home::at(root.join("home")));
        fs::create_dir(&checkout).expect("a folder");
        fs::write(checkout.join("a.txt"), "one\n").expect("a file");
        git(&checkout, &["init", "-q"]);
        git(&checkout, &["add", "-A"]);
        git(&checkout, &["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "-m", "first"]);
        git(&checkout, &["update-ref", "refs/remotes/origin/main", "HEAD"]);
        fs::write(checkout.join("a.txt"), "two\n").expect("a file");
        Self { temp, checkout, home }
    }

    /// Replaces git by a program that leaves a trace.
    fn plant(&self, folder: &Path) -> PathBuf {
        fs::create_dir_all(folder).expect("a folder");
        let (program, trace) = (folder.join("git"), self.temp.path().join("trace"));
        let script = format!("#!/bin/sh\ntouch '{}'\n", trace.display());
        fs::write(&program, script).expect("a file");
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("it is ours");
        trace
    }

    fn find(&self, path: &str) -> Result<TrustedGit, GitUnavailable> {
        let env = Env::from_iter([("PATH", path)]);
        TrustedGit::find(&self.home, &env, &writable_folders(&self.checkout, None))
    }
}

fn git(folder: &Path, arguments: &[&str]) {
    let status = Command::new("git").args(arguments).current_dir(folder).status();
    assert!(status.is_ok_and(|status| status.success()), "{arguments:?}");
}

/// The attack was a filter that a sandboxed command wrote into the configuration of this program's git folder.
#[test]
fn git_works_below_the_home_and_leaves_nothing() {
    let fixture = Fixture::new();
    let git = fixture.find("/usr/local/bin:/usr/bin:/bin").expect("git is there");
    let folder = fs::read_dir(fixture.home.path().join("tmp")).expect("it is there").next();
    let folder = folder.expect("there is a folder").expect("it can be read").path();
    assert_eq!(git.folder(), folder);
    assert_eq!(fs::metadata(&folder).expect("it is there").permissions().mode() & 0o777, 0o700);
    let diff = git.diff_to_remote(&fixture.checkout).expect("there is a diff").diff;
    assert!(diff.contains("-one\n+two\n"), "{diff}");
    drop(git);
    assert_eq!(fs::read_dir(fixture.home.path()).expect("it is there").count(), 0);
}

#[test]
fn no_program_of_a_workspace_is_run() {
    let fixture = Fixture::new();
    let bin = fixture.checkout.join(".venv/bin");
    let trace = fixture.plant(&bin);
    let git = fixture.find(&format!(".:{}:/usr/local/bin:/usr/bin:/bin", bin.display())).expect("git is there");
    let diff = git.diff_to_remote(&fixture.checkout).expect("there is a diff").diff;
    assert!(diff.contains("+two\n") && !trace.exists(), "{diff}");
    assert!(matches!(fixture.find(&format!(".:{}", bin.display())), Err(GitUnavailable::NotFound)));
}
