//! Renders events of a thread as text: a projection, tested with recorded notifications.
//!
//! An answer starts at the left edge; user input, commands, output and reasoning have a prefix, so that they can be
//! told apart without colours.

mod earlier;

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use codex_client::Event;
use codex_client::event::{Members, Part};
use codex_protocol::v2::account::{RateLimitSnapshot, RateLimitWindow};
use codex_protocol::v2::item::{
    CallStatus, CommandExecution, FileUpdateChange, InputItem, PatchChangeKind, ThreadItem,
};
use codex_wire::plan::StepStatus;
use serde::Deserialize;
use serde_json::Value;

use super::agents;
use crate::markdown::Markdown;
use crate::transcript::{Ended, Style, TextKind, Transcript, printable};
use crate::{Ink, Span, amount, diff, in_brief};

/// The number of lines of a command's output that are shown as they arrive.
const HEAD_LINES: usize = 20;
/// The number of last lines that are shown if there are more.
const TAIL_LINES: usize = 5;
/// The maximum number of bytes shown of one file's change. A change that is not shown in full cannot be approved.
const CHANGE_BYTES: usize = 64 * 1024;

/// The prefixes of command output and of reasoning.
const OUTPUT: &str = "  │ ";
const THOUGHT: &str = "  ~ ";

pub(crate) struct View {
    transcript: Transcript<Vec<Span>>,
    /// Whether Markdown is rendered with styles. Without styles, text is shown as it arrived.
    is_styled: bool,
    /// The renderers for answers and for reasoning.
    answer: Markdown,
    thought: Markdown,
    /// Whether the current line has its prefix.
    is_marked: bool,
    pub(crate) cwd: PathBuf,
    /// The number of lines that running commands have printed so far.
    printed: HashMap<String, usize>,
    /// Patches that are not shown yet: they are shown with their approval prompt, or when they are applied.
    patches: HashMap<String, Vec<Span>>,
    /// Patches that were too long to be shown in full.
    cut: HashSet<String>,
    /// The thread's token usage, now and at the start of the turn.
    used: Usage,
    used_before: Usage,
    /// The cost of the latest turn and of the thread, where known.
    costs: (Option<f64>, Option<f64>),
    /// The used part of the model's context window, and its size.
    window: Option<(i64, i64)>,
    limits: Option<RateLimitSnapshot>,
    /// Whether all causes of a failure are shown.
    pub(crate) is_verbose: bool,
    /// The number of consecutive retries, and their reason.
    retries: (usize, String),
}

/// Token counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct Usage {
    #[serde(rename = "inputTokens")]
    input: i64,
    #[serde(rename = "cachedInputTokens")]
    cached: i64,
    #[serde(rename = "outputTokens")]
    output: i64,
}

/// A plan as it is shown.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct PlanShown {
    explanation: Option<String>,
    steps: Vec<Step>,
}

#[derive(Debug, Deserialize)]
struct Step {
    step: String,
    status: String,
}

/// An item by its members; `None` if its kind is unknown.
fn thread_item(members: &Members) -> Option<ThreadItem> {
    ThreadItem::deserialize(members).ok()
}

/// Whether a turn goes on, so that earlier failures are over.
fn event_is_progress(event: &Event) -> bool {
    matches!(
        event,
        Event::TurnStarted { .. }
            | Event::TurnEnded { .. }
            | Event::ItemStarted { .. }
            | Event::ItemCompleted { .. }
            | Event::Delta(_)
            | Event::Plan { .. }
            | Event::Diff { .. }
    )
}

impl View {
    /// A view that renders Markdown with styles, or shows it as it is.
    pub(crate) fn new(is_styled: bool) -> Self {
        Self {
            transcript: Transcript::new(Vec::new()),
            is_styled,
            answer: Markdown::new(Style::Plain, ""),
            thought: Markdown::new(Style::Dim, THOUGHT),
            is_marked: false,
            cwd: PathBuf::new(),
            printed: HashMap::new(),
            patches: HashMap::new(),
            cut: HashSet::new(),
            used: Usage::default(),
            used_before: Usage::default(),
            costs: (None, None),
            window: None,
            limits: None,
            is_verbose: false,
            retries: Default::default(),
        }
    }

