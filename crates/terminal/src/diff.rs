//! Human-readable diffs: the operation on each file, its size, and numbered lines.

use std::path::Path;

use crate::style::add;
use crate::{Span, Style, visible};

/// The operation on a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The text is that of the new file.
    Add,
    /// The text is that of the old file.
    Delete,
    /// The text is a unified diff.
    Update,
}

/// A line of a change, with its number.
#[derive(Debug, Clone, Copy)]
enum Line<'a> {
    Added(Option<usize>, &'a str),
    Removed(Option<usize>, &'a str),
    Kept(Option<usize>, &'a str),
    /// Lines in between are left out.
    Gap,
    /// A remark about the lines around it.
    Remark(&'a str),
}

/// Renders the change of one file.
#[must_use]
pub fn change(kind: Kind, name: &str, text: &str) -> Vec<Span> {
    let lines = lines(kind, text);
    let what = word(kind);
    let mut out = Vec::new();
    let count = |is_counted: fn(&Line<'_>) -> bool| lines.iter().filter(|line| is_counted(line)).count();
    let (added, removed) =
        (count(|line| matches!(line, Line::Added(..))), count(|line| matches!(line, Line::Removed(..))));
    add(&mut out, Style::Bold, &format!("{what} {}", one_line(name)));
    if kind != Kind::Delete {
        add(&mut out, Style::Green, &format!(" +{added}"));
    }
    if kind != Kind::Add {
        add(&mut out, Style::Red, &format!(" −{removed}"));
    }
    add(&mut out, Style::Plain, "\n");
    let number = |line: &Line<'_>| match line {
        Line::Added(number, _) | Line::Removed(number, _) | Line::Kept(number, _) => *number,
        Line::Gap | Line::Remark(_) => None,
    };
    let digits = lines.iter().filter_map(number).max().unwrap_or(0).to_string().len().max(3);
    for line in &lines {
        let number = number(line).map(|number| number.to_string()).unwrap_or_default();
        add(&mut out, Style::Hang, &format!("  {number:>digits$} "));
        match line {
            Line::Added(_, text) => add(&mut out, Style::Green, &format!("+{}", seen(text))),
            Line::Removed(_, text) => add(&mut out, Style::Red, &format!("-{}", seen(text))),
            Line::Kept(_, text) => add(&mut out, Style::Dim, &format!(" {}", seen(text))),
            Line::Gap => add(&mut out, Style::Dim, "⋮"),
            Line::Remark(text) => add(&mut out, Style::Dim, &seen(text)),
        }
        add(&mut out, Style::Plain, "\n");
    }
    out
}

/// Renders the output of `git diff`.
#[must_use]
pub fn of_git(diff: &str) -> Vec<Span> {
    let mut out = Vec::new();
    for file in diff.split("\ndiff --git ") {
        let head = file.split("\n@@ ").next().unwrap_or_default();
        let body = file.get(head.len() + 1..).unwrap_or_default();
        let named = |mark: &str, side: &str| {
            let line = head.lines().find_map(|line| line.strip_prefix(mark))?.trim_end();
            let name = line.trim_matches('"');
            (name != "/dev/null").then(|| name.strip_prefix(side).unwrap_or(name).to_owned())
        };
        let (old, new) = (named("--- ", "a/"), named("+++ ", "b/"));
        let (kind, name) = match (old, new) {
            (None, Some(new)) => (Kind::Add, new),
            (Some(old), None) => (Kind::Delete, old),
            (Some(old), Some(new)) if old != new => (Kind::Update, format!("{old} -> {new}")),
            (Some(old), Some(_)) => (Kind::Update, old),
            (None, None) => {
                // Only a mode, a name or binary content has changed.
                let text = head.strip_prefix("diff --git ").unwrap_or(head);
                text.lines().for_each(|line| add(&mut out, Style::Dim, &format!("{}\n", seen(line))));
                continue;
            }
        };
        let shown = change(Kind::Update, &name, body);
        let is_renamed = |span: &Span| Span::new(span.style, span.text.replacen("change", word(kind), 1));
        out.extend(shown.iter().take(1).map(is_renamed).chain(shown.iter().skip(1).cloned()));
    }
    out
}

fn word(kind: Kind) -> &'static str {
    match kind {
        Kind::Add => "add",
        Kind::Delete => "delete",
        Kind::Update => "change",
    }
}

/// A path relative to a folder; unchanged if it is elsewhere.
#[must_use]
pub fn relative(path: &Path, folder: &Path) -> String {
    let inside = path.strip_prefix(folder).ok().filter(|rest| !rest.as_os_str().is_empty());
    inside.unwrap_or(path).display().to_string()
}

fn lines(kind: Kind, text: &str) -> Vec<Line<'_>> {
    match kind {
        Kind::Add => text.lines().enumerate().map(|(at, line)| Line::Added(Some(at + 1), line)).collect(),
        Kind::Delete => text.lines().enumerate().map(|(at, line)| Line::Removed(Some(at + 1), line)).collect(),
        Kind::Update => hunks(text),
    }
}

/// The lines of a unified diff. Numbers come from the hunk headers.
fn hunks(text: &str) -> Vec<Line<'_>> {
    let mut lines = Vec::new();
    let mut at: Option<(usize, usize)> = None;
    for line in text.lines() {
        if let Some(next) = line.strip_prefix("@@").and_then(starts) {
            if !lines.is_empty() {
                lines.push(Line::Gap);
            }
            at = Some(next);
            continue;
        }
        let (old, new) = (at.map(|at| at.0), at.map(|at| at.1));
        let (taken, shown) = match line.chars().next() {
            Some('+') => ((0, 1), Line::Added(new, &line[1..])),
            Some('-') => ((1, 0), Line::Removed(old, &line[1..])),
            Some(' ') => ((1, 1), Line::Kept(new, &line[1..])),
            None => ((1, 1), Line::Kept(new, "")),
            Some(_) => ((0, 0), Line::Remark(line)),
        };
        at = at.map(|(old, new)| (old + taken.0, new + taken.1));
        lines.push(shown);
    }
    lines
}

