//! Items of a thread as lines, and lines as rows of a given width.
//!
//! Invariant: pure.

use std::path::Path;

use codex_client::state::{Item, Turn};
use serde_json::Value;

use crate::chat::command_text;
use crate::{Row, Span, Style, diff, printable, rich_text, visible};
pub(super) use codex_views::fold::{Fold, folded, more};

/// The surroundings of an item.
#[derive(Debug, Clone, Copy)]
pub(super) struct Context<'a> {
    pub(super) cwd: &'a Path,
    pub(super) width: usize,
    pub(super) fold: Fold,
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
        "subAgentActivity" => vec![note(Style::Green, "agent", &format!("{} {}", text("agentPath"), text("kind")))],
        "webSearch" => vec![note(Style::Dim, "search", text("query"))],
        "imageView" => vec![note(Style::Dim, "looked at", text("path"))],
        "enteredReviewMode" => vec![note(Style::Bold, "review", text("review"))],
        "exitedReviewMode" => rich_text::lines(text("review"), context.width),
        "contextCompaction" => vec![vec![Span::new(Style::Dim, "Compacted: continuing from a summary")]],
        kind => vec![note(Style::Dim, "item", kind)],
    }
}

/// Whether an item is a review that the answer of its turn repeats, word for word.
pub(super) fn is_repeated(item: &Item, turn: &Turn) -> bool {
    let is_answer = |other: &&Item| other.kind() == "agentMessage";
    let review = item.members().get("review").filter(|_| item.kind() == "exitedReviewMode");
    review.is_some_and(|review| {
        turn.items().iter().filter(is_answer).any(|other| other.members().get("text") == Some(review))
    })
}

/// The Markdown of an item that still grows at its end.
pub(super) fn growing_text(item: &Item) -> Option<&str> {
    let is_growing = !item.is_complete() && matches!(item.kind(), "agentMessage" | "plan");
    item.members().get("text").and_then(Value::as_str).filter(|_| is_growing)
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

/// The words that the lines of an item have besides its own texts, in lower case.
pub(super) fn labels(item: &Item) -> String {
    match item.kind() {
        "commandExecution" => {
            let code = item.members().get("exitCode").and_then(Value::as_i64).unwrap_or(-1);
            format!("declined exit {code}")
        }
        "fileChange" => "change add delete applied declined could not be applied".to_owned(),
        "mcpToolCall" | "dynamicToolCall" => "failed".to_owned(),
        "contextCompaction" => "compacted continuing from a summary".to_owned(),
        _ => String::new(),
    }
}

fn duration(members: &codex_client::event::Members) -> String {
    let ms = members.get("durationMs").and_then(Value::as_f64);
    ms.map(|ms| format!(", {:.1} s", ms / 1000.0)).unwrap_or_default()
}

fn changes(item: &Item, context: Context<'_>) -> Vec<Row> {
    let members = item.members();
    let all = members.get("changes").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let mut lines = super::changes::of_item(all, context);
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

/// All lines of the change of one file, for a person who decides about it.
pub(super) fn whole_change(change: &Value, cwd: &Path) -> Vec<Row> {
    let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
    let kind = match text(change.pointer("/kind/type")).as_str() {
        "add" => diff::Kind::Add,
        "delete" => diff::Kind::Delete,
        _ => diff::Kind::Update,
    };
    let name = |path: &str| diff::relative(Path::new(path), cwd);
    let path = text(change.get("path"));
    let moved = change.pointer("/kind/move_path").and_then(Value::as_str);
    let shown = moved.map_or_else(|| name(&path), |to| format!("{} -> {}", name(&path), name(to)));
    split_lines(&diff::change(kind, &shown, &text(change.get("diff"))))
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
