//! Summaries of threads: as a table for people, as JSON for programs.

use std::io::{self, Write};

use chrono::{DateTime, Local, SecondsFormat, Utc};
use codex_log::store::ThreadSummary;
use serde_json::{Value, json};

/// The width of a title if the terminal's width is unknown.
const TITLE: usize = 72;

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

/// Shortens a text to one line.
pub(crate) fn one_line(text: &str) -> String {
    let mut line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some((cut, _)) = line.char_indices().nth(TITLE) {
        line.truncate(cut);
        line.push('…');
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_is_one_line() {
        assert_eq!(one_line("a\n b\tc"), "a b c");
        let long = one_line(&"é".repeat(100));
        assert_eq!(long.chars().count(), TITLE + 1);
        assert!(long.ends_with('…'));
    }
}
