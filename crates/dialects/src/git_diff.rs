//! The changes of a turn, as a diff for git and as a short summary.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use codex_wire::change::FileChange;

/// The changes of one patch, by file.
pub type Changes = BTreeMap<PathBuf, FileChange>;

/// Changes as a diff that git reads, with paths from a folder.
#[must_use]
pub fn diff(changes: &Changes, folder: &Path) -> String {
    let mut diff = String::new();
    let relative = |path: &Path| relative(path, folder);
    for (path, change) in changes {
        let name = relative(path);
        let (old, new) = (quoted("a/", &name), quoted("b/", &name));
        // Writing to a text cannot fail.
        let _: std::fmt::Result = match change {
            FileChange::Add { content } => {
                let lines = marked('+', content);
                let count = content.lines().count();
                write!(
                    diff,
                    "diff --git {old} {new}\nnew file mode 100644\n--- /dev/null\n+++ {new}\n\
                     @@ -0,0 +1,{count} @@\n{lines}"
                )
            }
            FileChange::Delete { content } => {
                let lines = marked('-', content);
                let count = content.lines().count();
                write!(
                    diff,
                    "diff --git {old} {new}\ndeleted file mode 100644\n--- {old}\n+++ /dev/null\n\
                     @@ -1,{count} +0,0 @@\n{lines}"
                )
            }
            FileChange::Update { unified_diff, move_path } => {
                let to = move_path.as_deref().map_or_else(|| name.clone(), relative);
                let (from, into) = (quoted("", &name), quoted("", &to));
                let moved = move_path.as_ref().map(|_| format!("rename from {from}\nrename to {into}\n"));
                let (moved, new) = (moved.unwrap_or_default(), quoted("b/", &to));
                write!(diff, "diff --git {old} {new}\n{moved}--- {old}\n+++ {new}\n{}", hunks(unified_diff))
            }
        };
    }
    diff
}

/// The net change of each file: `A`, `M` or `D`, and its path relative to a folder.
#[must_use]
pub fn summary<'a>(all: impl IntoIterator<Item = &'a Changes>, folder: &Path) -> Vec<String> {
    let mut files: BTreeMap<&Path, Option<char>> = BTreeMap::new();
    let added = |before: Option<&Option<char>>| match before {
        Some(Some('D')) => Some('M'),
        _ => Some('A'),
    };
    let deleted = |before: Option<&Option<char>>| match before {
        Some(Some('A')) => None,
        _ => Some('D'),
    };
    for (path, change) in all.into_iter().flatten() {
        let before = files.get(&**path);
        let after = match change {
            FileChange::Add { .. } => added(before),
            FileChange::Delete { .. } | FileChange::Update { move_path: Some(_), .. } => deleted(before),
            FileChange::Update { move_path: None, .. } => before.copied().flatten().or(Some('M')),
        };
        files.insert(path, after);
        if let FileChange::Update { move_path: Some(to), .. } = change {
            let after = added(files.get(&**to));
            files.insert(to, after);
        }
    }
    let line = |(path, kind): (&Path, Option<char>)| Some(format!("{} {}", kind?, quoted("", &relative(path, folder))));
    files.into_iter().filter_map(line).collect()
}

/// The changes, with paths below one folder moved below another.
#[must_use]
pub fn moved(changes: Changes, from: &Path, to: &Path) -> Changes {
    let there = |path: PathBuf| path.strip_prefix(from).map(|rest| to.join(rest)).unwrap_or(path);
    let moved = |(path, change)| match change {
        FileChange::Update { unified_diff, move_path } => {
            (there(path), FileChange::Update { unified_diff, move_path: move_path.map(there) })
        }
        change => (there(path), change),
    };
    changes.into_iter().map(moved).collect()
}

/// All files of the changes.
pub fn paths(changes: &Changes) -> impl Iterator<Item = &Path> {
    changes.iter().flat_map(|(path, change)| {
        let moved = match change {
            FileChange::Update { move_path, .. } => move_path.as_deref(),
            FileChange::Add { .. } | FileChange::Delete { .. } => None,
        };
        std::iter::once(&**path).chain(moved)
    })
}

fn relative(path: &Path, folder: &Path) -> String {
    path.strip_prefix(folder).unwrap_or(path).display().to_string()
}

