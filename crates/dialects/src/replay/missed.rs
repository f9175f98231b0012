//! Events that a client missed while a thread was reloaded, read from its lines.

use std::path::Path;
use std::sync::Arc;

use codex_log::open_items::OpenItems;
use codex_log::store::{Entry, ReadFrom, ThreadStore};
use codex_log::{Body, Event, Item, Seq};
use codex_wire::ids::ThreadId;

use super::Player;

/// The approximate number of bytes of missed events that are sent. A client that missed more should reload the whole
/// thread.
const MOST_BYTES: usize = 16 * 1024 * 1024;

/// The events that a client missed.
#[derive(Debug)]
pub struct Missed {
    /// The items that were open where the client stopped.
    pub open_items: Vec<Arc<Event>>,
    pub events: Vec<Arc<Event>>,
}

/// Reads the events after one number, up to another. `None` if no line ends where the client stopped, which means that
/// it has read a different file, or if it has missed too much.
///
/// An unfinished turn counts as ended if none is running. Deltas are not repeated: the client may have received some of
/// them, and a completed item contains its whole text.
#[must_use]
pub fn read(thread: ThreadId, store: &dyn ThreadStore, (after, upto): (Seq, Seq), is_running: bool) -> Option<Missed> {
    let mut lines = store.read(thread, ReadFrom::Start).ok()?;
    // The client has already received the position of the thread.
    let mut reader = Player::new(Path::new(""), None);
    let (mut is_boundary, mut bytes, mut decoded) = (after.position() == 0, 0, Vec::new());
    let (mut open_items, mut events) = (OpenItems::default(), Vec::new());
    let mut end = 0;
    while end < upto.position() {
        // A line that cannot be read is skipped; the next line counts from where it ends.
        let Entry::Line(line) = lines.next_entry().ok()?? else { continue };
        end = line.range.end;
        reader.take(&line, &mut decoded);
        is_boundary |= end == after.position();
        for event in decoded.drain(..) {
            // Reasoning is decoded with a later line than its own.
            if end <= after.position() || (event.body.is_thought() && event.seq <= after) {
                open_items.take(&Arc::new(event));
            } else if !matches!(event.body, Body::ThreadStarted(_) | Body::ItemDelta { .. }) {
                bytes += event.weight();
                push(&mut events, event);
            }
        }
        if bytes > MOST_BYTES || (end > after.position() && !is_boundary) {
            return None;
        }
    }
    reader.catch_up(&mut decoded);
    for event in decoded.drain(..).filter(|event| event.seq > after) {
        if !matches!(event.body, Body::ItemDelta { .. }) {
            push(&mut events, event);
        }
    }
    if !is_running {
        reader.finish(&mut decoded);
        events.extend(decoded.into_iter().filter(|event| event.turn.is_some()));
    }
    let events = numbered(events, (after, upto)).into_iter().map(Arc::new).collect();
    is_boundary.then(|| Missed { open_items: open_items.into_events(), events })
}

/// Gives events numbers that grow. A number means that everything up to it was told: of several events with the same
/// number, such as the end of a turn that was cut and the line before it, only the last keeps it, and the others have none
/// ([`Seq::default`]). The last event has the number up to which the lines were read.
fn numbered(mut events: Vec<Event>, (after, upto): (Seq, Seq)) -> Vec<Event> {
    // Events that follow from reasoning that was already sent have its number, which the client has passed.
    let mut least = Seq::at(after.position());
    for event in &mut events {
        least = least.max(event.seq);
        event.seq = least;
    }
    let mut later = None;
    for event in events.iter_mut().rev() {
        let seq = if later.is_none() { event.seq.max(upto) } else { event.seq };
        event.seq = if later == Some(seq) { Seq::default() } else { seq };
        later = Some(seq);
    }
    events
}

/// Adds an event. Reasoning has a line for each part, and is one item.
fn push(events: &mut Vec<Event>, event: Event) {
    if let Body::ItemInterrupted(item) = &event.body {
        return break_off(events, item.clone(), event);
    }
    let last = events.last_mut().filter(|last| last.turn == event.turn);
    if let (Some(Event { body: Body::ItemStarted(begun), .. }), Body::ItemStarted(more)) = (&last, &event.body)
        && begun.id() == more.id()
    {
        return;
    }
    let Some(Event { seq, body: Body::ItemCompleted(item), .. }) = last else { return events.push(event) };
    let goes_on = |more: &Item| item.is_thought() && more.is_thought() && more.id() == item.id();
    match &event.body {
        Body::ItemStarted(more) if goes_on(more) => {}
        Body::ItemCompleted(more) if goes_on(more) => {
            *seq = event.seq;
            item.think_on(more);
        }
        _ => events.push(event),
    }
}

/// Adds an item that broke off, as a started item with all of its text.
fn break_off(events: &mut Vec<Event>, item: Item, event: Event) {
    match events.last_mut() {
        Some(Event { seq, body: Body::ItemStarted(begun), .. }) if begun.id() == item.id() => {
            *seq = event.seq;
            if item.is_thought() { begun.think_on(&item) } else { *begun = item }
        }
        _ => events.push(Event { body: Body::ItemStarted(item), ..event }),
    }
}

#[cfg(test)]
mod tests {
    use codex_log::TurnId;

    use super::*;

    #[test]
    fn numbers_grow_and_the_last_one_covers_everything() {
        let event = |seq: u64| Event {
            thread: ThreadId::fresh(),
            seq: Seq::new(seq),
            at_ms: 0,
            turn: Some(TurnId::new("u")),
            body: Body::Warning { message: "hot".into() },
        };
        let numbers = |seqs: &[u64], after: u64, upto: u64| -> Vec<u64> {
            let events = seqs.iter().map(|seq| event(*seq)).collect();
            let events = numbered(events, (Seq::new(after), Seq::new(upto)));
            events.iter().map(|event| event.seq.number()).collect()
        };
        let line = |number: u64| Seq::at(number).number();
        let [one, two, three] = [1, 2, 3].map(line);
        assert_eq!(numbers(&[], one, three), [0; 0]);
        assert_eq!(numbers(&[two, three], one, three), [two, three]);
        // A turn that was cut ends with its last line.
        assert_eq!(numbers(&[two, two, three, three], one, three), [0, two, 0, three]);
        assert_eq!(numbers(&[two, two], one, two + 1), [two, two + 1], "an event without a line came after it");
        assert_eq!(numbers(&[one, three], two, three), [two, three], "numbers do not go back");
    }
}
