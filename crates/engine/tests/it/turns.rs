//! The events of turns.

use codex_log::settings::SettingsChange;
use codex_log::{Body, Outcome, TurnId};
use codex_thread::TurnStart;
use codex_wire::response::ResponseItem;
use expect_test::expect;
use serde_json::json;

use crate::shown;
use crate::world::{World, check, check_lines, one_turn, outcome, said, start};

/// Whether the model has sent this much of a message.
fn grew(body: &Body) -> bool {
    matches!(body, Body::ItemDelta { .. })
}

#[tokio::test(start_paused = true)]
async fn one_text_turn_in_order() {
    let mut client = start(r#"[{"items": [{"text": "Hello", "deltas": ["Hel", "lo"]}]}]"#).await;
    let events = client.turn("1", "hi").await;
    check(
        &events,
        expect![[r#"
            - thread started
            - recorded user: (environment)
            1 turn started, window Some(258400)
            1 recorded user: "hi"
            1 started user 1 piece(s)
            1 completed user 1 piece(s)
            1 asked gpt-5.1-codex
            1 counted None
            1 started agent msg-1-1 ""
            1 grew msg-1-1 Text("Hel")
            1 grew msg-1-1 Text("lo")
            1 completed agent msg-1-1 "Hello"
            1 recorded assistant: "Hello"
            1 counted Some(110)
            1 ended Completed { last_message: Some("Hello"), bookmark: None }
        "#]],
    );
}

#[tokio::test(start_paused = true)]
async fn reasoning_has_summary_parts_and_raw_text() {
    let mut client = start(r#"[{"items": [{"reasoning": ["One.", "Two."], "raw": "deep"}, {"text": "A"}]}]"#).await;
    let events = client.turn("1", "hi").await;
    let about_items = |body: &Body| {
        matches!(body, Body::ItemStarted(_) | Body::ItemDelta { .. } | Body::ItemCompleted(_) | Body::TurnEnded(_))
    };
    let events: Vec<_> = events.into_iter().filter(|event| about_items(&event.body)).collect();
    check(
        &events,
        expect![[r#"
            1 started user 1 piece(s)
            1 completed user 1 piece(s)
            1 started reasoning rs-1-1 [] []
            1 grew rs-1-1 SummaryPart { index: 0 }
            1 grew rs-1-1 Summary { index: 0, text: "On" }
            1 grew rs-1-1 Summary { index: 0, text: "e." }
            1 grew rs-1-1 SummaryPart { index: 1 }
            1 grew rs-1-1 Summary { index: 1, text: "Tw" }
            1 grew rs-1-1 Summary { index: 1, text: "o." }
            1 grew rs-1-1 Raw { index: 0, text: "de" }
            1 grew rs-1-1 Raw { index: 0, text: "ep" }
            1 completed reasoning rs-1-1 ["One.", "Two."] ["deep"]
            1 started agent msg-1-2 ""
            1 grew msg-1-2 Text("A")
            1 completed agent msg-1-2 "A"
            1 ended Completed { last_message: Some("A"), bookmark: None }
        "#]],
    );
}

#[tokio::test(start_paused = true)]
async fn input_joins_the_running_turn_and_gets_an_answer_in_it() {
    let script = r#"[{"items": [{"text": "first", "deltas": ["fir", {"pause_ms": 1000}, "st"]}]},
                     {"items": [{"text": "second"}]}]"#;
    let mut client = start(script).await;
    client.say("1", "hi").await;
    client.until(grew).await;
    assert_eq!(client.say("2", "and this").await, TurnStart::Joined(TurnId::new("1")));
    let events = client.until_ended().await;
    check(
        &events,
        expect![[r#"
            1 grew msg-1-1 Text("st")
            1 completed agent msg-1-1 "first"
            1 recorded assistant: "first"
            1 counted Some(110)
            1 recorded user: "and this"
            1 started user 1 piece(s)
            1 completed user 1 piece(s)
            1 asked gpt-5.1-codex
            1 counted Some(110)
            1 started agent msg-2-1 ""
            1 grew msg-2-1 Text("second")
            1 completed agent msg-2-1 "second"
            1 recorded assistant: "second"
            1 counted Some(220)
            1 ended Completed { last_message: Some("second"), bookmark: None }
        "#]],
    );
    check_lines(
        &shown::input(&client.prompts.all()[1]),
        expect![[r#"
        user: (environment)
        user: "hi"
        assistant: "first"
        user: "and this"
    "#]],
    );
}

#[tokio::test(start_paused = true)]
async fn settings_that_come_with_joining_input_are_not_applied_and_that_is_reported() {
    let script = r#"[{"items": [{"pause_ms": 1000}, {"text": "a"}]}, {"items": [{"text": "b"}]}]"#;
    let mut client = start(script).await;
    client.say("1", "hi").await;
    client.until(|body| matches!(body, Body::ModelAsked(_))).await;
    let change = SettingsChange { model: Some("o3".to_owned()), ..SettingsChange::default() };
    client.say_with("2", vec![said("more")], change).await;
    let events = client.until_ended().await;
    let warnings: Vec<_> = events.iter().filter(|event| matches!(event.body, Body::Warning { .. })).cloned().collect();
    check(
        &warnings,
        expect![[r#"
        1 warning: the input joined the running turn, so its settings were not applied
    "#]],
    );
    assert_eq!(client.prompts.all()[1].model, client.thread.started().settings.model);
}

#[tokio::test(start_paused = true)]
async fn a_second_turn_starts_after_the_first() {
    let mut client = one_turn(r#"[{"items": [{"text": "a"}]}, {"items": [{"text": "b"}]}]"#).await;
    let events = client.turn("2", "again").await;
    assert!(events.iter().all(|event| event.turn == Some(TurnId::new("2"))));
    assert_eq!(outcome(&events), Outcome::Completed { last_message: Some("b".into()), bookmark: None });
}

#[tokio::test(start_paused = true)]
async fn tokens_add_up_over_answers() {
    let script = r#"[{"items": [{"text": "a"}], "usage": {"input": 100, "output": 10}},
                     {"items": [{"text": "b"}], "usage": {"input": 200, "cached": 150, "output": 20}}]"#;
    let mut client = one_turn(script).await;
    let events = client.turn("2", "again").await;
    let counted = events.iter().rev().find_map(|event| match &event.body {
        Body::TokensCounted { info, .. } => info.clone(),
        _ => None,
    });
    let info = counted.unwrap();
    assert_eq!((info.total_token_usage.total_tokens, info.last_token_usage.total_tokens), (330, 220));
    assert_eq!((info.total_token_usage.cached_input_tokens, info.model_context_window), (150, Some(258_400)));
}

#[tokio::test(start_paused = true)]
async fn a_slow_subscriber_gets_the_whole_text() {
    let deltas = vec![r#""x""#; 2000].join(",");
    let script = format!(r#"[{{"items": [{{"text": "{}", "deltas": [{deltas}]}}]}}]"#, "x".repeat(2000));
    let mut client = start(&script).await;
    client.say("1", "hi").await;
    client.thread.finish().await;
    let events = client.rest().await;
    assert!(events.len() < 400, "{} events were kept", events.len());
    let text: String = events
        .iter()
        .filter_map(|event| match &event.body {
            Body::ItemDelta { delta: codex_log::Delta::Text(text), .. } => Some(text.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(text, "x".repeat(2000));
    let whole =
        |body: &Body| matches!(body, Body::ItemCompleted(item) if item.answer().is_some_and(|text| text.len() == 2000));
    assert!(events.iter().any(|event| whole(&event.body)));
}

/// A message can be megabytes long.
#[tokio::test]
async fn all_that_shows_a_message_shares_its_text() {
    let long = "word ".repeat(40_000);
    let mut client = World::new().start(&json!([{"items": [{"text": long}]}]).to_string()).await;
    let events = client.turn("1", "hi").await;
    let mut texts = Vec::new();
    for event in &events {
        match &event.body {
            Body::ItemCompleted(item) => texts.extend(item.answer().cloned()),
            Body::TurnEnded(Outcome::Completed { last_message: Some(text), .. }) => texts.push(text.clone()),
            Body::Recorded(record) => match &*record.item().unwrap() {
                ResponseItem::Message(message) if message.role == "assistant" => {
                    texts.extend(message.content[0].text().cloned());
                }
                _ => {}
            },
            _ => {}
        }
    }
    assert_eq!(texts.len(), 3);
    assert!(texts.iter().all(|text| std::ptr::eq(text.as_str(), texts[0].as_str()) && **text == *long));
}
