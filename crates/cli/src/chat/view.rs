//! News of the app-server as text: a projection, tested with recorded news.
//!
//! An answer stands at the left edge, and what was said, run, printed or thought behind a mark, so that they can be told
//! apart without colours.

mod earlier;

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use codex_protocol::v2::account::{RateLimitSnapshot, RateLimitWindow};
use codex_protocol::v2::item::{
    CallStatus, CommandExecution, FileUpdateChange, InputItem, PatchChangeKind, ThreadItem,
};
use codex_protocol::v2::turn::{Turn, TurnError, TurnStatus};
use codex_tui::markdown::Markdown;
use codex_tui::{Ink, Span, diff};
use codex_wire::plan::StepStatus;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::failure::in_brief;
use crate::page::{Ended, Page, Style, Within, printable};

/// How many lines of a command's output are shown as they come.
const HEAD_LINES: usize = 20;
/// How many of its last lines are shown when it has printed more.
const TAIL_LINES: usize = 5;
/// How many bytes of one file's change are shown. What is not shown cannot be approved.
const CHANGE_BYTES: usize = 64 * 1024;

/// What stands before each line that a command prints, and before each line of a thought.
const OUTPUT: &str = "  │ ";
const THOUGHT: &str = "  ~ ";

/// What the view has to remember.
pub(crate) struct View {
    page: Page<Vec<Span>>,
    /// Whether marks of Markdown become styles. Where there are none, text is shown as it came.
    is_styled: bool,
    /// What the model says, and what it thinks.
    answer: Markdown,
    thought: Markdown,
    /// Whether the line that the cursor stands in has its mark.
    is_marked: bool,
    /// Where the thread works.
    pub(crate) cwd: PathBuf,
    /// The lines that running commands have printed so far.
    printed: HashMap<String, usize>,
    /// Patches that are not shown yet: they are when somebody is asked about them, or when they are made.
    patches: HashMap<String, Vec<Span>>,
    /// Patches that were too long to be shown whole.
    cut: HashSet<String>,
    /// What the thread has used, and what it had used when the turn began.
    used: Usage,
    used_before: Usage,
    /// How much of the model's window is taken up, and its size.
    window: Option<(i64, i64)>,
    /// What the account still allows, as far as it was told.
    limits: Option<RateLimitSnapshot>,
    /// Whether all causes of a failure are told.
    pub(crate) is_verbose: bool,
    /// How often the model was asked again in a row, and why.
    retries: (usize, String),
}

/// Tokens.
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

/// The members of news that are shown. Each kind of news has some of them.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Told {
    item_id: String,
    delta: String,
    message: String,
    will_retry: bool,
    explanation: Option<String>,
    plan: Vec<Step>,
}

#[derive(Debug, Deserialize)]
struct Step {
    step: String,
    status: String,
}

/// Reads a member of news; none if it is not there or of a kind that this release does not know.
fn member<T: DeserializeOwned>(params: &Value, name: &str) -> Option<T> {
    T::deserialize(params.get(name)?).ok()
}

impl View {
    /// A view that shows Markdown in styles, or as it is.
    pub(crate) fn new(is_styled: bool) -> Self {
        Self {
            page: Page::new(Vec::new()),
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
            window: None,
            limits: None,
            is_verbose: false,
            retries: Default::default(),
        }
    }

    /// Takes the text that there is to show.
    pub(crate) fn take(&mut self) -> Vec<Span> {
        std::mem::take(&mut self.page.ink)
    }

    /// Something the person should know.
    pub(crate) fn note(&mut self, style: Style, what: &str, message: &str) {
        self.write(|page| page.note(style, what, message));
    }

    /// A line of our own in a style.
    pub(crate) fn remark(&mut self, style: Style, text: &str) {
        self.write(|page| {
            page.enter(Within::Nothing)?;
            page.write(style, text)?;
            page.end_line()
        });
    }

