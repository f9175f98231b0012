//! Files that others can write affect neither the runs of `git` nor the reader of files.

use std::os::unix::fs::symlink;

use super::*;

/// A program in place of git that records its arguments, and then runs git.
fn witness(fixture: &Fixture) -> (TempDir, Runner, PathBuf) {
    let (folder, mut runner) = runner();
    let (program, noted) = (fixture.temp.path().join("witness"), fixture.temp.path().join("noted"));
    let real = runner.program.display().to_string();
    let script = format!("#!/bin/sh\n{{ pwd; env; }} >> '{}'\nexec '{real}' \"$@\"\n", noted.display());
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    runner.program = program;
    (folder, runner, noted)
}

#[test]
fn git_works_in_the_folder_it_is_given_and_inherits_nothing() {
    let fixture = Fixture::new();
    fixture.write("b.txt", "new\n");
    let (folder, mut runner, noted) = witness(&fixture);
    runner.path = "/usr/bin:/bin".into();
    git_diff_to_remote(&fixture.root, &runner).unwrap();
    apply(&fixture.root, "diff --git a/b.txt b/b.txt\n--- a/b.txt\n+++ b/b.txt\n@@ -1 +1 @@\n-new\n+old\n", &runner)
        .unwrap();
    let private = folder.path().canonicalize().unwrap().display().to_string();
    let noted = fs::read_to_string(noted).unwrap();
    assert!(noted.lines().filter(|line| line.starts_with("PWD=")).count() >= 5, "{noted}");
    for line in noted.lines() {
        let line = line.strip_prefix("OLDPWD=").unwrap_or(line);
        let (name, value) = line.split_once('=').unwrap_or(("PWD", line));
        match name {
            "PWD" | "HOME" | "TMPDIR" | "XDG_CONFIG_HOME" | "GIT_DIR" => {
                let value = Path::new(value).parent().unwrap().canonicalize().unwrap();
                assert!(value.starts_with(&private), "{line}");
            }
            "PATH" => assert_eq!(value, "/usr/bin:/bin"),
            "GIT_WORK_TREE" => assert_eq!(value, fixture.root.display().to_string()),
            "_" | "SHLVL" => {}
            name => assert!(name.starts_with("GIT_") || name == "LC_ALL", "{line}"),
        }
    }
}

#[test]
fn the_ignore_file_of_the_user_counts() {
    let fixture = Fixture::new();
    fixture.write("x.mine", "x\n");
    fixture.write("y.txt", "y\n");
    let (folder, mut runner) = runner();
    runner.excludes = Some(folder.path().join("ignore"));
    fs::write(folder.path().join("ignore"), "*.mine\n").unwrap();
    let diff = git_diff_to_remote(&fixture.root, &runner).unwrap().diff;
    assert!(diff.contains("y.txt") && !diff.contains("x.mine"), "{diff}");
}

/// To add a new file to the index, git writes an object.
#[test]
fn no_object_is_added_to_the_repository() {
    let fixture = Fixture::new();
    fixture.write("b.txt", "new\n");
    let outside = fixture.temp.path().join("outside");
    fs::create_dir(&outside).unwrap();
    // The folder of the object for an empty file.
    let folder = fixture.root.join(".git/objects/e6");
    symlink(&outside, &folder).unwrap();
    assert!(fixture.diff().diff.contains("+new"));
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
    fs::remove_file(&folder).unwrap();
    let before = fixture.git("count-objects");
    assert!(fixture.diff().diff.contains("+new"));
    assert_eq!((fixture.git("count-objects"), folder.exists()), (before, false));
}

#[test]
fn a_repository_that_borrows_objects_itself_works() {
    let fixture = Fixture::new();
    git(fixture.temp.path(), "clone -q --shared work borrower");
    git(fixture.temp.path(), "clone -q --shared borrower third\"a:b\\c");
    for name in ["borrower", "third\"a:b\\c"] {
        let root = fixture.temp.path().join(name);
        let alternates = root.join(".git/objects/info/alternates");
        assert!(alternates.exists(), "{name}");
        fs::write(root.join("a.txt"), "two\n").unwrap();
        assert!(diff_of(&root).unwrap().diff.contains("-one\n+two"), "{name}");
    }
    let relative = "../../../work/.git/objects\n";
    fs::write(fixture.temp.path().join("borrower/.git/objects/info/alternates"), relative).unwrap();
    assert!(diff_of(&fixture.temp.path().join("third\"a:b\\c")).unwrap().diff.contains("-one\n+two"));
}

/// Without its objects, git would fetch them from the remote, with a program that the repository names.
#[test]
fn a_partial_clone_fetches_nothing() {
    let fixture = Fixture::new();
    let (program, canary) = fixture.trap();
    git(&fixture.temp.path().join("origin.git"), "config uploadpack.allowFilter true");
    let url = format!("file://{}", fixture.temp.path().join("origin.git").display());
    git(fixture.temp.path(), &format!("clone -q --no-checkout --filter=blob:none {url} partial"));
    let partial = fixture.temp.path().join("partial");
    git(&partial, "read-tree HEAD");
    fs::write(partial.join("a.txt"), "two\n").unwrap();
    for key in ["core.sshCommand", "remote.origin.uploadpack"] {
        git(&partial, &format!("config {key} {program}"));
    }
    git(&partial, "config remote.origin.url ssh://localhost/x");
    let _ = Command::new("git").arg("diff").current_dir(&partial).output();
    fs::remove_file(&canary).expect("the trap works");
    assert!(matches!(diff_of(&partial), Err(GitError::Git { .. })));
    assert!(!canary.exists());
}

#[test]
fn a_split_index_is_read_despite_leftover_shared_indexes() {
    let fixture = Fixture::new();
    fixture.git("update-index --split-index");
    let old = std::time::SystemTime::UNIX_EPOCH;
    for number in 0..50 {
        let path = fixture.root.join(format!(".git/sharedindex.{number:040}"));
        fs::write(&path, "x").unwrap();
        fs::File::options().write(true).open(path).unwrap().set_modified(old).unwrap();
    }
    fixture.write("a.txt", "two\n");
    assert!(fixture.diff().diff.contains("-one\n+two"));
}

#[test]
fn no_link_is_copied_in_the_place_of_the_index() {
    let fixture = Fixture::new();
    let index = fixture.root.join(".git/index");
    fs::rename(&index, fixture.temp.path().join("index")).unwrap();
    symlink(fixture.temp.path().join("index"), &index).unwrap();
    fs::remove_file(fixture.root.join("a.txt")).unwrap();
    let refused = file::open(&index, file::Links::Refused).unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::InvalidInput);
    assert!(fixture.diff().diff.contains("deleted file"));
}

#[test]
fn only_regular_files_are_read_without_blocking() {
    let temp = TempDir::new().unwrap();
    let pipe = temp.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    symlink(&pipe, temp.path().join("link")).unwrap();
    symlink("/dev/zero", temp.path().join("device")).unwrap();
    fs::write(temp.path().join("long"), vec![b'x'; 1024 * 1024 + 1]).unwrap();
    fs::write(temp.path().join("short"), "x").unwrap();
    for name in ["pipe", "link", "device", "long", ".", "missing"] {
        assert_eq!(file::read(&temp.path().join(name)), None, "{name}");
    }
    assert_eq!(file::read(&temp.path().join("short")).as_deref(), Some("x"));
}
