//! The speed of the state: `cargo bench -p codex-client`.

use codex_client::State;
use codex_client::event::{Delta, Event, Part, Teller};
use codex_client::transcript::Transcript;
use divan::counter::ItemsCount;
use serde_json::json;

const DELTAS: usize = 100_000;

fn main() {
    divan::main();
}

fn delta() -> Event {
    let [thread, turn, item, text] = ["t", "u", "item-1", "a few words "].map(str::to_owned);
    Event::Delta(Box::new(Delta { thread, turn, item, part: Part::Message, text, teller: Teller::Items }))
}

/// Events that were read already.
#[divan::bench]
fn deltas(bencher: divan::Bencher<'_, '_>) {
    let event = delta();
    bencher.counter(ItemsCount::new(DELTAS)).bench(|| {
        let mut state = State::default();
        for _ in 0..DELTAS {
            state.apply(&event);
        }
        state
    });
}

/// The same from the bytes of a server.
#[divan::bench]
fn lines(bencher: divan::Bencher<'_, '_>) {
    let params = json!({"threadId": "t", "turnId": "u", "itemId": "item-1", "delta": "a few words "});
    let line = format!("{}\n", json!({"method": "item/agentMessage/delta", "params": params}));
    let bytes = line.repeat(DELTAS).into_bytes();
    bencher.counter(ItemsCount::new(DELTAS)).bench(|| {
        let (mut transcript, mut state) = (Transcript::default(), State::default());
        for piece in bytes.chunks(64 * 1024) {
            transcript.push(piece, |message| {
                if let Some(event) = message.event() {
                    state.apply(&event);
                }
            });
        }
        state
    });
}
