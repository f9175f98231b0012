//! The approval policy: the mode, the sandbox, rules with their places, and the approvals of the session.

use std::path::Path;

use serde_json::{Value, json};

use crate::board::{Action, Entry, Needs};
use codex_terminal::{Row, Span, Style, printable, visible};

/// The place of the approval policy in an answer about a thread.
const APPROVAL_POLICY: &str = "/approvalPolicy";

pub const ACTIONS: &[Action] = &[
    Action { key: 'c', label: "try a command", needs: Needs::Text("Command:") },
    Action { key: 'd', label: "delete", needs: Needs::Confirmation },
    Action { key: 'r', label: "refresh", needs: Needs::Nothing },
];

/// The policies, the rules and the approvals.
#[must_use]
pub fn entries(answer: &Value) -> Vec<Entry> {
    let approvals = answer.pointer(APPROVAL_POLICY).map(approvals).unwrap_or_default();
    let mut entries = vec![
        Entry { value: None, lines: vec![vec![Span::new(Style::Heading, "Policies")]] },
        Entry::new(json!({"open": "approvals"}), vec![field("approvals", &approvals)]),
        Entry::new(json!({"open": "sandbox"}), vec![field("sandbox", &sandbox(&answer["sandbox"]))]),
        Entry::heading("Rules"),
    ];
    let rules = answer["rules"].as_array().map(Vec::as_slice).unwrap_or_default();
    entries.extend(rules.iter().map(|value| Entry::new(json!({"rule": value}), rule(value))));
    entries.extend(rules.is_empty().then(|| nothing("None. Choosing p when you are asked about a command adds one.")));
    entries.push(Entry::heading("Approvals of this session"));
    let grants = answer["grants"].as_array().map(Vec::as_slice).unwrap_or_default();
    entries.extend(grants.iter().map(|value| Entry::new(json!({"grant": value}), grant(value))));
    entries.extend(grants.is_empty().then(|| nothing("None.")));
    entries
}

fn nothing(text: &str) -> Entry {
    Entry { value: None, lines: vec![vec![Span::new(Style::Dim, format!("  {text}"))]] }
}

fn field(name: &str, value: &str) -> Row {
    vec![Span::new(Style::Hang, format!("{name:<11}")), Span::new(Style::Plain, printable(value).replace('\n', " "))]
}

/// The policies for approvals, and when somebody is asked.
pub const APPROVALS: &[(&str, &str)] = &[
    ("untrusted", "you are asked unless a command is known to be safe"),
    ("on-request", "you are asked when the model wants more than the sandbox allows"),
    ("on-failure", "you are asked when a command fails in the sandbox"),
    ("never", "you are never asked"),
];

/// The sandboxes, and what they allow.
pub const SANDBOXES: &[(&str, &str)] = &[
    ("read-only", "commands may change nothing"),
    ("workspace-write", "commands may change this folder"),
    ("danger-full-access", "commands may do anything"),
];

fn when_asked(policy: &str) -> &'static str {
    APPROVALS.iter().find(|(name, _)| *name == policy).map_or("unknown", |(_, when)| when)
}

/// An approval policy: its word, or the switches of a granular one.
fn approvals(policy: &Value) -> String {
    if let Some(word) = policy.as_str() {
        return format!("{word}: {}", when_asked(word));
    }
    let switches = policy.as_object().into_iter().flatten().filter_map(|(_, switches)| switches.as_object()).flatten();
    let off: Vec<&str> = switches.filter(|(_, is_on)| **is_on == false).map(|(name, _)| name.as_str()).collect();
    format!("granular: refused without asking: {}", if off.is_empty() { "nothing".to_owned() } else { off.join(", ") })
}

fn sandbox(policy: &Value) -> String {
    let network = match policy["networkAccess"].as_bool() {
        Some(true) => ", with network access",
        _ => ", without network access",
    };
    match policy["type"].as_str().unwrap_or_default() {
        "dangerFullAccess" => "danger-full-access: commands may do anything".to_owned(),
        "readOnly" => format!("read-only: commands may change nothing{network}"),
        "workspaceWrite" => {
            let roots = policy["writableRoots"].as_array().into_iter().flatten().filter_map(Value::as_str);
            let roots: Vec<&str> = roots.collect();
            let more = if roots.is_empty() { String::new() } else { format!(" and {}", roots.join(", ")) };
            format!("workspace-write: commands may change this folder{more}{network}")
        }
        other => other.to_owned(),
    }
}

/// A rule: its decision, its text and its place.
#[must_use]
pub fn rule(rule: &Value) -> Vec<Row> {
    let text = |name: &str| rule[name].as_str().unwrap_or_default();
    let style = match text("decision") {
        "allow" => Style::Green,
        "forbidden" => Style::Red,
        _ => Style::Yellow,
    };
    let file = Path::new(text("file"));
    let file = file.file_name().map_or_else(|| file.display().to_string(), |name| name.to_string_lossy().into_owned());
    let mut place = format!("{}:{}", visible(&file), rule["line"]);
    if rule["sandboxOnly"] == true {
        place.push_str(" · in the sandbox only");
    }
    if let Some(why) = rule["justification"].as_str() {
        place.push_str(" · ");
        place.push_str(&visible(why).replace('\n', " "));
    }
    vec![
        vec![
            Span::new(style, format!("{:<11}", text("decision"))),
            Span::new(Style::Plain, visible(text("text")).replace('\n', " ")),
        ],
        vec![Span::new(Style::Hang, " ".repeat(11)), Span::new(Style::Dim, place)],
    ]
}

/// A rule with the whole path of its file; or what the entry of an approval says.
#[must_use]
pub fn whole(entry: &Value) -> Vec<Row> {
    if entry["grant"].is_object() {
        return grant(&entry["grant"]);
    }
    let known = &entry["rule"];
    let mut lines = rule(known);
    let place = format!("{}:{}", visible(known["file"].as_str().unwrap_or_default()), known["line"]);
    lines.push(vec![Span::new(Style::Dim, place)]);
    lines
}

fn grant(grant: &Value) -> Vec<Row> {
    let text = |name: &str| visible(grant[name].as_str().unwrap_or_default()).replace('\n', " ");
    vec![vec![Span::new(Style::Green, format!("{:<11}", text("kind"))), Span::new(Style::Plain, text("text"))]]
}

/// The outcome for a command.
#[must_use]
pub fn forecast(command: &str, answer: &Value) -> Vec<Row> {
    let text = |name: &str| answer[name].as_str().unwrap_or_default();
    let (style, outcome) = match (text("outcome"), answer["sandboxed"] == true) {
        ("run", true) => (Style::Green, "runs in the sandbox"),
        ("run", false) => (Style::Yellow, "runs without a sandbox"),
        ("ask", true) => (Style::Yellow, "asks you, and then runs in the sandbox"),
        ("ask", false) => (Style::Yellow, "asks you, and then runs without a sandbox"),
        _ => (Style::Red, "is refused"),
    };
    let mut rows = vec![
        vec![Span::new(Style::Hang, "$ "), Span::new(Style::Bold, visible(command).replace('\n', " "))],
        vec![
            Span::new(Style::Hang, "  "),
            Span::new(style, outcome),
            Span::new(Style::Plain, format!(": {}", visible(text("reason")).replace('\n', " "))),
        ],
    ];
    let indented = |mut row: Row| {
        row.insert(0, Span::new(Style::Hang, "  "));
        row
    };
    rows.extend(answer["rules"].as_array().into_iter().flatten().flat_map(rule).map(indented));
    rows
}
