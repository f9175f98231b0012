//! Pages and lists made of the state: usage, timeline, help, plans, MCP servers, threads.

use codex_client::state::Thread;
use serde_json::Value;

use super::app::App;
use super::layout;
use crate::key::Key;
use crate::picker::{Entry, Picked, Picker};
use crate::{Row, Span, Style, amount, one_line, printable};

/// A list to pick from, with a title. Each entry stands for a value.
#[derive(Debug)]
pub(super) struct List {
    title: String,
    pub(super) values: Vec<String>,
    picker: Picker,
    /// Whether the picked thread is forked.
    pub(super) is_fork: bool,
    /// The number of entries that a filter hides.
    hidden: usize,
}

impl List {
    pub(super) fn new(title: &str, entries: Vec<(String, Entry)>, is_fork: bool, hidden: usize) -> Self {
        let (values, entries) = entries.into_iter().unzip();
        Self { title: title.to_owned(), values, picker: Picker::new(entries), is_fork, hidden }
    }

    pub(super) fn press(&mut self, key: &Key) -> Picked {
        self.picker.press(key)
    }

    pub(super) fn rows(&self, (width, height): (usize, usize)) -> Vec<Row> {
        let mut rows = vec![vec![Span::new(Style::Bar, format!(" {} ", self.title))]];
        rows.extend(self.picker.rows(width, height.saturating_sub(2)));
        rows.resize(height.saturating_sub(1).max(1), Row::new());
        let hidden = if self.hidden > 0 { format!(" · {} not shown", self.hidden) } else { String::new() };
        let query = self.picker.query();
        let text = format!("> {query}   arrows or a number, type to search, Enter to open, Esc to cancel{hidden}");
        rows.push(vec![Span::new(Style::Dim, text)]);
        rows
    }
}

/// A line with a name and a value.
pub(super) fn field(name: &str, value: &str) -> Row {
    vec![Span::new(Style::Hang, format!("{name:>11}  ")), Span::new(Style::Plain, printable(value).replace('\n', " "))]
}

/// The lines of a plan.
pub(super) fn plan(plan: &Value) -> Vec<Row> {
    let text = |value: &Value, name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let mut head = vec![Span::new(Style::Bold, "Plan")];
    let why = text(plan, "explanation");
    if !why.is_empty() {
        head.push(Span::new(Style::Dim, format!(" ({})", printable(&why).replace('\n', " "))));
    }
    let mut lines = vec![head];
    for step in plan.get("steps").and_then(Value::as_array).into_iter().flatten() {
        let (mark, style) = match text(step, "status").as_str() {
            "completed" => ("  [x] ", Style::Green),
            "inProgress" => ("  [>] ", Style::Bold),
            _ => ("  [ ] ", Style::Plain),
        };
        lines.push(vec![
            Span::new(Style::Hang, mark),
            Span::new(style, printable(&text(step, "step")).replace('\n', " ")),
        ]);
    }
    lines
}

/// The timeline: one line for each item.
pub(super) fn timeline(thread: &Thread, filter: &str) -> Vec<Row> {
    let mut lines = Vec::new();
    for (number, turn) in thread.turns().iter().enumerate() {
        for item in turn.items() {
            let members = item.members();
            let text = ["text", "command", "query", "tool", "path", "review"]
                .iter()
                .find_map(|name| members.get(*name)?.as_str())
                .map_or_else(|| details(item.members()), str::to_owned);
            let status = members.get("status").and_then(Value::as_str).unwrap_or("");
            let line = format!("{:<18} {:<11} {}", item.kind(), status, one_line(&printable(&text)));
            if filter.is_empty() || line.to_lowercase().contains(&filter.to_lowercase()) {
                let style = if status == "failed" { Style::Red } else { Style::Plain };
                lines.push(vec![Span::new(Style::Hang, format!("{:>4}  ", number + 1)), Span::new(style, line)]);
            }
        }
    }
    if lines.is_empty() {
        lines.push(vec![Span::new(Style::Dim, "Nothing matches.")]);
    }
    lines
}

fn details(members: &codex_client::event::Members) -> String {
    let parts = ["content", "summary", "changes"].iter().find_map(|name| members.get(*name)?.as_array());
    let text = |part: &Value| {
        let named = ["text", "path"].iter().find_map(|name| part.get(*name)?.as_str());
        named.or_else(|| part.as_str()).unwrap_or_default().to_owned()
    };
    parts.into_iter().flatten().map(text).collect::<Vec<_>>().join(" ")
}

