use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Command,
};

use tempfile::TempDir;

use super::*;

mod apply;
mod reach;
mod worktree;

/// A checkout with one pushed commit of `a.txt`; the path has no links.
struct Fixture {
    temp: TempDir,
    root: PathBuf,
}

impl Fixture {
    fn new() -> Self {
        let temp = TempDir::new().unwrap();
        let root = temp.path().canonicalize().unwrap().join("work");
        fs::create_dir(&root).unwrap();
        let fixture = Self { temp, root };
        fixture.git("init -q -b main");
        fixture.write("a.txt", "one\n");
        fixture.commit("first");
        let origin = fixture.temp.path().join("origin.git");
        git(fixture.temp.path(), "init -q -b main --bare origin.git");
        fixture.git(&format!("remote add origin {}", origin.display()));
        fixture.git("push -q origin main");
        fixture
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn git(&self, arguments: &str) -> String {
        git(&self.root, arguments)
    }

    fn commit(&self, message: &str) -> String {
        self.git("add -A");
        self.git(&format!("commit -q -m {message}"));
        self.git("rev-parse HEAD")
    }

    fn diff(&self) -> DiffToRemote {
        diff_of(&self.root).unwrap()
    }

    /// A program that leaves a trace, and the path of the trace.
    fn trap(&self) -> (String, PathBuf) {
        let (program, canary) = (self.temp.path().join("evil.sh"), self.temp.path().join("canary"));
        fs::write(&program, format!("#!/bin/sh\necho \"$0 $@\" >> {}\n", canary.display())).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        (program.display().to_string(), canary)
    }
}

/// The installed program, in a folder that is deleted afterwards.
fn runner() -> (TempDir, Runner) {
    let folder = TempDir::new().unwrap();
    let path = std::env::var_os("PATH").unwrap();
    let program = std::env::split_paths(&path).map(|folder| folder.join("git")).find(|program| program.is_file());
    let runner = Runner { program: program.unwrap(), path, folder: folder.path().to_owned(), excludes: None };
    (folder, runner)
}

fn diff_of(cwd: &Path) -> Result<DiffToRemote, GitError> {
    let (folder, runner) = runner();
    let found = git_diff_to_remote(cwd, &runner);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "something was left behind");
    found
}

/// Runs git as a user would, without this machine's configuration.
fn git(folder: &Path, arguments: &str) -> String {
    let mut command = Command::new("git");
    command.args(arguments.split(' ')).current_dir(folder);
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
    for who in ["AUTHOR", "COMMITTER"] {
        command.env(format!("GIT_{who}_NAME"), "a").env(format!("GIT_{who}_EMAIL"), "a@b");
    }
    let output = command.output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "git {arguments}: {error}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// The lines of a diff without hashes.
fn lines(diff: &str) -> Vec<&str> {
    diff.lines().filter(|line| !line.starts_with("index ")).collect()
}

/// The case `v1-git-diff` as recorded with 0.77.
#[test]
fn changes_and_new_files_are_shown_as_recorded() {
    let fixture = Fixture::new();
    let sha = fixture.git("rev-parse HEAD");
    fixture.write("a.txt", "two\n");
    fixture.write("b.txt", "new\n");
    let answer = fixture.diff();
    assert_eq!(answer.sha, sha);
    assert_eq!(
        lines(&answer.diff),
        [
            "diff --git a/a.txt b/a.txt",
            "--- a/a.txt",
            "+++ b/a.txt",
            "@@ -1 +1 @@",
            "-one",
            "+two",
            "diff --git a/b.txt b/b.txt",
            "new file mode 100644",
            "--- /dev/null",
            "+++ b/b.txt",
            "@@ -0,0 +1 @@",
            "+new",
        ]
    );
    assert!(matches!(diff_of(fixture.temp.path()), Err(GitError::NoRepository(_))));
}

/// Only the age of the index shows that such a file may have changed.
#[test]
fn a_change_in_the_moment_of_the_commit_is_seen() {
    let fixture = Fixture::new();
    fixture.git("config core.trustctime false");
    let moment = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_700_000_000);
    let set_age = |name: &str| {
        let file = fs::File::options().write(true).open(fixture.root.join(name)).unwrap();
        file.set_modified(moment).unwrap();
    };
    set_age("a.txt");
    fixture.git("update-index --refresh");
    fixture.write("a.txt", "two\n");
    set_age("a.txt");
    set_age(".git/index");
    assert!(fixture.diff().diff.contains("+two"));
}

