//! Pages, boards and lists over the transcript: agents, MCP servers, the approval policy, the timeline, usage, terminals,
//! changes, threads, and what they share.

mod boards;
mod picker;
mod timeline;
mod usage;

use codex_client::state::Thread;
use serde_json::Value;

pub(super) use self::boards::{BoardKind, Wanted};
pub(super) use self::timeline::Only;
pub(super) use self::usage::Ledger;
use super::app::{App, Overlay};
use super::changes;
use crate::{Row, Style};
use codex_views::fields::field;

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
        usage::lines(
            usage,
            self.client.rate_limits(),
            &self.calls.ledger,
            chrono::DateTime::<chrono::Utc>::from(codex_wire::time::now()).timestamp(),
        )
    }

    /// Shows the changes of the latest turn or of all turns.
    pub(super) fn show_changes(&mut self, is_all: bool) {
        let (title, source) = self.changes(is_all);
        if source.is_empty() {
            return self.remark(Style::Dim, &format!("{title}: none."));
        }
        let page = changes::page(title, Vec::new(), source, &self.transcript.cwd);
        self.overlay = Some(Overlay::Page(page));
    }

    fn changes(&self, is_all: bool) -> (&'static str, changes::Source) {
        let title = if is_all { "Changes of this thread, in order" } else { "Changes of the latest turn" };
        let turns = self.open_thread().map(Thread::turns).unwrap_or_default();
        if !is_all && let Some(diff) = self.open_thread().map(Thread::diff).filter(|diff| !diff.is_empty()) {
            return (title, changes::of_text(diff));
        }
        let first = if is_all { 0 } else { turns.len().saturating_sub(1) };
        let items = turns[first..].iter().flat_map(codex_client::state::Turn::items);
        let applied = items.filter(|item| item.kind() == "fileChange" && item.status() == "completed");
        let files = applied.flat_map(|item| codex_client::diff::of_item(item.members())).collect();
        (title, changes::Source::Files(files))
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
