//! Requests of one client about one thread are served in the order in which they came, whether the thread is loaded or
//! not.

use serde_json::{Value, json};

use crate::app_client::AppClient;
use crate::app_threads::{scripted, start, turn};

/// Sends all requests at once, and returns their answers in the order of arrival, errors as their messages.
async fn answers(client: &mut AppClient, requests: &[(&str, Value)]) -> Vec<(usize, Value)> {
    let mut ids = Vec::new();
    for (method, params) in requests {
        ids.push(client.ask(method, params.clone()).await);
    }
    let mut answers = Vec::new();
    while answers.len() < ids.len() {
        let mut message = client.next().await;
        let place = ids.iter().position(|id| message["id"] == *id && message.get("method").is_none());
        if let Some(place) = place {
            let answer = message.get("result").cloned().unwrap_or_else(|| message["error"]["message"].take());
            answers.push((place, answer));
        }
    }
    answers
}

/// A server that has just started, with one stored thread of one turn.
async fn stored() -> (AppClient, String) {
    let mut client = scripted("", &json!([{"items": [{"text": "one"}]}])).await;
    let thread = start(&mut client).await;
    turn(&mut client, &thread, "Hello").await;
    (client.start_again().await, thread)
}

fn places(answers: &[(usize, Value)]) -> Vec<usize> {
    answers.iter().map(|(place, _)| *place).collect()
}

#[tokio::test]
async fn each_request_finds_what_the_one_before_it_did() {
    let (mut client, thread) = stored().await;
    let (id, named) = (json!({"threadId": thread}), |name: &str| json!({"threadId": thread, "name": name}));
    let requests = [
        ("thread/resume", id.clone()),
        ("thread/name/set", named("first")),
        ("thread/read", id.clone()),
        ("thread/archive", id.clone()),
        ("turn/start", json!({"threadId": thread, "input": [{"type": "text", "text": "x"}]})),
        ("thread/archive", id.clone()),
        ("thread/unarchive", id.clone()),
        ("thread/name/set", named("second")),
        ("thread/resume", id.clone()),
        ("thread/delete", id.clone()),
        ("thread/read", id.clone()),
    ];
    let answers = answers(&mut client, &requests).await;
    assert_eq!(places(&answers), (0..requests.len()).collect::<Vec<_>>());
    let answer = |place: usize| &answers[place].1;
    assert_eq!(answer(0)["thread"]["status"]["type"], "idle", "{}", answer(0));
    assert_eq!(
        (&answer(2)["thread"]["name"], &answer(2)["thread"]["status"]["type"]),
        (&json!("first"), &json!("idle"))
    );
    assert_eq!(*answer(3), json!({}));
    assert_eq!(*answer(4), json!(format!("thread not found: {thread}")));
    assert_eq!(*answer(5), json!(format!("no rollout found for thread id {thread}")));
    assert_eq!(answer(6)["thread"]["name"], "first");
    assert_eq!(answer(8)["thread"]["name"], "second");
    assert_eq!(*answer(10), json!(format!("thread not found: {thread}")));
    client.end_unread().await;
}

#[tokio::test]
async fn a_thread_that_is_not_loaded_is_renamed_in_order() {
    let (mut client, thread) = stored().await;
    let mut requests = Vec::new();
    for round in 0..20 {
        requests.push(("thread/name/set", json!({"threadId": thread, "name": format!("name {round}")})));
        requests.push(("thread/read", json!({"threadId": thread})));
    }
    let answers = answers(&mut client, &requests).await;
    assert_eq!(places(&answers), (0..requests.len()).collect::<Vec<_>>());
    for round in 0..20 {
        let read = &answers[2 * round + 1].1["thread"];
        assert_eq!(read["name"], format!("name {round}"));
        assert_eq!(read["status"]["type"], "notLoaded");
    }
    client.end_unread().await;
}

#[tokio::test]
async fn a_thread_that_is_named_by_its_file_is_served_where_it_is_served_by_name() {
    let (mut client, thread) = stored().await;
    let read = client.ok("thread/read", json!({"threadId": thread})).await;
    let path = read["thread"]["path"].clone();
    let resumed = client.ok("thread/resume", json!({"threadId": "", "path": path})).await;
    assert_eq!(resumed["thread"]["id"], json!(thread));
    let again = client.ok("thread/resume", json!({"threadId": thread})).await;
    assert_eq!(again["thread"]["turns"], resumed["thread"]["turns"]);
    let unsubscribed = client.ok("thread/unsubscribe", json!({"threadId": thread})).await;
    assert_eq!(unsubscribed["status"], "unsubscribed", "it was listened to once");
    client.end_unread().await;
}

#[tokio::test]
async fn more_requests_about_a_thread_than_may_wait_are_refused_and_the_rest_is_served() {
    let (mut client, thread) = stored().await;
    let requests = vec![("thread/read", json!({"threadId": thread})); 200];
    let mut served = 0;
    for (_, answer) in answers(&mut client, &requests).await {
        match answer.as_str() {
            Some(refusal) => assert_eq!(refusal, "Server overloaded; retry later."),
            None => served += 1,
        }
    }
    assert!(served >= 64, "{served}");
    client.ok("thread/read", json!({"threadId": thread})).await;
    client.end().await;
}
