//! Everything that a patch does not mention stays unchanged, byte for byte.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use expect_test::expect;

use crate::{Folder, check, diff_of, patch};

/// Applies an update to bytes.
#[track_caller]
fn edited(before: &[u8], chunk: &str) -> Vec<u8> {
    let folder = Folder::with(&[("f", before)]);
    folder.apply(&patch(&format!("*** Update File: f\n{chunk}"))).unwrap();
    folder.read("f")
}

#[test]
fn line_endings_stay_and_new_lines_take_those_around_them() {
    assert_eq!(edited(b"a\r\nb\r\nc\r\n", "@@\n a\n-b\n+B\n+B2\n c"), b"a\r\nB\r\nB2\r\nc\r\n");
    assert_eq!(edited(b"a\nb\r\nc\n", "@@\n a\n-b\n+B\n c"), b"a\nB\r\nc\n");
    assert_eq!(edited(b"a\r\nb\nc\r\n", "@@\n-a\n-b\n-c\n+A\n+B\n+C\n+D"), b"A\r\nB\nC\r\nD\r\n");
    assert_eq!(edited(b"a\r\nb\n", "@@\n a\n+x\n b"), b"a\r\nx\r\nb\n");
    assert_eq!(edited(b"a\nb\n", "@@\n a\n+x\r\n b"), b"a\nx\r\nb\n");
    assert_eq!(edited(b"a\r\nb\r\n", "@@\n+x\n a"), b"x\r\na\r\nb\r\n");
    assert_eq!(edited(b"a\rb\nc\n", "@@\n-c\n+C"), b"a\rb\nC\n");
}

#[test]
fn a_patch_with_carriage_returns_fits_a_file_without() {
    let folder = Folder::with(&[("f", "a\nb\n")]);
    folder.apply("*** Begin Patch\r\n*** Update File: f\r\n@@\r\n a\r\n-b\r\n+B\r\n*** End Patch\r\n").unwrap();
    assert_eq!(folder.read("f"), b"a\nB\n");
}

#[test]
fn the_byte_order_mark_stays_first() {
    assert_eq!(edited(b"\xef\xbb\xbfa\nb\n", "@@\n-a\n+A"), b"\xef\xbb\xbfA\nb\n");
    assert_eq!(edited(b"\xef\xbb\xbfa\nb\n", "@@\n+x\n a"), b"\xef\xbb\xbfx\na\nb\n");
    assert_eq!(edited(b"\xef\xbb\xbfa\nb\n", "@@\n-\u{feff}a\n+\u{feff}A"), b"\xef\xbb\xbfA\nb\n");
    assert_eq!(edited(b"\xef\xbb\xbfa\n", "@@\n-a"), b"\xef\xbb\xbf");
    let folder = Folder::with(&[("f", "\u{feff}a\nb\n")]);
    let plan = folder.planned(&patch("*** Update File: f\n@@\n-a\n+A"));
    assert_eq!(diff_of(&plan), "@@ -1,2 +1,2 @@\n-\u{feff}a\n+\u{feff}A\n b\n");
}

#[test]
fn a_missing_last_newline_stays_missing() {
    assert_eq!(edited(b"a\nb", "@@\n-a\n+A"), b"A\nb");
    assert_eq!(edited(b"a\nb", "@@\n-b"), b"a");
    assert_eq!(edited(b"a\nb", "@@\n-a\n-b"), b"");
    assert_eq!(edited(b"a\nb\n", "@@\n-b"), b"a\n");
    assert_eq!(edited(b"a\nb\n", "@@\n-b\n+B\n*** End of File"), b"a\nB\n");
}

#[test]
fn a_line_that_is_added_last_is_a_whole_line() {
    assert_eq!(edited(b"a\nb", "@@\n-b\n+B"), b"a\nB\n");
    assert_eq!(edited(b"a\nb", "@@\n b\n+c"), b"a\nb\nc\n");
    assert_eq!(edited(b"a\r\nb", "@@\n b\n+c"), b"a\r\nb\r\nc\r\n");
    assert_eq!(edited(b"a", "@@\n+b"), b"a\nb\n");
    assert_eq!(edited(b"a\nb\nc", "@@\n-b\n+B\n@@\n-c\n@@\n+d"), b"a\nB\nd\n");
}

