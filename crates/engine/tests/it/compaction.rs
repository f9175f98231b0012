//! Compaction, on request and automatic.

use codex_log::{Body, Outcome, TurnId};

use crate::world::{World, outcome, said, start};

#[tokio::test(start_paused = true)]
async fn on_request_a_summary_and_the_users_messages_replace_the_conversation() {
    let script =
        r#"[{"items": [{"text": "Noted."}]}, {"items": [{"text": "A fern."}]}, {"items": [{"text": "Yes."}]}]"#;
    let mut client = start(script).await;
    client.turn("1", "Remember the fern.").await;
    client.thread.compact(TurnId::new("pack")).await.expect("the thread is open");
    let events = client.until_ended().await;
    assert_eq!(outcome(&events), Outcome::Completed { last_message: None, bookmark: None });
    let asked = client.prompts.all().pop().expect("the model was asked");
    assert_eq!(asked.tools.responses_json(), "[]");
    client.turn("2", "Go on.").await;
    let input = client.last_input();
    assert_eq!(input.len(), 3, "{input:?}");
    assert_eq!((input[0].as_str(), input[2].as_str()), ("Remember the fern.", "Go on."));
    assert!(input[1].ends_with("A fern."), "{input:?}");
    let kinds = client.line_kinds();
    assert!(kinds.iter().any(|kind| kind == "compacted"), "{kinds:?}");
    let line = client.lines().into_iter().find(|line| line["type"] == "compacted").expect("the line is there");
    assert_eq!(line["payload"]["replacement_history"].as_array().map(Vec::len), Some(3));
}

#[tokio::test(start_paused = true)]
async fn a_full_window_is_summed_up_by_itself_before_the_next_request() {
    let script = r#"[
        {"items": [{"text": "Long."}], "usage": {"input": 950, "output": 10}},
        {"items": [{"text": "A summary."}], "usage": {"input": 960, "output": 10}},
        {"items": [{"text": "Short."}], "usage": {"input": 50, "output": 10}},
        {"items": [{"text": "Shorter."}], "usage": {"input": 60, "output": 10}}
    ]"#;
    let mut client = World::new().set("model_context_window=1000").start(script).await;
    client.turn("1", "one").await;
    let events = client.turn("2", "two").await;
    let compacted = |body: &Body| matches!(body, Body::Compacted(compacted) if compacted.after > 0);
    assert_eq!(events.iter().filter(|event| compacted(&event.body)).count(), 1);
    // The size of the window is published before the model has counted it: after the count of the summary itself,
    // without adding to the total.
    let counts: Vec<_> = events
        .iter()
        .skip_while(|event| !compacted(&event.body))
        .filter_map(|event| match &event.body {
            Body::TokensCounted { info: Some(info), .. } => Some((info.total_token_usage, info.last_token_usage)),
            _ => None,
        })
        .collect();
    let (total, guess) = counts[0];
    assert_eq!(total.total_tokens, 960 + 970);
    assert!(guess.total_tokens > 0 && guess.input_tokens == 0 && guess.total_tokens < 10_000, "{guess:?}");
    assert_eq!(outcome(&events), Outcome::Completed { last_message: Some("Short.".into()), bookmark: None });
    let events = client.turn("3", "three").await;
    assert!(!events.iter().any(|event| compacted(&event.body)), "there is room again");
    assert_eq!(client.prompts.all().len(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_failed_summary_is_reported_and_the_thread_continues() {
    let refusal = r#"{"status": 400, "body": {"error": {"message": "no"}}}"#;
    let script = format!(r#"[{{"items": [{{"text": "a"}}]}}, {refusal}, {{"items": [{{"text": "b"}}]}}]"#);
    let mut client = start(&script).await;
    client.turn("1", "hi").await;
    client.thread.compact(TurnId::new("pack")).await.expect("the thread is open");
    let Outcome::Failed(failure) = outcome(&client.until_ended().await) else { panic!("the summary fails") };
    assert_eq!(failure.message, "the conversation could not be compacted: no");
    let events = client.turn("2", "still there?").await;
    assert_eq!(outcome(&events), Outcome::Completed { last_message: Some("b".into()), bookmark: None });
}

#[tokio::test(start_paused = true)]
async fn an_interrupted_summary_takes_nothing_away() {
    let script = r#"[{"items": [{"text": "Noted."}]}, {"items": [{"hang": true}]}, {"items": [{"text": "Yes."}]}]"#;
    let world = World::new();
    let (mut setup, prompts) = world.setup(script);
    setup.profile = codex_thread::ClientProfile::QUEUE;
    let (thread, mut feed) = setup.start().await.expect("the thread starts");
    let say = |turn: &'static str| {
        thread.say(TurnId::new(turn), vec![said(turn)], codex_log::settings::SettingsChange::default())
    };
    let mut ended = async || while !matches!(feed.next().await.expect("it goes on").body, Body::TurnEnded(_)) {};
    say("one").await.expect("the thread is open");
    ended().await;
    thread.compact(TurnId::new("pack")).await.expect("the thread is open");
    thread.interrupt().await.expect("the thread is open");
    ended().await;
    say("two").await.expect("the thread is open");
    ended().await;
    let last = prompts.all().pop().expect("the model was asked");
    assert!(last.input.iter().any(|item| item.json().contains("Noted.")), "{:?}", last.input);
}
