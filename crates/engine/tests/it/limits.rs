//! Turns that wait for the account's allowance, and the cost of turns.

use std::sync::Arc;

use codex_engine::Setup;
use codex_log::{Body, Event, Outcome, limit_words};
use codex_thread::ClientProfile;
use tokio::time::Instant;

use crate::world::{Client, World, outcome, resumed, start};

/// A model whose allowance is exhausted for two hours, and that then answers.
const LIMITED: &str = r#"[{"status": 429, "body": {"error": {"type": "usage_limit_reached", "message": "limit",
                           "resets_in_seconds": 7200}}}, {"items": [{"text": "back"}]}]"#;

fn patient() -> World {
    World::new().set("wait_for_limits=true")
}

async fn start_patient(script: &str) -> Client {
    start_with(ClientProfile::EXEC, script).await
}

async fn start_with(profile: ClientProfile, script: &str) -> Client {
    let world = patient();
    let (setup, prompts) = world.setup(script);
    let (thread, feed) = Setup { profile, ..setup }.start().await.expect("the thread starts");
    Client { world, thread, feed, prompts }
}

async fn until_limited(client: &mut Client) -> (String, i64) {
    let events = client.until(|body| matches!(body, Body::LimitReached { .. })).await;
    let Some(Body::LimitReached { failure, until_ms, .. }) = events.last().map(|event| &event.body) else {
        panic!("it is the last event")
    };
    (limit_words(failure, *until_ms), *until_ms)
}

fn answer(events: &[Arc<Event>]) -> String {
    match outcome(events) {
        Outcome::Completed { last_message: Some(text), .. } => text.to_string(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_turn_waits_for_the_allowance_and_reports_the_time() {
    let mut client = start_patient(LIMITED).await;
    let begun = Instant::now();
    client.say("1", "hi").await;
    let (said, _) = until_limited(&mut client).await;
    assert!(said.starts_with("usage limit reached: limit; it resets in 2 h; waiting until 20"), "{said}");
    assert!(said.ends_with(" UTC"), "{said}");
    assert_eq!(answer(&client.until_ended().await), "back");
    assert_eq!(begun.elapsed().as_secs(), 7200);
    assert_eq!(client.prompts.all().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn without_waiting_the_turn_ends_with_the_reset_time() {
    let mut client = start(LIMITED).await;
    let Outcome::Failed(failure) = outcome(&client.turn("1", "hi").await) else { panic!("the turn has failed") };
    assert_eq!(failure.message, "usage limit reached: limit; it resets in 2 h");
}

#[tokio::test(start_paused = true)]
async fn a_wait_survives_a_restart_with_every_kind_of_client() {
    for profile in [ClientProfile::EXEC, ClientProfile::QUEUE, ClientProfile::V077, ClientProfile::V0166] {
        check_restart(profile).await;
    }
}

async fn check_restart(profile: ClientProfile) {
    let mut client = start_with(profile, LIMITED).await;
    client.say("1", "hi").await;
    let (_, until) = until_limited(&mut client).await;
    let left = client.close().await;
    assert!(!left.iter().any(|event| matches!(event.body, Body::TurnEnded(_))), "{left:?}");

    let (setup, prompts) = client.world.setup(r#"[{"items": [{"text": "back"}]}]"#);
    let begun = Instant::now();
    let setup = Setup { profile, ..resumed(client.thread.id(), setup) };
    let (thread, feed) = setup.start().await.expect("the thread starts");
    let mut client = Client { world: client.world, thread, feed, prompts };
    assert_eq!(client.thread.running().await, Ok(Some(codex_log::TurnId::new("1"))), "{profile:?}");
    let (said, again) = until_limited(&mut client).await;
    assert_eq!(said.matches("waiting until").count(), 1, "{said}");
    assert!((again - until).abs() < 5000, "{again} {until}");
    let events = client.until_ended().await;
    assert_eq!(answer(&events), "back");
    assert_eq!(events.last().and_then(|event| event.turn.as_ref()).map(codex_log::TurnId::as_str), Some("1"));
    let waited = begun.elapsed().as_secs();
    assert!((7100..=7200).contains(&waited), "{waited}");
    let asked = client.last_input();
    assert_eq!(asked.last().map(String::as_str), Some("hi"));
}

#[tokio::test(start_paused = true)]
async fn a_wait_does_not_continue_once_it_is_disabled() {
    let mut client = start_patient(LIMITED).await;
    client.say("1", "hi").await;
    until_limited(&mut client).await;
    client.close().await;
    let Client { world, thread, .. } = client;
    let world = world.set("wait_for_limits=false");
    let (setup, prompts) = world.setup(r#"[{"items": [{"text": "now"}]}]"#);
    let (thread, feed) = resumed(thread.id(), setup).start().await.expect("the thread starts");
    let mut client = Client { world, thread, feed, prompts };
    let begun = Instant::now();
    assert_eq!(answer(&client.turn("2", "go on").await), "now");
    assert_eq!(begun.elapsed().as_secs(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_waits_can_be_interrupted_and_is_over_then() {
    let mut client = start_patient(LIMITED).await;
    client.say("1", "hi").await;
    until_limited(&mut client).await;
    assert_eq!(client.thread.interrupt().await, Ok(true));
    client.until_ended().await;
    let mut client = client.start_again(r#"[{"items": [{"text": "now"}]}]"#, resumed).await;
    assert_eq!(answer(&client.turn("2", "go on").await), "now");
}

/// The latest costs of the turn and the thread.
fn costs(events: &[Arc<Event>]) -> (Option<f64>, Option<f64>) {
    let told = events.iter().rev().find_map(|event| match &event.body {
        Body::TokensCounted { info: Some(info), .. } => Some((info.turn_cost, info.thread_cost)),
        _ => None,
    });
    told.expect("tokens were counted")
}

#[tokio::test(start_paused = true)]
async fn turns_and_threads_have_a_cost_also_after_a_restart() {
    let script = r#"[{"items": [{"text": "a"}], "usage": {"input": 1000, "output": 100}, "repeat": true}]"#;
    let price = r#"prices."gpt-5.1-codex"={input=2, cached=0.2, output=10}"#;
    let mut client = World::new().set(price).start(script).await;
    assert_eq!(costs(&client.turn("1", "hi").await), (Some(0.003), Some(0.003)));
    assert_eq!(costs(&client.turn("2", "hi").await), (Some(0.003), Some(0.006)));
    let mut client = client.start_again(script, resumed).await;
    assert_eq!(costs(&client.turn("3", "hi").await), (Some(0.003), Some(0.009)));
    let mut client = start(script).await;
    assert_eq!(costs(&client.turn("1", "hi").await), (None, None));
}
