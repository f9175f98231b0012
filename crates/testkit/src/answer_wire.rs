//! Converts events of the Responses API to the streams of other APIs.

use serde_json::{Value, json};

/// The wire of an answer, and how far the answer is.
#[derive(Debug)]
pub(crate) enum AnswerWire {
    /// Events stay as they are.
    Responses,
    /// Chunks of Chat Completions.
    Chat(Counts),
    /// Events of the Messages API.
    Anthropic(Counts),
}

/// The items of an answer so far.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    blocks: usize,
    calls: usize,
}

impl AnswerWire {
    /// The wire of a path, if there is a model behind it.
    pub(crate) fn of(path: &str) -> Option<Self> {
        let ends = |end: &str| path.ends_with(end);
        match () {
            () if ends("/responses") => Some(Self::Responses),
            () if ends("/chat/completions") => Some(Self::Chat(Counts::default())),
            () if ends("/messages") => Some(Self::Anthropic(Counts::default())),
            () => None,
        }
    }

    /// The events that stand for one of the Responses API. A string is sent as it is.
    pub(crate) fn translate(&mut self, event: Value) -> Vec<Value> {
        match self {
            Self::Responses => vec![event],
            Self::Chat(counts) => chat(&event, counts),
            Self::Anthropic(counts) => anthropic(&event, counts),
        }
    }
}

/// A call as a function is called: id, name, arguments.
fn call(item: &Value) -> Option<(&str, &str, String)> {
    let text = |name: &str| item[name].as_str().unwrap_or_default();
    match text("type") {
        "function_call" => Some((text("call_id"), text("name"), text("arguments").to_owned())),
        "custom_tool_call" => Some((text("call_id"), text("name"), json!({"input": item["input"]}).to_string())),
        _ => None,
    }
}

/// A text in two pieces, cut between characters.
fn halves(text: &str) -> [&str; 2] {
    let middle = (0..=text.len() / 2).rev().find(|place| text.is_char_boundary(*place)).unwrap_or(0);
    let (first, second) = text.split_at(middle);
    [first, second]
}

fn chat(event: &Value, counts: &mut Counts) -> Vec<Value> {
    let chunk = |delta: Value, reason: Value| json!({"id": "chat", "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]});
    let delta = |delta: Value| chunk(delta, Value::Null);
    let response = &event["response"];
    match event["type"].as_str().unwrap_or_default() {
        "response.output_text.delta" => vec![delta(json!({"content": event["delta"]}))],
        "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
            vec![delta(json!({"reasoning_content": event["delta"]}))]
        }
        "response.output_item.done" => {
            let Some((id, name, arguments)) = call(&event["item"]) else { return Vec::new() };
            let index = counts.calls;
            counts.calls += 1;
            let begun =
                json!({"tool_calls": [{"index": index, "id": id, "type": "function", "function": {"name": name}}]});
            let pieces = halves(&arguments)
                .map(|half| delta(json!({"tool_calls": [{"index": index, "function": {"arguments": half}}]})));
            std::iter::once(delta(begun)).chain(pieces).collect()
        }
        "response.completed" => {
            let reason = if counts.calls > 0 { "tool_calls" } else { "stop" };
            let usage = &response["usage"];
            let usage = json!({
                "prompt_tokens": usage["input_tokens"],
                "completion_tokens": usage["output_tokens"],
                "prompt_tokens_details": usage["input_tokens_details"],
                "completion_tokens_details": usage["output_tokens_details"],
            });
            let counted = json!({"id": "chat", "choices": [], "usage": usage});
            vec![chunk(json!({}), json!(reason)), counted, json!("[DONE]")]
        }
        "response.failed" => vec![json!({"error": response["error"]})],
        "response.incomplete" => vec![chunk(json!({}), json!("length"))],
        _ => Vec::new(),
    }
}

fn anthropic(event: &Value, counts: &mut Counts) -> Vec<Value> {
    let (item, response) = (&event["item"], &event["response"]);
    let index = counts.blocks;
    let begin = |block: Value| json!({"type": "content_block_start", "index": index, "content_block": block});
    let delta = |delta: Value| json!({"type": "content_block_delta", "index": index, "delta": delta});
    let end = json!({"type": "content_block_stop", "index": index});
    match (event["type"].as_str().unwrap_or_default(), item["type"].as_str().unwrap_or_default()) {
        ("response.created", _) => vec![json!({"type": "message_start", "message": {"id": response["id"]}})],
        ("response.output_item.added", "message") => vec![begin(json!({"type": "text", "text": ""}))],
        ("response.output_item.added", "reasoning") => vec![begin(json!({"type": "thinking", "thinking": ""}))],
        ("response.output_text.delta", _) => vec![delta(json!({"type": "text_delta", "text": event["delta"]}))],
        ("response.reasoning_summary_text.delta" | "response.reasoning_text.delta", _) => {
            vec![delta(json!({"type": "thinking_delta", "thinking": event["delta"]}))]
        }
        ("response.output_item.done", "message") => {
            counts.blocks += 1;
            vec![end]
        }
        ("response.output_item.done", "reasoning") => {
            counts.blocks += 1;
            vec![delta(json!({"type": "signature_delta", "signature": "c2ln"})), end]
        }
        ("response.output_item.done", _) => {
            let Some((id, name, arguments)) = call(item) else { return Vec::new() };
            (counts.blocks, counts.calls) = (counts.blocks + 1, counts.calls + 1);
            let pieces =
                halves(&arguments).map(|half| delta(json!({"type": "input_json_delta", "partial_json": half})));
            let call = begin(json!({"type": "tool_use", "id": id, "name": name, "input": {}}));
            std::iter::once(call).chain(pieces).chain([end]).collect()
        }
        ("response.completed", _) => {
            let reason = if counts.calls > 0 { "tool_use" } else { "end_turn" };
            let usage = &response["usage"];
            let input = |name: &str| usage["input_tokens_details"][name].as_i64().unwrap_or(0);
            let (cached, written) = (input("cached_tokens"), input("cache_write_tokens"));
            let usage = json!({
                "input_tokens": usage["input_tokens"].as_i64().unwrap_or(0) - cached - written,
                "cache_read_input_tokens": cached,
                "cache_creation_input_tokens": written,
                "output_tokens": usage["output_tokens"],
                "output_tokens_details": {"thinking_tokens": usage["output_tokens_details"]["reasoning_tokens"]},
            });
            let stop = json!({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": usage});
            vec![stop, json!({"type": "message_stop"})]
        }
        ("response.failed", _) => vec![json!({"type": "error", "error": response["error"]})],
        ("response.incomplete", _) => {
            let stop = json!({"type": "message_delta", "delta": {"stop_reason": "max_tokens"}});
            vec![stop, json!({"type": "message_stop"})]
        }
        _ => Vec::new(),
    }
}
