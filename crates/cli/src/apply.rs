//! `codex apply`: the changes of a thread's last turn that changed files, made again in this folder.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use codex_config::{Env, Home};
use codex_engine::own_git::{OwnGit, writable_folders};
use codex_store::{Entry, RolloutLines, ThreadIndex, ThreadSummary};
use codex_wire::change::FileChange;
use serde::Deserialize;

use crate::args::{ApplyArgs, Shared};
use crate::proto::working_directory;
use crate::threads::locate;

/// Applies the changes with `git apply`, which runs nothing that a repository names.
pub(crate) fn run(shared: &Shared, args: &ApplyArgs) -> anyhow::Result<ExitCode> {
    let env = Env::process();
    let home = Home::find(&env)?;
    let index = ThreadIndex::open(home.path());
    let cwd = working_directory(shared)?;
    let thread = match &args.thread {
        Some(word) => locate::thread(&index, word)?,
        None => locate::newest(&index, None)?,
    };
    let patches = last_patches(&thread)?;
    if patches.is_empty() {
        bail!("no turn of the thread {} has changed files", thread.id);
    }
    if args.print {
        crate::console::document().write_all(patches.concat().as_bytes())?;
        return Ok(ExitCode::SUCCESS);
    }
    let git = OwnGit::find(&home, &env, &writable_folders(&cwd, None)).context("could not run git")?;
    for patch in &patches {
        apply(&git, &cwd, patch)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The patches of the last turn that has any, each as a diff.
fn last_patches(thread: &ThreadSummary) -> anyhow::Result<Vec<String>> {
    let mut lines = RolloutLines::open(&thread.path)?;
    let (mut last, mut turn) = (Vec::new(), Vec::new());
    while let Some(entry) = lines.next_entry()? {
        let Entry::Line(line) = entry else { continue };
        let Ok(event) = serde_json::from_str::<Told>(line.payload.get()) else { continue };
        match (&*event.kind, event.item) {
            ("task_started" | "turn_started" | "user_message", _) if !turn.is_empty() => {
                last = std::mem::take(&mut turn);
            }
            ("item_completed", Some(StoredItem::FileChange { changes, status })) if status == "completed" => {
                turn.push(diff(&changes, &thread.cwd));
            }
            _ => {}
        }
    }
    Ok(if turn.is_empty() { last } else { turn })
}

#[derive(Deserialize)]
struct Told {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    item: Option<StoredItem>,
}

#[derive(Deserialize)]
#[serde(tag = "type")]
enum StoredItem {
    FileChange {
        changes: BTreeMap<PathBuf, FileChange>,
        #[serde(default)]
        status: String,
    },
    #[serde(other)]
    Other,
}

/// Changes as a diff that git reads, with paths from the folder of the thread.
fn diff(changes: &BTreeMap<PathBuf, FileChange>, folder: &Path) -> String {
    let mut diff = String::new();
    let relative = |path: &Path| path.strip_prefix(folder).unwrap_or(path).display().to_string();
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

/// A name as git writes it. One that holds the end of a line would otherwise go on as a header of its own.
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

/// The hunks of a diff without its names.
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

/// Applies a diff and passes on what git says about it.
fn apply(git: &OwnGit, cwd: &Path, patch: &str) -> anyhow::Result<()> {
    let applied = git.apply(cwd, patch)?;
    for line in applied.said.lines() {
        crate::console::note(format_args!("{line}"));
    }
    anyhow::ensure!(applied.is_complete, "git apply failed, see above; `codex apply --print` shows the diff");
    Ok(())
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
    fn a_name_cannot_go_on_as_a_header() {
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
}