/// The start of a hunk in the old file and in the new one: `@@ -1,2 +3,4 @@`.
fn starts(head: &str) -> Option<(usize, usize)> {
    let number = |mark: char| {
        let word = head.split_whitespace().find_map(|word| word.strip_prefix(mark))?;
        word.split(',').next()?.parse::<usize>().ok()
    };
    Some((number('-')?, number('+')?))
}

/// Escapes invisible characters; tabs are kept.
fn seen(text: &str) -> String {
    text.split('\t').map(visible).collect::<Vec<_>>().join("\t")
}

fn one_line(name: &str) -> String {
    visible(name).replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    #[track_caller]
    fn check(spans: &[Span], expected: Expect) {
        expected.assert_eq(&spans.iter().map(|span| span.text.as_str()).collect::<String>());
    }

    #[test]
    fn a_change_has_numbers_and_sums() {
        let diff = "@@ -8,3 +8,4 @@ fn main\n one\n-two\n+2\n+3\n three\n@@ -100 +101 @@\n-x\n+y\n\\ No newline at end of file\n";
        check(
            &change(Kind::Update, "src/a.rs", diff),
            expect![[r#"
                change src/a.rs +3 −2
                    8  one
                    9 -two
                    9 +2
                   10 +3
                   11  three
                      ⋮
                  100 -x
                  101 +y
                      \ No newline at end of file
            "#]],
        );
        check(
            &change(Kind::Add, "n\u{1b}[8mew", "hello\n\tw\u{200b}orld\n"),
            expect![[r#"
                add n\u{1b}[8mew +2
                    1 +hello
                    2 +	w\u{200b}orld
            "#]],
        );
        check(
            &change(Kind::Delete, "old", "gone\n"),
            expect![[r#"
                delete old −1
                    1 -gone
            "#]],
        );
    }

    #[test]
    fn output_of_git_is_read_file_by_file() {
        let diff = "diff --git a/x b/x\nindex 1..2 100644\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\n+new\n\
                    diff --git a/n b/n\nnew file mode 100644\n--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+n\n\
                    diff --git a/p.png b/p.png\nindex 1..2\nBinary files a/p.png and b/p.png differ\n";
        check(
            &of_git(diff),
            expect![[r#"
                change x +1 −1
                    1 -old
                    1 +new
                add n +1 −0
                    1 +n
                a/p.png b/p.png
                index 1..2
                Binary files a/p.png and b/p.png differ
            "#]],
        );
    }

    #[test]
    fn a_path_within_the_folder_is_shortened() {
        assert_eq!(relative(Path::new("/w/src/a"), Path::new("/w")), "src/a");
        assert_eq!(relative(Path::new("/etc/a"), Path::new("/w")), "/etc/a");
        assert_eq!(relative(Path::new("/w"), Path::new("/w")), "/w");
    }
}