#[test]
fn a_patch_can_add_and_remove_the_last_newline() {
    let none = "\\ No newline at end of file";
    assert_eq!(edited(b"a\nb", &format!("@@\n-b\n{none}\n+b")), b"a\nb\n");
    assert_eq!(edited(b"a\nb\n", &format!("@@\n-b\n+b\n{none}")), b"a\nb");
    assert_eq!(edited(b"a\nb", &format!("@@\n-b\n{none}\n+B\n{none}")), b"a\nB");
    assert_eq!(edited(b"a\nb", &format!("@@\n-b\n{none}")), b"a\n");
    assert_eq!(edited(b"a\r\nb", &format!("@@\n-b\n{none}\n+b")), b"a\r\nb\r\n");
    assert_eq!(edited(b"x\nb\nb", &format!("@@\n-b\n{none}\n+c\n{none}")), b"x\nb\nc");
}

#[test]
fn diffs_show_a_missing_last_newline() {
    let diff = |before: &str, chunk: &str| {
        let folder = Folder::with(&[("f", before)]);
        diff_of(&folder.planned(&patch(&format!("*** Update File: f\n{chunk}"))))
    };
    expect![[r#"
        @@ -1,2 +1,3 @@
         a
        -b
        \ No newline at end of file
        +b
        +c
    "#]]
    .assert_eq(&diff("a\nb", "@@\n b\n+c"));
    expect![[r#"
        @@ -1,2 +1,2 @@
        -a
        +A
         b
        \ No newline at end of file
    "#]]
    .assert_eq(&diff("a\nb", "@@\n-a\n+A"));
    expect![[r#"
        @@ -1,2 +1 @@
        -a
        -b
        \ No newline at end of file
        +a
        \ No newline at end of file
    "#]]
    .assert_eq(&diff("a\nb", "@@\n-b"));
}

#[test]
fn bytes_that_are_not_utf8_survive() {
    assert_eq!(edited(b"caf\xe9\nb\n\xff\xfe\n", "@@\n-b\n+B"), b"caf\xe9\nB\n\xff\xfe\n");
    assert_eq!(edited(b"caf\xe9\nb\n", "@@\n caf\u{fffd}\n-b\n+\u{fc}"), b"caf\xe9\n\xc3\xbc\n");
}

#[test]
fn binary_files_are_refused_by_name() {
    for (content, expected) in [
        (
            &b"a\0b\n"[..],
            expect![[r#"
                /w/f is binary data, which cannot be patched as text
                hint: use a command to change or remove it
            "#]],
        ),
        (
            b"\x89PNG\r\n\x1a\n\0\0",
            expect![[r#"
                /w/f is a PNG picture, which cannot be patched as text
                hint: use a command to change or remove it
            "#]],
        ),
        (
            b"\xff\xfea\0\n\0",
            expect![[r#"
                /w/f is UTF-16 text, which cannot be patched as text
                hint: use a command to change or remove it
            "#]],
        ),
        (
            b"\x7fELF\x02\0",
            expect![[r#"
                /w/f is a program, which cannot be patched as text
                hint: use a command to change or remove it
            "#]],
        ),
    ] {
        check(&[("f", content)], "*** Update File: f\n@@\n-a\n+b", expected);
    }
    check(
        &[("f", b"a\0b\n")],
        "*** Delete File: f",
        expect![[r#"
            /w/f is binary data, which cannot be patched as text
            hint: use a command to change or remove it
        "#]],
    );
}

#[test]
fn unicode_and_empty_files() {
    check(
        &[("π/日本.txt", "αβγ\n𝒳\n")],
        "*** Update File: π/日本.txt\n@@\n-𝒳\n+👩‍👩‍👧\n*** Add File: leer",
        expect![[r#"
            Success. Updated the following files:
            A leer
            M π/日本.txt
            leer: ""
            π/日本.txt: "αβγ\n👩\u{200d}👩\u{200d}👧\n"
        "#]],
    );
    check(
        &[("a", "x\n"), ("b", "")],
        "*** Update File: a\n@@\n-x\n*** Delete File: b",
        expect![[r#"
        Success. Updated the following files:
        M a
        D b
        a: ""
    "#]],
    );
}

#[test]
fn the_mode_is_kept() {
    for mode in [0o755, 0o600, 0o644, 0o700, 0o4750] {
        let folder = Folder::with(&[("f", "a\n")]);
        fs::set_permissions(folder.at("f"), Permissions::from_mode(mode)).unwrap();
        folder.apply(&patch("*** Update File: f\n@@\n-a\n+b")).unwrap();
        assert_eq!(fs::metadata(folder.at("f")).unwrap().mode() & 0o7777, mode);
        folder.apply(&patch("*** Update File: f\n*** Move to: sub/g\n@@\n-b\n+c")).unwrap();
        assert_eq!(fs::metadata(folder.at("sub/g")).unwrap().mode() & 0o7777, mode);
        folder.apply(&patch("*** Delete File: sub/g\n*** Add File: sub/g\n+d")).unwrap();
        assert_eq!(fs::metadata(folder.at("sub/g")).unwrap().mode() & 0o7777, mode);
    }
}

#[test]
fn new_files_get_what_new_files_get() {
    let folder = Folder::new();
    folder.write("other", "");
    folder.apply(&patch("*** Add File: sub/deep/f\n+x")).unwrap();
    let mode = |name| fs::metadata(folder.at(name)).unwrap().mode();
    assert_eq!(mode("sub/deep/f"), mode("other"));
    assert_eq!(folder.read("sub/deep/f"), b"x\n");
}

#[test]
fn the_owner_is_kept() {
    let folder = Folder::with(&[("f", "a\n")]);
    if std::os::unix::fs::chown(folder.at("f"), Some(1234), Some(4321)).is_err() {
        return; // Only root can give files away.
    }
    folder.apply(&patch("*** Update File: f\n@@\n-a\n+b")).unwrap();
    let meta = fs::metadata(folder.at("f")).unwrap();
    assert_eq!((meta.uid(), meta.gid()), (1234, 4321));
}

#[test]
fn an_update_that_changes_nothing_writes_nothing() {
    let folder = Folder::with(&[("f", "a\n")]);
    let inode = fs::metadata(folder.at("f")).unwrap().ino();
    let applied = folder.apply(&patch("*** Update File: f\n@@\n-a\n+a")).unwrap();
    assert_eq!(applied.summary, "Success. Updated the following files:\nM f\n");
    assert_eq!(fs::metadata(folder.at("f")).unwrap().ino(), inode);
}

#[test]
fn another_hard_link_keeps_the_old_content() {
    let folder = Folder::with(&[("f", "a\n")]);
    fs::hard_link(folder.at("f"), folder.at("g")).unwrap();
    folder.apply(&patch("*** Update File: f\n@@\n-a\n+b")).unwrap();
    assert_eq!((folder.read("f"), folder.read("g")), (b"b\n".to_vec(), b"a\n".to_vec()));
}

#[test]
fn diffs_show_three_lines_around_and_join_what_is_near() {
    let lines: Vec<String> = (1..=30).map(|n| format!("{n}\n")).collect();
    let folder = Folder::with(&[("f", lines.concat())]);
    let plan =
        folder.planned(&patch("*** Update File: f\n@@\n-5\n+five\n@@\n-12\n@@\n 19\n+19.5\n@@\n-30\n+end\n+of file"));
    expect![[r#"
        @@ -2,14 +2,13 @@
         2
         3
         4
        -5
        +five
         6
         7
         8
         9
         10
         11
        -12
         13
         14
         15
        @@ -17,6 +16,7 @@
         17
         18
         19
        +19.5
         20
         21
         22
        @@ -27,4 +27,5 @@
         27
         28
         29
        -30
        +end
        +of file
    "#]]
    .assert_eq(&diff_of(&plan));
}

#[test]
fn diffs_show_less_than_the_patch_if_less_changes() {
    let folder = Folder::with(&[("f", "1\n2\n3\n4\n")]);
    let plan = folder.planned(&patch("*** Update File: f\n@@\n-1\n-2\n-3\n-4\n+1\n+2\n+three\n+4"));
    assert_eq!(diff_of(&plan), "@@ -1,4 +1,4 @@\n 1\n 2\n-3\n+three\n 4\n");
}