/// A name as git writes it. An unquoted line break would start another header.
fn quoted(prefix: &str, name: &str) -> String {
    let is_plain = |c: char| !c.is_control() && c != '"' && c != '\\';
    if name.chars().all(is_plain) {
        return format!("{prefix}{name}");
    }
    let mut text = format!("\"{prefix}");
    for c in name.chars() {
        match c {
            '\n' => text.push_str("\\n"),
            '\t' => text.push_str("\\t"),
            '"' | '\\' => text.extend(['\\', c]),
            c if c.is_ascii_control() => {
                // Writing to a text cannot fail.
                let _: std::fmt::Result = write!(text, "\\{:03o}", u32::from(c));
            }
            c => text.push(c),
        }
    }
    text.push('"');
    text
}

/// The hunks of a diff without its file names.
fn hunks(diff: &str) -> String {
    let start = if diff.starts_with("@@") { 0 } else { diff.find("\n@@").map_or(0, |place| place + 1) };
    let mut hunks = diff.get(start..).unwrap_or_default().to_owned();
    if !hunks.ends_with('\n') {
        hunks.push('\n');
    }
    hunks
}

fn marked(mark: char, text: &str) -> String {
    let mut lines = String::new();
    for line in text.lines() {
        lines.push(mark);
        lines.push_str(line);
        lines.push('\n');
    }
    if !text.is_empty() && !text.ends_with('\n') {
        lines.push_str("\\ No newline at end of file\n");
    }
    lines
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn changes_become_a_diff_that_git_reads() {
        let update = FileChange::Update { unified_diff: "@@ -1 +1 @@\n-a\n+b\n".to_owned(), move_path: None };
        let changes = BTreeMap::from([
            (PathBuf::from("/w/new.txt"), FileChange::Add { content: "x\ny".to_owned() }),
            (PathBuf::from("/w/old.txt"), update),
        ]);
        expect![[r"
            diff --git a/new.txt b/new.txt
            new file mode 100644
            --- /dev/null
            +++ b/new.txt
            @@ -0,0 +1,2 @@
            +x
            +y
            \ No newline at end of file
            diff --git a/old.txt b/old.txt
            --- a/old.txt
            +++ b/old.txt
            @@ -1 +1 @@
            -a
            +b
        "]]
        .assert_eq(&diff(&changes, Path::new("/w")));
    }

    #[test]
    fn a_file_name_cannot_add_a_header() {
        let changes = BTreeMap::from([(
            PathBuf::from("/w/a\nnew file mode 120000\n\"\\\u{1b}\t.txt"),
            FileChange::Add { content: "x\n".to_owned() },
        )]);
        expect![[r#"
            diff --git "a/a\nnew file mode 120000\n\"\\\033\t.txt" "b/a\nnew file mode 120000\n\"\\\033\t.txt"
            new file mode 100644
            --- /dev/null
            +++ "b/a\nnew file mode 120000\n\"\\\033\t.txt"
            @@ -0,0 +1,1 @@
            +x
        "#]]
        .assert_eq(&diff(&changes, Path::new("/w")));
    }

    #[test]
    fn each_file_is_summed_up_once() {
        let update = |to: Option<&str>| FileChange::Update {
            unified_diff: "@@ -1 +1 @@\n-a\n+b\n".to_owned(),
            move_path: to.map(PathBuf::from),
        };
        let text = || "x\n".to_owned();
        let all = [
            Changes::from([
                ("/w/made".into(), FileChange::Add { content: text() }),
                ("/w/passing".into(), FileChange::Add { content: text() }),
                ("/w/replaced".into(), FileChange::Delete { content: text() }),
                ("/w/sub/changed".into(), update(None)),
                ("/w/from".into(), update(Some("/w/to"))),
            ]),
            Changes::from([
                ("/w/made".into(), update(None)),
                ("/w/passing".into(), FileChange::Delete { content: text() }),
                ("/w/replaced".into(), FileChange::Add { content: text() }),
                ("/w/gone".into(), FileChange::Delete { content: text() }),
            ]),
        ];
        let lines = summary(&all, Path::new("/w"));
        assert_eq!(lines, ["D from", "D gone", "A made", "M replaced", "M sub/changed", "A to"]);
    }
}
