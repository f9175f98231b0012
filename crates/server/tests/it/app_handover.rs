//! Two servers with one home: an idle one gives its threads to the other, and takes them back.

use std::time::{Duration, Instant};

use codex_dialects::ProtocolRelease;
use serde_json::{Value, json};

use crate::app_agents;
use crate::app_client::{AppClient, Hello};
use crate::app_threads::{lines, scripted, start};

/// The time within which a client of the other server has the thread.
const A_MOMENT: Duration = Duration::from_secs(1);

fn answers(count: usize) -> Value {
    (0..count).map(|number| json!({"items": [{"text": format!("Answer {number}.")}]})).collect()
}

fn input(thread: &str, text: &str) -> Value {
    json!({"threadId": thread, "input": [{"type": "text", "text": text}]})
}

async fn say(client: &mut AppClient, thread: &str, text: &str) {
    client.ok("turn/start", input(thread, text)).await;
    let ended = client.next_notification("turn/completed").await;
    assert_eq!(ended["turn"]["status"], "completed", "{ended}");
}

/// The messages of the user in the thread's file, in order.
async fn said(client: &mut AppClient, thread: &str) -> Vec<String> {
    let lines = lines(client, thread).await.into_iter();
    let said = lines.filter(|line| line["payload"]["type"] == "user_message");
    said.map(|line| line["payload"]["message"].as_str().expect("a text").to_owned()).collect()
}

async fn resume(client: &mut AppClient, thread: &str) -> Value {
    let begun = Instant::now();
    let resumed = client.ok("thread/resume", json!({"threadId": thread})).await;
    assert!(begun.elapsed() < A_MOMENT, "it took {:?}", begun.elapsed());
    resumed
}

#[tokio::test]
async fn an_idle_thread_goes_to_the_server_that_asks_and_comes_back() {
    let mut one = scripted("", &answers(9)).await;
    let thread = start(&mut one).await;
    say(&mut one, &thread, "one").await;
    let mut other = one.beside().await;
    let resumed = resume(&mut other, &thread).await;
    assert_eq!(resumed["thread"]["turns"].as_array().map(Vec::len), Some(1));
    say(&mut other, &thread, "two").await;

    // The first server takes it back with its next turn, and knows what was said in between.
    say(&mut one, &thread, "three").await;
    say(&mut other, &thread, "four").await;
    say(&mut one, &thread, "five").await;
    assert_eq!(said(&mut one, &thread).await, ["one", "two", "three", "four", "five"]);
    let left = one.ok("thread/rollback", json!({"threadId": thread, "numTurns": 2})).await;
    let turns = left["thread"]["turns"].as_array().expect("turns");
    let texts: Vec<&Value> = turns.iter().map(|turn| &turn["items"][0]["content"][0]["text"]).collect();
    assert_eq!(texts, ["one", "two", "three"], "the turns of both are counted");
    let rest = one.end_with_rest().await;
    let methods: Vec<&str> = rest.iter().filter_map(|message| message["method"].as_str()).collect();
    assert!(
        !methods.contains(&"thread/closed") && !methods.contains(&"warning"),
        "its client is told nothing: {methods:?}"
    );
    other.end_unread().await;
}

#[tokio::test]
async fn a_turn_that_runs_is_never_taken() {
    let config = "approval_policy = 'untrusted'\nsandbox_mode = 'danger-full-access'";
    let command = json!({"call": "shell", "id": "call-1", "args": {"command": ["sh", "-c", "true > made"]}});
    let script = json!([{"items": [command]}, {"items": [{"text": "Done."}]}, {"items": [{"text": "More."}]}]);
    let mut one = scripted(config, &script).await;
    let thread = start(&mut one).await;
    one.ok("turn/start", input(&thread, "one")).await;
    let (id, _) = one.next_request("item/commandExecution/requestApproval").await;
    let mut other = one.beside().await;
    let (_, message) = other.refused("thread/resume", json!({"threadId": thread})).await;
    assert!(message.contains("This thread is open in"), "{message}");
    one.respond(id, json!({"result": {"decision": "decline"}})).await;
    one.next_notification("turn/completed").await;
    resume(&mut other, &thread).await;

    // Now the other one is at work, so the first one is refused, and may try again later.
    other.ok("turn/start", input(&thread, "two")).await;
    let (id, _) = other.next_request("item/commandExecution/requestApproval").await;
    let (_, message) = one.refused("turn/start", input(&thread, "three")).await;
    assert!(message.contains("This thread is open in"), "{message}");
    other.respond(id, json!({"result": {"decision": "decline"}})).await;
    other.next_notification("turn/completed").await;
    say(&mut one, &thread, "four").await;
    assert_eq!(said(&mut one, &thread).await, ["one", "two", "four"]);
    one.end_unread().await;
    other.end_unread().await;
}

