//! The body of a request, joined from encoded parts.

use std::borrow::Cow;

use codex_wire::conversation_item::ConversationItem;
use codex_wire::reasoning::ReasoningSummary;
use codex_wire::tool_spec::{ToolList, ToolSpec};
use serde::{Serialize, Serializer, ser::SerializeMap};
use serde_json::Value;

use crate::encoding::{RequestFormat, json_of as json, write_string};
use crate::flat_tools::flat_tools;
use crate::{Prompt, ReasoningRequest};

/// Encodes a request. Input items and tools are copied byte for byte; the buffer is allocated once, at its final size.
/// Data that only another provider can read is left out.
pub(crate) fn request_body(prompt: &Prompt, format: &RequestFormat<'_>) -> Vec<u8> {
    let model = json(&prompt.model);
    let tail = json(&Tail::new(prompt, format));
    // The tail is a separate object; its opening brace is replaced by a comma.
    let tail = tail.strip_prefix('{').unwrap_or_default();
    let tools = tools_json(&prompt.tools, format);
    let known = format.follows.as_ref().map_or(0, |stored| stored.items);
    let sent: Vec<_> = prompt.input.iter().skip(known).filter(|item| !format.is_unreadable(item)).collect();
    let items = sent.iter().map(|item| item.json_bytes() + id_member(item, format).len() + 1).sum::<usize>();
    let begin = if format.is_message { r#"{"type":"response.create","model":"# } else { r#"{"model":"# };
    let size = begin.len()
        + r#","instructions":,"input":[],"tools":,"#.len()
        + model.len()
        + escaped_len(&prompt.instructions)
        + items.saturating_sub(1)
        + tools.len()
        + tail.len();

    let mut body = Vec::with_capacity(size);
    body.extend_from_slice(begin.as_bytes());
    body.extend_from_slice(model.as_bytes());
    body.extend_from_slice(br#","instructions":"#);
    write_string(&mut body, &prompt.instructions);
    body.extend_from_slice(br#","input":["#);
    for (place, item) in sent.into_iter().enumerate() {
        if place > 0 {
            body.push(b',');
        }
        let begin = body.len() + 1;
        item.append_to(&mut body);
        body.splice(begin..begin, id_member(item, format).into_bytes());
    }
    body.extend_from_slice(br#"],"tools":"#);
    body.extend_from_slice(tools.as_bytes());
    body.push(b',');
    body.extend_from_slice(tail.as_bytes());
    debug_assert_eq!(body.len(), size, "the buffer has grown or is too large");
    body
}

/// The tools; without namespaces for a provider that is not known to accept them.
fn tools_json<'a>(tools: &'a ToolList, format: &RequestFormat<'_>) -> Cow<'a, str> {
    let is_namespace = |spec: &ToolSpec| matches!(spec, ToolSpec::Namespace(_));
    if format.traits.hosted_tools || !tools.specs().iter().any(is_namespace) {
        return Cow::Borrowed(tools.responses_json());
    }
    tools.on_wire(&format.tools_name(), |specs| {
        let flat = flat_tools(specs, format.traits).into_iter();
        let named = flat.map(|tool| match tool.namespace {
            Some(_) => tool.spec.named(tool.name.into_owned()),
            None => tool.spec.clone(),
        });
        ToolList::of(named.collect()).responses_json().to_owned()
    })
}

/// The id member that a provider with stored items expects in each of its own.
fn id_member(item: &ConversationItem, format: &RequestFormat<'_>) -> String {
    match format.opaque(item).and_then(|opaque| opaque["id"].as_str()) {
        Some(id) if format.traits.store => format!("\"id\":{},", json(&id)),
        _ => String::new(),
    }
}

/// The members after the tools.
#[derive(Serialize)]
struct Tail<'a> {
    tool_choice: &'static str,
    parallel_tool_calls: bool,
    reasoning: Option<Reasoning<'a>>,
    store: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream: Option<bool>,
    include: &'static [&'static str],
    prompt_cache_key: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    previous_response_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<Text<'a>>,
}

impl<'a> Tail<'a> {
    fn new(prompt: &'a Prompt, format: &RequestFormat<'_>) -> Self {
        let has_text = prompt.verbosity.is_some() || prompt.output_schema.is_some();
        Self {
            tool_choice: "auto",
            parallel_tool_calls: prompt.parallel_tool_calls,
            reasoning: prompt.reasoning.as_ref().map(Reasoning),
            store: format.traits.store,
            // The answer to a message is always a stream.
            stream: (!format.is_message).then_some(true),
            // The provider stores nothing, so the reasoning has to be returned to be sent again.
            include: if prompt.reasoning.is_some() { &["reasoning.encrypted_content"] } else { &[] },
            prompt_cache_key: prompt.cache_key.to_string(),
            previous_response_id: format.follows.as_ref().map(|stored| stored.response_id.clone()),
            text: has_text.then(|| Text {
                verbosity: prompt.verbosity.as_ref().map(codex_wire::reasoning::Verbosity::as_str),
                format: prompt.output_schema.as_ref().map(Format::new),
            }),
        }
    }
}

struct Reasoning<'a>(&'a ReasoningRequest);

impl Serialize for Reasoning<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        if let Some(effort) = &self.0.effort {
            map.serialize_entry("effort", effort)?;
        }
        // No summary is requested by omitting the word; providers do not know `none` here.
        if let Some(summary) = self.0.summary.as_ref().filter(|summary| **summary != ReasoningSummary::None) {
            map.serialize_entry("summary", summary)?;
        }
        map.end()
    }
}