    /// A line of our own.
    pub(crate) fn line(&mut self, text: &str) {
        self.write(|page| page.line(text));
    }

    /// Forgets what was used: another thread comes.
    pub(crate) fn begin_thread(&mut self) {
        self.printed.clear();
        self.patches.clear();
        self.cut.clear();
        (self.used, self.used_before) = Default::default();
        self.window = None;
    }

    /// Whether all of an item was shown that a person needs to decide about it.
    pub(crate) fn is_whole(&self, item: &str) -> bool {
        !self.cut.contains(item)
    }

    /// Writes something that is neither an answer nor a thought, which end before it. Writing to memory does not fail.
    pub(crate) fn write(&mut self, write: impl FnOnce(&mut Page<Vec<Span>>) -> std::io::Result<()>) {
        self.settle();
        let _: std::io::Result<()> = write(&mut self.page);
    }

    /// Writes what is still held back of an answer or a thought.
    fn settle(&mut self) {
        match self.page.within() {
            Within::Message => self.answer.finish(&mut self.page.ink),
            Within::Reasoning => self.thought.finish(&mut self.page.ink),
            Within::Nothing | Within::Output => {}
        }
    }

    /// Writes spans that are made already.
    pub(crate) fn spans(&mut self, spans: Vec<Span>) {
        self.write(|page| {
            page.enter(Within::Nothing)?;
            page.ink.extend(spans);
            Ok(())
        });
    }

    /// Shows news. What is not known is passed over.
    pub(crate) fn news(&mut self, method: &str, params: &Value) {
        let told = || Told::deserialize(params).unwrap_or_default();
        if method.starts_with("item/") || method.starts_with("turn/") {
            self.retries = Default::default();
        }
        match method {
            "turn/started" => self.used_before = self.used,
            "item/started" => self.item_started(params),
            "item/completed" => self.item_completed(params),
            "item/agentMessage/delta" => self.more(Within::Message, &told().delta),
            "item/reasoning/summaryPartAdded" => self.write(|page| page.enter(Within::Nothing)),
            "item/reasoning/summaryTextDelta" | "item/reasoning/textDelta" => {
                self.more(Within::Reasoning, &told().delta);
            }
            "item/commandExecution/outputDelta" => {
                let Told { item_id, delta, .. } = told();
                self.output(&item_id, &delta);
            }
            "turn/plan/updated" => self.plan(&told()),
            "thread/tokenUsage/updated" => {
                self.used = params.get("tokenUsage").and_then(|usage| member(usage, "total")).unwrap_or(self.used);
                let number = |at: &str| params.pointer(at).and_then(Value::as_i64);
                let last = number("/tokenUsage/last/totalTokens");
                self.window = last.zip(number("/tokenUsage/modelContextWindow")).or(self.window);
            }
            "account/rateLimits/updated" => self.limits = member(params, "rateLimits").or_else(|| self.limits.take()),
            "thread/compacted" => self.remark(Style::Dim, "Compacted: continuing from a summary"),
            "error" if told().will_retry => self.retry(member(params, "error")),
            "warning" | "configWarning" | "deprecationNotice" => {
                let summary = params.get("summary").and_then(Value::as_str).unwrap_or_default();
                let message = told().message + summary;
                self.note(Style::Yellow, "warning", &message);
            }
            "turn/completed" => self.turn_completed(params),
            _ => {}
        }
    }

    /// More of an answer, of a thought or of what a command prints.
    fn more(&mut self, within: Within, text: &str) {
        if self.page.within() != within {
            self.write(|page| page.enter(within));
            self.is_marked = false;
        }
        match within {
            Within::Message if self.is_styled => self.answer.push(text, &mut self.page.ink),
            Within::Reasoning if self.is_styled => self.thought.push(text, &mut self.page.ink),
            Within::Message | Within::Nothing => self.marked("", Style::Plain, text),
            Within::Reasoning => self.marked(THOUGHT, Style::Dim, text),
            Within::Output => self.marked(OUTPUT, Style::Dim, text),
        }
    }