/// The state of MCP servers.
pub(super) fn mcp(answer: &Value) -> Vec<Row> {
    let mut lines = Vec::new();
    for server in answer.get("data").and_then(Value::as_array).into_iter().flatten() {
        let text = |name: &str| server.get(name).and_then(Value::as_str).unwrap_or_default();
        let status = ["status", "state", "authStatus"].iter().map(|name| text(name)).find(|text| !text.is_empty());
        lines.push(vec![
            Span::new(Style::Bold, one_line(&printable(text("name")))),
            Span::new(Style::Dim, format!("  {}", printable(status.unwrap_or("unknown")))),
        ]);
        let error = ["error", "lastError", "failureReason"].iter().map(|name| text(name)).find(|text| !text.is_empty());
        lines.extend(error.map(|error| layout::note(Style::Red, "  error", error)));
        let tools = server.get("tools").and_then(Value::as_object).into_iter().flatten();
        for (name, tool) in tools {
            let what = tool.get("description").and_then(Value::as_str).unwrap_or_default();
            lines.push(vec![
                Span::new(Style::Hang, "    "),
                Span::new(Style::Code, one_line(&printable(name))),
                Span::new(Style::Dim, format!("  {}", one_line(&printable(what)))),
            ]);
        }
    }
    if lines.is_empty() {
        lines.push(vec![Span::new(Style::Dim, "No MCP servers are configured. `codex mcp add` adds one.")]);
    }
    lines
}

impl App {
    /// The part of the context window that is in use.
    pub(super) fn context_used(&self) -> Option<String> {
        let usage = self.open_thread()?.usage();
        let number = |at: &str| usage.pointer(at).and_then(Value::as_i64);
        let (taken, size) =
            number("/last/totalTokens").zip(number("/modelContextWindow")).filter(|(_, size)| *size > 0)?;
        Some(format!("{}% context", (taken.saturating_mul(100) / size).clamp(0, 100)))
    }

    pub(super) fn cost(&self) -> Option<f64> {
        self.open_thread()?.usage().get("threadCost").and_then(Value::as_f64)
    }

    /// The tokens, the cost and the limits.
    pub(super) fn usage_lines(&self) -> Vec<Row> {
        let nothing = Value::Null;
        let usage = self.open_thread().map_or(&nothing, Thread::usage);
        let number = |at: &str| usage.pointer(at).and_then(Value::as_i64).unwrap_or(0);
        let tokens = |which: &str| {
            let part = |name: &str| number(&format!("/{which}/{name}"));
            format!("{} in ({} cached), {} out", part("inputTokens"), part("cachedInputTokens"), part("outputTokens"))
        };
        let mut lines = vec![field("thread", &tokens("total")), field("last call", &tokens("last"))];
        lines.extend(self.context_used().map(|used| field("window", &used)));
        let cost = |name: &str| usage.get(name).and_then(Value::as_f64).map(amount);
        lines.extend(cost("turnCost").map(|cost| field("turn cost", &cost)));
        lines.extend(cost("threadCost").map(|cost| field("cost", &cost)));
        let all = self.client.to_value();
        for name in ["primary", "secondary"] {
            let Some(window) = all.pointer(&format!("/rateLimits/{name}")).filter(|window| window.is_object()) else {
                continue;
            };
            let used = window.get("usedPercent").and_then(Value::as_f64).unwrap_or(0.0);
            let minutes = window.get("windowDurationMins").and_then(Value::as_i64);
            let of = minutes.map(|minutes| format!(" of {} h", minutes / 60)).unwrap_or_default();
            let resets =
                window.get("resetsAt").and_then(Value::as_i64).and_then(|at| chrono::DateTime::from_timestamp(at, 0));
            let reset = resets.map(|at| at.with_timezone(&chrono::Local).format(", resets %Y-%m-%d %H:%M").to_string());
            lines.push(field("limit", &format!("{used:.0}% used{of}{}", reset.unwrap_or_default())));
        }
        lines
    }

    /// The settings of the thread.
    pub(super) fn status_lines(&self) -> Vec<Row> {
        let mut lines = Vec::new();
        if let Some(thread) = &self.thread {
            let effort = if thread.effort.is_empty() { "default" } else { &thread.effort };
            let cwd = self.transcript.cwd.display().to_string();
            let rows = [
                ("thread", thread.id.as_str()),
                ("model", &thread.model),
                ("provider", &thread.provider),
                ("effort", effort),
                ("folder", &cwd),
                ("sandbox", &thread.sandbox),
                ("approvals", &thread.approvals),
            ];
            lines.extend(rows.iter().map(|(name, value)| field(name, value)));
        }
        let context = &self.settings.context;
        if !context.is_elsewhere() {
            lines.push(field("trust", context.trust().unwrap_or("not asked")));
            let file = context.config_file();
            let is_there = if file.exists() { "" } else { " (not there)" };
            lines.push(field("config", &format!("{}{is_there}", file.display())));
        }
        lines.extend(self.usage_lines());
        lines
    }
}
