//! Items of a thread as lines, and lines as rows of a given width.
//!
//! Invariant: pure. Every fold level is a subset of the lines of the next one, and a line tells how many are hidden.

use std::path::Path;

use codex_client::state::Item;
use serde_json::Value;

use crate::chat::command_text;
use crate::wrap::{row_columns, rows};
use crate::{Row, Span, Style, diff, printable, rich_text, visible};

/// The number of first and of last lines that a preview shows.
const HEAD_LINES: usize = 5;
const TAIL_LINES: usize = 5;
/// The number of lines of a diff that a preview shows.
const DIFF_LINES: usize = 40;
/// From this width on, the old and the new lines of a diff are next to each other.
pub(super) const SPLIT_WIDTH: usize = 160;

/// The part of an item that is shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Fold {
    /// Commands and names of files, without output.
    Commands,
    /// The first and the last lines.
    #[default]
    Preview,
    /// Everything.
    All,
}

impl Fold {
    /// The next level, around.
    pub(super) fn next(self) -> Self {
        match self {
            Self::Commands => Self::Preview,
            Self::Preview => Self::All,
            Self::All => Self::Commands,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Commands => "commands",
            Self::Preview => "preview",
            Self::All => "all",
        }
    }
}

/// The surroundings of an item.
#[derive(Debug, Clone, Copy)]
pub(super) struct Context<'a> {
    pub(super) cwd: &'a Path,
    pub(super) width: usize,
    pub(super) fold: Fold,
}

/// A row of the screen, and its place in the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LaidRow {
    pub(super) row: Row,
    /// The text that the wrap has swallowed before this row; `None` if a line begins here.
    pub(super) glue: Option<String>,
}

/// Wraps lines.
pub(super) fn wrapped(lines: &[Row], width: usize) -> Vec<LaidRow> {
    let mut laid = Vec::new();
    for line in lines {
        let text = logical(line);
        let mut place = 0;
        for (at, row) in rows(line, width.max(1)).into_iter().enumerate() {
            let shown = logical(&row);
            let start = text.get(place..).and_then(|rest| rest.find(&shown)).map_or(place, |found| place + found);
            let glue = (at > 0).then(|| text.get(place..start).unwrap_or_default().to_owned());
            place = (start + shown.len()).min(text.len());
            laid.push(LaidRow { row, glue });
        }
    }
    laid
}

/// The text of a row without the marks before it.
pub(super) fn logical(row: &[Span]) -> String {
    row.iter().filter(|span| !span.style.is_before_lines()).map(|span| span.text.as_str()).collect()
}

/// The number of columns of the marks before a row.
pub(super) fn before(row: &[Span]) -> usize {
    let marks: Vec<Span> = row.iter().take_while(|span| span.style.is_before_lines()).cloned().collect();
    row_columns(&marks)
}

/// The lines of an item.
pub(super) fn lines(item: &Item, context: Context<'_>) -> Vec<Row> {
    let members = item.members();
    let text = |name: &str| members.get(name).and_then(Value::as_str).unwrap_or_default();
    match item.kind() {
        "userMessage" => user(members.get("content")),
        "agentMessage" | "plan" => rich_text::lines(text("text"), context.width),
        "reasoning" => reasoning(members, context),
        "commandExecution" => command(item, context),
        "fileChange" => changes(item, context),
        "mcpToolCall" | "dynamicToolCall" => call(item, context),
        "collabAgentToolCall" => vec![note(Style::Green, "agent", &format!("{} {}", text("tool"), text("prompt")))],
        "webSearch" => vec![note(Style::Dim, "search", text("query"))],
        "imageView" => vec![note(Style::Dim, "looked at", text("path"))],
        "enteredReviewMode" => vec![note(Style::Bold, "review", text("review"))],
        "exitedReviewMode" => rich_text::lines(text("review"), context.width),
        "contextCompaction" => vec![vec![Span::new(Style::Dim, "Compacted: continuing from a summary")]],
        kind => vec![note(Style::Dim, "item", kind)],
    }
}

/// A line with a label.
pub(super) fn note(style: Style, what: &str, text: &str) -> Row {
    vec![Span::new(style, format!("{what}: ")), Span::new(Style::Plain, printable(text).replace('\n', " "))]
}

