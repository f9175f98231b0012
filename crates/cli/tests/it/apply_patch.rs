//! The program as `apply_patch`: its output, its effect, and its exit status, as scripts of other releases expect them.

use std::collections::BTreeMap;
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

const FLAG: &str = "--codex-run-as-apply-patch";
const SUCCESS: &str = "Success. Updated the following files:\n";

type Tree<'a> = &'a [(&'a str, &'a str)];

/// The ways to call the program.
#[derive(Debug, Clone, Copy)]
enum Way {
    Argument,
    Input,
    Flag,
}

/// Runs the program in a new folder and returns the folder.
fn run(before: Tree, patch: &str, way: Way) -> (Output, TempDir) {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let work = folder.path().join("work");
    std::fs::create_dir(&work).expect("a folder can be made");
    for (name, text) in before {
        let file = work.join(name);
        std::fs::create_dir_all(file.parent().expect("it has one")).expect("a folder can be made");
        std::fs::write(file, text).expect("a file can be written");
    }
    let program = folder.path().join("apply_patch");
    symlink(env!("CARGO_BIN_EXE_codex"), &program).expect("a link can be made");
    let mut command = match way {
        Way::Argument | Way::Input => Command::new(program),
        Way::Flag => Command::new(env!("CARGO_BIN_EXE_codex")),
    };
    match way {
        Way::Argument => command.arg(patch),
        Way::Input => &mut command,
        Way::Flag => command.args([FLAG, patch]),
    };
    let streams = command.current_dir(&work).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = streams.spawn().expect("the program starts");
    let mut input = child.stdin.take().expect("it is piped");
    if matches!(way, Way::Input) {
        input.write_all(patch.as_bytes()).expect("the program reads");
    }
    drop(input);
    (child.wait_with_output().expect("the program ends"), folder)
}

fn tree(folder: &Path) -> BTreeMap<String, String> {
    let mut files = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(next).expect("the folder is there") {
            let path = entry.expect("it can be read").path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(folder).expect("it is below").display().to_string();
                files.insert(name, std::fs::read_to_string(path).expect("it is text"));
            }
        }
    }
    files
}

/// Checks the output and the effect of a patch for every way to call the program.
#[track_caller]
fn check(before: Tree, body: &str, told: Result<&str, &str>, after: Tree) {
    check_whole(before, &format!("*** Begin Patch\n{body}*** End Patch"), told, after);
}

#[track_caller]
fn check_whole(before: Tree, patch: &str, told: Result<&str, &str>, after: Tree) {
    for way in [Way::Argument, Way::Input, Way::Flag] {
        let (output, folder) = run(before, patch, way);
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("it is text");
        let (code, stdout, stderr) = match told {
            Ok(files) => (0, format!("{SUCCESS}{files}"), String::new()),
            Err(error) => (1, String::new(), format!("{error}\n")),
        };
        assert_eq!(
            (output.status.code(), text(&output.stdout), text(&output.stderr)),
            (Some(code), stdout, stderr),
            "{way:?}"
        );
        let after: BTreeMap<String, String> =
            after.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
        assert_eq!(tree(&folder.path().join("work")), after, "{way:?}");
    }
}

#[test]
fn files_are_added_changed_deleted_and_moved() {
    check(&[], "*** Add File: bar.md\n+new\n", Ok("A bar.md\n"), &[("bar.md", "new\n")]);
    check(
        &[("modify.txt", "line1\nline2\n"), ("delete.txt", "x\n")],
        "*** Add File: nested/new.txt\n+created\n*** Delete File: delete.txt\n*** Update File: modify.txt\n@@\n-line2\n+changed\n",
        Ok("A nested/new.txt\nM modify.txt\nD delete.txt\n"),
        &[("modify.txt", "line1\nchanged\n"), ("nested/new.txt", "created\n")],
    );
    check(
        &[("m.txt", "1\n2\n3\n4\n")],
        "*** Update File: m.txt\n@@\n-2\n+two\n@@\n-4\n+four\n",
        Ok("M m.txt\n"),
        &[("m.txt", "1\ntwo\n3\nfour\n")],
    );
    check(
        &[("old/name.txt", "old\n")],
        "*** Update File: old/name.txt\n*** Move to: renamed/dir/name.txt\n@@\n-old\n+new\n",
        Ok("M renamed/dir/name.txt\n"),
        &[("renamed/dir/name.txt", "new\n")],
    );
    check(
        &[("i.txt", "1\n2\n")],
        "*** Update File: i.txt\n@@\n+3\n+4\n",
        Ok("M i.txt\n"),
        &[("i.txt", "1\n2\n3\n4\n")],
    );
    check(
        &[("foo.txt", "line1\nnaïve café ✅\n")],
        "*** Update File: foo.txt\n@@\n line1\n-naïve café ✅\n+naïve café 🚀\n",
        Ok("M foo.txt\n"),
        &[("foo.txt", "line1\nnaïve café 🚀\n")],
    );
}

