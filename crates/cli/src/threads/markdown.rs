//! A stored thread as Markdown: its turns as clients read them, shown by the client library.

use codex_client::{State, markdown, router};
use codex_dialects::ProtocolRelease;
use codex_dialects::v2::{TurnReader, thread};
use codex_log::store::{Entry, ReadFrom, ThreadStore, ThreadSummary};
use codex_protocol::v2::thread::{Thread, ThreadResponse, ThreadStatus};

/// The text of a thread.
pub(super) fn of(store: &dyn ThreadStore, summary: ThreadSummary) -> anyhow::Result<String> {
    let mut lines = store.read(summary.id, ReadFrom::Start)?;
    let mut reader = TurnReader::new(ProtocolRelease::V0166);
    while let Some(entry) = lines.next_entry()? {
        if let Entry::Line(line) = entry {
            reader.take(&line);
        }
    }
    let id = summary.id.to_string();
    let turns = reader.into_turns();
    let thread = Thread { turns, ..thread::stored(summary, "", ThreadStatus::NotLoaded) };
    let mut state = State::default();
    if let Some(event) = router::response(&serde_json::to_value(ThreadResponse { thread })?) {
        state.apply(&event);
    }
    Ok(state.thread(&id).map(markdown::thread).unwrap_or_default())
}
