//! The CPU time of 100,000 deltas of text on each wire, from the bytes of the stream to the events.

use std::collections::VecDeque;

use codex_model::sse::Parser;
use codex_model::{AnswerTools, AnthropicDecoder, ChatDecoder, ModelError, ModelEvent, ResponsesDecoder};
use codex_wire::conversation_item::ItemOrigin;
use codex_wire::provider_traits::{ProviderTraits, Thoughts};
use codex_wire::tool_spec::ToolList;
use divan::Bencher;

const DELTAS: usize = 100_000;

fn main() {
    divan::main();
}

fn maker() -> ItemOrigin {
    ItemOrigin { provider: "bench".to_owned(), account: None, opaque: None }
}

fn tools() -> AnswerTools {
    AnswerTools::new(&ToolList::of(Vec::new()), &ProviderTraits::unknown())
}

/// The bytes of an answer: an event that begins it, and one for each delta.
fn stream(begin: &str, event: impl Fn(usize) -> String) -> Vec<u8> {
    let events = std::iter::once(begin.to_owned()).chain((0..DELTAS).map(event));
    events.flat_map(|data| format!("data: {data}\n\n").into_bytes()).collect()
}

/// Reads the stream in pieces of the size of a TLS record, and counts the deltas.
fn read(stream: &[u8], mut decode: impl FnMut(&str, &mut VecDeque<ModelEvent>) -> Result<(), ModelError>) -> usize {
    let (mut parser, mut events, mut seen) = (Parser::new(), VecDeque::new(), 0);
    for mut chunk in stream.chunks(16 * 1024) {
        while let Ok(Some(data)) = parser.next(&mut chunk) {
            assert!(decode(data, &mut events).is_ok(), "the event is right");
            seen += events.drain(..).filter(|event| matches!(event, ModelEvent::TextDelta { .. })).count();
        }
    }
    assert_eq!(seen, DELTAS, "every delta arrives");
    seen
}

#[divan::bench]
fn responses(bencher: Bencher<'_, '_>) {
    let begin = r#"{"type":"response.created","response":{"id":"resp_1"}}"#;
    let stream = stream(begin, |number| {
        format!(
            r#"{{"type":"response.output_text.delta","item_id":"msg_0123456789abcdef","output_index":0,"content_index":0,"delta":"word{number} ","sequence_number":{number}}}"#
        )
    });
    bencher.bench(|| {
        let mut decoder = ResponsesDecoder::new(maker(), false);
        read(&stream, |data, events| decoder.decode(data, events))
    });
}

#[divan::bench]
fn chat(bencher: Bencher<'_, '_>) {
    let event = |delta: &str| {
        format!(
            r#"{{"id":"chatcmpl-0123456789abcdef","object":"chat.completion.chunk","created":1700000000,"model":"mock-model","system_fingerprint":"fp","choices":[{{"index":0,"delta":{delta},"logprobs":null,"finish_reason":null}}]}}"#
        )
    };
    let stream =
        stream(&event(r#"{"role":"assistant"}"#), |number| event(&format!(r#"{{"content":"word{number} "}}"#)));
    bencher.bench(|| {
        let mut decoder = ChatDecoder::new(maker(), tools(), Thoughts::Raw, true);
        read(&stream, |data, events| decoder.decode(data, events))
    });
}

#[divan::bench]
fn anthropic(bencher: Bencher<'_, '_>) {
    let begin = r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#;
    let stream = stream(begin, |number| {
        format!(r#"{{"type":"content_block_delta","index":0,"delta":{{"type":"text_delta","text":"word{number} "}}}}"#)
    });
    bencher.bench(|| {
        let mut decoder = AnthropicDecoder::new(maker(), tools(), Thoughts::Raw);
        read(&stream, |data, events| decoder.decode(data, events))
    });
}