    /// Writes text with a mark before each line of it.
    fn marked(&mut self, mark: &str, style: Style, text: &str) {
        for line in text.split_inclusive('\n') {
            let mut write = |style, text: &str| {
                let _: std::io::Result<()> = self.page.ink.write(style, text);
            };
            if !self.is_marked {
                write(Style::Gutter, mark);
            }
            write(style, &printable(line));
            self.is_marked = !line.ends_with('\n');
        }
    }

    fn item_started(&mut self, params: &Value) {
        if let Some(item) = member(params, "item") {
            self.started(&item);
        }
    }

    fn started(&mut self, item: &ThreadItem) {
        match item {
            ThreadItem::CommandExecution(command) => {
                self.printed.insert(command.id.clone(), 0);
                self.write(|page| page.command(&command.id, &command_text(&command.command)));
            }
            ThreadItem::FileChange { id, changes, .. } => self.patch(id, changes),
            ThreadItem::EnteredReviewMode { review, .. } => self.note(Style::Bold, "review", review),
            ThreadItem::WebSearch { query, .. } if !query.is_empty() => self.note(Style::Dim, "search", query),
            ThreadItem::McpToolCall(call) => {
                self.note(Style::Green, "call", &format!("{}.{} {}", call.server, call.tool, call.arguments));
            }
            _ => {}
        }
    }

    fn item_completed(&mut self, params: &Value) {
        if let Some(item) = member(params, "item") {
            self.completed(&item);
        }
    }

