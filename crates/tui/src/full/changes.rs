//! Changes of files as rows: unified, or the old and the new text next to each other where there is room; with the words
//! that have changed.
//!
//! Invariant: pure. Nothing invisible in a diff stays invisible.

use std::path::Path;

use codex_client::diff::{FileDiff, Kind, Line, Side};
use codex_client::event::Members;
use codex_views::page::Page;
use serde_json::Value;

use super::layout::{Context, Fold, more, split_lines};
use crate::wrap::{row_columns, rows};
use crate::{Row, Span, Style, diff, visible};

/// From this width on, the old and the new lines are next to each other.
const SPLIT_WIDTH: usize = 160;
/// The number of lines of a file that a preview shows.
const PREVIEW_LINES: usize = 40;
/// The number of files whose lines a preview shows, and of those that it names.
const PREVIEW_FILES: usize = 20;
const NAMED_FILES: usize = 200;

/// The changes of an item at a fold level.
pub(super) fn of_item(changes: &[Value], context: Context<'_>) -> Vec<Row> {
    let mut lines = Vec::new();
    let named = if context.fold == Fold::All { changes.len() } else { NAMED_FILES };
    for (at, change) in changes.iter().take(named).enumerate() {
        let fold = match context.fold {
            Fold::Preview if at >= PREVIEW_FILES => Fold::Commands,
            fold => fold,
        };
        lines.extend(of_change(change, Context { fold, ..context }));
    }
    let hidden = changes.len().saturating_sub(named);
    lines.extend((hidden > 0).then(|| vec![Span::new(Style::Dim, format!("  … {hidden} more files"))]));
    lines
}

/// One change, as an item tells it.
fn of_change(change: &Value, context: Context<'_>) -> Vec<Row> {
    let members: Members = [("changes".to_owned(), Value::Array(vec![change.clone()]))].into_iter().collect();
    let files = codex_client::diff::of_item(&members);
    match files.first() {
        Some(file) if !file.is_cut || context.fold != Fold::All => of_file(file, context),
        // Too long to compare its words: all of its lines nevertheless.
        _ => super::layout::whole_change(change, context.cwd),
    }
}

/// The change of one file.
fn of_file(file: &FileDiff, context: Context<'_>) -> Vec<Row> {
    let mut lines = vec![head(file, context)];
    let most = match context.fold {
        Fold::Commands => return lines,
        Fold::Preview => PREVIEW_LINES,
        Fold::All => usize::MAX,
    };
    let all: usize = file.hunks.iter().map(|hunk| hunk.lines.len()).sum();
    let number = |line: &Line| line.new.max(line.old);
    let highest = file.hunks.iter().flat_map(|hunk| &hunk.lines).filter_map(number).max().unwrap_or(0);
    let digits = highest.to_string().len().max(3);
    let mut left = most;
    for (at, hunk) in file.hunks.iter().enumerate() {
        if left == 0 {
            break;
        }
        if at > 0 || !hunk.heading.is_empty() {
            let heading = seen(&hunk.heading);
            lines.push(vec![
                Span::new(Style::Hang, format!("  {:>digits$} ", "")),
                Span::new(Style::Dim, format!("⋮ {heading}").trim_end().to_owned()),
            ]);
        }
        let shown = &hunk.lines[..hunk.lines.len().min(left)];
        left -= shown.len();
        if context.width >= SPLIT_WIDTH {
            lines.extend(side_by_side(shown, digits, context.width));
        } else {
            lines.extend(shown.iter().map(|line| unified(line, digits)));
        }
    }
    lines.extend(more(all.saturating_sub(most)));
    if file.is_cut {
        lines.push(vec![Span::new(Style::Dim, "  … the rest is too long to be shown here")]);
    }
    lines
}

fn head(file: &FileDiff, context: Context<'_>) -> Row {
    let name = |path: &str| visible(&diff::relative(Path::new(path), context.cwd)).replace('\n', "\\n");
    let what = match file.kind {
        Kind::Add => "add",
        Kind::Delete => "delete",
        Kind::Update => "change",
    };
    let name =
        file.moved_to.as_ref().map_or_else(|| name(&file.path), |to| format!("{} -> {}", name(&file.path), name(to)));
    let mut row = vec![Span::new(Style::Bold, format!("{what} {name}"))];
    row.extend((file.kind != Kind::Delete).then(|| Span::new(Style::Green, format!(" +{}", file.added))));
    row.extend((file.kind != Kind::Add).then(|| Span::new(Style::Red, format!(" −{}", file.removed))));
    row
}

fn unified(line: &Line, digits: usize) -> Row {
    let number = match line.side {
        Side::Old => line.old,
        Side::Both | Side::New => line.new,
    };
    cell(line, number, digits)
}

/// A line with its number, its mark and its changed words.
fn cell(line: &Line, number: Option<usize>, digits: usize) -> Row {
    let (mark, style, word) = match line.side {
        Side::New => ("+", Style::Green, Style::AddedWord),
        Side::Old => ("-", Style::Red, Style::RemovedWord),
        Side::Both => (" ", Style::Dim, Style::Dim),
    };
    let number = number.map(|number| number.to_string()).unwrap_or_default();
    let mut row = vec![Span::new(Style::Hang, format!("  {number:>digits$} ")), Span::new(style, mark)];
    let mut at = 0;
    for range in &line.changed {
        let (Some(before), Some(changed)) = (line.text.get(at..range.start), line.text.get(range.clone())) else {
            break;
        };
        row.extend((!before.is_empty()).then(|| Span::new(style, seen(before))));
        row.push(Span::new(word, seen(changed)));
        at = range.end;
    }
    let rest = line.text.get(at..).unwrap_or_default();
    row.extend((!rest.is_empty()).then(|| Span::new(style, seen(rest))));
    row
}

