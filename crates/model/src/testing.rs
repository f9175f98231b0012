//! Helpers for the tests of the decoders.

use std::collections::VecDeque;
use std::sync::Arc;

use codex_wire::conversation_item::{ConversationItem, ItemOrigin};
use codex_wire::response::ResponseItem;
use codex_wire::tool_spec::{CustomTool, Grammar, ToolList, ToolSpec};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::sse::Parser;
use crate::{ModelError, ModelEvent, Prompt};

fn item(value: Value) -> ConversationItem {
    ConversationItem::new(&Arc::new(serde_json::from_value::<ResponseItem>(value).unwrap())).unwrap()
}

/// An item from a short text: `user:…`, `assistant:…`, `thought:…` or `call:<id>`.
fn short(text: &str) -> ConversationItem {
    let (kind, text) = text.split_once(':').unwrap();
    item(match kind {
        "thought" => json!({"type": "reasoning", "summary": [{"type": "summary_text", "text": text}]}),
        "call" => json!({"type": "function_call", "name": "shell", "arguments": "{}", "call_id": text}),
        "assistant" => json!({"type": "message", "role": kind, "content": [{"type": "output_text", "text": text}]}),
        _ => json!({"type": "message", "role": kind, "content": [{"type": "input_text", "text": text}]}),
    })
}

/// A prompt with these items.
pub(crate) fn prompt(items: &[&str]) -> Prompt {
    Prompt {
        thread: "019a0000-0000-7000-8000-000000000001".parse().unwrap(),
        cache_key: "019a0000-0000-7000-8000-000000000001".parse().unwrap(),
        model: "mock-model".to_owned(),
        instructions: Arc::from("Be brief."),
        input: items.iter().map(|text| short(text)).collect(),
        tools: ToolList::of(Vec::new()),
        parallel_tool_calls: false,
        reasoning: None,
        verbosity: None,
        output_schema: None,
        max_output_tokens: None,
        pace: None,
    }
}

/// A conversation with everything that APIs encode differently.
pub(crate) fn conversation() -> Prompt {
    let picture = json!({"type": "input_image", "image_url": "data:image/png;base64,AA=="});
    let mut prompt = prompt(&["user:Look.", "thought:Hm.", "assistant:I look."]);
    prompt.input.extend(
        [
            json!({"type": "function_call", "name": "shell", "arguments": "{\"command\":[\"ls\"]}", "call_id": "c1"}),
            json!({"type": "custom_tool_call", "name": "apply_patch", "input": "*** Begin", "call_id": "c2"}),
            json!({"type": "function_call_output", "call_id": "c1", "output": "a.txt"}),
            json!({"type": "custom_tool_call_output", "call_id": "c2", "output": [picture]}),
            json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Done."}]}),
            json!({"type": "web_search_call", "status": "completed"}),
            json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "And this?"}, picture]}),
        ]
        .map(item),
    );
    prompt
}

/// The same item, from a provider.
pub(crate) fn foreign(item: &ConversationItem, provider: &str, opaque: Value) -> ConversationItem {
    let origin = ItemOrigin { provider: provider.to_owned(), account: None, opaque: Some(opaque) };
    item.clone().made_by(Some(Arc::new(origin)))
}

/// A function with a strict schema, and a tool with free text.
pub(crate) fn tools() -> Arc<ToolList> {
    let grammar = Some(Grammar { syntax: "lark".into(), definition: "start: \"a\"".into() });
    let custom = CustomTool { name: "apply_patch".into(), description: "Patches.".into(), grammar };
    let schema = json!({"type": "object", "properties": {}, "additionalProperties": false});
    ToolList::of(vec![ToolSpec::function("shell", "Runs.", schema), ToolSpec::Custom(Arc::new(custom))])
}

pub(crate) fn origin() -> ItemOrigin {
    ItemOrigin { provider: "mock".to_owned(), account: None, opaque: None }
}

