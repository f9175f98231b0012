//! The CPU time of 100,000 deltas of text in each API, from the bytes of the stream to the events.

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

fn origin() -> ItemOrigin {
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

/// Reads the stream in chunks of the size of a TLS record, and counts the deltas.
fn read(stream: &[u8], mut decode: impl FnMut(&str, &mut VecDeque<ModelEvent>) -> Result<(), ModelError>) -> usize {
    let (mut parser, mut events, mut seen) = (Parser::new(), VecDeque::new(), 0);
    for mut chunk in stream.chunks(16 * 1024) {
        while let Ok(Some(data)) = parser.next(&mut chunk) {
            assert!(decode(data, &mut events).is_ok(), "the event is right");
            let is_delta =
                |event: &ModelEvent| matches!(event, ModelEvent::TextDelta { .. } | ModelEvent::ReasoningDelta { .. });
            seen += events.drain(..).filter(is_delta).count();
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
        let mut decoder = ResponsesDecoder::new(origin(), false);
        read(&stream, |data, events| decoder.decode(data, events))
    });
}

/// Chunks that differ in their text, and perhaps in more.
#[derive(Debug, Clone, Copy)]
enum Chunks {
    Text,
    Thoughts,
    /// The time of each chunk.
    Times,
    /// A member of random length, as `OpenAI` sends it.
    Obfuscated,
    /// The ids of tokens beside the text, as vLLM can send them.
    TokenIds,
    /// The probability of each token.
    Probabilities,
    /// The tokens so far in each chunk.
    Counts,
}

impl Chunks {
    const ALL: [Self; 7] =
        [Self::Text, Self::Thoughts, Self::Times, Self::Obfuscated, Self::TokenIds, Self::Probabilities, Self::Counts];

    fn chunk(self, number: usize) -> String {
        let text = format!("word{number} ");
        let created = if matches!(self, Self::Times) { 1_700_000_000 + number } else { 1_700_000_000 };
        let name = if matches!(self, Self::Thoughts) { "reasoning_content" } else { "content" };
        let (mut beside, mut probabilities, mut after) = (String::new(), "null".to_owned(), String::new());
        match self {
            Self::Text | Self::Thoughts | Self::Times => {}
            Self::Obfuscated => after = format!(r#","obfuscation":"{}""#, &"aB3xK9pQ2mZ"[number % 11..]),
            Self::TokenIds => beside = format!(r#","token_ids":[{number}]"#),
            Self::Probabilities => {
                probabilities = format!(
                    r#"{{"content":[{{"token":"{text}","logprob":-0.{number},"bytes":null,"top_logprobs":[]}}]}}"#
                );
            }
            Self::Counts => {
                after = format!(
                    r#","usage":{{"prompt_tokens":20,"completion_tokens":{number},"total_tokens":{}}}"#,
                    20 + number
                );
            }
        }
        format!(
            r#"{{"id":"chatcmpl-0123456789abcdef","object":"chat.completion.chunk","created":{created},"model":"mock-model","system_fingerprint":"fp","choices":[{{"index":0,"delta":{{"{name}":"{text}"}},"logprobs":{probabilities},"finish_reason":null{beside}}}]{after}}}"#
        )
    }
}

#[divan::bench(args = Chunks::ALL)]
fn chat(bencher: Bencher<'_, '_>, chunks: Chunks) {
    let begin = r#"{"id":"chatcmpl-0123456789abcdef","choices":[{"index":0,"delta":{"role":"assistant"}}]}"#;
    let stream = stream(begin, |number| chunks.chunk(number));
    bencher.bench(|| {
        let mut decoder = ChatDecoder::new(origin(), tools(), Thoughts::Raw, true);
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
        let mut decoder = AnthropicDecoder::new(origin(), tools(), Thoughts::Raw);
        read(&stream, |data, events| decoder.decode(data, events))
    });
}
