//! Worktrees of our own: what they contain, what runs when they are made, and what is left of them.

use super::*;

/// A worktree of the fixture below the folder of the runner.
struct Made {
    fixture: Fixture,
    _folder: TempDir,
    runner: Runner,
    place: TempDir,
}

impl Made {
    fn new() -> Self {
        let (folder, runner) = runner();
        Self { fixture: Fixture::new(), _folder: folder, runner, place: TempDir::new().unwrap() }
    }

    fn create(&self, name: &str) -> Result<Worktree, WorktreeError> {
        let folder = self.place.path().canonicalize().unwrap().join(name);
        create(NewWorktree { from: &self.fixture.root, folder: &folder, branch: name }, name, &self.runner)
    }

    fn branches(&self) -> Vec<String> {
        self.fixture.git("branch --format %(refname:short)").lines().map(str::to_owned).collect()
    }
}

fn create(new: NewWorktree<'_>, name: &str, runner: &Runner) -> Result<Worktree, WorktreeError> {
    let mut worktree = Worktree::plan(new, runner)?;
    assert!(worktree.create_branch()?);
    if let Err(error) = worktree.restore(name, runner) {
        worktree.discard(name)?;
        return Err(error);
    }
    Ok(worktree)
}

fn write(worktree: &Worktree, name: &str, text: &str) {
    fs::write(worktree.folder.join(name), text).unwrap();
}

fn text(path: PathBuf) -> String {
    fs::read_to_string(path).unwrap()
}

#[test]
fn a_worktree_begins_with_the_files_as_they_are() {
    let made = Made::new();
    made.fixture.write("staged.txt", "staged\n");
    made.fixture.git("add staged.txt");
    made.fixture.write("a.txt", "dirty\n");
    made.fixture.write("new.txt", "new\n");
    made.fixture.write(".gitignore", "ignored\n");
    made.fixture.write("ignored", "secret\n");
    let before = made.fixture.git("status --porcelain");
    let head = made.fixture.git("rev-parse HEAD");
    let worktree = made.create("one").unwrap();
    assert_eq!(made.fixture.git("status --porcelain"), before, "nothing changes in the checkout");
    assert_eq!(text(worktree.folder.join("a.txt")), "dirty\n");
    assert_eq!(text(worktree.folder.join("staged.txt")), "staged\n");
    assert_eq!(text(worktree.folder.join("new.txt")), "new\n");
    assert!(!worktree.folder.join("ignored").exists());
    assert_eq!(git(&worktree.folder, "status --porcelain"), "", "the index fits the files");
    assert_eq!(git(&worktree.folder, "branch --show-current"), "codex/one");
    assert_eq!(git(&worktree.folder, "rev-parse HEAD^"), head);
    assert_eq!(made.fixture.git("fsck --strict --no-dangling"), "");
    let clean = Made::new();
    let worktree = clean.create("one").unwrap();
    assert_eq!(worktree.base, clean.fixture.git("rev-parse HEAD"), "without changes no commit is made");
}

#[test]
fn all_changes_are_shown_merged_and_applied_once() {
    let made = Made::new();
    made.fixture.write("b.txt", "b\n");
    let mut worktree = made.create("one").unwrap();
    write(&worktree, "a.txt", "one\nmore\n");
    git(&worktree.folder, "add -A");
    git(&worktree.folder, "commit -q -m mine");
    write(&worktree, "new.bin", "\0\u{1}binary");
    fs::remove_file(worktree.folder.join("b.txt")).unwrap();
    let changes = worktree.changes(&made.runner).unwrap();
    assert_eq!(changes.files, ["1 0 a.txt", "0 1 b.txt", "- - new.bin"]);
    let Merge::Clean(files) = worktree.merge(&made.fixture.root, &made.runner).unwrap() else { panic!("it applies") };
    let at = |name: &str| made.fixture.root.join(name);
    let content = |text: &str| Some((text.as_bytes().to_vec(), false));
    assert_eq!(
        files,
        [
            MergedFile { path: at("a.txt"), content: content("one\nmore\n") },
            MergedFile { path: at("b.txt"), content: None },
            MergedFile { path: at("new.bin"), content: content("\0\u{1}binary") },
        ]
    );
    assert_eq!(text(at("a.txt")), "one\n", "nothing is written");
    worktree.settle(&made.runner).unwrap();
    assert_eq!(worktree.changes(&made.runner).unwrap(), WorktreeChanges::default());
    assert_eq!(git(&worktree.folder, "log --format=%s -2"), "Changes of the agent\nmine");
}