#[test]
fn commits_that_no_remote_has_are_part_of_the_diff() {
    let fixture = Fixture::new();
    let shared = fixture.git("rev-parse HEAD");
    fixture.write("b.txt", "b\n");
    fixture.commit("second");
    fixture.write("c.txt", "c\n");
    fixture.commit("third");
    let answer = fixture.diff();
    assert_eq!(answer.sha, shared);
    assert!(answer.diff.contains("+b\n") && answer.diff.contains("+c\n"), "{}", answer.diff);

    fixture.git("push -q origin main:side");
    let newest = fixture.git("rev-parse HEAD");
    assert_eq!(fixture.diff(), DiffToRemote { sha: newest, diff: String::new() });
    fixture.git("pack-refs --all");
    assert_eq!(fixture.diff().diff, "");
}

#[test]
fn a_remote_whose_commits_are_gone_is_passed_over() {
    let fixture = Fixture::new();
    let shared = fixture.git("rev-parse HEAD");
    fixture.write("b.txt", "b\n");
    fixture.commit("second");
    fixture.write(".git/refs/remotes/origin/lost", &"1".repeat(40));
    assert_eq!(fixture.diff().sha, shared);
    fs::remove_file(fixture.root.join(".git/refs/remotes/origin/main")).unwrap();
    assert!(matches!(diff_of(&fixture.root), Err(GitError::NoRemote(_))));
}

#[test]
fn a_merge_of_what_the_remote_has_is_no_change() {
    let fixture = Fixture::new();
    fixture.git("checkout -q -b side");
    fixture.write("side.txt", "s\n");
    fixture.commit("side");
    fixture.git("push -q origin side");
    fixture.git("checkout -q main");
    let shared = fixture.git("rev-parse HEAD");
    fixture.write("mine.txt", "m\n");
    fixture.commit("mine");
    fixture.git("merge -q -m merge side");
    assert_eq!(fixture.diff().sha, shared);
}

#[test]
fn ignored_files_and_repositories_within_are_left_out() {
    let fixture = Fixture::new();
    fixture.write(".gitignore", "*.log\n");
    fixture.write("x.log", "x\n");
    fixture.write(".git/info/exclude", "*.tmp\n");
    fixture.write("x.tmp", "x\n");
    fixture.write("inner/file", "x\n");
    git(&fixture.root.join("inner"), "init -q");
    fixture.write("with space \u{e9}.txt", "x\n");
    let diff = fixture.diff().diff;
    let shown: Vec<_> = diff.lines().filter(|line| line.starts_with("+++")).collect();
    assert_eq!(shown, ["+++ b/.gitignore", "+++ \"b/with space \\303\\251.txt\"\t"]);
}

#[test]
fn nothing_of_the_repository_is_changed() {
    let fixture = Fixture::new();
    fixture.write("b.txt", "new\n");
    // The same content with another time: something that `git status` would record.
    fixture.write("a.txt", "one\n");
    let before = fs::read(fixture.root.join(".git/index")).unwrap();
    fixture.diff();
    assert_eq!(fs::read(fixture.root.join(".git/index")).unwrap(), before);
    assert!(!fixture.root.join(".git/index.lock").exists());
    assert_eq!(fixture.git("status --porcelain"), "?? b.txt");
}

