use std::fmt::Write as _;

use codex_wire::ids::RequestId;
use serde_json::json;

use super::*;
use crate::event::{Event, Teller};
use crate::state::State;

fn item(value: &Value) -> Members {
    value.as_object().cloned().unwrap_or_default()
}

/// A diff as text, with changed words in brackets.
fn shown(files: &[FileDiff]) -> String {
    let mut out = String::new();
    for file in files {
        let moved = file.moved_to.as_ref().map(|path| format!(" -> {path}")).unwrap_or_default();
        let _: std::fmt::Result =
            writeln!(out, "{:?} {}{moved} +{} -{}", file.kind, file.path, file.added, file.removed);
        for hunk in &file.hunks {
            let _: std::fmt::Result = writeln!(out, "@ {}", hunk.heading);
            for line in &hunk.lines {
                let mut text = line.text.clone();
                for range in line.changed.iter().rev() {
                    text.insert(range.end, ']');
                    text.insert(range.start, '[');
                }
                let number = |number: Option<usize>| number.map_or_else(|| "-".to_owned(), |number| number.to_string());
                let (old, new) = (number(line.old), number(line.new));
                let _: std::fmt::Result = writeln!(out, "{old} {new} {:?} {text}", line.side);
            }
        }
    }
    out
}

#[test]
fn a_patch_shows_numbers_and_changed_words() {
    let changes = json!({"changes": [
        {"path": "a.rs", "kind": {"type": "update", "move_path": "b.rs"}, "diff":
            "@@ -3,3 +3,3 @@ fn a()\n let x = 1;\n-    call(one, two);\n+    call(one, three);\n }\n"},
        {"path": "new.txt", "kind": {"type": "add"}, "diff": "first\nsecond\n"},
        {"path": "old.txt", "kind": {"type": "delete"}, "diff": "gone\n"},
    ]});
    assert_eq!(
        shown(&of_item(&item(&changes))),
        "Update a.rs -> b.rs +1 -1\n@ fn a()\n3 3 Both let x = 1;\n4 - Old     call(one, [two]);\n\
         - 4 New     call(one, [three]);\n5 5 Both }\n\
         Add new.txt +2 -0\n@ \n- 1 New first\n- 2 New second\nDelete old.txt +0 -1\n@ \n1 - Old gone\n"
    );
}

#[test]
fn lines_with_little_in_common_have_no_marks() {
    let changes = json!({"changes": [{"path": "a", "kind": {"type": "update"}, "diff":
        "@@ -1 +1 @@\n-the quick brown fox\n+nothing of that is left\n"}]});
    let files = of_item(&item(&changes));
    assert!(files[0].hunks[0].lines.iter().all(|line| line.changed.is_empty()), "{files:?}");
}

#[test]
fn a_diff_of_several_files_is_cut_at_them() {
    let diff = "diff --git a/x b/x\nindex 1..2 100644\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n\
                diff --git a/y b/y\nnew file mode 100644\n--- /dev/null\n+++ b/y\n@@ -0,0 +1 @@\n+y\n\
                diff --git a/p b/q\nsimilarity index 100%\nrename from p\nrename to q\n";
    let files = of_text(diff);
    let kinds: Vec<_> = files.iter().map(|file| (file.kind, file.path.as_str(), file.moved_to.as_deref())).collect();
    assert_eq!(kinds, [(Kind::Update, "x", None), (Kind::Add, "y", None), (Kind::Update, "p", Some("q"))]);
    assert_eq!((files[0].added, files[0].removed, files[1].added), (1, 1, 1));
}

#[test]
fn a_question_shows_the_changes_that_it_is_about() {
    let mut state = State::default();
    let change = item(&json!({"type": "fileChange", "id": "c", "status": "inProgress",
        "changes": [{"path": "n", "kind": {"type": "add"}, "diff": "one\n"}]}));
    let (thread, turn, teller) = ("t".to_owned(), "u".to_owned(), Teller::Items);
    state.apply(&Event::ItemStarted { thread, turn, item: change, teller, at_ms: None });
    let thread = state.thread("t").cloned().unwrap_or_default();
    let ask = |method: &str, params: Value| Question { id: RequestId::Integer(1), method: method.to_owned(), params };
    let newer = ask("item/fileChange/requestApproval", json!({"threadId": "t", "itemId": "c"}));
    let older = ask("applyPatchApproval", json!({"fileChanges": {"n": {"add": {"content": "one\n"}}}}));
    for question in [newer, older] {
        assert_eq!(shown(&of_question(&question, &thread)), "Add n +1 -0\n@ \n- 1 New one\n", "{question:?}");
    }
    assert!(of_question(&ask("item/fileChange/requestApproval", json!({})), &thread).is_empty());
}

#[test]
fn odd_and_large_input_is_bounded() {
    let long = format!("@@ -1 +1 @@\n{}", "+x\n".repeat(MOST_LINES + 5));
    let changes = json!({"changes": [
        {"path": "long", "kind": {"type": "update"}, "diff": long},
        {"path": "odd", "kind": 7, "diff": "no diff\nat all"},
        {"kind": {"type": "add"}},
        "text",
    ]});
    let files = of_item(&item(&changes));
    assert_eq!(files.len(), 2);
    assert_eq!((files[0].is_cut, files[0].added, files[0].hunks[0].lines.len()), (true, MOST_LINES + 5, MOST_LINES));
    assert!(files[1].hunks.is_empty());
    let wide = "a b ".repeat(MOST_WORDS);
    assert_eq!(changed_words(&wide, &wide), None, "a line with too many words is not compared");
}

proptest::proptest! {
    #[test]
    fn any_text_is_a_diff_with_valid_marks(text in "(\\PC|[-+ @\\n]){0,200}") {
        let changes = json!({"changes": [{"path": "p", "kind": {"type": "update"}, "diff": format!("@@ -1 +1 @@\n{text}")}]});
        for line in of_item(&item(&changes)).iter().flat_map(|file| &file.hunks).flat_map(|hunk| &hunk.lines) {
            for range in &line.changed {
                proptest::prop_assert!(line.text.get(range.clone()).is_some(), "{line:?}");
            }
        }
        let _: Vec<FileDiff> = of_text(&text);
    }
}