#[test]
fn a_change_of_the_same_line_is_a_conflict() {
    let made = Made::new();
    let worktree = made.create("one").unwrap();
    write(&worktree, "a.txt", "theirs\n");
    made.fixture.write("a.txt", "ours\n");
    let Merge::Conflict(why) = worktree.merge(&made.fixture.root, &made.runner).unwrap() else {
        panic!("it conflicts")
    };
    assert!(why.contains("a.txt"), "{why}");
    fs::remove_file(worktree.folder.join("a.txt")).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", worktree.folder.join("link")).unwrap();
    made.fixture.write("a.txt", "one\n");
    let Merge::Conflict(why) = worktree.merge(&made.fixture.root, &made.runner).unwrap() else { panic!("a link") };
    assert!(why.contains("link is a link"), "{why}");
}

#[test]
fn a_worktree_goes_and_its_changes_stay_on_the_branch() {
    let made = Made::new();
    let (one, two) = (made.create("one").unwrap(), made.create("two").unwrap());
    write(&one, "a.txt", "committed\n");
    git(&one.folder, "commit -q -a -m mine");
    write(&one, "new.txt", "not committed\n");
    git(&one.folder, "pack-refs --all");
    assert_eq!(one.remove("one", &made.runner).unwrap(), Left::Branch("codex/one".to_owned()));
    assert_eq!(two.remove("two", &made.runner).unwrap(), Left::Nothing);
    assert!(!one.folder.exists() && !two.folder.exists());
    assert!(!made.fixture.root.join(".git/worktrees").exists());
    assert_eq!(made.branches(), ["codex/one", "main"], "a packed branch is deleted too");
    assert_eq!(made.fixture.git("show codex/one:new.txt"), "not committed");
    assert_eq!(one.remove("one", &made.runner).unwrap(), Left::Branch("codex/one".to_owned()), "twice is once");
    assert!(one.restore("one", &made.runner).unwrap());
    assert_eq!(text(one.folder.join("new.txt")), "not committed\n");
    assert_eq!(one.changes(&made.runner).unwrap().files, ["1 1 a.txt", "1 0 new.txt"]);
    one.discard("one").unwrap();
    assert_eq!(made.branches(), ["main"]);
    assert!(!one.restore("one", &made.runner).unwrap(), "the branch is gone");
    assert_eq!(made.fixture.git("fsck --strict --no-dangling"), "");
}

#[test]
fn commits_on_another_branch_are_not_lost() {
    let made = Made::new();
    let one = made.create("one").unwrap();
    write(&one, "a.txt", "first\n");
    git(&one.folder, "commit -q -a -m first");
    let first = git(&one.folder, "rev-parse HEAD");
    git(&one.folder, "checkout -q --detach HEAD^");
    write(&one, "b.txt", "second\n");
    git(&one.folder, "add b.txt");
    git(&one.folder, "commit -q -m second");
    let second = git(&one.folder, "rev-parse HEAD");
    one.remove("one", &made.runner).unwrap();
    for commit in [first, second] {
        made.fixture.git(&format!("merge-base --is-ancestor {commit} codex/one"));
    }
}

#[test]
fn a_branch_that_is_taken_gets_a_number() {
    let made = Made::new();
    made.fixture.git("branch codex/one");
    made.fixture.git("branch codex/one-2");
    made.fixture.git("pack-refs --all");
    assert_eq!(made.create("one").unwrap().branch, "codex/one-3");
    made.fixture.git("branch -q -m main codex-main");
    let other = Made::new();
    other.fixture.git("branch codex");
    let error = other.create("one").unwrap_err();
    assert_eq!(error.to_string(), "the branch `codex` is in the way of branches below `codex/`; rename it");
    assert_eq!(fs::read_dir(other.place.path()).unwrap().count(), 0);
}