fn user(content: Option<&Value>) -> Vec<Row> {
    let mut lines = Vec::new();
    for part in content.and_then(Value::as_array).into_iter().flatten() {
        let text = |name: &str| part.get(name).and_then(Value::as_str);
        if let Some(text) = text("text") {
            lines.extend(printable(text).lines().map(|line| (Style::Bold, line.to_owned())));
        } else {
            let name = text("path").or_else(|| text("name")).unwrap_or("picture");
            lines.push((Style::Dim, format!("[{}]", printable(name).replace('\n', " "))));
        }
    }
    let mark = |at: usize| if at == 0 { "> " } else { "  " };
    let row = |(at, (style, text))| vec![Span::new(Style::Hang, mark(at)), Span::new(style, text)];
    lines.into_iter().enumerate().map(row).collect()
}

fn reasoning(members: &codex_client::event::Members, context: Context<'_>) -> Vec<Row> {
    let parts = |name: &str| -> Vec<&str> {
        members.get(name).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
    };
    let mut texts = parts("summary");
    if texts.is_empty() {
        texts = parts("content");
    }
    let text = texts.join("\n\n");
    let all = rich_text::lines(&text, context.width.saturating_sub(2));
    let shown = if context.fold == Fold::Commands { 1 } else { all.len() };
    let hidden = all.len().saturating_sub(shown);
    let dim = |row: Row| {
        let plain = |span: Span| if span.style == Style::Plain { Span::new(Style::Dim, span.text) } else { span };
        std::iter::once(Span::new(Style::Gutter, "~ ")).chain(row.into_iter().map(plain)).collect()
    };
    let mut lines: Vec<Row> = all.into_iter().take(shown).map(dim).collect();
    lines.extend(more(hidden));
    lines
}

/// The line that stands for hidden ones.
fn more(hidden: usize) -> Option<Row> {
    (hidden > 0).then(|| vec![Span::new(Style::Gutter, "  "), Span::new(Style::Dim, format!("… {hidden} more lines"))])
}

fn command(item: &Item, context: Context<'_>) -> Vec<Row> {
    let members = item.members();
    let text = |name: &str| members.get(name).and_then(Value::as_str).unwrap_or_default();
    let line = text("command");
    let mut lines = Vec::new();
    for (at, line) in printable(&command_text(line)).lines().enumerate() {
        let mark = if at == 0 { Span::new(Style::Hang, "$ ") } else { Span::new(Style::Hang, "  ") };
        lines.push(vec![mark, Span::new(Style::Bold, line)]);
    }
    lines.extend(folded(text("aggregatedOutput"), context.fold));
    if item.is_complete() {
        let code = members.get("exitCode").and_then(Value::as_i64);
        let (style, end) = match (text("status"), code) {
            ("declined", _) => (Style::Yellow, "declined".to_owned()),
            (_, Some(0)) | ("completed", None) => (Style::Dim, "exit 0".to_owned()),
            (_, code) => (Style::Red, format!("exit {}", code.unwrap_or(-1))),
        };
        lines.push(vec![Span::new(Style::Gutter, "  "), Span::new(style, format!("{end}{}", duration(members)))]);
    }
    lines
}

fn duration(members: &codex_client::event::Members) -> String {
    let ms = members.get("durationMs").and_then(Value::as_f64);
    ms.map(|ms| format!(", {:.1} s", ms / 1000.0)).unwrap_or_default()
}

/// The lines of some output at a fold level.
fn folded(output: &str, fold: Fold) -> Vec<Row> {
    let line = |text: &str| vec![Span::new(Style::Gutter, "  │ "), Span::new(Style::Dim, printable(text))];
    let count = output.lines().count();
    let (head, tail) = match fold {
        Fold::Commands => (0, 0),
        Fold::Preview if count > HEAD_LINES + TAIL_LINES + 1 => (HEAD_LINES, TAIL_LINES),
        Fold::Preview | Fold::All => (count, 0),
    };
    let mut lines: Vec<Row> = output.lines().take(head).map(line).collect();
    lines.extend(more(count - head - tail));
    lines.extend(output.lines().skip(count - tail).map(line));
    lines
}

fn changes(item: &Item, context: Context<'_>) -> Vec<Row> {
    let members = item.members();
    let mut lines = Vec::new();
    for change in members.get("changes").and_then(Value::as_array).into_iter().flatten() {
        lines.extend(change_lines(change, context));
    }
    let status = members.get("status").and_then(Value::as_str).unwrap_or_default();
    let (style, end) = match status {
        "completed" => (Style::Dim, "applied"),
        "failed" => (Style::Red, "could not be applied"),
        "declined" => (Style::Yellow, "declined"),
        _ => return lines,
    };
    lines.push(vec![Span::new(Style::Gutter, "  "), Span::new(style, end)]);
    lines
}