#[test]
fn facts_are_read_without_running_git() {
    let fixture = Fixture::new();
    let commit = fixture.git("rev-parse HEAD");
    let url = fixture.temp.path().join("origin.git").display().to_string();
    let expected = GitInfo {
        commit_hash: Some(commit),
        branch: Some("main".into()),
        repository_url: Some(url),
        ..GitInfo::default()
    };
    assert_eq!(git_info(&fixture.root), Some(expected.clone()));
    fixture.write("sub/folder/x", "");
    assert_eq!(git_info(&fixture.root.join("sub/folder")), Some(expected.clone()));
    fixture.git("pack-refs --all");
    assert_eq!(git_info(&fixture.root), Some(expected.clone()));
    fixture.git("checkout -q --detach");
    assert_eq!(git_info(&fixture.root), Some(GitInfo { branch: None, ..expected }));
    assert_eq!(git_info(fixture.temp.path()), None);
    assert_eq!(git_info(Path::new("/nowhere")), None);
}

#[test]
fn a_repository_without_commits_or_remotes_has_facts_but_no_diff() {
    let temp = TempDir::new().unwrap();
    git(temp.path(), "init -q -b main");
    let info = git_info(temp.path()).unwrap();
    assert_eq!((info.commit_hash, info.branch.as_deref(), info.repository_url), (None, Some("main"), None));
    assert!(matches!(diff_of(temp.path()), Err(GitError::NoCommits(_))));
    fs::write(temp.path().join("a"), "").unwrap();
    git(temp.path(), "add a");
    git(temp.path(), "commit -q -m first");
    assert!(matches!(diff_of(temp.path()), Err(GitError::NoRemote(_))));
}

#[test]
fn worktrees_submodules_and_shallow_clones_are_repositories() {
    let fixture = Fixture::new();
    fixture.git("worktree add -q ../linked -b side");
    let linked = fixture.root.with_file_name("linked");
    assert_eq!(git_info(&linked).unwrap().branch.as_deref(), Some("side"));
    fs::write(linked.join("a.txt"), "linked\n").unwrap();
    assert!(diff_of(&linked).unwrap().diff.contains("+linked"));

    fixture.git("-c protocol.file.allow=always submodule add -q ../origin.git sub");
    assert_eq!(git_info(&fixture.root.join("sub")).unwrap().branch.as_deref(), Some("main"));
    fs::write(fixture.root.join("sub/a.txt"), "deep\n").unwrap();
    assert!(diff_of(&fixture.root.join("sub")).unwrap().diff.contains("+deep"));

    fixture.write("b.txt", "b\n");
    fixture.commit("second");
    fixture.git("push -q origin main");
    let url = format!("file://{}", fixture.temp.path().join("origin.git").display());
    git(fixture.temp.path(), &format!("clone -q --depth 1 {url} shallow"));
    let shallow = fixture.temp.path().join("shallow");
    fs::write(shallow.join("a.txt"), "flat\n").unwrap();
    assert!(diff_of(&shallow).unwrap().diff.contains("+flat"));
}

#[test]
fn a_repository_of_the_other_hash_works() {
    let temp = TempDir::new().unwrap();
    git(temp.path(), "init -q --object-format=sha256 -b main");
    fs::write(temp.path().join("a"), "one\n").unwrap();
    git(temp.path(), "add a");
    git(temp.path(), "commit -q -m first");
    git(temp.path(), "update-ref refs/remotes/origin/main HEAD");
    fs::write(temp.path().join("a"), "two\n").unwrap();
    let answer = diff_of(temp.path()).unwrap();
    assert_eq!(answer.sha.len(), 64);
    assert!(answer.diff.contains("+two"), "{}", answer.diff);
}

