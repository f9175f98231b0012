//! The bodies of the fuzz targets. A test of the main workspace runs them too, on examples and on variations of them.

use std::collections::VecDeque;

use codex_log::decode::{Decoder, Wanted};
use codex_log::line::Line;
use codex_model::sse::Parser;
use codex_model::{AnswerTools, AnthropicDecoder, ChatDecoder, ResponsesDecoder};
use codex_wire::conversation_item::ItemOrigin;
use codex_wire::op::Submission;
use codex_wire::provider_traits::{ProviderTraits, Thoughts};
use codex_wire::rollout::RolloutLine;
use codex_wire::tool_spec::ToolList;

/// Passes the data of each event of a stream on. The stream is cut into pieces of this size.
fn each_event(bytes: &[u8], size: u8, mut decode: impl FnMut(&str)) {
    let mut parser = Parser::new();
    for mut piece in bytes.chunks(usize::from(size).max(1)) {
        while let Ok(Some(event)) = parser.next(&mut piece) {
            decode(event);
        }
    }
}

fn origin() -> ItemOrigin {
    ItemOrigin { provider: "fuzz".to_owned(), account: None, opaque: None }
}

fn tools() -> AnswerTools {
    AnswerTools::new(&ToolList::of(Vec::new()), &ProviderTraits::unknown())
}

/// No bytes make the stream parser or the decoder panic, however they are cut.
pub fn sse(bytes: &[u8], size: u8) {
    each_event(bytes, size, |event| drop(codex_model::decode::decode(event)));
}

/// No bytes make the decoder of the Responses API panic, however they are cut.
pub fn responses(bytes: &[u8], size: u8) {
    let (mut decoder, mut events) = (ResponsesDecoder::new(origin(), true), VecDeque::new());
    each_event(bytes, size, |event| drop(decoder.decode(event, &mut events)));
}

/// No bytes make the decoder of Chat Completions panic, however they are cut.
pub fn chat(bytes: &[u8], size: u8) {
    let (mut decoder, mut events) = (ChatDecoder::new(origin(), tools(), Thoughts::Raw, true), VecDeque::new());
    each_event(bytes, size, |event| drop(decoder.decode(event, &mut events)));
    let _ = decoder.end(&mut events);
}

/// No bytes make the decoder of the Messages API panic, however they are cut.
pub fn anthropic(bytes: &[u8], size: u8) {
    let (mut decoder, mut events) = (AnthropicDecoder::new(origin(), tools(), Thoughts::Summary), VecDeque::new());
    each_event(bytes, size, |event| drop(decoder.decode(event, &mut events)));
    let _ = decoder.end(&mut events);
}

/// No script makes the judge of commands panic, and what looks destructive is never called harmless.
pub fn command_line(script: &str) {
    let argv = ["bash", "-lc", script].map(str::to_owned);
    let _ = codex_shell::parsed_commands(&argv);
    let is_safe = codex_shell::is_known_safe(&argv, codex_shell::Checkout::Own);
    assert!(!(is_safe && codex_shell::danger(&argv).is_some()), "{script:?}");
}

/// No text makes the patch parser panic.
pub fn patch(text: &str) {
    let _ = codex_patch::parse(text);
}

/// No lines make the decoder of rollouts panic, and a file that is cut gives no more events than the whole.
pub fn rollout(bytes: &[u8]) {
    let cut = bytes.iter().rposition(|byte| *byte == b'\n').unwrap_or(0);
    let part = bytes.get(..cut).unwrap_or_default();
    assert!(rollout_events(part) <= rollout_events(bytes));
}

fn rollout_events(bytes: &[u8]) -> usize {
    let (mut decoder, mut events) = (Decoder::new(Wanted::ALL), Vec::new());
    for line in bytes.split(|byte| *byte == b'\n').filter_map(|line| std::str::from_utf8(line).ok()) {
        if let Ok(line) = Line::parse(line) {
            decoder.line(&line, &mut events);
        }
    }
    decoder.end(&mut events);
    events.len()
}

/// No line makes the decoder of submissions or rollout lines panic, and what was decoded can be encoded.
pub fn submission(line: &[u8]) {
    if let Ok(submission) = serde_json::from_slice::<Submission>(line) {
        assert!(serde_json::to_vec(&submission).is_ok());
    }
    if let Ok(line) = serde_json::from_slice::<RolloutLine>(line) {
        assert!(serde_json::to_vec(&line).is_ok());
    }
}
