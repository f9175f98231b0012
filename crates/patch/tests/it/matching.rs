//! The placement of hunks, and the errors for hunks that match nowhere.

use codex_wire::change::FileChange;
use expect_test::expect;

use crate::{Folder, check, diff_of, patch};

#[test]
fn chunks_follow_each_other() {
    check(
        &[("a", "x\n1\nx\n2\nx\n3\n")],
        "*** Update File: a\n@@\n x\n-2\n+two\n@@\n-x\n+y",
        expect![[r#"
            Success. Updated the following files:
            M a
            a: "x\n1\nx\ntwo\ny\n3\n"
        "#]],
    );
}

#[test]
fn anchors_lead_to_the_place() {
    check(
        &[("a", "class A\n  def f\n    pass\n  def g\n    pass\nclass B\n  def f\n    pass\n  def g\n    pass\n")],
        "*** Update File: a\n@@ class B\n@@   def g\n-    pass\n+    return 1",
        expect![[r#"
            Success. Updated the following files:
            M a
            a: "class A\n  def f\n    pass\n  def g\n    pass\nclass B\n  def f\n    pass\n  def g\n    return 1\n"
        "#]],
    );
    check(
        &[("a", "f()\nx\nf()\nx\n")],
        "*** Update File: a\n@@ f()\n f()\n-x\n+y",
        expect![[r#"
        Success. Updated the following files:
        M a
        a: "f()\nx\nf()\ny\n"
    "#]],
    );
    check(
        &[("a", "f()\nx\ng()\nx\n")],
        "*** Update File: a\n@@ f()\n f()\n-x\n+y",
        expect![[r#"
        Success. Updated the following files:
        M a
        a: "f()\ny\ng()\nx\n"
    "#]],
    );
    check(
        &[("a", "f()\nx\ng()\n")],
        "*** Update File: a\n@@ f()\n+first",
        expect![[r#"
        Success. Updated the following files:
        M a
        a: "f()\nfirst\nx\ng()\n"
    "#]],
    );
}

#[test]
fn lines_without_a_place_go_to_the_end() {
    check(
        &[("a", "1\n2\n")],
        "*** Update File: a\n@@\n+3\n@@\n-1\n+one",
        expect![[r#"
        Success. Updated the following files:
        M a
        a: "one\n2\n3\n"
    "#]],
    );
    check(
        &[("a", "")],
        "*** Update File: a\n@@\n+1",
        expect![[r#"
        Success. Updated the following files:
        M a
        a: "1\n"
    "#]],
    );
}

#[test]
fn the_end_of_the_file_can_be_meant() {
    check(
        &[("a", "x\ny\nx\n")],
        "*** Update File: a\n@@\n-x\n+z\n*** End of File",
        expect![[r#"
        Success. Updated the following files:
        M a
        a: "x\ny\nz\n"
    "#]],
    );
    check(
        &[("a", "x\ny\nz\n")],
        "*** Update File: a\n@@\n-x\n+z\n*** End of File",
        expect![[r#"
        Failed to find expected lines in /w/a:
        x
        They are at line 1, but that is not the end of the file.
        hint: read the file again and write the lines as they are now
    "#]],
    );
}

#[test]
fn white_space_and_typography_may_differ_and_are_kept() {
    check(
        &[("a", "one  \n  two\t\nthree\n")],
        "*** Update File: a\n@@\n one\n   two\n-three\n+3",
        expect![[r#"
        Success. Updated the following files:
        M a
        a: "one  \n  two\t\n3\n"
    "#]],
    );
    check(
        &[("a", "\tone\n\ttwo\n")],
        "*** Update File: a\n@@\n one\n-two\n+  2",
        expect![[r#"
        Success. Updated the following files:
        M a
        a: "\tone\n  2\n"
    "#]],
    );
    check(
        &[("a", "it’s — “so”\u{a0}x\nold\n")],
        "*** Update File: a\n@@\n it's - \"so\" x\n-old\n+new",
        expect![[r#"
            Success. Updated the following files:
            M a
            a: "it’s — “so”\u{a0}x\nnew\n"
        "#]],
    );
}

#[test]
fn a_strict_match_further_down_wins() {
    check(
        &[("a", " x\n1\nx\n2\n")],
        "*** Update File: a\n@@\n-x\n+y",
        expect![[r#"
        Success. Updated the following files:
        M a
        a: " x\n1\ny\n2\n"
    "#]],
    );
}

#[test]
fn stray_empty_lines_are_forgiven() {
    check(
        &[("a", "1\n2\n"), ("b", "3\n")],
        "*** Update File: a\n\n@@\n-1\n+one\n\n*** Update File: b\n\n-3\n+three\n\n",
        expect![[r#"
        Success. Updated the following files:
        M a
        M b
        a: "one\n2\n"
        b: "three\n"
    "#]],
    );
}

#[test]
fn empty_lines_that_are_there_count() {
    check(
        &[("a", "x\n1\n\nx\n\n2\n")],
        "*** Update File: a\n@@\n x\n\n-2\n+two",
        expect![[r#"
        Success. Updated the following files:
        M a
        a: "x\n1\n\nx\n\ntwo\n"
    "#]],
    );
}

#[test]
fn several_operations_on_one_file_add_up() {
    check(
        &[("a", "1\n2\n3\n"), ("b", "x\n")],
        "*** Update File: a\n@@\n-1\n+one\n*** Update File: ./a\n@@\n one\n-2\n+two\n\
         *** Update File: b\n*** Move to: c\n@@\n-x\n+y\n*** Update File: c\n@@\n-y\n+z\n\
         *** Add File: t\n+t\n*** Delete File: t\n*** Delete File: a\n*** Add File: a\n+new",
        expect![[r#"
            Success. Updated the following files:
            A a
            M c
            a: "new\n"
            c: "z\n"
        "#]],
    );
    let folder = Folder::with(&[("a", "1\n2\n3\n")]);
    let plan =
        folder.planned(&patch("*** Update File: a\n@@\n-1\n+one\n*** Update File: a\n@@\n-one\n+eins\n@@\n-3\n+drei"));
    assert_eq!(diff_of(&plan), "@@ -1,3 +1,3 @@\n-1\n+eins\n 2\n-3\n+drei\n");
}

#[test]
fn a_place_that_is_left_can_be_taken_again() {
    check(
        &[("a", "1\n")],
        "*** Update File: a\n*** Move to: b\n*** Add File: a\n+2",
        expect![[r#"
            Success. Updated the following files:
            A a
            A b
            a: "2\n"
            b: "1\n"
        "#]],
    );
}

#[test]
fn errors_name_file_hunk_and_nearest_place() {
    let text = "fn main() {\n    let x = 1;\n    let y = 2;\n    print(x + y);\n}\n";
    for (operations, expected) in [
        (
            "*** Update File: a\n@@\n-fn main() {\n+fn f() {\n@@\n     let x = 1;\n-    let y = 3;\n+    let y = 4;",
            expect![[r#"
            Failed to find expected lines in /w/a:
                let x = 1;
                let y = 3;
            This is hunk 2 of 2.
            The nearest place is line 3, where '    let y = 3;' is expected but '    let y = 2;' found.
            hint: read the file again and write the lines as they are now
        "#]],
        ),
        (
            "*** Update File: a\n@@\n-    print(x - y);\n+    print(x);",
            expect![[r#"
            Failed to find expected lines in /w/a:
                print(x - y);
            The nearest place is line 4, where '    print(x - y);' is expected but '    print(x + y);' found.
            hint: read the file again and write the lines as they are now
        "#]],
        ),
        (
            "*** Update File: a\n@@\n-}\n+};\n@@\n-    let x = 1;\n+    let x = 2;",
            expect![[r#"
            Failed to find expected lines in /w/a:
                let x = 1;
            This is hunk 2 of 2.
            They are at line 2, but that is above an anchor or an earlier hunk.
            hint: read the file again and write the lines as they are now
        "#]],
        ),
        (
            "*** Update File: a\n@@\n-    let x = 1;\n+    let x = 2;\n*** End of File",
            expect![[r#"
            Failed to find expected lines in /w/a:
                let x = 1;
            They are at line 2, but that is not the end of the file.
            hint: read the file again and write the lines as they are now
        "#]],
        ),
        (
            "*** Update File: a\n@@ fn main()\n-    let x = 1;\n+    let x = 2;",
            expect![[r#"
                Failed to find context 'fn main()' in /w/a
                The nearest place is line 1, where 'fn main()' is expected but 'fn main() {' found.
                hint: read the file again and write the lines as they are now
            "#]],
        ),
        (
            "*** Update File: a\n@@\n-nothing of the kind\n+x",
            expect![[r#"
            Failed to find expected lines in /w/a:
            nothing of the kind
            hint: read the file again and write the lines as they are now
        "#]],
        ),
    ] {
        check(&[("a", text)], operations, expected);
    }
}

#[test]
fn a_replaced_file_is_shown_as_changed() {
    let folder = Folder::with(&[("a", "old\n"), ("b", "from\n"), ("c", "there\n")]);
    let text = "*** Add File: a\n+new\n*** Update File: b\n*** Move to: c\n@@\n-from\n+to";
    let plan = folder.planned(&patch(text));
    let update = |diff: &str| FileChange::Update { unified_diff: diff.to_owned(), move_path: None };
    let changes = [
        (folder.at("a"), update("@@ -1 +1 @@\n-old\n+new\n")),
        (folder.at("b"), FileChange::Delete { content: "from\n".to_owned() }),
        (folder.at("c"), update("@@ -1 +1 @@\n-there\n+to\n")),
    ];
    assert_eq!(plan.changes(), changes.into());
    assert_eq!(plan.paths(), [folder.at("a"), folder.at("b"), folder.at("c")]);
    let applied = plan.apply(&folder.guard()).unwrap();
    assert_eq!(applied.summary, "Success. Updated the following files:\nA a\nM c\n");
    let files: Vec<_> = folder.tree().into_iter().collect();
    assert_eq!(files, [("a".to_owned(), b"new\n".to_vec()), ("c".to_owned(), b"to\n".to_vec())]);
}

#[test]
fn neither_a_link_nor_what_is_no_text_is_replaced() {
    let folder = Folder::with(&[("a", "old\n"), ("picture", "\0\u{1}")]);
    std::os::unix::fs::symlink("a", folder.at("link")).unwrap();
    for name in ["link", "picture"] {
        folder.plan(&patch(&format!("*** Add File: {name}\n+new"))).unwrap_err();
        folder.plan(&patch(&format!("*** Update File: a\n*** Move to: {name}"))).unwrap_err();
    }
}

#[test]
fn errors_name_what_is_in_the_way() {
    for (operations, expected) in [
        (
            "*** Update File: b\n@@\n-x\n+y",
            expect![[r#"
                /w/b does not exist
                hint: check the path; a new file is made with '*** Add File:'
            "#]],
        ),
        (
            "*** Delete File: b",
            expect![[r#"
                /w/b does not exist
                hint: check the path; a new file is made with '*** Add File:'
            "#]],
        ),
        (
            "*** Add File: b\n+x\n*** Add File: c/../b\n+y",
            expect![[r#"
            /w/b exists already
            hint: use '*** Update File:' to change it, or delete it first
        "#]],
        ),
        (
            "*** Add File: d\n+x\n*** Update File: a\n*** Move to: d",
            expect![[r#"
            /w/d exists already
            hint: use '*** Update File:' to change it, or delete it first
        "#]],
        ),
        (
            "*** Add File: a/b\n+x",
            expect![[r#"
            /w/a/b is below something that is not a directory
        "#]],
        ),
        (
            "*** Delete File: sub",
            expect![[r#"
            /w/sub is a directory
        "#]],
        ),
        (
            "*** Add File: sub\n+x",
            expect![[r#"
                /w/sub is a directory
            "#]],
        ),
        (
            "*** Delete File: .",
            expect![[r#"
            /w is a directory
        "#]],
        ),
        (
            "*** Add File: /\n+x",
            expect![[r#"
                / is a directory
            "#]],
        ),
        (
            "*** Delete File: a\n*** Update File: a\n@@\n-x\n+y",
            expect![[r#"
                /w/a does not exist
                hint: check the path; a new file is made with '*** Add File:'
            "#]],
        ),
    ] {
        check(&[("a", "x\n"), ("sub/x", "")], operations, expected);
    }
}
