//! Goals over the app-server: setting them, their notifications, and clients that do not know them.

use codex_dialects::ProtocolRelease;
use serde_json::{Value, json};

use crate::app_client::AppClient;
use crate::app_threads::{scripted, start, turn};

fn text(text: &str) -> Value {
    json!({"items": [{"text": text}]})
}

fn complete() -> Value {
    json!({"items": [{"call": "update_goal", "args": {"status": "complete"}}]})
}

/// A client of 0.77 with a scripted model.
async fn scripted_old(script: &Value) -> AppClient {
    let provider = "model_provider = 'mine'\n[model_providers.mine]\nname = 'Mine'\nwire_api = 'scripted'\n\
                    script = 'script.json'\n";
    let client = AppClient::start_as(ProtocolRelease::V077, provider).await;
    std::fs::write(client.home("script.json"), script.to_string()).expect("a file can be written");
    client
}

/// The goals that a client receives until one has this status.
async fn goals_until(client: &mut AppClient, status: &str) -> Vec<Value> {
    let mut told = Vec::new();
    loop {
        let notification = client.next_notification("thread/goal/updated").await;
        let is_wanted = notification["goal"]["status"] == status;
        told.push(notification);
        if is_wanted {
            return told;
        }
    }
}

#[tokio::test]
async fn a_goal_is_set_worked_towards_in_turns_like_any_other_and_reached() {
    let mut client = scripted("", &json!([text("I look."), complete(), text("Done.")])).await;
    let thread = start(&mut client).await;
    client.ask("thread/goal/set", json!({"threadId": thread, "objective": " ship it ", "status": "active"})).await;
    let set = client.next().await;
    let goal = &set["result"]["goal"];
    assert_eq!((&goal["objective"], &goal["status"]), (&json!("ship it"), &json!("active")));
    assert_eq!(
        (&goal["tokenBudget"], &goal["tokensUsed"], &goal["threadId"]),
        (&json!(null), &json!(0), &json!(thread))
    );
    let first = client.names_until("turn/completed").await;
    assert_eq!(first.first().map(String::as_str), Some("thread/goal/updated"), "the answer comes before the news");
    assert!(first.contains(&"turn/started".to_owned()) && !first.contains(&"answer".to_owned()), "{first:?}");
    let second = client.messages_until("turn/completed").await;
    let reached = second.iter().find(|message| message["params"]["goal"]["status"] == "complete").expect("it is told");
    let begun = second.iter().find(|message| message["method"] == "turn/started").expect("a turn begins");
    assert_eq!(reached["params"]["turnId"], begun["params"]["turn"]["id"]);
    assert_eq!(reached["params"]["goal"]["tokensUsed"], 220);
    let items = second.iter().filter(|message| message["params"]["item"]["type"] == "userMessage").count();
    assert_eq!(items, 0, "nobody has said anything");
    let goal = client.ok("thread/goal/get", json!({"threadId": thread})).await;
    assert_eq!(goal["goal"]["status"], "complete");
    client.end().await;
}

#[tokio::test]
async fn an_invalid_goal_is_refused_with_a_reason() {
    let mut client = scripted("", &json!([])).await;
    let thread = start(&mut client).await;
    for (params, why) in [
        (json!({}), "the thread has no goal; set one with an objective"),
        (json!({"status": "paused"}), "the thread has no goal; set one with an objective"),
        (json!({"objective": "  "}), "the objective must not be empty"),
        (json!({"objective": "x".repeat(4001)}), "the objective has 4001 characters, 4000 are allowed"),
        (json!({"objective": "x", "tokenBudget": 0}), "the token budget must be at least 1, not 0"),
        (json!({"objective": "x", "tokenBudget": -1}), "the token budget must be at least 1, not -1"),
        (json!({"objective": "x", "status": "nearly"}), "nearly"),
        (json!({"objective": "x", "origin": "nobody"}), "nobody"),
        (json!({"objective": 3}), "invalid type"),
    ] {
        let mut params = params;
        params["threadId"] = json!(thread);
        let (code, message) = client.refused("thread/goal/set", params).await;
        assert!(code == -32600 && message.contains(why), "{code} {message}");
    }
    for method in ["thread/goal/set", "thread/goal/get", "thread/goal/clear"] {
        let unknown = json!({"threadId": "01a1de41-111d-7e12-aa00-bf9eed2d536a", "objective": "x"});
        let (_, message) = client.refused(method, unknown).await;
        assert!(message.starts_with("thread not found"), "{message}");
    }
    assert_eq!(client.ok("thread/goal/get", json!({"threadId": thread})).await, json!({"goal": null}));
    assert_eq!(client.ok("thread/goal/clear", json!({"threadId": thread})).await, json!({"cleared": false}));
    client.end().await;
}

