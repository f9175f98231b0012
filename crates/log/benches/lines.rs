//! The time to encode and decode the lines of a turn: `cargo bench -p codex-log`.
#![expect(clippy::unwrap_used, reason = "a benchmark may fail where it stands")]

use codex_log::decode::{Decoder, Wanted};
use codex_log::encode::{LineSink, encode};
use codex_log::line::Line;
use codex_log::store::{LineError, write_line};
use codex_log::{AgentMessage, Body, Event, Item, ItemId, Outcome, Seq, TurnId};
use codex_wire::ids::ThreadId;
use divan::Bencher;
use divan::counter::ItemsCount;
use serde::Serialize;

const TURNS: usize = 1000;

#[derive(Default)]
struct File(Vec<u8>);

impl LineSink for File {
    type Error = LineError;

    fn line<P: Serialize + ?Sized>(&mut self, at_ms: i64, kind: &str, payload: &P) -> Result<(), Self::Error> {
        write_line(&mut self.0, at_ms, kind, &mut |out| serde_json::to_writer(out, payload))
    }
}

/// Turns with messages of the model.
fn turns() -> Vec<Event> {
    let mut events = Vec::new();
    for number in 0..TURNS {
        let text =
            format!("answer {number}, \"quoted\",\nof a usual length, as it stands in most of the files that are read");
        let said = AgentMessage { id: ItemId::new(format!("item_{number}")), text: text.into() };
        let outcome = Outcome::Completed { last_message: Some(said.text.clone()), bookmark: None };
        let started = Body::TurnStarted { context_window: Some(272_000) };
        for body in [started, Body::ItemCompleted(Item::AgentMessage(said)), Body::TurnEnded(outcome)] {
            let turn = Some(TurnId::new(format!("turn_{number}")));
            events.push(Event { thread: ThreadId::unknown(), seq: Seq::default(), at_ms: 1000, turn, body });
        }
    }
    events
}

fn written(events: &[Event]) -> Vec<u8> {
    let mut file = File::default();
    for event in events {
        encode(event, &mut file).unwrap();
    }
    file.0
}

#[divan::bench]
fn write_turns(bencher: Bencher<'_, '_>) {
    let events = turns();
    bencher.counter(ItemsCount::new(TURNS)).bench(|| written(&events));
}

fn read(bencher: Bencher<'_, '_>, wanted: Wanted) {
    let file = String::from_utf8(written(&turns())).unwrap();
    bencher.counter(ItemsCount::new(TURNS)).bench(|| {
        let (mut decoder, mut events) = (Decoder::new(wanted), Vec::new());
        file.lines().for_each(|line| decoder.line(&Line::parse(line).unwrap(), &mut events));
        decoder.end(&mut events);
        events
    });
}

#[divan::bench]
fn read_all(bencher: Bencher<'_, '_>) {
    read(bencher, Wanted::ALL);
}

#[divan::bench]
fn read_shown(bencher: Bencher<'_, '_>) {
    read(bencher, Wanted::SHOWN);
}

fn main() {
    divan::main();
}