#[tokio::test]
async fn a_server_that_has_given_its_thread_away_ends_and_leaves_it_alone() {
    let mut one = scripted("", &answers(3)).await;
    let thread = start(&mut one).await;
    say(&mut one, &thread, "one").await;
    let mut other = one.beside().await;
    resume(&mut other, &thread).await;
    one.end_unread().await;
    say(&mut other, &thread, "two").await;
    assert_eq!(said(&mut other, &thread).await, ["one", "two"]);
    other.end_unread().await;
}

#[tokio::test]
async fn a_thread_without_a_turn_is_given_away_too() {
    let mut one = scripted("", &answers(3)).await;
    let thread = start(&mut one).await;
    let mut other = one.beside().await;
    resume(&mut other, &thread).await;
    say(&mut other, &thread, "one").await;
    say(&mut one, &thread, "two").await;
    assert_eq!(said(&mut one, &thread).await, ["one", "two"]);
    one.end_unread().await;
    other.end_unread().await;
}

#[tokio::test]
async fn a_client_that_counts_events_reads_those_of_the_other_server() {
    let mut one = scripted("", &answers(9)).await;
    let thread = start(&mut one).await;
    let subscribed = one.ok("thread/subscribe", json!({"threadId": thread})).await;
    say(&mut one, &thread, "one").await;
    let mut other = one.beside().await;
    resume(&mut other, &thread).await;
    say(&mut other, &thread, "two").await;
    say(&mut one, &thread, "three").await;
    let mut again = one.another().await;
    let place = json!({"threadId": thread, "after": subscribed["seq"], "logId": subscribed["logId"]});
    let caught = again.ok("thread/subscribe", place).await;
    assert_eq!(caught["reset"], false, "{caught}");
    let missed = again.messages_until("thread/caughtUp").await;
    let ended = missed.iter().filter(|message| message["method"] == "turn/completed").count();
    assert_eq!(ended, 3, "no turn is missing");
    for client in [one, other, again] {
        client.end_unread().await;
    }
}

/// Starts turns one after another, and returns the texts of those that were accepted.
async fn insist(client: &mut AppClient, thread: &str, name: &str, turns: usize) -> Vec<String> {
    let mut accepted = Vec::new();
    for number in 0..turns {
        let text = format!("{name} {number}");
        match client.call("turn/start", input(thread, &text)).await {
            Ok(_) => {
                client.next_notification("turn/completed").await;
                accepted.push(text);
            }
            Err(error) => assert!(error["message"].as_str().is_some_and(|why| why.contains("is open in")), "{error}"),
        }
    }
    accepted
}

#[tokio::test]
async fn servers_that_want_a_thread_at_once_write_it_one_after_the_other() {
    let mut one = scripted("", &json!([{"items": [{"text": "Done."}], "repeat": true}])).await;
    let thread = start(&mut one).await;
    let (mut other, mut third) = (one.beside().await, one.beside().await);
    resume(&mut other, &thread).await;
    resume(&mut third, &thread).await;
    let (first, second, last) = tokio::join!(
        insist(&mut one, &thread, "one", 12),
        insist(&mut other, &thread, "other", 12),
        insist(&mut third, &thread, "third", 12)
    );
    let all = said(&mut one, &thread).await;
    for accepted in [&first, &second, &last] {
        let name = accepted.first().and_then(|text| text.split(' ').next()).unwrap_or_default();
        let written: Vec<&String> = all.iter().filter(|text| text.split(' ').next() == Some(name)).collect();
        assert_eq!(written, accepted.iter().collect::<Vec<_>>(), "nothing is lost, and nothing is written twice");
    }
    assert_eq!(all.len(), first.len() + second.len() + last.len());
    assert!(all.len() >= 12, "they do not keep each other from working: {all:?}");
    for client in [one, other, third] {
        client.end_unread().await;
    }
}

