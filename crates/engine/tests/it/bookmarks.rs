//! Sessions whose client returns to earlier answers.

use codex_log::settings::SettingsChange;
use codex_log::{Abort, Body, Outcome, TurnId};
use codex_thread::{RewindOutcome, TurnStart};

use crate::world::{Client, outcome, start};

const ANSWERS: &str = r#"[{"id": "r1", "items": [{"text": "one"}]}, {"id": "r2", "items": [{"text": "two"}]},
                          {"id": "r3", "items": [{"text": "three"}]}, {"id": "r4", "items": [{"text": "four"}]}]"#;

async fn configured(script: &str) -> Client {
    let client = start(script).await;
    client.thread.reconfigure(SettingsChange::default()).await.expect("the thread is open");
    client
}

async fn go_back(client: &Client, response: &str) -> RewindOutcome {
    client.thread.go_back(response.to_owned()).await.expect("the thread is open")
}

/// Runs a turn, and returns the bookmark of its end.
async fn bookmark(client: &mut Client, turn: &str) -> Option<String> {
    match outcome(&client.turn(turn, turn).await) {
        Outcome::Completed { bookmark, .. } => bookmark,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_conversation_goes_back_to_a_bookmark_and_forth_again() {
    let mut client = configured(ANSWERS).await;
    assert_eq!(bookmark(&mut client, "a").await.as_deref(), Some("r1"));
    assert_eq!(bookmark(&mut client, "b").await.as_deref(), Some("r2"));
    assert_eq!(go_back(&client, "r1").await, RewindOutcome::Gone);
    assert_eq!(bookmark(&mut client, "c").await.as_deref(), Some("r3"));
    assert_eq!(client.last_input(), ["a", "one", "c"]);
    assert_eq!(go_back(&client, "r2").await, RewindOutcome::Gone, "what was left behind can be gone back to");
    client.turn("d", "d").await;
    assert_eq!(client.last_input(), ["a", "one", "b", "two", "d"]);
}

#[tokio::test(start_paused = true)]
async fn the_file_records_the_rewound_conversation() {
    let mut client = configured(ANSWERS).await;
    client.turn("a", "a").await;
    client.turn("b", "b").await;
    go_back(&client, "r1").await;
    client.turn("c", "c").await;
    let lines = client.lines();
    let line = lines.iter().find(|line| line["type"] == "compacted").expect("there is such a line");
    let texts: Vec<&str> = line["payload"]["replacement_history"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|item| item["content"][0]["text"].as_str())
        .collect();
    assert!(texts[0].starts_with("<environment_context>"), "{texts:?}");
    assert_eq!(texts[1..], ["a", "one"]);
}

#[tokio::test(start_paused = true)]
async fn a_summary_does_not_cut_the_way_back() {
    let mut client = configured(ANSWERS).await;
    client.turn("a", "a").await;
    client.thread.compact(TurnId::new("sum")).await.expect("the thread is open");
    client.until_ended().await;
    assert_eq!(go_back(&client, "r1").await, RewindOutcome::Gone);
    client.turn("b", "b").await;
    assert_eq!(client.last_input(), ["a", "one", "b"]);
    assert_eq!(go_back(&client, "r2").await, RewindOutcome::Gone, "the summary ended a turn too");
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_ended_no_turn_is_no_bookmark_and_nothing_changes() {
    let mut client = configured(r#"[{"id": "r1", "items": [{"text": "one"}]}, {"items": [{"hang": true}]}]"#).await;
    client.turn("a", "a").await;
    client.say("b", "b").await;
    assert_eq!(go_back(&client, "r9").await, RewindOutcome::Unknown);
    assert_eq!(client.thread.interrupt().await, Ok(true), "the turn still runs");
}

#[tokio::test(start_paused = true)]
async fn going_back_and_input_take_the_place_of_what_runs() {
    let script = r#"[{"id": "r1", "items": [{"text": "one"}]}, {"items": [{"hang": true}]}, {"items": [{"hang": true}]},
                     {"items": [{"text": "four"}]}]"#;
    let mut client = configured(script).await;
    client.turn("a", "a").await;
    client.say("b", "b").await;
    assert_eq!(client.say("c", "c").await, TurnStart::Started);
    assert_eq!(outcome(&client.until_ended().await), Outcome::Aborted(Abort::Replaced));
    assert_eq!(go_back(&client, "r1").await, RewindOutcome::Gone);
    assert_eq!(outcome(&client.until_ended().await), Outcome::Aborted(Abort::Replaced));
    client.turn("d", "d").await;
    assert_eq!(client.last_input(), ["a", "one", "d"]);
}

#[tokio::test(start_paused = true)]
async fn an_answer_of_an_earlier_run_can_be_gone_on_from() {
    let mut client = configured(ANSWERS).await;
    client.turn("a", "a").await;
    client.turn("b", "b").await;
    go_back(&client, "r1").await;
    client.turn("c", "c").await;
    let later = r#"[{"id": "r5", "items": [{"text": "five"}]}, {"id": "r6", "items": [{"text": "six"}]},
                    {"id": "r7", "items": [{"text": "seven"}]}]"#;
    let mut client = client.start_again(later, |_, setup| setup).await;
    client.thread.reconfigure(SettingsChange::default()).await.expect("the thread is open");
    client.turn("new", "new").await;
    assert_eq!(go_back(&client, "r9").await, RewindOutcome::Unknown);
    assert_eq!(go_back(&client, "r3").await, RewindOutcome::Gone);
    client.turn("d", "d").await;
    assert_eq!(client.last_input(), ["a", "one", "c", "three", "d"]);
    assert_eq!(go_back(&client, "r2").await, RewindOutcome::Gone);
    client.turn("e", "e").await;
    assert_eq!(client.last_input(), ["a", "one", "b", "two", "e"]);
    assert_eq!(
        go_back(&client, "r5").await,
        RewindOutcome::Gone,
        "what this run has said can be gone back to all the same"
    );
}

#[tokio::test(start_paused = true)]
async fn other_sessions_have_no_bookmarks() {
    let mut client = start(ANSWERS).await;
    assert_eq!(bookmark(&mut client, "a").await, None);
    assert_eq!(go_back(&client, "r1").await, RewindOutcome::NotKept);
    client.turn("b", "b").await;
    assert_eq!(client.last_input(), ["a", "one", "b"]);
    assert!(client.close().await.iter().all(|event| !matches!(event.body, Body::WentBack { .. })));
}

#[tokio::test(start_paused = true)]
async fn rewinding_sends_a_forgotten_environment_again() {
    let mut client = configured(ANSWERS).await;
    client.turn("a", "a").await;
    let change =
        SettingsChange { approval_policy: Some("never".parse().expect("a policy")), ..SettingsChange::default() };
    client.thread.configure(change).await.expect("the thread is open");
    client.turn("b", "b").await;
    go_back(&client, "r1").await;
    client.turn("c", "c").await;
    let input = client.last_input();
    assert_eq!((input.len(), input[0].as_str(), input[3].as_str()), (4, "a", "c"));
    assert!(input[2].contains("<approval_policy>never</approval_policy>"), "{input:?}");
}
