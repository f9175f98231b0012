//! Changes of the queue, checked against its current state.

use codex_log::queue::{QueueEvent, QueueState, QueuedInput};
use codex_log::{Abort, Outcome};
use codex_thread::queue::{MOST_BYTES, MOST_ENTRIES, QueueError};
use codex_wire::input::UserInput;

/// Adds an entry at the end.
pub(super) fn add(queue: &QueueState, entry: QueuedInput) -> Result<QueueEvent, QueueError> {
    if queue.entries.len() >= MOST_ENTRIES {
        return Err(QueueError::TooMany);
    }
    check_bytes(queue, &entry)?;
    Ok(QueueEvent::Added { entry })
}

/// Replaces the input of an entry.
pub(super) fn update(queue: &QueueState, id: String, input: Vec<UserInput>) -> Result<QueueEvent, QueueError> {
    let Some(known) = queue.entry(&id) else { return Err(QueueError::Unknown { id }) };
    let entry = QueuedInput { input, ..(**known).clone() };
    check_bytes(queue, &entry)?;
    Ok(QueueEvent::Updated { entry })
}

/// Orders all entries. A client that does not know all of them has an outdated list.
pub(super) fn reorder(queue: &QueueState, ids: Vec<String>) -> Result<QueueEvent, QueueError> {
    if let Some(entry) = queue.entries.iter().find(|entry| !ids.contains(&entry.id)) {
        return Err(QueueError::Order { id: entry.id.clone(), is_missing: true });
    }
    let is_wrong =
        |(place, id): (usize, &String)| (queue.entry(id).is_none() || ids[..place].contains(id)).then(|| id.clone());
    match ids.iter().enumerate().find_map(is_wrong) {
        Some(id) => Err(QueueError::Order { id, is_missing: false }),
        None => Ok(QueueEvent::Ordered { ids }),
    }
}

/// Whether the queue waits for a person after a turn that ended like this: nobody knows whether the entries still make
/// sense.
pub(super) fn is_paused_by(outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Completed { .. } | Outcome::Aborted(Abort::Replaced) => false,
        Outcome::Aborted(Abort::Interrupted | Abort::ReviewEnded) | Outcome::Failed(_) => true,
    }
}

fn check_bytes(queue: &QueueState, entry: &QueuedInput) -> Result<(), QueueError> {
    let others = queue.entries.iter().filter(|other| other.id != entry.id);
    let bytes = others.map(|other| other.bytes()).sum::<usize>() + entry.bytes();
    if bytes > MOST_BYTES { Err(QueueError::TooLarge { bytes }) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn entry(id: &str, text: &str) -> QueuedInput {
        QueuedInput { id: id.to_owned(), client_id: id.to_owned(), input: vec![UserInput::text(text)] }
    }

    fn queue(ids: &[&str]) -> QueueState {
        let entries = ids.iter().map(|id| Arc::new(entry(id, "x"))).collect();
        QueueState { entries, is_paused: false }
    }

    fn ids(ids: &[&str]) -> Vec<String> {
        ids.iter().map(|id| (*id).to_owned()).collect()
    }

    #[test]
    fn a_queue_is_bounded() {
        let names: Vec<String> = (0..MOST_ENTRIES).map(|number| number.to_string()).collect();
        let full = queue(&names.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(add(&full, entry("new", "x")), Err(QueueError::TooMany));
        let text = "x".repeat(MOST_BYTES);
        assert!(matches!(add(&queue(&[]), entry("1", &text)), Err(QueueError::TooLarge { .. })));
        assert!(matches!(
            update(&queue(&["1"]), "1".to_owned(), vec![UserInput::text(text.clone())]),
            Err(QueueError::TooLarge { .. })
        ));
        let large = QueueState { entries: vec![Arc::new(entry("1", &text[..MOST_BYTES - 100]))], is_paused: false };
        assert!(update(&large, "1".to_owned(), vec![UserInput::text(&text[..MOST_BYTES - 100])]).is_ok());
        assert!(matches!(add(&large, entry("2", &text[..200])), Err(QueueError::TooLarge { .. })));
    }

    #[test]
    fn an_order_names_every_entry_once() {
        let queue = queue(&["1", "2"]);
        assert!(reorder(&queue, ids(&["2", "1"])).is_ok());
        let wrong = |named: &[&str]| reorder(&queue, ids(named)).expect_err("it is wrong").to_string();
        let error = "queuedSubmissionIds must name every entry of the queue once: ";
        assert_eq!(wrong(&["1"]), format!("{error}2 is missing"));
        assert_eq!(wrong(&["1", "2", "3"]), format!("{error}3 is not an entry, or named twice"));
        assert_eq!(wrong(&["1", "2", "1"]), format!("{error}1 is not an entry, or named twice"));
    }
}