#[tokio::test]
async fn a_goal_is_put_aside_changed_and_taken_away() {
    let mut client = scripted("", &json!([])).await;
    let thread = start(&mut client).await;
    let set = json!({"threadId": thread, "objective": "x", "status": "paused", "tokenBudget": 500, "origin": "user"});
    assert_eq!(client.ok("thread/goal/set", set).await["goal"]["tokenBudget"], 500);
    goals_until(&mut client, "paused").await;
    let kept = client.ok("thread/goal/set", json!({"threadId": thread, "status": "blocked"})).await;
    assert_eq!((&kept["goal"]["tokenBudget"], &kept["goal"]["objective"]), (&json!(500), &json!("x")));
    goals_until(&mut client, "blocked").await;
    let without = client.ok("thread/goal/set", json!({"threadId": thread, "tokenBudget": null})).await;
    assert_eq!(without["goal"]["tokenBudget"], json!(null));
    client.next_notification("thread/goal/updated").await;
    assert_eq!(client.ok("thread/goal/clear", json!({"threadId": thread})).await, json!({"cleared": true}));
    assert_eq!(client.next_notification("thread/goal/cleared").await, json!({"threadId": thread}));
    client.end().await;
}

#[tokio::test]
async fn a_client_that_pauses_and_interrupts_is_notified_of_both() {
    let mut client = scripted("", &json!([{"items": [{"hang": true}]}])).await;
    let thread = start(&mut client).await;
    client.ok("thread/goal/set", json!({"threadId": thread, "objective": "x"})).await;
    let turn = client.next_notification("turn/started").await["turn"]["id"].clone();
    client.ok("thread/goal/set", json!({"threadId": thread, "status": "paused"})).await;
    client.ok("turn/interrupt", json!({"threadId": thread, "turnId": turn})).await;
    goals_until(&mut client, "paused").await;
    let ended = client.next_notification("turn/completed").await;
    assert_eq!(ended["turn"]["status"], "interrupted");
    client.end_unread().await;
}

#[tokio::test]
async fn a_resumed_thread_reports_its_goal_or_its_absence() {
    let mut client = scripted("", &json!([text("a"), text("b")])).await;
    let thread = start(&mut client).await;
    turn(&mut client, &thread, "hi").await;
    let mut client = client.start_again().await;
    client.ok("thread/resume", json!({"threadId": thread})).await;
    assert_eq!(client.next_notification("thread/goal/cleared").await, json!({"threadId": thread}));
    client.ok("thread/goal/set", json!({"threadId": thread, "objective": "x", "status": "paused"})).await;
    let mut client = client.start_again().await;
    client.ok("thread/resume", json!({"threadId": thread})).await;
    let told = client.next_notification("thread/goal/updated").await;
    assert_eq!((&told["goal"]["objective"], &told["goal"]["status"]), (&json!("x"), &json!("paused")));
    client.ok("thread/resume", json!({"threadId": thread})).await;
    assert_eq!(client.next_notification("thread/goal/updated").await["goal"]["objective"], "x", "at the desk too");
    let forked = client.ok("thread/fork", json!({"threadId": thread})).await;
    let told = client.next_notification("thread/goal/updated").await;
    assert_eq!((&told["threadId"], &told["goal"]["threadId"]), (&forked["thread"]["id"], &forked["thread"]["id"]));
    client.end_unread().await;
}

