//! Threads as a table for people.

use std::io::{self, Write};

use chrono::{DateTime, Local};
use codex_log::store::ThreadSummary;
use codex_terminal::one_line;

/// Prints threads, each with a text.
pub(crate) fn print<'a>(
    rows: impl Iterator<Item = (&'a ThreadSummary, &'a str)>,
    out: &mut impl Write,
) -> io::Result<()> {
    for (thread, text) in rows {
        let written: DateTime<Local> = thread.updated_at.into();
        writeln!(out, "{}  {}  {}", thread.id, written.format("%Y-%m-%d %H:%M"), one_line(text))?;
    }
    Ok(())
}