    pub(crate) fn take(&mut self) -> Vec<Span> {
        std::mem::take(&mut self.transcript.ink)
    }

    pub(crate) fn note(&mut self, style: Style, what: &str, message: &str) {
        self.write(|transcript| transcript.note(style, what, message));
    }

    /// Writes a line of this program in a style.
    pub(crate) fn remark(&mut self, style: Style, text: &str) {
        self.write(|transcript| {
            transcript.enter(TextKind::Nothing)?;
            transcript.write(style, text)?;
            transcript.end_line()
        });
    }

    /// Writes a line of this program.
    pub(crate) fn line(&mut self, text: &str) {
        self.write(|transcript| transcript.line(text));
    }

    /// Resets the usage for another thread.
    pub(crate) fn begin_thread(&mut self) {
        self.printed.clear();
        self.patches.clear();
        self.cut.clear();
        (self.used, self.used_before, self.costs) = Default::default();
        self.window = None;
    }

    /// Whether an item was shown in full, as a decision about it requires.
    pub(crate) fn is_whole(&self, item: &str) -> bool {
        !self.cut.contains(item)
    }

    /// Writes something that is neither an answer nor reasoning, and ends those first. Writing to memory does not fail.
    pub(crate) fn write(&mut self, write: impl FnOnce(&mut Transcript<Vec<Span>>) -> std::io::Result<()>) {
        self.settle();
        let _: std::io::Result<()> = write(&mut self.transcript);
    }

    /// Writes the held-back rest of an answer or reasoning.
    fn settle(&mut self) {
        match self.transcript.within() {
            TextKind::Message => self.answer.finish(&mut self.transcript.ink),
            TextKind::Reasoning => self.thought.finish(&mut self.transcript.ink),
            TextKind::Nothing | TextKind::Output => {}
        }
    }

    pub(crate) fn spans(&mut self, spans: Vec<Span>) {
        self.write(|transcript| {
            transcript.enter(TextKind::Nothing)?;
            transcript.ink.extend(spans);
            Ok(())
        });
    }

    /// Shows an event. Those that are not for people are ignored.
    pub(crate) fn event(&mut self, event: &Event) {
        if event_is_progress(event) {
            self.retries = Default::default();
        }
        match event {
            Event::TurnStarted { .. } => self.used_before = self.used,
            Event::ItemStarted { item, .. } => {
                if let Some(item) = thread_item(item) {
                    self.started(&item);
                }
            }
            Event::ItemCompleted { item, .. } => {
                if let Some(item) = thread_item(item) {
                    self.completed(&item);
                }
            }
            Event::Delta(delta) => match delta.part {
                Part::Message => self.more(TextKind::Message, &delta.text),
                Part::Summary(_) | Part::Reasoning(_) => self.more(TextKind::Reasoning, &delta.text),
                Part::Output => self.output(&delta.item, &delta.text),
                Part::Plan => {}
            },
            Event::Plan { plan, .. } => self.plan(&PlanShown::deserialize(plan).unwrap_or_default()),
            Event::Usage { usage, .. } => self.take_usage(usage),
            Event::RateLimits { limits } => {
                self.limits = RateLimitSnapshot::deserialize(limits).ok().or_else(|| self.limits.take());
            }
            Event::Error { message, will_retry: true, .. } => self.retry(message),
            Event::Warning { message, .. } | Event::Note { text: message } => {
                self.note(Style::Yellow, "warning", message);
            }
            Event::TurnEnded { status, error, duration_ms, .. } => self.turn_ended(status, error, *duration_ms),
            Event::Other { method, params } => self.other(method, params),
            _ => {}
        }
    }

    /// Shows a notification that changes nothing of the thread.
    fn other(&mut self, method: &str, params: &Value) {
        match method {
            "item/reasoning/summaryPartAdded" => self.write(|transcript| transcript.enter(TextKind::Nothing)),
            "thread/compacted" => self.remark(Style::Dim, "Compacted: continuing from a summary"),
            "configWarning" | "deprecationNotice" => {
                let text = |name: &str| params.get(name).and_then(Value::as_str).unwrap_or_default();
                self.note(Style::Yellow, "warning", &format!("{}{}", text("message"), text("summary")));
            }
            _ => {}
        }
    }