/// CVE-2026-19592 and CVE-2026-19593: everything in a repository that names a program, and none of it runs.
#[test]
fn a_hostile_repository_runs_nothing() {
    let fixture = Fixture::new();
    let (program, canary) = fixture.trap();
    let included = fixture.temp.path().join("included");
    fs::write(&included, format!("[core]\n\tfsmonitor = {program}\n")).unwrap();

    fixture.write(".gitattributes", "* filter=evil diff=evil merge=evil\n");
    fixture.write("sub/.gitattributes", "* filter=slow diff=evil\n");
    fixture.write(".git/info/attributes", "* filter=evil diff=evil\n");
    fixture.git("add .gitattributes");
    for key in [
        "core.fsmonitor",
        "core.sshCommand",
        "core.pager",
        "core.editor",
        "core.gitProxy",
        "core.alternateRefsCommand",
        "pager.diff",
        "pager.rev-list",
        "diff.external",
        "diff.evil.command",
        "diff.evil.textconv",
        "filter.evil.clean",
        "filter.evil.smudge",
        "filter.slow.process",
        "merge.evil.driver",
        "credential.helper",
        "gpg.program",
        "gpg.ssh.program",
        "interactive.diffFilter",
        "uploadpack.packObjectsHook",
        "remote.origin.uploadpack",
        "remote.origin.vcs",
    ] {
        fixture.git(&format!("config {key} {program}"));
    }
    for alias in ["diff", "rev-list", "ls-files", "add"] {
        fixture.git(&format!("config alias.{alias} !{program}"));
    }
    for (key, value) in [
        ("filter.evil.required", "true"),
        ("filter.slow.required", "true"),
        ("attr.tree", "HEAD"),
        ("core.hooksPath", "evilhooks"),
        ("extensions.partialClone", "origin"),
        ("remote.origin.promisor", "true"),
        ("core.worktree", "/"),
        ("core.attributesFile", ".gitattributes"),
        ("include.path", &included.display().to_string()),
    ] {
        fixture.git(&format!("config {key} {value}"));
    }
    for hook in ["post-index-change", "reference-transaction", "fsmonitor-watchman"] {
        for folder in ["evilhooks", ".git/hooks"] {
            fs::create_dir_all(fixture.root.join(folder)).unwrap();
            fs::copy(&program, fixture.root.join(folder).join(hook)).unwrap();
        }
    }
    fixture.write("a.txt", "two\n");
    fixture.write("sub/b.txt", "new\n");
    // Git as a user runs it does fall for this; those runs do not count.
    let tree = format!("--work-tree={}", fixture.root.display());
    let _ = Command::new("git").args([&tree, "diff"]).current_dir(&fixture.root).output();
    fs::remove_file(&canary).expect("the trap works");

    assert!(git_info(&fixture.root).unwrap().commit_hash.is_some());
    let diff = fixture.diff().diff;
    assert!(diff.contains("+two") && diff.contains("+new"), "{diff}");
    let ((_folder, runner), here) = (runner(), Checkout::find(&fixture.root).unwrap());
    let commit = git_info(&fixture.root).unwrap().commit_hash.unwrap();
    assert_eq!(root_commits(&here, &commit, &runner).unwrap(), [commit.as_str()]);
    assert_eq!(root_commits(&here, "--all", &runner).unwrap(), [""; 0], "only a hash is passed on");
    assert_eq!(fs::read_to_string(&canary).unwrap_or_default(), "");
}

/// A submodule has its own configuration, which a check for its changes would use.
#[test]
fn a_hostile_submodule_runs_nothing() {
    let fixture = Fixture::new();
    fixture.git("-c protocol.file.allow=always submodule add -q ../origin.git sub");
    fixture.commit("sub");
    let (program, canary) = fixture.trap();
    git(&fixture.root.join("sub"), &format!("config core.fsmonitor {program}"));
    fixture.write("sub/a.txt", "changed\n");
    fixture.git("diff");
    fs::remove_file(&canary).expect("the trap works");
    fixture.diff();
    assert!(!canary.exists());
}

