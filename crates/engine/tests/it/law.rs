//! An invariant that every test checks: the state of a thread equals the state in its file.

use codex_log::state::{StateReader, ThreadState};
use codex_log::store::{Entry, ReadFrom, ThreadStore};
use codex_store::FileStore;
use codex_thread::Thread;

/// Compares the state of a thread with that of its file, read from the beginning and as for a resume. A thread that
/// continues meanwhile is checked again at the end of its next turn.
pub(crate) async fn memory_equals_file(thread: &Thread, store: &FileStore) {
    let Ok(Some(known)) = thread.state().await else { return };
    let (read, resumed) = (read(&known, store), resumed(&known, store));
    let Ok(Some(now)) = thread.state().await else { return };
    if known.turn.is_some() || now.canonical() != known.canonical() {
        return;
    }
    compare(&known, &read, |_| true);
    // Lines before the last compaction are not read then.
    let is_summed_up = known.conversation.replaced() > 0;
    compare(&known, &resumed, |part| !is_summed_up || !matches!(part, "keys" | "plan"));
}

fn compare(known: &ThreadState, stored: &ThreadState, counts: impl Fn(&str) -> bool) {
    for ((part, known), (_, stored)) in known.canonical().into_iter().zip(stored.canonical()) {
        assert!(!counts(part) || known == stored, "the {part} of the thread are\n{known}\nand its file says\n{stored}");
    }
}

/// The state from all lines of the file.
fn read(known: &ThreadState, store: &FileStore) -> ThreadState {
    let mut lines = store.read(known.meta.id, ReadFrom::Start).expect("the thread has a file");
    let mut state = StateReader::new(known.meta.clone(), known.interrupted());
    while let Some(entry) = lines.next_entry().expect("the file can be read") {
        if let Entry::Line(line) = entry {
            state.line(&line);
        }
    }
    state.finish()
}

/// The state of a resumed thread.
fn resumed(known: &ThreadState, store: &FileStore) -> ThreadState {
    store.history(known.meta.id, known.interrupted()).expect("the thread can be resumed").state
}
