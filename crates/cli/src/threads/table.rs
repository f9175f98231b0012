//! Summaries of threads: as a table for people, as JSON for programs.

use std::io::{self, Write};

use chrono::{DateTime, Local, SecondsFormat, Utc};
use codex_log::store::ThreadSummary;
use codex_tui::one_line;
use serde_json::{Value, json};

/// The metadata of a thread.
pub(crate) fn summary(thread: &ThreadSummary) -> Value {
    let time = |time: DateTime<Utc>| time.to_rfc3339_opts(SecondsFormat::Millis, true);
    json!({
        "id": thread.id,
        "name": thread.name,
        "preview": thread.preview,
        "created_at": time(thread.created_at),
        "updated_at": time(thread.updated_at),
        "cwd": thread.cwd,
        "path": thread.path,
        "archived": thread.archived,
        "source": thread.source,
        "originator": thread.originator,
        "provider": thread.provider,
        "cli_version": thread.cli_version,
        "git": thread.git,
        "parent": thread.parent,
        "forked_from": thread.forked_from,
    })
}

/// The name of a thread, or else its first message.
pub(crate) fn title(thread: &ThreadSummary) -> String {
    thread.name.clone().unwrap_or_else(|| thread.preview.clone())
}

/// Prints threads, each with a text.
pub(crate) fn print<'a>(
    rows: impl Iterator<Item = (&'a ThreadSummary, String)>,
    out: &mut impl Write,
) -> io::Result<()> {
    for (thread, text) in rows {
        let written: DateTime<Local> = thread.updated_at.into();
        writeln!(out, "{}  {}  {}", thread.id, written.format("%Y-%m-%d %H:%M"), one_line(&text))?;
    }
    Ok(())
}
