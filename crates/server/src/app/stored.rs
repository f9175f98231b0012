//! Stored threads in the form that clients read. These functions block; call them off the async threads.

use codex_dialects::{ProtocolRelease, v1, v2};
use codex_log::line::Line;
use codex_log::store::{Entry, ReadFrom, StoreError, ThreadStore};
use codex_protocol::v2::turn::Turn;
use codex_wire::event::EventMsg;
use codex_wire::ids::ThreadId;

/// The turns of a thread.
pub(crate) fn turns(
    store: &dyn ThreadStore,
    thread: ThreadId,
    release: ProtocolRelease,
) -> Result<Vec<Turn>, StoreError> {
    let mut reader = v2::TurnReader::new(release);
    each_line(store, thread, |line| reader.take(line))?;
    Ok(reader.into_turns())
}

/// The messages of a thread that a client displays again.
pub(crate) fn messages(
    store: &dyn ThreadStore,
    thread: ThreadId,
    with_thoughts: bool,
) -> Result<Vec<EventMsg>, StoreError> {
    let mut reader = v1::MessageReader::new(with_thoughts);
    each_line(store, thread, |line| reader.take(line))?;
    Ok(reader.into_messages())
}

fn each_line(store: &dyn ThreadStore, thread: ThreadId, mut take: impl FnMut(&Line<'_>)) -> Result<(), StoreError> {
    let mut lines = store.read(thread, ReadFrom::Start)?;
    while let Some(entry) = lines.next_entry()? {
        if let Entry::Line(line) = entry {
            take(&line);
        }
    }
    Ok(())
}