/// A folder that git would recognise as a bare repository, with its own configuration.
#[test]
fn a_folder_that_looks_like_a_bare_repository_is_none() {
    let fixture = Fixture::new();
    let head = fixture.git("rev-parse HEAD");
    for folder in ["bare/objects", "bare/refs"] {
        fs::create_dir_all(fixture.root.join(folder)).unwrap();
    }
    fixture.write("bare/HEAD", "ref: refs/heads/evil\n");
    fixture.write("bare/config", "[core]\n\tbare = true\n[remote \"origin\"]\n\turl = evil\n");
    let info = git_info(&fixture.root.join("bare/refs")).unwrap();
    assert_eq!((info.commit_hash, info.branch.as_deref()), (Some(head), Some("main")));
    let lone = TempDir::new().unwrap();
    git(lone.path(), "init -q --bare");
    assert_eq!(git_info(lone.path()), None);
}

#[test]
fn a_forged_git_file_leads_nowhere() {
    let victim = Fixture::new();
    victim.git("worktree add -q ../linked -b side");
    let targets =
        [victim.root.join(".git"), victim.root.join(".git/worktrees/linked"), victim.temp.path().join("origin.git")];
    for target in targets {
        let forged = TempDir::new().unwrap();
        fs::write(forged.path().join(".git"), format!("gitdir: {}\n", target.display())).unwrap();
        assert_eq!(git_info(forged.path()), None, "{}", target.display());
        assert!(diff_of(forged.path()).is_err());
    }
    let forged = TempDir::new().unwrap();
    std::os::unix::fs::symlink(victim.root.join(".git"), forged.path().join(".git")).unwrap();
    assert_eq!(git_info(forged.path()), None);
}

#[test]
fn a_ref_leads_to_no_file_outside() {
    let fixture = Fixture::new();
    let outside = fixture.temp.path().join("id");
    fs::write(&outside, "0".repeat(40)).unwrap();
    for name in ["refs/../../../id".to_owned(), outside.display().to_string(), "refs/heads/../../../../id".to_owned()] {
        fixture.write(".git/HEAD", &format!("ref: {name}\n"));
        assert_eq!(refs::head(&Repository::find(&fixture.root).unwrap()), refs::Head::default(), "{name}");
    }
    fixture.write(".git/HEAD", "ref: refs/heads/a\n");
    fixture.write(".git/refs/heads/a", "ref: refs/heads/a\n");
    assert_eq!(git_info(&fixture.root).unwrap().commit_hash, None);
}

#[test]
fn a_pipe_in_place_of_a_file_does_not_block() {
    let fixture = Fixture::new();
    for name in [".git/refs/heads/main", ".git/packed-refs", ".git/config"] {
        let _ = fs::remove_file(fixture.root.join(name));
        assert!(Command::new("mkfifo").arg(fixture.root.join(name)).status().unwrap().success());
    }
    let info = git_info(&fixture.root).unwrap();
    assert_eq!((info.commit_hash, info.branch.as_deref()), (None, Some("main")));
    assert!(matches!(diff_of(&fixture.root), Err(GitError::NoCommits(_))));
}

#[test]
fn a_late_answer_is_an_error() {
    let fixture = Fixture::new();
    let error = changes::diff_to_remote(&fixture.root, &runner().1, Duration::ZERO).unwrap_err();
    assert_eq!(std::error::Error::source(&error).unwrap().to_string(), "git took too long");
}

#[test]
fn addresses_are_shown_without_tokens() {
    for (url, shown) in [
        ("https://user:token@h.io/a/b.git", "https://h.io/a/b.git"),
        ("https://token@h.io/a@b.git", "https://h.io/a@b.git"),
        ("https://h.io/a@b.git", "https://h.io/a@b.git"),
        ("http://a@h", "http://h"),
        ("git@github.com:a/b.git", "git@github.com:a/b.git"),
        ("ssh://git@h/a", "ssh://git@h/a"),
    ] {
        assert_eq!(without_credentials(url), shown);
    }
}