/// Decodes events one after the other into text, up to the first error or the end of the answer.
pub(crate) fn show(
    data: &[&str],
    mut decode: impl FnMut(Option<&str>, &mut VecDeque<ModelEvent>) -> Result<(), ModelError>,
) -> String {
    let mut shown = String::new();
    let mut events = VecDeque::new();
    for data in data.iter().map(|data| Some(*data)).chain([None]) {
        let read = decode(data, &mut events);
        let is_over = read.is_err() || events.iter().any(|event| matches!(event, ModelEvent::Completed { .. }));
        events.drain(..).for_each(|event| shown.push_str(&(line(&event) + "\n")));
        if let Err(error) = read {
            shown.push_str(&["error ", &error.to_string(), "\n"].concat());
        }
        if is_over {
            break;
        }
    }
    shown
}

/// Decodes a stream in pieces into text.
pub(crate) fn split_anywhere(
    pieces: &[Vec<u8>],
    mut decode: impl FnMut(&str, &mut VecDeque<ModelEvent>) -> Result<(), ModelError>,
) -> String {
    let (mut parser, mut events, mut shown) = (Parser::new(), VecDeque::new(), String::new());
    for piece in pieces {
        let mut piece = piece.as_slice();
        while let Some(data) = parser.next(&mut piece).unwrap() {
            decode(data, &mut events).unwrap();
        }
        events.drain(..).for_each(|event| shown.push_str(&(line(&event) + "\n")));
    }
    shown
}

/// A stream, split at these positions.
pub(crate) fn pieces(bytes: &[u8], cuts: &[prop::sample::Index]) -> Vec<Vec<u8>> {
    let mut places = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect::<Vec<_>>();
    places.extend([0, bytes.len()]);
    places.sort_unstable();
    places.windows(2).map(|pair| bytes[pair[0]..pair[1]].to_vec()).collect()
}

/// Texts that resemble events.
pub(crate) fn any_json() -> impl Strategy<Value = String> {
    let token = prop::sample::select(vec![
        "{",
        "}",
        "[",
        "]",
        ":",
        ",",
        "\"type\"",
        "\"content_block_delta\"",
        "\"content_block_start\"",
        "\"delta\"",
        "\"choices\"",
        "\"tool_calls\"",
        "\"index\"",
        "0",
        "null",
        "\"text\"",
        "\"x\"",
        "\"content\"",
        "\"function\"",
        "{\"choices\":[{\"delta\":{\"content\":\"x\"}}]}",
        "{\"type\":\"message_stop\"}",
        "[DONE]",
    ]);
    prop_oneof![prop::collection::vec(token, 0..20).prop_map(|tokens| tokens.concat()), ".{0,60}"]
}

fn line(event: &ModelEvent) -> String {
    match event {
        ModelEvent::Opened { .. } => "opened".to_owned(),
        ModelEvent::Notice(text) => format!("notice {text:?}"),
        ModelEvent::ItemAdded(item) => format!("added {}", item.kind()),
        ModelEvent::TextDelta { delta, .. } => format!("text {delta:?}"),
        ModelEvent::ReasoningPartAdded { index, .. } => format!("part {index}"),
        ModelEvent::ReasoningSummaryDelta { index, delta, .. } => format!("summary {index} {delta:?}"),
        ModelEvent::ReasoningDelta { index, delta, .. } => format!("thought {index} {delta:?}"),
        ModelEvent::ItemDone(item, origin) => {
            let origin = origin.as_ref().map(|origin| format!(" by {}", serde_json::to_string(&**origin).unwrap()));
            format!("done {}{}", serde_json::to_string(item).unwrap(), origin.unwrap_or_default())
        }
        ModelEvent::Completed { response_id, usage, .. } => {
            let usage = usage.map(|usage| {
                let counted = [
                    usage.input_tokens,
                    usage.cached_input_tokens,
                    usage.cache_write_input_tokens,
                    usage.output_tokens,
                    usage.reasoning_output_tokens,
                    usage.total_tokens,
                ];
                format!("{counted:?}")
            });
            format!("completed {response_id} {}", usage.unwrap_or_else(|| "none".to_owned()))
        }
    }
}