    fn take_usage(&mut self, usage: &Value) {
        self.used = usage.get("total").and_then(|total| Usage::deserialize(total).ok()).unwrap_or(self.used);
        let number = |at: &str| usage.pointer(at).and_then(Value::as_i64);
        self.window = number("/last/totalTokens").zip(number("/modelContextWindow")).or(self.window);
        let cost = |name: &str| usage.get(name).and_then(Value::as_f64);
        self.costs = (cost("turnCost"), cost("threadCost"));
    }

    /// Adds to an answer, reasoning or command output.
    fn more(&mut self, within: TextKind, text: &str) {
        if self.transcript.within() != within {
            self.write(|transcript| transcript.enter(within));
            self.is_marked = false;
        }
        match within {
            TextKind::Message if self.is_styled => self.answer.push(text, &mut self.transcript.ink),
            TextKind::Reasoning if self.is_styled => self.thought.push(text, &mut self.transcript.ink),
            TextKind::Message | TextKind::Nothing => self.marked("", Style::Plain, text),
            TextKind::Reasoning => self.marked(THOUGHT, Style::Dim, text),
            TextKind::Output => self.marked(OUTPUT, Style::Dim, text),
        }
    }

    /// Writes text with a prefix before each line.
    fn marked(&mut self, mark: &str, style: Style, text: &str) {
        for line in text.split_inclusive('\n') {
            let mut write = |style, text: &str| {
                let _: std::io::Result<()> = self.transcript.ink.write(style, text);
            };
            if !self.is_marked {
                write(Style::Gutter, mark);
            }
            write(style, &printable(line));
            self.is_marked = !line.ends_with('\n');
        }
    }

    fn started(&mut self, item: &ThreadItem) {
        match item {
            ThreadItem::CommandExecution(command) => {
                self.printed.insert(command.id.clone(), 0);
                self.write(|transcript| transcript.command(&command.id, &command_text(&command.command)));
            }
            ThreadItem::FileChange { id, changes, .. } => self.patch(id, changes),
            ThreadItem::EnteredReviewMode { review, .. } => self.note(Style::Bold, "review", review),
            ThreadItem::WebSearch { query, .. } if !query.is_empty() => self.note(Style::Dim, "search", query),
            ThreadItem::CollabAgentToolCall(call) => self.note(Style::Green, "agent", &agents::title(call)),
            ThreadItem::SubAgentActivity(told) => self.note(Style::Green, "agent", &agents::activity(told)),
            ThreadItem::McpToolCall(call) => {
                self.note(Style::Green, "call", &format!("{}.{} {}", call.server, call.tool, call.arguments));
            }
            _ => {}
        }
    }

    fn completed(&mut self, item: &ThreadItem) {
        match item {
            ThreadItem::UserMessage { content, .. } => {
                self.write(|transcript| transcript.user(content.iter().map(piece)));
            }
            ThreadItem::CommandExecution(command) => self.command_end(command),
            ThreadItem::FileChange { id, status, .. } => {
                let patch = self.take_patch(id);
                self.spans(patch);
                self.write(|transcript| match status {
                    CallStatus::Completed | CallStatus::InProgress => transcript.changed(None),
                    CallStatus::Failed => transcript.changed(Some("could not be applied")),
                    CallStatus::Declined => transcript.changed(Some("declined")),
                });
            }
            ThreadItem::ImageView { path, .. } => self.note(Style::Dim, "looked at", &path.display().to_string()),
            ThreadItem::ExitedReviewMode { review, .. } => self.more(TextKind::Message, review),
            ThreadItem::McpToolCall(call) if call.status != CallStatus::Completed => {
                let why = call.error.as_ref().map(ToString::to_string).unwrap_or_default();
                self.note(Style::Red, "call failed", &format!("{}.{} {why}", call.server, call.tool));
            }
            _ => self.write(|transcript| transcript.enter(TextKind::Nothing)),
        }
    }

