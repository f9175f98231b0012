//! Diffs are applied, and nothing else happens.

use std::os::unix::fs::symlink;

use super::*;

const DIFF: &str = "diff --git a/a.txt b/a.txt\n--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-one\n+two\n";

fn apply_in(folder: &Path, diff: &str) -> Applied {
    let (_temp, runner) = runner();
    apply(folder, diff, &runner).unwrap()
}

#[test]
fn a_diff_is_applied_in_a_repository_and_outside_of_one() {
    let fixture = Fixture::new();
    assert_eq!(apply_in(&fixture.root, DIFF), Applied { is_complete: true, said: String::new() });
    assert_eq!(fs::read_to_string(fixture.root.join("a.txt")).unwrap(), "two\n");
    assert_eq!(fixture.git("status --porcelain"), "M a.txt");
    let lone = TempDir::new().unwrap();
    fs::write(lone.path().join("a.txt"), "one\n").unwrap();
    assert!(apply_in(lone.path(), DIFF).is_complete);
    assert_eq!(fs::read_to_string(lone.path().join("a.txt")).unwrap(), "two\n");
}

/// `git apply` in such a folder skips everything and reports success.
#[test]
fn names_count_from_the_folder() {
    let fixture = Fixture::new();
    fixture.write("sub/a.txt", "one\n");
    assert!(apply_in(&fixture.root.join("sub"), DIFF).is_complete);
    assert_eq!(fs::read_to_string(fixture.root.join("sub/a.txt")).unwrap(), "two\n");
    assert_eq!(fs::read_to_string(fixture.root.join("a.txt")).unwrap(), "one\n");
}

#[test]
fn a_patch_that_does_not_apply_changes_nothing_and_is_explained() {
    let fixture = Fixture::new();
    let other = DIFF.replace("a.txt", "b.txt");
    let applied = apply_in(&fixture.root, &format!("{DIFF}{other}"));
    assert_eq!((applied.is_complete, &*applied.said), (false, "error: b.txt: No such file or directory\n"));
    assert_eq!(fs::read_to_string(fixture.root.join("a.txt")).unwrap(), "one\n");
}

#[test]
fn a_hostile_repository_runs_nothing_when_a_diff_is_applied() {
    let fixture = Fixture::new();
    let (program, canary) = fixture.trap();
    for key in ["clean", "smudge", "process"] {
        fixture.git(&format!("config filter.{key}.{key} {program}"));
    }
    fixture.git(&format!("config core.fsmonitor {program}"));
    for key in ["clean", "smudge", "process"] {
        fixture.write("a.txt", "one\n");
        fixture.write(".gitattributes", &format!("* filter={key}\n"));
        fixture.write(".git/info/attributes", &format!("* filter={key}\n"));
        fixture.write("diff", DIFF);
        let _ = Command::new("git").args(["apply", "diff"]).current_dir(&fixture.root).output();
        fs::remove_file(&canary).expect("the trap works");
        fixture.write("a.txt", "one\n");
        assert!(apply_in(&fixture.root, DIFF).is_complete);
        assert_eq!(fs::read_to_string(fixture.root.join("a.txt")).unwrap(), "two\n");
        assert!(!canary.exists(), "{key}");
    }
}

/// Attributes about line endings name no programs, and are used.
#[test]
fn the_line_ends_of_the_checkout_are_kept() {
    let fixture = Fixture::new();
    fixture.write(".gitattributes", "*.txt text eol=crlf\n");
    fixture.write("a.txt", "one\r\n");
    assert!(apply_in(&fixture.root, DIFF).is_complete);
    assert_eq!(fs::read_to_string(fixture.root.join("a.txt")).unwrap(), "two\r\n");
}

#[test]
fn no_diff_reaches_the_git_folder_or_leaves_the_folder() {
    let fixture = Fixture::new();
    fixture.write("../outside/a.txt", "one\n");
    symlink("../outside", fixture.root.join("link")).unwrap();
    let config = fs::read_to_string(fixture.root.join(".git/config")).unwrap();
    for name in ["../outside/a.txt", "link/a.txt", ".git/a.txt", ".git/hooks/a.txt"] {
        let new = format!("diff --git a/{name} b/{name}\nnew file mode 100755\n--- /dev/null\n+++ b/{name}\n");
        for diff in [DIFF.replace("a.txt", name), format!("{new}@@ -0,0 +1 @@\n+x\n")] {
            assert!(!apply_in(&fixture.root, &diff).is_complete, "{diff}");
        }
    }
    assert_eq!(fs::read_to_string(fixture.root.join(".git/config")).unwrap(), config);
    assert_eq!(fs::read_to_string(fixture.temp.path().join("outside/a.txt")).unwrap(), "one\n");
}
