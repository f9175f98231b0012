use codex_wire::provider_traits::ProviderTraits;
use codex_wire::reasoning::ReasoningEffort;
use expect_test::{Expect, expect};

use super::*;
use crate::ReasoningRequest;
use crate::testing::{conversation, foreign, prompt};

fn body(prompt: &Prompt, traits: &ProviderTraits) -> String {
    let body = String::from_utf8(request_body(prompt, &RequestFormat::new("chat", "mock", None, traits))).unwrap();
    serde_json::from_str::<Value>(&body).unwrap();
    body
}

#[track_caller]
fn check(prompt: &Prompt, traits: &ProviderTraits, expected: Expect) {
    expected.assert_eq(&body(prompt, traits));
}

#[test]
fn an_unknown_server_gets_no_optional_members() {
    let mut prompt = prompt(&["user:Hello."]);
    prompt.reasoning = Some(ReasoningRequest { effort: Some(ReasoningEffort::High), ..ReasoningRequest::default() });
    prompt.max_output_tokens = Some(100);
    check(
        &prompt,
        &ProviderTraits::unknown(),
        expect![[
            r#"{"model":"mock-model","messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"Hello."}],"stream":true}"#
        ]],
    );
}

#[test]
fn a_known_server_gets_all_members() {
    let mut prompt = prompt(&["user:Hello."]);
    prompt.reasoning = Some(ReasoningRequest { effort: Some(ReasoningEffort::High), ..ReasoningRequest::default() });
    prompt.output_schema = Some(json!({"type": "object", "additionalProperties": false}));
    prompt.max_output_tokens = Some(100);
    let traits = ProviderTraits {
        stream_usage: true,
        reasoning: ReasoningField::Effort,
        cache: CacheForm::Key,
        schemas: SchemaForm::Strict,
        ..ProviderTraits::unknown()
    };
    check(
        &prompt,
        &traits,
        expect![[
            r#"{"model":"mock-model","messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"Hello."}],"stream":true,"stream_options":{"include_usage":true},"reasoning_effort":"high","max_completion_tokens":100,"response_format":{"type":"json_schema","json_schema":{"name":"codex_output_schema","strict":true,"schema":{"type":"object","additionalProperties":false}}},"prompt_cache_key":"019a0000-0000-7000-8000-000000000001"}"#
        ]],
    );
}

#[test]
fn parallel_calls_are_one_message() {
    check(
        &conversation(),
        &ProviderTraits::unknown(),
        expect![[
            r#"{"model":"mock-model","messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"Look."},{"role":"assistant","content":"I look.","tool_calls":[{"id":"c1","type":"function","function":{"name":"shell","arguments":"{\"command\":[\"ls\"]}"}},{"id":"c2","type":"function","function":{"name":"apply_patch","arguments":"{\"input\":\"*** Begin\"}"}}]},{"role":"tool","tool_call_id":"c1","content":"a.txt"},{"role":"tool","tool_call_id":"c2","content":"The picture is in the next message."},{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}}]},{"role":"assistant","content":"Done."},{"role":"user","content":[{"type":"text","text":"And this?"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}}]}],"stream":true}"#
        ]],
    );
}

#[test]
fn thoughts_go_back_where_they_are_wanted() {
    let traits = ProviderTraits { returns_thoughts: true, ..ProviderTraits::unknown() };
    let body = body(&conversation(), &traits);
    assert!(
        body.contains(r#"{"role":"assistant","reasoning_content":"Hm.","content":"I look.","tool_calls":["#),
        "{body}"
    );
}

#[test]
fn extra_content_goes_back_to_its_maker_alone() {
    let traits = ProviderTraits::unknown();
    let call = |origin: &str| {
        let mut prompt = prompt(&["user:Hello.", "call:c1"]);
        prompt.input[1] =
            foreign(&prompt.input[1], origin, json!({"extra_content": {"google": {"thought_signature": "s"}}}));
        body(&prompt, &traits)
    };
    assert!(call("mock").contains(r#","extra_content":{"google":{"thought_signature":"s"}}}"#), "{}", call("mock"));
    assert!(!call("other").contains("extra_content"));
}

#[test]
fn a_request_begins_with_the_bytes_of_the_one_before() {
    let (traits, whole) = (ProviderTraits::unknown(), conversation());
    // Requests end with a message of the user's side.
    for end in [1, 7] {
        let before = Prompt { input: whole.input[..end].to_vec(), ..whole.clone() };
        let before = body(&before, &traits);
        let shared = before.split_once(r#"],"stream""#).unwrap().0;
        assert!(body(&whole, &traits).starts_with(shared), "{shared}");
    }
}

#[test]
fn tools_become_functions_and_schemas_simpler() {
    let mut prompt = prompt(&["user:Hello."]);
    prompt.tools = crate::testing::tools();
    let traits = ProviderTraits { schemas: SchemaForm::Simple, ..ProviderTraits::unknown() };
    check(
        &prompt,
        &traits,
        expect![[
            r#"{"model":"mock-model","messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"Hello."}],"tools":[{"type":"function","function":{"name":"shell","description":"Runs.","parameters":{"type":"object","properties":{}}}},{"type":"function","function":{"name":"apply_patch","description":"Patches.\n\nThe text has to follow this lark grammar:\nstart: \"a\"","parameters":{"type":"object","properties":{"input":{"type":"string","description":"The whole text"}},"required":["input"]}}}],"stream":true}"#
        ]],
    );
}