    /// Keeps a patch until it is shown.
    fn patch(&mut self, id: &str, changes: &[FileUpdateChange]) {
        let mut shown = Vec::new();
        for FileUpdateChange { path, kind, diff } in changes {
            let name = |path: &Path| diff::relative(path, &self.cwd);
            let (kind, name) = match kind {
                PatchChangeKind::Add => (diff::Kind::Add, name(path)),
                PatchChangeKind::Delete => (diff::Kind::Delete, name(path)),
                PatchChangeKind::Update { move_path: None } => (diff::Kind::Update, name(path)),
                PatchChangeKind::Update { move_path: Some(to) } => {
                    (diff::Kind::Update, format!("{} -> {}", name(path), name(to)))
                }
            };
            let end = (0..=CHANGE_BYTES.min(diff.len())).rev().find(|at| diff.is_char_boundary(*at)).unwrap_or(0);
            shown.extend(diff::change(kind, &name, &diff[..end]));
            if end < diff.len() {
                self.cut.insert(id.to_owned());
                shown.push(Span::new(Style::Dim, format!("  … {} more bytes\n", diff.len() - end)));
            }
        }
        self.patches.insert(id.to_owned(), shown);
    }

    /// Takes a patch that was not shown yet.
    pub(crate) fn take_patch(&mut self, id: &str) -> Vec<Span> {
        self.patches.remove(id).unwrap_or_default()
    }

    /// Adds to a command's output, up to a limit.
    fn output(&mut self, item: &str, delta: &str) {
        let printed = self.printed.entry(item.to_owned()).or_default();
        let room = HEAD_LINES.saturating_sub(*printed);
        let shown: usize = delta.split_inclusive('\n').take(room).map(str::len).sum();
        *printed += delta.matches('\n').count();
        if shown > 0 {
            self.more(TextKind::Output, &delta[..shown]);
        }
    }

    fn command_end(&mut self, command: &CommandExecution) {
        self.printed.remove(&command.id);
        let output = command.aggregated_output.as_deref().unwrap_or_default();
        let mut is_open = !output.ends_with('\n');
        let count = output.lines().count();
        if count > HEAD_LINES {
            let tail = count.saturating_sub(TAIL_LINES).max(HEAD_LINES);
            if tail > HEAD_LINES {
                let hidden = tail - HEAD_LINES;
                self.more(TextKind::Output, &format!("… {hidden} more lines …\n"));
            }
            let last: Vec<&str> = output.lines().skip(tail).collect();
            self.more(TextKind::Output, &format!("{}\n", last.join("\n")));
            is_open = false;
        }
        let ended = match command.status {
            CallStatus::Declined => Ended::Declined("declined"),
            CallStatus::Completed | CallStatus::Failed | CallStatus::InProgress => {
                Ended::Exit(command.exit_code.unwrap_or(if command.status == CallStatus::Completed { 0 } else { -1 }))
            }
        };
        let took = seconds(command.duration_ms.unwrap_or(0));
        let line = command_text(&command.command);
        self.write(|transcript| transcript.command_end((&command.id, &line), ended, took, is_open));
    }

    fn plan(&mut self, PlanShown { explanation, steps }: &PlanShown) {
        let steps = steps.iter().map(|Step { step, status }| {
            let status = match status.as_str() {
                "completed" => StepStatus::Completed,
                "inProgress" => StepStatus::InProgress,
                _ => StepStatus::Pending,
            };
            (step.as_str(), status)
        });
        self.write(|transcript| transcript.plan(explanation.as_deref(), steps));
    }

    fn error(&mut self, what: &str, style: Style, message: &str) {
        self.note(style, what, &in_brief(message));
        if self.is_verbose && in_brief(message) != message {
            self.line(message);
        }
    }

    /// Shows the first of several consecutive failures, and counts further ones.
    fn retry(&mut self, why: &str) {
        let (count, before) = std::mem::take(&mut self.retries);
        if count == 0 || before != why {
            self.error("retry", Style::Yellow, why);
        }
        self.retries = (count + 1, why.to_owned());
    }