#[tokio::test]
async fn a_request_that_nobody_waits_for_any_more_costs_nothing() {
    let script = json!([{"items": [{"text": "Ha", "done": false}, {"hang": true}]}, {"items": [{"text": "Done."}]}]);
    let mut one = scripted("", &script).await;
    let thread = start(&mut one).await;
    one.ok("turn/start", input(&thread, "one")).await;
    one.next_notification("item/agentMessage/delta").await;
    let mut other = one.beside().await;
    other.refused("thread/resume", json!({"threadId": thread})).await;
    other.end_unread().await;
    // The thread goes to nobody when the turn has ended, and comes back with the same numbers: a client that counts
    // events took the later ones for repetitions of earlier ones.
    one.ok("thread/subscribe", json!({"threadId": thread})).await;
    let running = one.ok("thread/read", json!({"threadId": thread, "includeTurns": true})).await;
    let turn = running["thread"]["turns"][0]["id"].clone();
    one.ok("turn/interrupt", json!({"threadId": thread, "turnId": turn})).await;
    let mut messages = one.messages_until("turn/completed").await;
    one.ok("turn/start", input(&thread, "two")).await;
    messages.extend(one.messages_until("turn/completed").await);
    let numbers: Vec<u64> = messages.iter().filter_map(|message| message["seq"].as_u64()).collect();
    assert!(numbers.len() > 4 && numbers.is_sorted_by(|one, next| one < next), "{numbers:?}");
    assert_eq!(said(&mut one, &thread).await, ["one", "two"]);
    one.end_unread().await;
}

#[tokio::test]
async fn a_client_that_counts_tokens_from_zero_goes_on_counting() {
    let hello = Hello { release: Some(ProtocolRelease::V077), ..Hello::default() };
    let provider = "model_provider = 'mine'\n[model_providers.mine]\nname = 'Mine'\nwire_api = 'scripted'\n\
                    script = 'script.json'\n";
    let mut one = AppClient::start_with(hello, provider).await;
    std::fs::write(one.home("script.json"), answers(9).to_string()).expect("a file can be written");
    let thread = start(&mut one).await;
    let mut totals = Vec::new();
    let mut other = one.beside().await;
    for round in 0..2 {
        one.ok("turn/start", input(&thread, &format!("mine {round}"))).await;
        let messages = one.messages_until("turn/completed").await;
        let used = messages.iter().rfind(|message| message["method"] == "thread/tokenUsage/updated");
        let total = &used.expect("its tokens are counted")["params"]["tokenUsage"]["total"]["totalTokens"];
        totals.push(total.as_i64().expect("a number"));
        resume(&mut other, &thread).await;
        say(&mut other, &thread, &format!("theirs {round}")).await;
    }
    assert_eq!(totals[1], 2 * totals[0], "its own turns are counted, and no others");
    one.end_unread().await;
    other.end_unread().await;
}

#[tokio::test]
async fn a_thread_with_an_agent_stays_where_its_tree_is() {
    let mut one = app_agents::client(
        ProtocolRelease::V0166,
        app_agents::NINE,
        &app_agents::spawn_and_await(json!([{"text": "They pass."}])),
    )
    .await;
    let thread = start(&mut one).await;
    app_agents::say(&mut one, &thread, "go").await;
    app_agents::until_end(&mut one, &thread).await;
    let mut other = one.beside().await;
    let (_, message) = other.refused("thread/resume", json!({"threadId": thread})).await;
    assert!(message.contains("This thread is open in"), "{message}");
    one.end_unread().await;
    resume(&mut other, &thread).await;
    other.end_unread().await;
}
