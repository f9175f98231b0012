//! Commands that outlive the calls that started them.

use serde_json::Value;

use crate::board::{Action, Entry, Needs};
use codex_terminal::{Span, Style, printable};

pub const ACTIONS: &[Action] = &[
    Action { key: 's', label: "stop it", needs: Needs::Confirmation },
    Action { key: 'S', label: "stop all of them", needs: Needs::ConfirmationOfAll },
    Action { key: 'r', label: "refresh", needs: Needs::Nothing },
];

/// One entry for each terminal; `shown` turns a command line into that of the model.
pub fn entries(answer: &Value, shown: impl Fn(&str) -> String) -> Vec<Entry> {
    let mut entries = Vec::new();
    for terminal in answer["data"].as_array().into_iter().flatten() {
        let text = |name: &str| terminal[name].as_str().unwrap_or_default();
        let number = printable(text("processId")).into_owned();
        let command = printable(&shown(text("command"))).replace('\n', " ");
        let lines = vec![
            vec![Span::new(Style::Hang, format!("{number:>4}  ")), Span::new(Style::Plain, command)],
            vec![Span::new(Style::Hang, "      "), Span::new(Style::Dim, printable(text("cwd")).into_owned())],
        ];
        entries.push(Entry::new(terminal.clone(), lines));
    }
    entries
}