    pub(crate) fn retries(&self) -> usize {
        self.retries.0
    }

    /// Describes the usage and what is left.
    pub(crate) fn usage(&self) -> Vec<(&'static str, String)> {
        let Usage { input, cached, output } = self.used;
        let mut rows = vec![("tokens", format!("{input} in ({cached} cached), {output} out"))];
        rows.extend(self.costs.1.map(|cost| ("cost", amount(cost))));
        if let Some((taken, size)) = self.window.filter(|(_, size)| *size > 0) {
            let left = (100 - taken.saturating_mul(100) / size).clamp(0, 100);
            rows.push(("context", format!("{left}% left ({taken} of {size} tokens used)")));
        }
        let limits = self.limits.iter().flat_map(|limits| limits.primary.iter().chain(&limits.secondary));
        for RateLimitWindow { used_percent, window_duration_mins, .. } in limits {
            let window = window_duration_mins.map(|minutes| format!(" of {} h", minutes / 60)).unwrap_or_default();
            rows.push(("limit", format!("{used_percent}% used{window}")));
        }
        rows
    }

    fn turn_ended(&mut self, status: &str, error: &Value, duration_ms: Option<i64>) {
        self.write(|transcript| transcript.enter(TextKind::Nothing));
        match status {
            "interrupted" => self.remark(Style::Yellow, "Interrupted"),
            "failed" => {
                let message = error.get("message").and_then(Value::as_str);
                self.error("error", Style::Red, message.unwrap_or("the turn failed"));
            }
            _ => {}
        }
        let spent = |now: i64, before: i64| (now - before).max(0);
        let (now, before) = (self.used, self.used_before);
        let input = spent(now.input, before.input);
        let cached = spent(now.cached, before.cached);
        let output = spent(now.output, before.output);
        if (input, output) == (0, 0) {
            // A user's shell command calls no model.
            if status != "completed" {
                self.line("");
            }
            return;
        }
        let took = duration_ms.map(|ms| format!(", {:.1} s", seconds(ms))).unwrap_or_default();
        let cost = self.costs.0.map(|cost| format!(", cost {}", amount(cost))).unwrap_or_default();
        self.line(&format!("tokens: {input} in ({cached} cached), {output} out{cost}{took}\n"));
    }
}

fn seconds(ms: i64) -> f64 {
    Duration::from_millis(ms.max(0).unsigned_abs()).as_secs_f64()
}

/// A part of the user's message.
fn piece(input: &InputItem) -> (Style, Cow<'_, str>) {
    match input {
        InputItem::Text { text, .. } => (Style::Bold, text.into()),
        InputItem::Image { .. } => (Style::Dim, "[picture]".into()),
        InputItem::LocalImage { path } => (Style::Dim, format!("[{}]", path.display()).into()),
        InputItem::Skill { name, .. } | InputItem::Mention { name, .. } => (Style::Dim, name.into()),
    }
}

/// A shell script reads better without the shell around it. Only unambiguous forms are unwrapped.
pub(crate) fn command_text(command: &str) -> Cow<'_, str> {
    let script = command.split_once(' ').and_then(|(program, rest)| {
        let name = program.rsplit('/').next().unwrap_or_default();
        let is_shell = matches!(name, "bash" | "sh" | "zsh" | "dash");
        rest.strip_prefix("-lc ").or_else(|| rest.strip_prefix("-c ")).filter(|_| is_shell)
    });
    let Some(script) = script else { return command.into() };
    let inner = |mark: char| script.strip_prefix(mark)?.strip_suffix(mark).filter(|inner| !inner.contains(mark));
    match (inner('\''), inner('"')) {
        (Some(inner), _) => inner.into(),
        // Within these quotes some characters have another meaning.
        (_, Some(inner)) if !inner.contains(['\\', '$', '`']) => inner.into(),
        _ if !script.contains([' ', '"', '\'', '\\']) => script.into(),
        _ => command.into(),
    }
}

#[cfg(test)]
mod tests;
