//! The tree of the agents below the open thread.

use serde_json::{Value, json};

use crate::board::{Action, Entry, Needs};
use codex_terminal::{Row, Span, Style, one_line, printable};

pub const ACTIONS: &[Action] = &[
    Action { key: 's', label: "stop its turn", needs: Needs::Selection },
    Action { key: 'i', label: "inbox", needs: Needs::Selection },
    Action { key: 'r', label: "refresh", needs: Needs::Nothing },
];

/// One entry for each agent, below those that have started it; first the thread that this one was opened from.
#[must_use]
pub fn entries(answer: &Value, parent: Option<&str>) -> Vec<Entry> {
    let mut entries = Vec::new();
    if let Some(parent) = parent {
        let line = vec![Span::new(Style::Plain, "↑ back to "), Span::new(Style::Code, short(parent))];
        entries.push(Entry::new(json!({"threadId": parent, "inbox": answer["inbox"]}), vec![line]));
    }
    for agent in answer["data"].as_array().into_iter().flatten() {
        entries.push(Entry::new(agent.clone(), lines(agent)));
    }
    entries
}

fn lines(agent: &Value) -> Vec<Row> {
    let text = |name: &str| one_line(&printable(agent[name].as_str().unwrap_or_default()));
    let depth = usize::try_from(agent["depth"].as_u64().unwrap_or(1)).unwrap_or(1).clamp(1, 16);
    let status = text("status");
    let style = match status.as_str() {
        "running" => Style::Green,
        "failed" => Style::Red,
        "queued" => Style::Yellow,
        _ => Style::Dim,
    };
    let label = text("label");
    let name = if label.is_empty() { format!("agent {}", agent["agentId"]) } else { label };
    let mut head = vec![
        Span::new(Style::Hang, "  ".repeat(depth - 1) + "• "),
        Span::new(Style::Plain, name),
        Span::new(style, format!("  {status}")),
    ];
    let mail = agent["inbox"].as_array().map_or(0, Vec::len);
    if mail > 0 {
        head.push(Span::new(Style::Yellow, format!("  {mail} in its inbox")));
    }
    let doing = Some(text("reasoningHeader")).filter(|text| !text.is_empty()).unwrap_or_else(|| text("summary"));
    let id = short(agent["threadId"].as_str().unwrap_or_default());
    let below = vec![
        Span::new(Style::Hang, "  ".repeat(depth)),
        Span::new(Style::Dim, format!("{id}  ")),
        Span::new(Style::Dim, doing),
    ];
    vec![head, below]
}

/// The end of an id, which differs between threads that began at the same time.
#[must_use]
pub fn short(id: &str) -> String {
    let start = id.char_indices().rev().nth(7).map_or(0, |(at, _)| at);
    printable(&id[start..]).into_owned()
}

/// The mail that an agent has not read.
#[must_use]
pub fn inbox(agent: &Value) -> Vec<Row> {
    let mut lines = Vec::new();
    for message in agent["inbox"].as_array().into_iter().flatten() {
        let kind = if message["interrupt"] == true { "interrupt" } else { "message" };
        lines.push(vec![Span::new(Style::Bold, format!("{kind} from agent {}", message["sender_agent_id"]))]);
        let text = printable(message["prompt"].as_str().unwrap_or("(no text)")).into_owned();
        lines.extend(text.lines().map(|line| vec![Span::new(Style::Gutter, "  "), Span::new(Style::Plain, line)]));
        lines.push(Row::new());
    }
    if lines.is_empty() {
        lines.push(vec![Span::new(Style::Dim, "It has read all of its mail.")]);
    }
    lines
}
