//! The cost of a text delta on each wire: `cargo run --release -p codex-model --example deltas`.
//!
//! Prints nanoseconds for each delta of an answer, from the bytes of the stream to the event, and how much that is
//! compared with the Responses API.

use std::collections::VecDeque;
use std::time::Instant;

use codex_model::sse::Parser;
use codex_model::{AnswerTools, AnthropicDecoder, ChatDecoder, ModelError, ModelEvent, decode::decode};
use codex_wire::conversation_item::ItemOrigin;
use codex_wire::provider_traits::{ProviderTraits, Thoughts};
use codex_wire::tool_spec::ToolList;

const DELTAS: usize = 200_000;
const ROUNDS: usize = 7;

fn stream(event: impl Fn(usize) -> String) -> Vec<u8> {
    (0..DELTAS).flat_map(|number| format!("data: {}\n\n", event(number)).into_bytes()).collect()
}

/// The least time that a delta took in some rounds.
fn measure<D>(
    stream: &[u8],
    new: impl Fn() -> D,
    mut read: impl FnMut(&mut D, &str, &mut VecDeque<ModelEvent>) -> Result<(), ModelError>,
) -> Result<f64, Box<dyn std::error::Error>> {
    let mut least = f64::MAX;
    for _ in 0..ROUNDS {
        let (mut decoder, mut parser, mut events) = (new(), Parser::new(), VecDeque::new());
        let mut seen = 0;
        let begun = Instant::now();
        for mut chunk in stream.chunks(16 * 1024) {
            while let Some(data) = parser.next(&mut chunk)? {
                read(&mut decoder, data, &mut events)?;
                seen += events.drain(..).filter(|event| matches!(event, ModelEvent::TextDelta { .. })).count();
            }
        }
        assert_eq!(seen, DELTAS, "every delta has to arrive");
        least = least.min(begun.elapsed().as_secs_f64() * 1e9 / f64::from(u32::try_from(DELTAS)?));
    }
    Ok(least)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let maker = || ItemOrigin { provider: "bench".to_owned(), account: None, opaque: None };
    let tools = || AnswerTools::new(&ToolList::of(Vec::new()), &ProviderTraits::unknown());
    let responses = stream(|number| {
        format!(
            r#"{{"type":"response.output_text.delta","item_id":"msg_0123456789abcdef","output_index":0,"content_index":0,"delta":"word{number} ","sequence_number":{number}}}"#
        )
    });
    let chat = stream(|number| {
        format!(
            r#"{{"id":"chatcmpl-0123456789abcdef","object":"chat.completion.chunk","created":1700000000,"model":"mock-model","system_fingerprint":"fp","choices":[{{"index":0,"delta":{{"content":"word{number} "}},"logprobs":null,"finish_reason":null}}]}}"#
        )
    });
    let begin = r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#;
    let anthropic = stream(|number| {
        format!(r#"{{"type":"content_block_delta","index":0,"delta":{{"type":"text_delta","text":"word{number} "}}}}"#)
    });
    let base = measure(&responses, || (), |(), data, events| Ok(events.extend(decode(data)?)))?;
    let chat = measure(
        &chat,
        || ChatDecoder::new(maker(), tools(), Thoughts::Raw, true),
        |decoder, data, events| decoder.decode(data, events),
    )?;
    let anthropic = measure(
        &anthropic,
        || {
            let mut decoder = AnthropicDecoder::new(maker(), tools(), Thoughts::Raw);
            let begun = decoder.decode(begin, &mut VecDeque::new());
            assert!(begun.is_ok(), "a block can begin");
            decoder
        },
        |decoder, data, events| decoder.decode(data, events),
    )?;
    for (wire, cost) in [("responses", base), ("chat", chat), ("anthropic", anthropic)] {
        println!("{wire:10} {cost:6.0} ns a delta, {:.2} x", cost / base);
    }
    Ok(())
}
