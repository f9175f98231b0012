use codex_wire::provider_traits::ProviderTraits;
use expect_test::{Expect, expect};

use super::*;
use crate::testing::{conversation, foreign, prompt};

fn body(prompt: &Prompt, traits: &ProviderTraits) -> String {
    let body = String::from_utf8(request_body(prompt, &RequestFormat::new("anthropic", "mock", None, traits))).unwrap();
    serde_json::from_str::<Value>(&body).unwrap();
    body
}

fn unmarked() -> ProviderTraits {
    ProviderTraits { cache: CacheForm::None, ..ProviderTraits::anthropic() }
}

#[track_caller]
fn check(prompt: &Prompt, traits: &ProviderTraits, expected: Expect) {
    expected.assert_eq(&body(prompt, traits));
}

#[test]
fn the_sides_take_turns() {
    let mut prompt = conversation();
    prompt.input[1] = foreign(&prompt.input[1], "mock", json!({"signature": "sig"}));
    check(
        &prompt,
        &unmarked(),
        expect![[
            r#"{"model":"mock-model","system":[{"type":"text","text":"Be brief."}],"messages":[{"role":"user","content":[{"type":"text","text":"Look."}]},{"role":"assistant","content":[{"type":"thinking","thinking":"Hm.","signature":"sig"},{"type":"text","text":"I look."},{"type":"tool_use","id":"c1","name":"shell","input":{"command":["ls"]}},{"type":"tool_use","id":"c2","name":"apply_patch","input":{"input":"*** Begin"}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"a.txt"},{"type":"tool_result","tool_use_id":"c2","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AA=="}}]}]},{"role":"assistant","content":[{"type":"text","text":"Done."}]},{"role":"user","content":[{"type":"text","text":"And this?"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AA=="}}]}],"tools":[{"name":"none","description":"Not to be called.","input_schema":{"type":"object","properties":{}}}],"max_tokens":8192,"stream":true,"tool_choice":{"type":"none"}}"#
        ]],
    );
}

#[test]
fn reasoning_is_returned_unchanged_and_only_to_its_provider() {
    let thought = |origin: &str, opaque: Value| {
        let mut prompt = prompt(&["user:Hello.", "thought:Hm.", "assistant:Yes.", "user:Why?"]);
        prompt.input[1] = foreign(&prompt.input[1], origin, opaque);
        body(&prompt, &unmarked())
    };
    let signed = json!({"signature": "sig"});
    assert!(thought("mock", signed.clone()).contains(r#"{"type":"thinking","thinking":"Hm.","signature":"sig"}"#));
    let redacted = thought("mock", json!({"redacted": "data"}));
    assert!(redacted.contains(r#"{"type":"redacted_thinking","data":"data"}"#));
    assert!(!thought("other", signed).contains("thinking"));
}

#[test]
fn at_most_four_marks_stand_at_places_that_stay() {
    let texts: Vec<String> = (0..9).map(|n| format!("{}:{n}", if n % 2 == 0 { "user" } else { "assistant" })).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let traits = ProviderTraits::anthropic();
    let mark = r#","cache_control":{"type":"ephemeral"}"#;
    let places = |end: usize| {
        let body = body(&prompt(&texts[..end]), &traits);
        let marked = body.split(mark).collect::<Vec<_>>();
        let before = |part: &&str| part.chars().rev().find(|c| c.is_alphanumeric() || *c == '.').unwrap_or(' ');
        marked[..marked.len() - 1].iter().map(before).collect::<String>()
    };
    assert_eq!(places(1), ".0");
    assert_eq!(places(3), ".02");
    assert_eq!(places(5), ".024");
    assert_eq!(places(9), ".068");
}

#[test]
fn a_request_begins_with_the_bytes_of_the_one_before() {
    let whole = conversation();
    for traits in [ProviderTraits::anthropic(), unmarked()] {
        let bytes = |input: usize| {
            let body = body(&Prompt { input: whole.input[..input].to_vec(), ..whole.clone() }, &traits);
            // Cache marks move, and are not part of what the provider compares.
            body.replace(r#","cache_control":{"type":"ephemeral"}"#, "")
        };
        for end in [1, 7] {
            let before = bytes(end);
            let shared = before.split_once(r#"]}],"#).unwrap().0;
            assert!(bytes(whole.input.len()).starts_with(shared), "{shared}");
        }
    }
}

#[test]
fn models_are_made_to_think_in_their_own_way() {
    let tail = |thinking, effort, most| {
        let mut prompt = prompt(&["user:Hello."]);
        prompt.reasoning = Some(ReasoningRequest { effort, summary: None, thinking });
        prompt.max_output_tokens = most;
        let body = body(&prompt, &unmarked());
        body.split_once(r#""max_tokens""#).unwrap().1.to_owned()
    };
    let (adaptive, budget) = (ThinkingForm::Adaptive, ThinkingForm::Budget);
    assert_eq!(
        tail(adaptive, Some(ReasoningEffort::High), Some(64_000)),
        r#":64000,"stream":true,"thinking":{"type":"adaptive"},"output_config":{"effort":"high"}}"#
    );
    assert_eq!(tail(adaptive, None, None), r#":8192,"stream":true,"thinking":{"type":"adaptive"}}"#);
    assert_eq!(
        tail(budget, Some(ReasoningEffort::High), Some(64_000)),
        r#":64000,"stream":true,"thinking":{"type":"enabled","budget_tokens":32000}}"#
    );
    assert_eq!(tail(budget, Some(ReasoningEffort::None), None), r#":8192,"stream":true}"#);
    assert_eq!(tail(ThinkingForm::None, Some(ReasoningEffort::High), None), r#":8192,"stream":true}"#);
}

#[test]
fn a_schema_is_enforced_or_described() {
    let mut prompt = prompt(&["user:Hello."]);
    prompt.output_schema = Some(json!({"type": "object"}));
    let strict = ProviderTraits { schemas: SchemaForm::Strict, ..unmarked() };
    assert!(
        body(&prompt, &strict)
            .ends_with(r#""output_config":{"format":{"type":"json_schema","schema":{"type":"object"}}}}"#)
    );
    let told = body(&prompt, &unmarked());
    assert!(told.contains(r#"that follows this schema: {\"type\":\"object\"}""#), "{told}");
}

#[test]
fn the_user_speaks_first_and_last() {
    let body = body(&prompt(&["assistant:Yes."]), &unmarked());
    assert!(body.contains(r#""messages":[{"role":"user","content":[{"type":"text","text":"(What came before was left out.)"}]},{"role":"assistant","content":[{"type":"text","text":"Yes."}]},{"role":"user","content":[{"type":"text","text":"Go on."}]}]"#), "{body}");
}
