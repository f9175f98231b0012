//! The plan of a turn.

use serde_json::Value;

use codex_terminal::{Row, Span, Style, printable};

/// The lines of a plan.
#[must_use]
pub fn lines(plan: &Value) -> Vec<Row> {
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