#[test]
fn folders_without_a_usable_repository_are_refused() {
    let made = Made::new();
    let from = |folder: &Path| {
        let target = made.place.path().canonicalize().unwrap().join("x");
        let new = NewWorktree { from: folder, folder: &target, branch: "x" };
        Worktree::plan(new, &made.runner).unwrap_err().to_string()
    };
    let lone = TempDir::new().unwrap();
    assert!(from(lone.path()).ends_with("is not in a git repository"));
    git(lone.path(), "init -q --bare");
    assert!(from(lone.path()).ends_with("is not in a git repository"));
    let empty = TempDir::new().unwrap();
    git(empty.path(), "init -q");
    assert!(from(empty.path()).ends_with("has no commits"));
    let tables = TempDir::new().unwrap();
    git(tables.path(), "init -q --ref-format=reftable");
    assert!(from(tables.path()).ends_with("in a format that is not supported"));
    assert!(!made.place.path().join("x").exists());
}

/// The message of git is passed on, and nothing is left of a worktree that could not be completed.
#[test]
fn a_full_disk_leaves_nothing_behind() {
    let mut made = Made::new();
    let program = made.place.path().join("git");
    let real = made.runner.program.display().to_string();
    let script = format!(
        "#!/bin/sh\nfor word in \"$@\"; do [ \"$word\" = read-tree ] && \
         {{ touch \"$GIT_WORK_TREE/half\"; echo 'fatal: No space left on device' >&2; exit 128; }}; done\nexec {real} \"$@\"\n"
    );
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    made.runner.program = program.clone();
    let error = made.create("one").unwrap_err();
    let source = std::error::Error::source(&error).unwrap().to_string();
    assert_eq!(source, "git read-tree failed: fatal: No space left on device");
    fs::remove_file(program).unwrap();
    assert_eq!(fs::read_dir(made.place.path()).unwrap().count(), 0);
    assert_eq!(made.branches(), ["main"]);
    assert!(!made.fixture.root.join(".git/worktrees").exists());
    made.runner.program = "/nowhere/git".into();
    assert!(made.create("one").is_err(), "git is missing");
    assert_eq!(made.branches(), ["main"]);
}

