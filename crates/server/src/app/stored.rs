//! What files tell of threads, in the words of clients. It blocks; run it off the async threads.

use std::path::Path;

use codex_dialects::{Vintage, v1, v2};
use codex_log::line::Line;
use codex_protocol::v2::turn::Turn;
use codex_store::{Entry, ReadError, RolloutLines};
use codex_wire::event::EventMsg;

/// The turns of a thread.
pub(crate) fn turns(path: &Path, vintage: Vintage) -> Result<Vec<Turn>, ReadError> {
    let mut reader = v2::TurnReader::new(vintage);
    each_line(path, |line| reader.take(line))?;
    Ok(reader.into_turns())
}

/// The messages of a thread that a client shows again.
pub(crate) fn messages(path: &Path, with_thoughts: bool) -> Result<Vec<EventMsg>, ReadError> {
    let mut reader = v1::MessageReader::new(with_thoughts);
    each_line(path, |line| reader.take(line))?;
    Ok(reader.into_messages())
}

fn each_line(path: &Path, mut take: impl FnMut(&Line<'_>)) -> Result<(), ReadError> {
    let mut lines = RolloutLines::open(path)?;
    while let Some(entry) = lines.next_entry()? {
        if let Entry::Line(line) = entry {
            take(&line);
        }
    }
    Ok(())
}