/// The lines of the change of one file.
pub(super) fn change_lines(change: &Value, context: Context<'_>) -> Vec<Row> {
    let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
    let kind = match text(change.pointer("/kind/type")).as_str() {
        "add" => diff::Kind::Add,
        "delete" => diff::Kind::Delete,
        _ => diff::Kind::Update,
    };
    let name = |path: &str| diff::relative(Path::new(path), context.cwd);
    let path = text(change.get("path"));
    let moved = change.pointer("/kind/move_path").and_then(Value::as_str);
    let shown = moved.map_or_else(|| name(&path), |to| format!("{} -> {}", name(&path), name(to)));
    let all = split_lines(&diff::change(kind, &shown, &text(change.get("diff"))));
    let most = match context.fold {
        Fold::Commands => 1,
        Fold::Preview => DIFF_LINES,
        Fold::All => all.len(),
    };
    let hidden = all.len().saturating_sub(most);
    let mut lines: Vec<Row> = all.into_iter().take(most).collect();
    if context.width >= SPLIT_WIDTH {
        lines = side_by_side(lines, context.width);
    }
    lines.extend(more(hidden));
    lines
}

/// Puts removed lines next to the added ones that follow them.
fn side_by_side(lines: Vec<Row>, width: usize) -> Vec<Row> {
    let half = (width - 3) / 2;
    let is = |row: &Row, style: Style| {
        row.first().is_some_and(|span| span.style == Style::Hang) && row.get(1).is_some_and(|span| span.style == style)
    };
    let cell = |row: Option<&Row>| -> Vec<Row> { row.map_or_else(|| vec![Row::new()], |row| rows(row, half)) };
    let mut out = Vec::new();
    let mut rest = lines.as_slice();
    while let Some(first) = rest.first() {
        let removed = rest.iter().take_while(|row| is(row, Style::Red)).count();
        let added = rest[removed..].iter().take_while(|row| is(row, Style::Green)).count();
        if removed + added == 0 {
            out.push(first.clone());
            rest = &rest[1..];
            continue;
        }
        let (old, new) = (&rest[..removed], &rest[removed..removed + added]);
        for at in 0..removed.max(added) {
            let (left, right) = (cell(old.get(at)), cell(new.get(at)));
            for part in 0..left.len().max(right.len()) {
                out.push(beside(left.get(part), right.get(part), half));
            }
        }
        rest = &rest[removed + added..];
    }
    out
}

fn beside(left: Option<&Row>, right: Option<&Row>, half: usize) -> Row {
    let mut row = left.cloned().unwrap_or_default();
    let room = half.saturating_sub(row_columns(&row));
    row.push(Span::new(Style::Plain, " ".repeat(room)));
    row.push(Span::new(Style::Dim, " │ "));
    row.extend(right.cloned().unwrap_or_default());
    row
}

/// Styled text as lines.
pub(super) fn split_lines(spans: &[Span]) -> Vec<Row> {
    let mut lines = vec![Row::new()];
    for span in spans {
        for (at, piece) in span.text.split('\n').enumerate() {
            if at > 0 {
                lines.push(Row::new());
            }
            if let Some(line) = lines.last_mut().filter(|_| !piece.is_empty()) {
                line.push(Span::new(span.style, piece));
            }
        }
    }
    lines.pop_if(|last| last.is_empty());
    lines
}

fn call(item: &Item, context: Context<'_>) -> Vec<Row> {
    let members = item.members();
    let text = |name: &str| members.get(name).and_then(Value::as_str).unwrap_or_default();
    let arguments = members.get("arguments").map(ToString::to_string).unwrap_or_default();
    let name = if text("server").is_empty() {
        text("tool").to_owned()
    } else {
        format!("{}.{}", text("server"), text("tool"))
    };
    let mut lines = vec![vec![
        Span::new(Style::Hang, "* "),
        Span::new(Style::Bold, visible(&name).replace('\n', " ")),
        Span::new(Style::Dim, format!(" {}", visible(&arguments).replace('\n', " "))),
    ]];
    let parts = members.get("result").and_then(|result| result.get("content")).and_then(Value::as_array);
    let texts: Vec<&str> =
        parts.into_iter().flatten().filter_map(|part| part.get("text").and_then(Value::as_str)).collect();
    lines.extend(folded(&texts.join("\n"), context.fold));
    let error = members.get("error").and_then(|error| error.get("message")).and_then(Value::as_str);
    if let Some(error) = error {
        lines.push(vec![
            Span::new(Style::Gutter, "  "),
            Span::new(Style::Red, format!("failed: {}", printable(error).replace('\n', " "))),
        ]);
    }
    lines
}
