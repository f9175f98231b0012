//! A thread whose file cannot grow publishes nothing that was not saved, and continues when there is room.
//!
//! A limit on the size of files simulates a full disk. It applies to a whole process, so this is a separate process
//! with a single test.

#![expect(clippy::expect_used, reason = "a test may fail where it stands")]

use std::sync::Arc;

use codex_engine::Setup;
use codex_log::{Body, Event, Outcome};
use codex_thread::{ExplicitOverrides, InitialHistory};
use codex_wire::conversation_item::ConversationItem;
use rustix::process::{Resource, Rlimit, Signal, getrlimit, setrlimit};
use tokio::signal::unix::{SignalKind, signal};

use crate::world::{Client, World, outcome};

#[path = "it/law.rs"]
mod law;
#[path = "it/shown.rs"]
#[expect(dead_code, reason = "it is there for all tests")]
mod shown;
#[path = "it/world.rs"]
#[expect(dead_code, reason = "it is there for all tests")]
mod world;

/// The number of messages in the model's answer.
const MESSAGES: usize = 40;

fn set_room(client: &Client, bytes: Option<u64>) {
    let length = client.rollout().metadata().expect("the thread has a file").len();
    let maximum = getrlimit(Resource::Fsize).maximum;
    setrlimit(Resource::Fsize, Rlimit { current: bytes.map(|bytes| length + bytes).or(maximum), maximum })
        .expect("a limit can be set");
}

/// The messages of the agent that were published as complete.
fn completed(events: &[Arc<Event>]) -> Vec<String> {
    let text = |event: &Arc<Event>| match &event.body {
        Body::ItemCompleted(item) => item.answer().map(ToString::to_string),
        _ => None,
    };
    events.iter().filter_map(text).collect()
}

/// The messages of the agent in the file.
fn saved(client: &Client) -> Vec<String> {
    let lines = client.lines();
    let messages = lines.iter().map(|line| &line["payload"]).filter(|payload| payload["type"] == "agent_message");
    messages.map(|payload| payload["message"].as_str().expect("a message is a text").to_owned()).collect()
}

#[track_caller]
fn assert_full(client: &Client, events: &[Arc<Event>]) {
    let Outcome::Failed(failure) = outcome(events) else { panic!("{:?}", outcome(events)) };
    let file = client.rollout().display();
    let expected = format!("could not write to the thread's file {file}: File too large (os error 27)");
    assert_eq!(failure.message, format!("this thread could not be saved: {expected}"));
}

#[tokio::test(start_paused = true)]
async fn a_full_disk_ends_the_turn_and_the_next_one_makes_up_for_it() {
    // The signal that comes with the error would end the process.
    drop(signal(SignalKind::from_raw(Signal::XFSZ.as_raw())).expect("the signal can be caught"));

    let texts: Vec<String> = (0..MESSAGES).map(|number| format!("{number} {}", "x".repeat(100))).collect();
    let items: Vec<String> = texts.iter().map(|text| format!(r#"{{"text": "{text}"}}"#)).collect();
    let touch = r#"{"call": "shell", "args": {"command": ["touch", "made"]}}"#;
    let script =
        format!(r#"[{{"items": [{}]}}, {{"items": [{touch}]}}, {{"items": [{{"text": "again"}}]}}]"#, items.join(","));
    let mut client = World::new().set("sandbox_mode=danger-full-access").start(&script).await;

    set_room(&client, Some(6000));
    let events = client.turn("1", "hi").await;
    assert_full(&client, &events);
    let told = completed(&events);
    assert!(!told.is_empty() && told.len() < MESSAGES, "{} of {MESSAGES}", told.len());
    assert_eq!(told, texts[..told.len()], "what was told");
    assert_eq!(saved(&client), told, "what was told is what was saved, and no more");

    set_room(&client, Some(0));
    let events = client.turn("2", "more").await;
    assert_full(&client, &events);
    assert_eq!(completed(&events), [""; 0]);
    assert_eq!(saved(&client), told);

    // The disk is full before the call.
    let events = client.turn("3", "touch it").await;
    assert_full(&client, &events);
    assert!(!client.world.path("project/made").exists(), "what cannot be saved is not run");

    set_room(&client, None);
    let events = client.turn("4", "go on").await;
    assert!(matches!(outcome(&events), Outcome::Completed { .. }), "{:?}", outcome(&events));
    assert!(events.windows(2).all(|pair| pair[0].seq < pair[1].seq), "numbers grow");
    let told: Vec<String> = told.into_iter().chain(completed(&events)).collect();
    assert_eq!(saved(&client), told, "what was saved late was told late");

    // The resumed thread continues with the conversation that was in memory.
    let known = client.prompts.all().pop().expect("the model was asked").input;
    let mut again = client
        .start_again(r#"[{"items": [{"text": "end"}]}]"#, |thread, setup| Setup {
            initial_history: InitialHistory::Resumed { thread, explicit: ExplicitOverrides::default() },
            ..setup
        })
        .await;
    again.turn("5", "and now?").await;
    let read = again.prompts.all().pop().expect("the model was asked").input;
    let json = |items: &[ConversationItem]| items.iter().map(|item| item.json().into_owned()).collect::<Vec<String>>();
    assert_eq!(json(&read)[..known.len()], json(&known));
}
