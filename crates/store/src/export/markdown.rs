//! A thread as readable text.

use std::fmt::Write as _;
use std::io::Write;

use codex_log::decode::{Decoder, Wanted};
use codex_log::line::{ItemHead, Line};
use codex_log::store::Entry;
use codex_log::{Body, Item, Outcome};
use codex_wire::rollout::SessionMeta;
use serde::Deserialize;
use serde_json::Value;

use super::ExportError;
use crate::rollout::RolloutLines;
use crate::threads::{beginning, call_text, is_generated, message_text};

/// The maximum number of bytes shown of a command's output.
const OUTPUT_BYTES: usize = 8 << 10;

/// Writes a whole rollout as Markdown.
pub fn export_markdown(lines: &mut RolloutLines, out: &mut impl Write) -> Result<(), ExportError> {
    let mut reader = MarkdownReader::default();
    while let Some(entry) = lines.next_entry()? {
        let Entry::Line(line) = entry else { continue };
        out.write_all(reader.take(&line).as_bytes())?;
    }
    Ok(out.flush()?)
}

/// Converts a thread to Markdown.
#[derive(Debug)]
pub struct MarkdownReader {
    decoder: Decoder,
}

impl Default for MarkdownReader {
    fn default() -> Self {
        let wanted = Wanted::META | Wanted::TURNS | Wanted::RECORDS | Wanted::COMPACTIONS | Wanted::BROKEN_OFF;
        Self { decoder: Decoder::new(wanted) }
    }
}

impl MarkdownReader {
    /// A line as Markdown; empty if it is not for people, or a duplicate.
    #[must_use]
    pub fn take(&mut self, line: &Line<'_>) -> String {
        let mut events = Vec::new();
        self.decoder.line(line, &mut events);
        events.iter().filter_map(|event| markdown(&event.body)).collect()
    }
}

fn markdown(body: &Body) -> Option<String> {
    match body {
        Body::ThreadStarted(started) => Some(title(&started.meta)),
        Body::Recorded(record) => item(&record.json.json()),
        Body::Compacted(_) | Body::WentBack { .. } => {
            Some("---\n\n*The conversation above was compacted for the model.*\n\n".to_owned())
        }
        Body::ItemInterrupted(item) => broken_off(item),
        Body::TurnEnded(Outcome::Aborted(_)) => Some("*The turn was interrupted.*\n\n".to_owned()),
        _ => None,
    }
}

fn title(meta: &SessionMeta) -> String {
    let mut text = format!("# Thread {}\n\n- began: {}\n", meta.id, meta.timestamp);
    let branch = meta.git.as_ref().and_then(|git| git.branch.as_deref());
    let facts = [
        ("folder", Some(&*meta.cwd.to_string_lossy())),
        ("branch", branch),
        ("provider", meta.model_provider.as_deref()),
        ("release", Some(&*meta.cli_version)),
    ]
    .map(|(name, value)| value.map(|value| format!("- {name}: {}\n", code(value))).unwrap_or_default());
    text.extend(facts);
    text.push('\n');
    text
}

fn item(payload: &str) -> Option<String> {
    let head: ItemHead<'_> = serde_json::from_str(payload).ok()?;
    match &*head.kind {
        "message" => {
            let text = message_text(payload).filter(|text| !text.trim().is_empty())?;
            let who = match &*head.role?.0 {
                "assistant" => "Assistant",
                "user" if !is_generated(&text) => "User",
                _ => return None,
            };
            Some(format!("## {who}\n\n{}\n\n", text.trim()))
        }
        "reasoning" => reasoning(payload),
        "function_call" | "custom_tool_call" | "local_shell_call" => {
            let name = head.name.map_or_else(|| "shell".to_owned(), |name| name.0.into_owned());
            Some(format!("**Call of {}**\n\n{}", code(&name), fenced(&call_text(payload)?)))
        }
        kind if kind.ends_with("_output") => output(payload),
        _ => None,
    }
}

/// The existing part of an interrupted item. The conversation with the model contains only its calls.
fn broken_off(item: &Item) -> Option<String> {
    const NOTE: &str = "*It broke off here.*\n\n";
    let text = item.title();
    if item.answer().is_some() {
        return Some(format!("## Assistant\n\n{}\n\n{NOTE}", text.trim()));
    }
    if item.is_thought() {
        return quoted(&text).map(|text| text + NOTE);
    }
    let output = &item.command()?.end.as_ref()?.aggregated;
    Some(fenced(beginning(output, OUTPUT_BYTES)) + NOTE)
}

fn quoted(text: &str) -> Option<String> {
    let mut quoted = String::new();
    for line in text.trim().lines() {
        writeln!(quoted, "> {line}").ok()?;
    }
    (!quoted.is_empty()).then(|| quoted + "\n")
}

fn reasoning(payload: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Reasoning {
        #[serde(default)]
        summary: Vec<Value>,
    }
    let reasoning: Reasoning = serde_json::from_str(payload).ok()?;
    let parts: Vec<&str> = reasoning.summary.iter().filter_map(|part| part.get("text")?.as_str()).collect();
    quoted(&parts.join("\n\n"))
}

/// The output of a call. Older releases wrap the text of a command in JSON.
fn output(payload: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Output {
        output: Value,
    }
    #[derive(Deserialize)]
    struct Wrapped {
        output: String,
    }
    let text = match serde_json::from_str::<Output>(payload).ok()?.output {
        Value::String(text) => serde_json::from_str(&text).map(|wrapped: Wrapped| wrapped.output).unwrap_or(text),
        Value::Array(parts) => {
            let texts: Vec<&str> = parts.iter().filter_map(|part| part.get("text")?.as_str()).collect();
            texts.join("\n")
        }
        other => other.get("content").and_then(Value::as_str).map_or_else(|| other.to_string(), str::to_owned),
    };
    let shown = beginning(&text, OUTPUT_BYTES);
    let rest = text.len() - shown.len();
    let note = if rest > 0 { format!("*{rest} more bytes*\n\n") } else { String::new() };
    (!text.trim().is_empty()).then(|| fenced(shown) + &note)
}

/// Text between fences that nothing in it can close.
fn fenced(text: &str) -> String {
    let fence = "`".repeat(longest_run(text).max(2) + 1);
    format!("{fence}\n{}\n{fence}\n\n", text.trim_end())
}

/// Inline code.
fn code(text: &str) -> String {
    let mark = "`".repeat(longest_run(text) + 1);
    let text = text.replace('\n', " ");
    if text.contains('`') { format!("{mark} {text} {mark}") } else { format!("{mark}{text}{mark}") }
}

/// The longest run of backticks in a text.
fn longest_run(text: &str) -> usize {
    text.split(|char| char != '`').map(str::len).max().unwrap_or(0)
}
