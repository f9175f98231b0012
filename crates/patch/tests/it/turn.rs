//! The combined diff of the patches of a turn.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use codex_patch::TurnDiff;
use expect_test::{Expect, expect};

use crate::{Folder, patch};

/// Applies patches one after the other and prints the combined diff, with short object ids.
#[track_caller]
fn check(folder: &Folder, patches: &[&str], expected: Expect) {
    let mut turn = TurnDiff::new(&folder.path);
    for operations in patches {
        turn.note(&folder.apply(&patch(operations)).unwrap());
    }
    expected.assert_eq(&short(&turn.unified().unwrap_or_default()));
}

fn short(text: &str) -> String {
    let line = |line: &str| match line.strip_prefix("index ").and_then(|ids| ids.split_once("..")) {
        Some((old, new)) => format!("index {}..{}\n", &old[..4], &new[..4]),
        None => format!("{line}\n"),
    };
    text.lines().map(line).collect()
}

#[test]
fn several_updates_are_one() {
    let folder = Folder::with(&[("a", "1\n2\n3\n")]);
    check(
        &folder,
        &["*** Update File: a\n@@\n-1\n+one", "*** Update File: a\n@@\n-3\n+three"],
        expect![[r#"
        diff --git a/a b/a
        index 01e7..f04e
        --- a/a
        +++ b/a
        @@ -1,3 +1,3 @@
        -1
        +one
         2
        -3
        +three
    "#]],
    );
}

#[test]
fn rolled_back_turns_are_not_shown() {
    let folder = Folder::with(&[("a", "1\n")]);
    check(&folder, &["*** Update File: a\n@@\n-1\n+2", "*** Update File: a\n@@\n-2\n+1"], expect![[r#""#]]);
    check(&folder, &["*** Add File: b\n+x", "*** Delete File: b"], expect![[r#""#]]);
    check(&folder, &["*** Delete File: a", "*** Add File: a\n+1"], expect![[r#""#]]);
    check(&folder, &["*** Update File: a\n*** Move to: b", "*** Update File: b\n*** Move to: a"], expect![[r#""#]]);
}

#[test]
fn additions_deletions_and_updates_combine() {
    let folder = Folder::with(&[("a", "1\n"), ("b", "1\n")]);
    check(
        &folder,
        &[
            "*** Add File: c\n+1\n*** Delete File: a\n*** Update File: b\n@@\n-1\n+2",
            "*** Update File: c\n@@\n-1\n+2\n*** Add File: a\n+2\n*** Delete File: b",
        ],
        expect![[r#"
            diff --git a/a b/a
            index d004..0cfb
            --- a/a
            +++ b/a
            @@ -1 +1 @@
            -1
            +2
            diff --git a/b b/b
            deleted file mode 100644
            index d004..0000
            --- a/b
            +++ /dev/null
            @@ -1 +0,0 @@
            -1
            diff --git a/c b/c
            new file mode 100644
            index 0000..0cfb
            --- /dev/null
            +++ b/c
            @@ -0,0 +1 @@
            +2
        "#]],
    );
}

#[test]
fn moves_combine() {
    let folder = Folder::with(&[("a", "1\n2\n"), ("z", "z\n")]);
    check(
        &folder,
        &[
            "*** Update File: a\n*** Move to: b\n@@\n-1\n+one",
            "*** Update File: b\n*** Move to: c\n@@\n-2\n+two",
            "*** Update File: z\n*** Move to: y",
        ],
        expect![[r#"
            diff --git a/a b/c
            index 1191..814f
            --- a/a
            +++ b/c
            @@ -1,2 +1,2 @@
            -1
            -2
            +one
            +two
            diff --git a/z b/y
            similarity index 100%
            rename from z
            rename to y
        "#]],
    );
    check(
        &Folder::with(&[("a", "1\n")]),
        &["*** Update File: a\n*** Move to: b", "*** Add File: a\n+new"],
        expect![[r#"
            diff --git a/a b/a
            index d004..3e75
            --- a/a
            +++ b/a
            @@ -1 +1 @@
            -1
            +new
            diff --git a/b b/b
            new file mode 100644
            index 0000..d004
            --- /dev/null
            +++ b/b
            @@ -0,0 +1 @@
            +1
        "#]],
    );
    check(
        &Folder::with(&[("a", "1\n"), ("b", "2\n")]),
        &["*** Delete File: b\n*** Update File: a\n*** Move to: b"],
        expect![[r#"
            diff --git a/a b/a
            deleted file mode 100644
            index d004..0000
            --- a/a
            +++ /dev/null
            @@ -1 +0,0 @@
            -1
            diff --git a/b b/b
            index 0cfb..d004
            --- a/b
            +++ b/b
            @@ -1 +1 @@
            -2
            +1
        "#]],
    );
}

#[test]
fn executables_quotes_and_last_newlines() {
    let folder = Folder::with(&[("run \"it\"", "1"), ("gone", "x")]);
    fs::set_permissions(folder.at("run \"it\""), Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(folder.at("gone"), Permissions::from_mode(0o755)).unwrap();
    check(
        &folder,
        &["*** Update File: run \"it\"\n@@\n-1\n+2\n*** Delete File: gone\n*** Add File: empty"],
        expect![[r#"
            diff --git a/empty b/empty
            new file mode 100644
            index 0000..e69d
            diff --git a/gone b/gone
            deleted file mode 100755
            index c1b0..0000
            --- a/gone
            +++ /dev/null
            @@ -1 +0,0 @@
            -x
            \ No newline at end of file
            diff --git "a/run \"it\"" "b/run \"it\""
            index 56a6..0cfb
            --- "a/run \"it\""
            +++ "b/run \"it\""
            @@ -1 +1 @@
            -1
            \ No newline at end of file
            +2
        "#]],
    );
}

#[test]
fn names_are_relative_to_the_repository() {
    let folder = Folder::with(&[("sub/a", "1\n")]);
    codex_files::testing::make_git_folder(&folder.at(".git")).unwrap();
    let mut turn = TurnDiff::new(&folder.at("sub"));
    turn.note(&folder.apply(&patch("*** Update File: sub/a\n@@\n-1\n+2")).unwrap());
    assert!(turn.unified().unwrap().starts_with("diff --git a/sub/a b/sub/a\n"));
}

/// A file that a command changed between two patches is compared with its state before the first.
#[test]
fn changes_by_others_between_patches_are_shown_with_the_second() {
    let folder = Folder::with(&[("a", "1\n2\n")]);
    let mut turn = TurnDiff::new(&folder.path);
    turn.note(&folder.apply(&patch("*** Update File: a\n@@\n-1\n+one")).unwrap());
    folder.write("a", "one\n2\nby a command\n");
    turn.note(&folder.apply(&patch("*** Update File: a\n@@\n-2\n+two")).unwrap());
    let text = turn.unified().unwrap();
    assert!(text.ends_with("@@ -1,2 +1,3 @@\n-1\n-2\n+one\n+two\n+by a command\n"), "{text}");
}

/// Git itself accepts the diff: applied to the old tree it gives the new one.
#[test]
fn git_understands_it() {
    let files = [("a", "1\n2\n3"), ("b/c", "x\r\ny\r\n"), ("d", "gone\n"), ("e", "\u{feff}m\n"), ("ä ö", "caf\n")];
    let (old, new) = (Folder::with(&files), Folder::with(&files));
    let git = |arguments: &[&str]| {
        let mut git = Command::new("git");
        git.current_dir(&old.path).args(arguments).env("GIT_CONFIG_GLOBAL", "/dev/null");
        git.output().is_ok_and(|output| output.status.success())
    };
    if !git(&["init", "-q"]) {
        return; // There is no git here.
    }
    let mut turn = TurnDiff::new(&new.path);
    for operations in [
        "*** Update File: a\n@@\n-2\n+two\n@@\n 3\n+4\n*** Update File: b/c\n*** Move to: f/g\n@@\n-x\n+X\n*** Delete File: d",
        "*** Add File: n/new\n+1\n+2\n*** Update File: e\n@@\n-m\n+n\n*** Update File: ä ö\n@@\n-caf\n+é",
    ] {
        turn.note(&new.apply(&patch(operations)).unwrap());
    }
    old.write("turn.patch", turn.unified().unwrap());
    assert!(git(&["apply", "--whitespace=nowarn", "turn.patch"]), "{}", turn.unified().unwrap());
    fs::remove_file(old.at("turn.patch")).unwrap();
    fs::remove_dir_all(old.at(".git")).unwrap();
    let files =
        |folder: &Folder| folder.tree().into_iter().filter(|(name, _)| !name.ends_with('/')).collect::<Vec<_>>();
    assert_eq!(files(&old), files(&new));
}
