//! The texts that are accepted as patches.

use codex_patch::{Chunk, LineKind, Operation, parse};
use expect_test::{Expect, expect};

fn show_chunk(chunk: &Chunk) -> String {
    let mut out = format!("  @@ {:?}", chunk.anchors);
    if chunk.end_of_file {
        out += " at end";
    }
    if let Some(newline) = chunk.final_newline {
        out += if newline { ", with newline" } else { ", without newline" };
    }
    for line in &chunk.lines {
        let sign = match line.kind {
            LineKind::Context => ' ',
            LineKind::Remove => '-',
            LineKind::Add => '+',
        };
        let remarks = [(line.bare, " bare"), (line.carriage_return, " CR")];
        let remarks: String = remarks.iter().filter(|(is, _)| *is).map(|(_, remark)| *remark).collect();
        out += &format!("\n  {sign}{:?}{remarks}", line.text);
    }
    out + "\n"
}

/// Parses a patch and prints it, or the error.
#[track_caller]
fn check(text: &str, expected: Expect) {
    let shown = match parse(text) {
        Err(error) => format!("{error}\n"),
        Ok(patch) => patch.operations.iter().map(show_operation).collect(),
    };
    expected.assert_eq(&shown);
}

fn show_operation(operation: &Operation) -> String {
    match operation {
        Operation::Add { path, content } => format!("add {} {content:?}\n", path.display()),
        Operation::Delete { path } => format!("delete {}\n", path.display()),
        Operation::Update { path, move_to, chunks } => {
            let to = move_to.as_ref().map(|to| format!(" to {}", to.display())).unwrap_or_default();
            let chunks: String = chunks.iter().map(show_chunk).collect();
            format!("update {}{to}\n{chunks}", path.display())
        }
    }
}