#[tokio::test]
async fn a_thread_that_has_only_a_goal_is_listed_and_resumed() {
    let mut client = scripted("", &json!([complete(), text("Done.")])).await;
    let thread = start(&mut client).await;
    client.ok("thread/goal/set", json!({"threadId": thread, "objective": "ship it"})).await;
    client.next_notification("turn/completed").await;
    let list = client.ok("thread/list", json!({})).await;
    assert_eq!((&list["data"][0]["id"], &list["data"][0]["preview"]), (&json!(thread), &json!("ship it")));
    let mut client = client.start_again().await;
    let resumed = client.ok("thread/resume", json!({"threadId": thread})).await;
    let turns = resumed["thread"]["turns"].as_array().expect("turns");
    assert_eq!((turns.len(), &turns[0]["items"][0]["text"]), (1, &json!("Done.")));
    assert_eq!(client.next_notification("thread/goal/updated").await["goal"]["status"], "complete");
    client.end_unread().await;
}

#[tokio::test]
async fn older_clients_receive_goals_only_on_request() {
    let mut client = scripted_old(&json!([text("a"), text("b"), complete(), text("c")])).await;
    let thread = start(&mut client).await;
    turn(&mut client, &thread, "hi").await;
    let mut other = client.another().await;
    other.ok("thread/resume", json!({"threadId": thread})).await;
    other.ok("thread/goal/set", json!({"threadId": thread, "objective": "x"})).await;
    goals_until(&mut other, "complete").await;
    other.end_unread().await;
    client.next_notification("turn/completed").await;
    client.next_notification("turn/completed").await;
    let rest = client.end_with_rest().await;
    let about_goals = |message: &&Value| message["method"].as_str().is_some_and(|method| method.contains("goal"));
    assert_eq!(rest.iter().filter(about_goals).count(), 0);
}

#[tokio::test]
async fn a_thread_is_forked_and_rolled_back_between_turns_of_its_goal() {
    let mut client = scripted("", &json!([text("Hello."), text("I look."), complete(), text("Done.")])).await;
    let thread = start(&mut client).await;
    let first = turn(&mut client, &thread, "hi").await;
    client.ok("thread/goal/set", json!({"threadId": thread, "objective": "ship it"})).await;
    goals_until(&mut client, "complete").await;
    while client.next_notification("turn/completed").await["turn"]["items"][0]["text"] != "Done." {}
    let shown = |thread: &Value| -> Vec<String> {
        let turns = thread["thread"]["turns"].as_array().expect("turns").iter();
        turns
            .map(|turn| turn["items"].as_array().and_then(|items| items.last()).expect("an item")["text"].to_string())
            .collect()
    };
    let read = client.ok("thread/read", json!({"threadId": thread, "includeTurns": true})).await;
    assert_eq!(shown(&read), [r#""Hello.""#, r#""I look.""#, r#""Done.""#]);
    let copy = client.ok("thread/fork", json!({"threadId": thread, "lastTurnId": first})).await;
    assert_eq!(shown(&copy), [r#""Hello.""#]);
    let second = read["thread"]["turns"][1]["id"].clone();
    let copy = client.ok("thread/fork", json!({"threadId": thread, "lastTurnId": second})).await;
    assert_eq!(shown(&copy), [r#""Hello.""#, r#""I look.""#]);
    let back = client.ok("thread/revert", json!({"threadId": thread, "beforeTurnId": second})).await;
    assert_eq!(shown(&back), [r#""Hello.""#]);
    let mut client = client.start_again().await;
    let resumed = client.ok("thread/resume", json!({"threadId": thread})).await;
    assert_eq!(shown(&resumed), [r#""Hello.""#]);
    client.end_unread().await;
}