#[derive(Serialize)]
struct Text<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    verbosity: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<Format<'a>>,
}

#[derive(Serialize)]
struct Format<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    strict: bool,
    name: &'static str,
    schema: &'a Value,
}

impl<'a> Format<'a> {
    fn new(schema: &'a Value) -> Self {
        Self { kind: "json_schema", strict: true, name: "codex_output_schema", schema }
    }
}

/// The length of a text as a JSON string, quotes included.
fn escaped_len(text: &str) -> usize {
    let extra = text.bytes().map(|byte| match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 0x08 | 0x0c => 1,
        0x00..0x20 => 5,
        _ => 0,
    });
    text.len() + 2 + extra.sum::<usize>()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use codex_wire::provider_traits::ProviderTraits;
    use codex_wire::reasoning::{ReasoningEffort, Verbosity};
    use codex_wire::tool_spec::ToolList;
    use expect_test::{Expect, expect};
    use proptest::prelude::*;
    use serde_json::{json, value::RawValue};

    use super::*;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    fn prompt() -> Prompt {
        Prompt {
            thread: "019a0000-0000-7000-8000-000000000001".parse().unwrap(),
            cache_key: "019a0000-0000-7000-8000-000000000001".parse().unwrap(),
            model: "mock-model".to_owned(),
            instructions: Arc::from("Be \"brief\".\n"),
            input: vec![raw(r#"{"type" : "message"}"#).into(), raw("{ }").into()],
            tools: ToolList::of(Vec::new()),
            parallel_tool_calls: false,
            reasoning: None,
            verbosity: None,
            output_schema: None,
            max_output_tokens: None,
            pace: None,
        }
    }

    #[track_caller]
    fn check(prompt: &Prompt, expected: Expect) {
        let traits = ProviderTraits::responses();
        let body = request_body(prompt, &RequestFormat::new("responses", "mock", None, &traits));
        assert_eq!(body.capacity(), body.len(), "allocated once");
        let body = String::from_utf8(body).unwrap();
        serde_json::from_str::<Value>(&body).unwrap();
        expected.assert_eq(&body);
    }

    #[test]
    fn plain_request() {
        check(
            &prompt(),
            expect![[
                r#"{"model":"mock-model","instructions":"Be \"brief\".\n","input":[{"type" : "message"},{ }],"tools":[],"tool_choice":"auto","parallel_tool_calls":false,"reasoning":null,"store":false,"stream":true,"include":[],"prompt_cache_key":"019a0000-0000-7000-8000-000000000001"}"#
            ]],
        );
    }

    #[test]
    fn full_request() {
        let mut prompt = prompt();
        prompt.input.clear();
        prompt.parallel_tool_calls = true;
        prompt.reasoning = Some(ReasoningRequest {
            effort: Some(ReasoningEffort::High),
            summary: Some(codex_wire::reasoning::ReasoningSummary::Auto),
            ..ReasoningRequest::default()
        });
        prompt.verbosity = Some(Verbosity::Low);
        prompt.output_schema = Some(json!({"type": "object"}));
        check(
            &prompt,
            expect![[
                r#"{"model":"mock-model","instructions":"Be \"brief\".\n","input":[],"tools":[],"tool_choice":"auto","parallel_tool_calls":true,"reasoning":{"effort":"high","summary":"auto"},"store":false,"stream":true,"include":["reasoning.encrypted_content"],"prompt_cache_key":"019a0000-0000-7000-8000-000000000001","text":{"verbosity":"low","format":{"type":"json_schema","strict":true,"name":"codex_output_schema","schema":{"type":"object"}}}}"#
            ]],
        );
    }

    #[test]
    fn a_request_begins_with_the_bytes_of_the_one_before() {
        let whole = crate::testing::conversation();
        let traits = ProviderTraits::responses();
        let bytes = |input: &[ConversationItem]| {
            let prompt = Prompt { input: input.to_vec(), ..whole.clone() };
            String::from_utf8(request_body(&prompt, &RequestFormat::new("responses", "mock", None, &traits))).unwrap()
        };
        for end in 1..whole.input.len() {
            let before = bytes(&whole.input[..end]);
            let shared = before.split_once(r#"],"tools""#).unwrap().0;
            assert!(bytes(&whole.input).starts_with(shared), "{shared}");
        }
    }

    #[test]
    fn only_what_others_cannot_read_is_left_out_for_them() {
        let mut prompt = crate::testing::prompt(&["user:Hi.", "thought:Hm.", "assistant:Yes.", "call:c1"]);
        let traits = ProviderTraits { store: true, ..ProviderTraits::responses() };
        for (place, id) in [(1, "rs"), (2, "msg"), (3, "fc")] {
            prompt.input[place] = crate::testing::foreign(&prompt.input[place], "mock", json!({"id": id}));
        }
        let ids = |provider: &str| {
            let body = request_body(&prompt, &RequestFormat::new("responses", provider, None, &traits));
            let body: Value = serde_json::from_slice(&body).unwrap();
            let shown = |item: &Value| format!("{} {}", item["type"], item["id"]);
            body["input"].as_array().unwrap().iter().map(shown).collect::<Vec<_>>()
        };
        assert_eq!(
            ids("mock"),
            [r#""message" null"#, r#""reasoning" "rs""#, r#""message" "msg""#, r#""function_call" "fc""#]
        );
        assert_eq!(ids("other"), [r#""message" null"#, r#""message" null"#, r#""function_call" null"#]);
    }

    #[test]
    fn summary_none_is_left_out() {
        let summary = Some(ReasoningSummary::None);
        let request = ReasoningRequest { effort: Some(ReasoningEffort::None), summary, ..ReasoningRequest::default() };
        assert_eq!(json(&Reasoning(&request)), r#"{"effort":"none"}"#);
        assert_eq!(json(&Reasoning(&ReasoningRequest::default())), "{}");
    }

    proptest! {
        #[test]
        fn escaped_length_is_exact(text in any::<String>()) {
            prop_assert_eq!(escaped_len(&text), json(&text).len());
        }

        #[test]
        fn control_characters_too(bytes in prop::collection::vec(0_u8..0x80, 0..50)) {
            let text = String::from_utf8(bytes).unwrap();
            prop_assert_eq!(escaped_len(&text), json(&text).len());
        }
    }
}
