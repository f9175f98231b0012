//! Patches from recorded transcripts, and exactly their recorded results.

use codex_patch::TurnDiff;
use codex_wire::change::FileChange;

use crate::Folder;

const ADD_AND_UPDATE: &str = "*** Begin Patch\n*** Add File: new.txt\n+first line\n+second line\n*** Update File: old.txt\n@@\n-before\n+after\n*** End Patch";

#[test]
fn an_added_and_an_updated_file() {
    let folder = Folder::with(&[("old.txt", "before\n")]);
    codex_files::testing::make_git_folder(&folder.at(".git")).unwrap();
    let plan = folder.planned(ADD_AND_UPDATE);
    let changes = [
        (folder.at("new.txt"), FileChange::Add { content: "first line\nsecond line\n".to_owned() }),
        (
            folder.at("old.txt"),
            FileChange::Update { unified_diff: "@@ -1 +1 @@\n-before\n+after\n".to_owned(), move_path: None },
        ),
    ];
    assert_eq!(plan.changes(), changes.into());
    assert_eq!(plan.paths(), [folder.at("new.txt"), folder.at("old.txt")]);
    let applied = plan.apply(&folder.guard()).unwrap();
    assert_eq!(applied.summary, "Success. Updated the following files:\nA new.txt\nM old.txt\n");
    assert_eq!(folder.read("new.txt"), b"first line\nsecond line\n");
    assert_eq!(folder.read("old.txt"), b"after\n");
    let mut turn = TurnDiff::new(&folder.path);
    assert_eq!(turn.unified(), None);
    turn.note(&applied);
    let text = turn.unified().unwrap();
    let ids = |line: &str| line.starts_with("index ") && line.len() == "index ..".len() + 80;
    let text: Vec<&str> = text.lines().map(|line| if ids(line) { "index <sha>..<sha>" } else { line }).collect();
    assert_eq!(
        text.join("\n"),
        "diff --git a/new.txt b/new.txt\nnew file mode 100644\nindex <sha>..<sha>\n--- /dev/null\n+++ b/new.txt\n@@ -0,0 +1,2 @@\n+first line\n+second line\ndiff --git a/old.txt b/old.txt\nindex <sha>..<sha>\n--- a/old.txt\n+++ b/old.txt\n@@ -1 +1 @@\n-before\n+after"
    );
}

#[test]
fn a_patch_with_the_names_of_contents() {
    let folder = Folder::with(&[("README.md", "# title\nold line\nend\n")]);
    let patch = "*** Begin Patch\n*** Add File: new.txt\n+hello\n*** Update File: README.md\n@@\n-old line\n+new line\n*** End Patch\n";
    let plan = folder.planned(patch);
    let update = FileChange::Update {
        unified_diff: "@@ -1,3 +1,3 @@\n # title\n-old line\n+new line\n end\n".to_owned(),
        move_path: None,
    };
    assert_eq!(plan.changes()[&folder.at("README.md")], update);
    let applied = plan.apply(&folder.guard()).unwrap();
    assert_eq!(applied.summary, "Success. Updated the following files:\nA new.txt\nM README.md\n");
    let mut turn = TurnDiff::new(&folder.path);
    turn.note(&applied);
    assert_eq!(
        turn.unified().unwrap(),
        "diff --git a/README.md b/README.md\nindex 36a50ff7572428ee00b9dbe6b0e44c7852d87840..ae239b198eecd2e44f10f2aff1dc922068ffc1e5\n--- a/README.md\n+++ b/README.md\n@@ -1,3 +1,3 @@\n # title\n-old line\n+new line\n end\ndiff --git a/new.txt b/new.txt\nnew file mode 100644\nindex 0000000000000000000000000000000000000000..ce013625030ba8dba906f756967f9e9ca394464a\n--- /dev/null\n+++ b/new.txt\n@@ -0,0 +1 @@\n+hello\n"
    );
}

#[test]
fn a_deleted_and_a_moved_file() {
    let folder = Folder::with(&[("a.txt", "one\ntwo\n"), ("gone.txt", "bye\n")]);
    let plan = folder.planned("*** Begin Patch\n*** Delete File: gone.txt\n*** Update File: a.txt\n*** Move to: b.txt\n@@\n one\n-two\n+three\n*** End Patch");
    let changes = [
        (folder.at("gone.txt"), FileChange::Delete { content: "bye\n".to_owned() }),
        (
            folder.at("a.txt"),
            FileChange::Update {
                unified_diff: "@@ -1,2 +1,2 @@\n one\n-two\n+three\n".to_owned(),
                move_path: Some(folder.at("b.txt")),
            },
        ),
    ];
    assert_eq!(plan.changes(), changes.into());
    let applied = plan.apply(&folder.guard()).unwrap();
    assert_eq!(applied.summary, "Success. Updated the following files:\nM b.txt\nD gone.txt\n");
    assert_eq!(folder.tree().into_iter().collect::<Vec<_>>(), [("b.txt".to_owned(), b"one\nthree\n".to_vec())]);
    let mut turn = TurnDiff::new(&folder.path);
    turn.note(&applied);
    let text = turn.unified().unwrap();
    let text: Vec<&str> = text.lines().filter(|line| !line.starts_with("index ")).collect();
    assert_eq!(
        text.join("\n"),
        "diff --git a/a.txt b/b.txt\n--- a/a.txt\n+++ b/b.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+three\ndiff --git a/gone.txt b/gone.txt\ndeleted file mode 100644\n--- a/gone.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-bye"
    );
}

/// The engine prefixes these with `apply_patch verification failed: `.
#[test]
fn the_report_of_a_patch_that_does_not_apply() {
    let folder = Folder::with(&[("old.txt", "before\n")]);
    let patch =
        codex_patch::parse("*** Begin Patch\n*** Update File: old.txt\n@@\n-no such line\n+after\n*** End Patch");
    let error = patch.unwrap().plan(&folder.path).unwrap_err().to_string();
    let file = folder.at("old.txt");
    assert_eq!(error, format!("Failed to find expected lines in {}:\nno such line", file.display()));
    let error = codex_patch::parse("this is no patch").unwrap_err().to_string();
    assert_eq!(error, "invalid patch: The first line of the patch must be '*** Begin Patch'");
}