#[test]
fn existing_files_are_replaced() {
    check(
        &[("old/name.txt", "from\n"), ("renamed/name.txt", "existing\n")],
        "*** Update File: old/name.txt\n*** Move to: renamed/name.txt\n@@\n-from\n+new\n",
        Ok("M renamed/name.txt\n"),
        &[("renamed/name.txt", "new\n")],
    );
    check(&[("a", "old\n")], "*** Add File: a\n+new\n", Ok("A a\n"), &[("a", "new\n")]);
}

#[test]
fn white_space_around_markers_and_a_missing_last_newline_are_forgiven() {
    check(&[("a", "old\n")], "  *** Update File: a\n@@\n-old\n+new\n", Ok("M a\n"), &[("a", "new\n")]);
    let padded = " *** Begin Patch\n*** Update File: a\n@@\n-old\n+new\n*** End Patch ";
    check_whole(&[("a", "old\n")], padded, Ok("M a\n"), &[("a", "new\n")]);
    check(&[("a", "old")], "*** Update File: a\n@@\n-old\n+1\n+2\n", Ok("M a\n"), &[("a", "1\n2\n")]);
}

#[test]
fn a_patch_that_does_not_apply_fails_with_the_known_text_and_changes_nothing() {
    let before: Tree = &[("a", "1\n2\n"), ("dir/keep", "k\n")];
    for (body, error) in [
        ("", "No files were modified."),
        ("*** Update File: a\n@@\n-missing\n+x\n", "Failed to find expected lines in a:\nmissing"),
        ("*** Update File: a\n@@ nowhere\n-1\n+x\n", "Failed to find context 'nowhere' in a"),
        ("*** Delete File: missing.txt\n", "Failed to delete file missing.txt"),
        ("*** Delete File: dir\n", "Failed to delete file dir"),
        (
            "*** Update File: missing.txt\n@@\n-old\n+new\n",
            "Failed to read file to update missing.txt: No such file or directory (os error 2)",
        ),
        ("*** Update File: a\n", "Invalid patch hunk on line 2: Update file hunk for path 'a' is empty"),
        (
            "*** Frobnicate File: a\n",
            "Invalid patch hunk on line 2: '*** Frobnicate File: a' is not a valid hunk header. Valid hunk headers: \
             '*** Add File: {path}', '*** Delete File: {path}', '*** Update File: {path}'",
        ),
        (
            // Other releases leave the first file behind here; we apply a patch as a whole or not at all.
            "*** Add File: new\n+x\n*** Update File: missing.txt\n@@\n-old\n+new\n",
            "Failed to read file to update missing.txt: No such file or directory (os error 2)",
        ),
    ] {
        check(before, body, Err(error), before);
    }
    check_whole(&[], "hello", Err("Invalid patch: The first line of the patch must be '*** Begin Patch'"), &[]);
}

#[test]
fn wrong_usage_is_distinguished_from_a_wrong_patch() {
    let (output, folder) = run(&[], "", Way::Input);
    assert_eq!(output.status.code(), Some(2));
    let program = folder.path().join("apply_patch");
    let called = |program: &Path, args: &[&str]| {
        let output = Command::new(program).args(args).stdin(Stdio::null()).output().expect("the program runs");
        (output.status.code(), output.stdout)
    };
    assert_eq!(called(&program, &["one", "two"]), (Some(2), Vec::new()));
    assert_eq!(called(Path::new(env!("CARGO_BIN_EXE_codex")), &[FLAG]), (Some(1), Vec::new()));
}
