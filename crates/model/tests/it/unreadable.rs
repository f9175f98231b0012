//! Events that cannot be read, in an answer that is otherwise whole.

use codex_model::{HttpModel, Model as _, ModelError, ModelEvent, Provider, WireKind};
use futures_util::StreamExt as _;

use crate::asking::prompt;
use crate::failures::{WIRES, raw_server};

/// The first and the last events of an answer that says `hi`.
fn answer(wire: WireKind) -> (Vec<&'static str>, Vec<&'static str>) {
    match wire {
        WireKind::Responses => (
            vec![r#"{"type":"response.output_text.delta","item_id":"m","delta":"hi"}"#],
            vec![
                r#"{"type":"response.output_item.done","item":{"type":"message","role":"assistant","id":"m","content":[{"type":"output_text","text":"hi"}]}}"#,
                r#"{"type":"response.completed","response":{"id":"r"}}"#,
            ],
        ),
        WireKind::Chat => (
            vec![r#"{"choices":[{"delta":{"content":"hi"}}]}"#],
            vec![r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#, "[DONE]"],
        ),
        WireKind::Anthropic => (
            vec![
                r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
                r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"hi"}}"#,
            ],
            vec![
                r#"{"type":"content_block_stop","index":0}"#,
                r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"}}"#,
                r#"{"type":"message_stop"}"#,
            ],
        ),
    }
}

/// The first events of an answer with a call that comes in pieces.
fn begun_call(wire: WireKind) -> Vec<&'static str> {
    match wire {
        WireKind::Responses => Vec::new(),
        WireKind::Chat => vec![
            r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"shell","arguments":"{"}}]}}]}"#,
        ],
        WireKind::Anthropic => {
            vec![
                r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"c","name":"shell"}}"#,
            ]
        }
    }
}

/// The events of an answer that consists of these, without the first one.
async fn ask(wire: WireKind, events: &[&str]) -> (Vec<ModelEvent>, Option<ModelError>) {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    let body = events.iter().flat_map(|event| ["data: ", event, "\n\n"]).collect::<String>();
    let mut provider = Provider::new("mock", raw_server((head.to_owned() + &body).into_bytes()));
    (provider.wire, provider.request_max_retries) = (wire, 0);
    let mut answer = HttpModel::new(provider).ask(prompt("Hello."));
    assert!(matches!(answer.next().await, Some(Ok(ModelEvent::Opened { .. }))));
    let mut found = Vec::new();
    while let Some(event) = answer.next().await {
        match event {
            Ok(event) => found.push(event),
            Err(error) => return (found, Some(error)),
        }
    }
    (found, None)
}

fn notices(events: &[ModelEvent]) -> usize {
    events.iter().filter(|event| matches!(event, ModelEvent::Notice(_))).count()
}

/// An answer used to fail, and its turn to ask five times more, because of one line such as `data: DONE`.
#[tokio::test]
async fn an_unreadable_event_is_skipped_with_one_note() {
    for wire in WIRES {
        let (first, last) = answer(wire);
        for unreadable in [&["DONE"][..], &["not json"], &["{oops", "7", "\"text\""]] {
            let (events, error) = ask(wire, &[&first[..], unreadable, &last].concat()).await;
            assert!(error.is_none(), "{wire:?} {unreadable:?}: {error:?}");
            assert_eq!(notices(&events), 1, "{wire:?} {unreadable:?}: {events:?}");
            assert!(matches!(events.last(), Some(ModelEvent::Completed { .. })), "{wire:?}: {events:?}");
        }
    }
}

#[tokio::test]
async fn a_stream_that_ends_after_an_unreadable_event_is_an_error() {
    for wire in WIRES {
        let (_, error) = ask(wire, &[&answer(wire).0[..], &["DONE"]].concat()).await;
        assert!(matches!(error, Some(ModelError::Disconnected { .. })), "{wire:?}: {error:?}");
    }
}

#[tokio::test]
async fn a_call_with_an_unreadable_piece_is_an_error() {
    for wire in [WireKind::Chat, WireKind::Anthropic] {
        let (_, error) = ask(wire, &[&begun_call(wire)[..], &["{oops"]].concat()).await;
        assert!(matches!(error, Some(ModelError::Malformed { .. })), "{wire:?}: {error:?}");
    }
}

/// Sixteen megabytes of numbers were read into half a gigabyte.
#[tokio::test]
async fn an_event_that_would_take_too_much_memory_is_skipped() {
    let large = format!(r#"{{"type":"weird","x":[{}0]}}"#, "0,".repeat(7_900_000));
    for wire in WIRES {
        let (first, last) = answer(wire);
        let (events, error) = ask(wire, &[&first[..], &[large.as_str()], &last].concat()).await;
        assert!(error.is_none(), "{wire:?}: {error:?}");
        assert_eq!(notices(&events), 1, "{wire:?}: {events:?}");
    }
}

/// The texts of an answer are kept until its end, so there is an end to them.
#[tokio::test]
async fn an_answer_without_an_end_is_an_error() {
    let text = "x".repeat(1 << 20);
    for wire in WIRES {
        let (first, _) = answer(wire);
        let piece = first.last().unwrap().replace("hi", &text);
        let pieces = vec![piece.as_str(); 40];
        let (_, error) = ask(wire, &[&first[..], &pieces].concat()).await;
        let error = error.unwrap().to_string();
        assert!(error.ends_with("the answer has more than 33554432 bytes"), "{wire:?}: {error}");
    }
}