    fn completed(&mut self, item: &ThreadItem) {
        match item {
            ThreadItem::UserMessage { content, .. } => self.write(|page| page.user(content.iter().map(piece))),
            ThreadItem::CommandExecution(command) => self.command_end(command),
            ThreadItem::FileChange { id, status, .. } => {
                let patch = self.take_patch(id);
                self.spans(patch);
                self.write(|page| match status {
                    CallStatus::Completed | CallStatus::InProgress => page.changed(None),
                    CallStatus::Failed => page.changed(Some("could not be applied")),
                    CallStatus::Declined => page.changed(Some("declined")),
                });
            }
            ThreadItem::ImageView { path, .. } => self.note(Style::Dim, "looked at", &path.display().to_string()),
            ThreadItem::ExitedReviewMode { review, .. } => self.more(Within::Message, review),
            ThreadItem::McpToolCall(call) if call.status != CallStatus::Completed => {
                let why = call.error.as_ref().map(ToString::to_string).unwrap_or_default();
                self.note(Style::Red, "call failed", &format!("{}.{} {why}", call.server, call.tool));
            }
            _ => self.write(|page| page.enter(Within::Nothing)),
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

    /// More of what a command prints, as long as it is little.
    fn output(&mut self, item: &str, delta: &str) {
        let printed = self.printed.entry(item.to_owned()).or_default();
        let room = HEAD_LINES.saturating_sub(*printed);
        let shown: usize = delta.split_inclusive('\n').take(room).map(str::len).sum();
        *printed += delta.matches('\n').count();
        if shown > 0 {
            self.more(Within::Output, &delta[..shown]);
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
                self.more(Within::Output, &format!("… {hidden} more lines …\n"));
            }
            let last: Vec<&str> = output.lines().skip(tail).collect();
            self.more(Within::Output, &format!("{}\n", last.join("\n")));
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
        self.write(|page| page.command_end((&command.id, &line), ended, took, is_open));
    }

    fn plan(&mut self, Told { explanation, plan, .. }: &Told) {
        let steps = plan.iter().map(|Step { step, status }| {
            let status = match status.as_str() {
                "completed" => StepStatus::Completed,
                "inProgress" => StepStatus::InProgress,
                _ => StepStatus::Pending,
            };
            (step.as_str(), status)
        });
        self.write(|page| page.plan(explanation.as_deref(), steps));
    }

    fn error(&mut self, what: &str, style: Style, error: Option<TurnError>) {
        let message = error.map_or_else(|| "the turn failed".to_owned(), |error| error.message);
        self.note(style, what, &in_brief(&message));
        if self.is_verbose && in_brief(&message) != message {
            self.line(&message);
        }
    }

    /// The first of several failures in a row is told, and further ones are counted.
    fn retry(&mut self, error: Option<TurnError>) {
        let why = error.as_ref().map(|error| error.message.clone()).unwrap_or_default();
        let (count, before) = std::mem::take(&mut self.retries);
        if count == 0 || before != why {
            self.error("retry", Style::Yellow, error);
        }
        self.retries = (count + 1, why);
    }

    /// How often the model was asked again in a row.
    pub(crate) fn retries(&self) -> usize {
        self.retries.0
    }

    /// What was used and what is left, in words.
    pub(crate) fn usage(&self) -> Vec<(&'static str, String)> {
        let Usage { input, cached, output } = self.used;
        let mut rows = vec![("tokens", format!("{input} in ({cached} cached), {output} out"))];
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

    fn turn_completed(&mut self, params: &Value) {
        let Some(turn) = member::<Turn>(params, "turn") else { return };
        self.write(|page| page.enter(Within::Nothing));
        match turn.status {
            TurnStatus::Completed | TurnStatus::InProgress => {}
            TurnStatus::Interrupted => self.remark(Style::Yellow, "Interrupted"),
            TurnStatus::Failed => self.error("error", Style::Red, turn.error),
        }
        let spent = |now: i64, before: i64| (now - before).max(0);
        let (now, before) = (self.used, self.used_before);
        let input = spent(now.input, before.input);
        let cached = spent(now.cached, before.cached);
        let output = spent(now.output, before.output);
        if (input, output) == (0, 0) {
            // A command of the user's own asks no model.
            if turn.status != TurnStatus::Completed {
                self.line("");
            }
            return;
        }
        let took = turn.duration_ms.map(|ms| format!(", {:.1} s", seconds(ms))).unwrap_or_default();
        self.line(&format!("tokens: {input} in ({cached} cached), {output} out{took}\n"));
    }
}

fn seconds(ms: i64) -> f64 {
    Duration::from_millis(ms.max(0).unsigned_abs()).as_secs_f64()
}

/// A piece of what the user said.
fn piece(input: &InputItem) -> (Style, Cow<'_, str>) {
    match input {
        InputItem::Text { text, .. } => (Style::Bold, text.into()),
        InputItem::Image { .. } => (Style::Dim, "[picture]".into()),
        InputItem::LocalImage { path } => (Style::Dim, format!("[{}]", path.display()).into()),
        InputItem::Skill { name, .. } | InputItem::Mention { name, .. } => (Style::Dim, name.into()),
    }
}

/// What a shell is given reads better without the shell around it. Only what certainly has that form is taken apart.
fn command_text(command: &str) -> Cow<'_, str> {
    let script = command.split_once(' ').and_then(|(program, rest)| {
        let name = program.rsplit('/').next().unwrap_or_default();
        let is_shell = matches!(name, "bash" | "sh" | "zsh" | "dash");
        rest.strip_prefix("-lc ").or_else(|| rest.strip_prefix("-c ")).filter(|_| is_shell)
    });
    let Some(script) = script else { return command.into() };
    let inner = |mark: char| script.strip_prefix(mark)?.strip_suffix(mark).filter(|inner| !inner.contains(mark));
    match (inner('\''), inner('"')) {
        (Some(inner), _) => inner.into(),
        // Within these marks some characters would be others.
        (_, Some(inner)) if !inner.contains(['\\', '$', '`']) => inner.into(),
        _ if !script.contains([' ', '"', '\'', '\\']) => script.into(),
        _ => command.into(),
    }
}

#[cfg(test)]
mod tests;