/// Hooks, monitors, filters, included configuration: a worktree is made, compared, merged and removed, and none runs.
#[test]
fn a_hostile_repository_runs_nothing_for_a_worktree() {
    let made = Made::new();
    let fixture = &made.fixture;
    let (program, canary) = fixture.trap();
    fixture.write(".gitattributes", "* filter=evil diff=evil merge=evil\n*.slow filter=slow\n");
    fixture.write("x.slow", "x\n");
    fixture.git("add -A");
    fixture.git("commit -q -m attributes");
    let included = fixture.temp.path().join("included");
    fs::write(
        &included,
        format!("[core]\n\tfsmonitor = {program}\n\thooksPath = {}/evilhooks\n", fixture.root.display()),
    )
    .unwrap();
    for key in [
        "core.fsmonitor",
        "core.sshCommand",
        "core.alternateRefsCommand",
        "diff.external",
        "diff.evil.command",
        "diff.evil.textconv",
        "filter.evil.clean",
        "filter.evil.smudge",
        "filter.slow.process",
        "merge.evil.driver",
        "gpg.program",
        "post-checkout.command",
    ] {
        fixture.git(&format!("config {key} {program}"));
    }
    for (key, value) in [
        ("filter.evil.required", "true"),
        ("filter.slow.required", "true"),
        ("attr.tree", "HEAD"),
        ("commit.gpgSign", "true"),
        ("core.hooksPath", "evilhooks"),
        ("include.path", &included.display().to_string()),
        ("includeIf.gitdir:/.path", &included.display().to_string()),
        ("extensions.worktreeConfig", "true"),
    ] {
        fixture.git(&format!("config {key} {value}"));
    }
    fs::copy(fixture.root.join(".git/config"), fixture.root.join(".git/config.worktree")).unwrap();
    let hooks = ["post-checkout", "post-index-change", "reference-transaction", "post-commit", "fsmonitor-watchman"];
    for hook in hooks {
        for folder in ["evilhooks", ".git/hooks"] {
            fs::create_dir_all(fixture.root.join(folder)).unwrap();
            fs::copy(&program, fixture.root.join(folder).join(hook)).unwrap();
        }
    }
    // Git as a user runs it does fall for this; that run does not count.
    let other = fixture.temp.path().join("other");
    let _ = Command::new("git").args(["worktree", "add"]).arg(&other).current_dir(&fixture.root).output();
    fs::remove_file(&canary).expect("the trap works");
    let _ = Command::new("git").args(["worktree", "prune"]).current_dir(&fixture.root).output();
    let _ = fs::remove_file(&canary);

    fixture.write("a.txt", "dirty\n");
    let mut worktree = made.create("one").unwrap();
    write(&worktree, "a.txt", "dirty\nmore\n");
    write(&worktree, "y.slow", "y\n");
    assert_eq!(worktree.changes(&made.runner).unwrap().files.len(), 2);
    assert!(matches!(worktree.merge(&fixture.root, &made.runner).unwrap(), Merge::Clean(files) if files.len() == 2));
    worktree.settle(&made.runner).unwrap();
    write(&worktree, "a.txt", "again\n");
    assert!(matches!(worktree.remove("one", &made.runner).unwrap(), Left::Branch(_)));
    assert!(worktree.restore("one", &made.runner).unwrap());
    worktree.discard("one").unwrap();
    assert_eq!(fs::read_to_string(&canary).unwrap_or_default(), "");
}

/// A sandboxed command may write refs and objects, and links in them must not lead us elsewhere.
#[test]
fn links_in_a_git_folder_are_not_followed() {
    for planted in ["refs/heads/codex", "worktrees", "objects/pack"] {
        let made = Made::new();
        made.fixture.write("a.txt", "dirty\n");
        let outside = made.fixture.temp.path().join("outside");
        fs::create_dir(&outside).unwrap();
        let at = made.fixture.root.join(".git").join(planted);
        let _ = fs::remove_dir_all(&at);
        std::os::unix::fs::symlink(&outside, &at).unwrap();
        made.create("one").unwrap_err();
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 0, "{planted}");
        assert_eq!(fs::read_dir(made.place.path()).unwrap().count(), 0, "{planted}");
    }
}

#[test]
fn a_worktree_that_was_forged_is_not_read_or_removed() {
    let made = Made::new();
    let worktree = made.create("one").unwrap();
    let other = Fixture::new();
    fs::write(worktree.folder.join(".git"), format!("gitdir: {}\n", other.root.join(".git").display())).unwrap();
    let error = worktree.remove("one", &made.runner).unwrap_err();
    assert!(matches!(error, WorktreeError::Broken(_)), "{error}");
    assert!(worktree.folder.join("a.txt").exists(), "files that cannot be kept stay");
}

#[test]
fn a_worktree_of_a_worktree_and_of_a_subfolder() {
    let made = Made::new();
    let one = made.create("one").unwrap();
    write(&one, "a.txt", "of one\n");
    fs::create_dir(one.folder.join("sub")).unwrap();
    let folder = made.place.path().canonicalize().unwrap().join("below");
    let new = NewWorktree { from: &one.folder.join("sub"), folder: &folder, branch: "below" };
    let below = create(new, "below", &made.runner).unwrap();
    assert_eq!(text(below.folder.join("a.txt")), "of one\n");
    write(&below, "a.txt", "of one\nand below\n");
    assert!(matches!(below.merge(&one.folder, &made.runner).unwrap(), Merge::Clean(files) if files.len() == 1));
    let foreign = Fixture::new();
    assert!(matches!(below.merge(&foreign.root, &made.runner), Err(WorktreeError::Foreign(_))));
}