#[test]
fn all_operations() {
    check(
        "*** Begin Patch\n*** Add File: a b/new.txt\n+one\n+\n++two\n*** Delete File: old.txt\n\
         *** Update File: x.rs\n*** Move to: y.rs\n@@ mod a\n@@   fn f()\n keep\n-old\n+new\n\n\
         @@\n-end\n*** End of File\n*** End Patch\n",
        expect![[r#"
            add a b/new.txt "one\n\n+two\n"
            delete old.txt
            update x.rs to y.rs
              @@ ["mod a", "  fn f()"]
               "keep"
              -"old"
              +"new"
               "" bare
              @@ [] at end
              -"end"
        "#]],
    );
}

#[test]
fn the_first_chunk_needs_no_header() {
    check(
        "*** Begin Patch\n*** Update File: a\n-x\n+y\n@@\n z\n+w\n*** End Patch",
        expect![[r#"
        update a
          @@ []
          -"x"
          +"y"
          @@ []
           "z"
          +"w"
    "#]],
    );
}

#[test]
fn white_space_around_markers_is_forgiven() {
    check(
        "\n  *** Begin Patch  \n\n *** Add File:   a.txt \n+x\n\n  *** Delete File: b\n\n\t*** End Patch \n\n",
        expect![[r#"
            add a.txt "x\n"
            delete b
        "#]],
    );
}

#[test]
fn carriage_returns_at_every_line_belong_to_the_transport() {
    check(
        "*** Begin Patch\r\n*** Update File: a\r\n@@ x\r\n-y\r\n+z\r\n*** End Patch\r\n",
        expect![[r#"
        update a
          @@ ["x"]
          -"y"
          +"z"
    "#]],
    );
}

#[test]
fn a_carriage_return_at_one_line_is_meant() {
    check(
        "*** Begin Patch\n*** Update File: a\n@@ x\r\n-y\n+z\r\n*** End Patch\n",
        expect![[r#"
        update a
          @@ ["x"]
          -"y"
          +"z" CR
    "#]],
    );
}

#[test]
fn a_here_document_around_the_patch_is_taken_off() {
    let patch = "*** Begin Patch\n*** Delete File: a\n*** End Patch";
    for (open, close) in [("<<'EOF'", "EOF"), ("<<EOF", "EOF"), ("<< \"PATCH\"", "PATCH\n"), (" <<EOF ", " EOF \n\n")] {
        assert_eq!(parse(&format!("{open}\n{patch}\n{close}")), parse(patch), "{open}");
    }
    check(
        "<<'EOF'\n*** Begin Patch\n*** Delete File: a\n*** End Patch\nEND",
        expect![[r#"
        invalid patch: The first line of the patch must be '*** Begin Patch'
    "#]],
    );
}

#[test]
fn headers_of_other_diffs_are_no_anchors() {
    check(
        "*** Begin Patch\n*** Update File: a\n@@ -1,3 +1,4 @@\n-x\n@@ -10 +11,2 @@ fn main() {\n-y\n@@ -1 is no header\n-z\n*** End Patch",
        expect![[r#"
            update a
              @@ []
              -"x"
              @@ ["fn main() {"]
              -"y"
              @@ ["-1 is no header"]
              -"z"
        "#]],
    );
}

#[test]
fn the_remark_about_the_last_newline_is_understood() {
    check(
        "*** Begin Patch\n*** Update File: a\n@@\n-x\n\\ No newline at end of file\n+y\n*** Update File: b\n@@\n-x\n+y\n\
         \\ No newline at end of file\n*** Add File: c\n+z\n\\ No newline at end of file\n*** End Patch",
        expect![[r#"
            update a
              @@ [] at end, with newline
              -"x"
              +"y"
            update b
              @@ [] at end, without newline
              -"x"
              +"y"
            add c "z"
        "#]],
    );
}

#[test]
fn empty_lines_in_a_new_file_are_lines() {
    check(
        "*** Begin Patch\n*** Add File: a\n+x\n\n+y\n\n*** Add File: b\n*** End Patch",
        expect![[r#"
        add a "x\n\ny\n"
        add b ""
    "#]],
    );
}

#[test]
fn a_move_alone_is_an_update() {
    check(
        "*** Begin Patch\n*** Update File: a\n*** Move to: b\n\n*** End Patch",
        expect![[r#"
        update a to b
    "#]],
    );
}

#[test]
fn lines_that_look_like_markers_are_lines_behind_a_prefix() {
    check(
        "*** Begin Patch\n*** Update File: a\n@@\n *** End Patch\n-*** Begin Patch\n+@@\n*** Add File: b\n+*** End Patch\n*** End Patch",
        expect![[r#"
            update a
              @@ []
               "*** End Patch"
              -"*** Begin Patch"
              +"@@"
            add b "*** End Patch\n"
        "#]],
    );
}

#[test]
fn errors_name_the_line_and_what_was_expected() {
    for (text, expected) in [
        (
            "",
            expect![[r#"
            invalid patch: The first line of the patch must be '*** Begin Patch'
        "#]],
        ),
        (
            "this is no patch",
            expect![[r#"
            invalid patch: The first line of the patch must be '*** Begin Patch'
        "#]],
        ),
        (
            "*** Begin Patch",
            expect![[r#"
            invalid patch: The last line of the patch must be '*** End Patch'
        "#]],
        ),
        (
            "*** Begin Patch\n*** Delete File: a\n",
            expect![[r#"
            invalid patch: The last line of the patch must be '*** End Patch'
        "#]],
        ),
        (
            "*** Begin Patch\n*** End Patch",
            expect![[r#"
                invalid patch: line 2: expected '*** Add File: PATH', '*** Delete File: PATH' or '*** Update File: PATH', found '*** End Patch'
            "#]],
        ),
        (
            "\n\n*** Begin Patch\n*** Delete File: a\nnonsense\n*** End Patch",
            expect![[r#"
            invalid patch: line 5: expected '*** Add File: PATH', '*** Delete File: PATH', '*** Update File: PATH' or '*** End Patch', found 'nonsense'
        "#]],
        ),
        (
            "*** Begin Patch\n*** Add File:\n+x\n*** End Patch",
            expect![[r#"
            invalid patch: line 2: expected a path, found '*** Add File:'
        "#]],
        ),
    ] {
        check(text, expected);
    }
}

#[test]
fn errors_in_updates_name_the_line_and_what_was_expected() {
    for (text, expected) in [
        (
            "*** Begin Patch\n*** Update File: a\n*** End Patch",
            expect![[r#"
                invalid patch: line 2: the update of 'a' has no lines
            "#]],
        ),
        (
            "*** Begin Patch\n*** Update File: a\n@@ x\n*** End Patch",
            expect![[r#"
            invalid patch: line 4: expected a line that begins with ' ', '-' or '+', found '*** End Patch'
        "#]],
        ),
        (
            "*** Begin Patch\n*** Update File: a\n@@\n-x\nno prefix\n*** End Patch",
            expect![[r#"
            invalid patch: line 5: expected a line that begins with ' ', '-' or '+', found 'no prefix'
        "#]],
        ),
        (
            "*** Begin Patch\n*** Update File: a\n@@\n-x\n*** End of File\n+y\n*** End Patch",
            expect![[r#"
                invalid patch: line 6: expected '@@' or '***', found '+y'
            "#]],
        ),
        (
            "*** Begin Patch\n*** Rename File: a\n*** End Patch",
            expect![[r#"
            invalid patch: line 2: expected '*** Add File: PATH', '*** Delete File: PATH', '*** Update File: PATH' or '*** End Patch', found '*** Rename File: a'
        "#]],
        ),
        (
            "*** Begin Patch\n*** Delete File: a\0b\n*** End Patch",
            expect![[r#"
                invalid patch: line 2: expected a path, found '*** Delete File: a�b'
            "#]],
        ),
    ] {
        check(text, expected);
    }
}