/// Old lines on the left and new ones on the right.
fn side_by_side(lines: &[Line], digits: usize, width: usize) -> Vec<Row> {
    let half = (width - 3) / 2;
    let laid = |line: Option<&Line>, is_old: bool| -> Vec<Row> {
        let number = |line: &Line| if is_old { line.old } else { line.new };
        line.map_or_else(|| vec![Row::new()], |line| rows(&cell(line, number(line), digits), half))
    };
    let mut out = Vec::new();
    let mut rest = lines;
    while let Some(first) = rest.first() {
        if first.side == Side::Both {
            join(&mut out, &laid(Some(first), true), &laid(Some(first), false), half);
            rest = &rest[1..];
            continue;
        }
        let removed = rest.iter().take_while(|line| line.side == Side::Old).count();
        let added = rest[removed..].iter().take_while(|line| line.side == Side::New).count();
        let (old, new) = (&rest[..removed], &rest[removed..removed + added]);
        for at in 0..removed.max(added) {
            join(&mut out, &laid(old.get(at), true), &laid(new.get(at), false), half);
        }
        rest = &rest[removed + added..];
    }
    out
}

fn join(out: &mut Vec<Row>, left: &[Row], right: &[Row], half: usize) {
    for part in 0..left.len().max(right.len()) {
        let mut row = left.get(part).cloned().unwrap_or_default();
        let room = half.saturating_sub(row_columns(&row));
        row.push(Span::new(Style::Plain, " ".repeat(room)));
        row.push(Span::new(Style::Dim, " │"));
        row.extend(right.get(part).cloned().unwrap_or_default());
        out.push(row);
    }
}

/// Escapes invisible characters; tabs become spaces, because a cell begins anywhere.
fn seen(text: &str) -> String {
    text.split('\t').map(visible).collect::<Vec<_>>().join("    ")
}

/// The text of a diff of several files, such as that of a turn.
pub(super) fn of_text(text: &str) -> Source {
    let files = codex_client::diff::of_text(text);
    if files.is_empty() && !text.is_empty() {
        return Source::Lines(split_lines(&diff::of_git(text)));
    }
    Source::Files(files)
}

/// The source of a page.
#[derive(Debug)]
pub(super) enum Source {
    Lines(Vec<Row>),
    Files(Vec<FileDiff>),
}

impl Source {
    pub(super) fn is_empty(&self) -> bool {
        match self {
            Self::Lines(lines) => lines.is_empty(),
            Self::Files(files) => files.is_empty(),
        }
    }
}

/// A page of changes below some lines; paths are relative to a folder.
pub(super) fn page(title: &str, before: Vec<Row>, source: Source, cwd: &Path) -> Page {
    let cwd = cwd.to_owned();
    let layout = move |width| {
        let context = Context { cwd: &cwd, width, fold: Fold::All };
        let lines: Vec<Row> = match &source {
            Source::Lines(lines) => lines.clone(),
            Source::Files(files) => files.iter().flat_map(|file| of_file(file, context)).collect(),
        };
        before.iter().cloned().chain(lines).collect()
    };
    Page::laid(title, SPLIT_WIDTH, Box::new(layout))
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::json;

    use super::*;

    fn shown(width: usize) -> String {
        let diff = "@@ -8,3 +8,3 @@ fn main\n one\n-let a = old(1);\n+let a = new(1);\n three\n";
        let change = json!({"path": "/w/src/a.rs", "kind": {"type": "update"}, "diff": diff});
        let context = Context { cwd: Path::new("/w"), width, fold: Fold::All };
        let text = |row: Row| {
            let mark = |span: Span| match span.style {
                Style::AddedWord | Style::RemovedWord => format!("[{}]", span.text),
                _ => span.text,
            };
            row.into_iter().map(mark).collect::<String>().trim_end().to_owned() + "\n"
        };
        of_item(&[change], context).into_iter().map(text).collect()
    }

    #[test]
    fn changed_words_are_marked_and_wide_screens_show_both_texts() {
        expect![[r#"
            change src/a.rs +1 −1
                  ⋮ fn main
                8  one
                9 -let a = [old](1);
                9 +let a = [new](1);
               10  three
        "#]]
        .assert_eq(&shown(80));
        let split = shown(160);
        let rows: Vec<&str> = split.lines().collect();
        assert_eq!(rows.len(), 5, "{split}");
        assert!(rows[3].contains("9 -let a = [old](1);") && rows[3].contains("│    9 +let a = [new](1);"), "{split}");
    }

    #[test]
    fn a_change_of_ten_thousand_files_is_short_until_it_is_opened() {
        let change = |at: usize| json!({"path": format!("/w/{at}"), "kind": {"type": "add"}, "diff": "x\n"});
        let changes: Vec<Value> = (0..10_000).map(change).collect();
        let context = Context { cwd: Path::new("/w"), width: 80, fold: Fold::Preview };
        let lines = of_item(&changes, context);
        assert!(lines.len() < 300, "{}", lines.len());
        assert!(lines.last().is_some_and(|row| row[0].text.contains("9800 more files")));
        assert_eq!(of_item(&changes, Context { fold: Fold::All, ..context }).len(), 20_000);
    }
}
