//! The rate limits of an account and the cost of turns, as clients see them.

use serde_json::{Value, json};

use crate::app_client::AppClient;
use crate::app_threads::{scripted, start};
use crate::v1_conversations::{conversing, listen, open, say};

/// A model whose allowance is exhausted for two hours.
fn used_up() -> Value {
    let body = json!({"error": {"type": "usage_limit_reached", "message": "limit", "resets_in_seconds": 7200}});
    json!({"status": 429, "body": body})
}

fn answer() -> Value {
    let headers = json!({
        "x-codex-primary-used-percent": "42", "x-codex-primary-window-minutes": "300",
        "x-codex-primary-reset-after-seconds": "600",
    });
    json!({"items": [{"text": "Hi."}], "headers": headers, "usage": {"input": 1000, "output": 100}, "repeat": true})
}

const PRICES: &str = "model = 'm-1'\nprices.m-1 = { input = 2, output = 10 }";

#[tokio::test]
async fn limits_and_costs_are_sent_to_newer_clients() {
    let mut client = scripted(PRICES, &json!([answer()])).await;
    let thread = start(&mut client).await;
    for (turn_cost, thread_cost) in [(0.003, 0.003), (0.003, 0.006)] {
        let input = json!([{"type": "text", "text": "hi"}]);
        client.ok("turn/start", json!({"threadId": thread, "input": input})).await;
        let messages = client.messages_until("turn/completed").await;
        let last = |method: &str| messages.iter().rfind(|message| message["method"] == method).expect("it was told");
        let usage = &last("thread/tokenUsage/updated")["params"]["tokenUsage"];
        assert_eq!((&usage["turnCost"], &usage["threadCost"]), (&json!(turn_cost), &json!(thread_cost)));
        let limits = &last("account/rateLimits/updated")["params"]["rateLimits"]["primary"];
        assert_eq!((&limits["usedPercent"], &limits["windowDurationMins"]), (&json!(42), &json!(300)));
        assert!(limits["resetsAt"].as_i64().is_some_and(|at| at > 1_700_000_000), "{limits}");
    }
    client.end().await;
}

#[tokio::test]
async fn limits_and_costs_are_sent_to_older_clients() {
    let mut client = conversing(PRICES, &json!([answer()])).await;
    let (conversation, _) = open(&mut client).await;
    listen(&mut client, &conversation).await;
    say(&mut client, &conversation, "hi").await;
    let messages = client.messages_until("codex/event/task_complete").await;
    let counted = messages.iter().rfind(|message| message["method"] == "codex/event/token_count");
    let counted = &counted.expect("tokens were counted")["params"]["msg"];
    assert_eq!((&counted["info"]["turn_cost"], &counted["info"]["thread_cost"]), (&json!(0.003), &json!(0.003)));
    let limits = &counted["rate_limits"]["primary"];
    assert_eq!((&limits["used_percent"], &limits["resets_in_seconds"]), (&json!(42.0), &json!(600)));
    client.end_unread().await;
}

/// The message of a turn that waits for the allowance.
async fn waiting(client: &mut AppClient) -> String {
    let told = client.next_notification("error").await;
    assert_eq!((&told["willRetry"], &told["error"]["codexErrorInfo"]), (&json!(true), &json!("usageLimitExceeded")));
    told["error"]["message"].as_str().expect("a message").to_owned()
}

#[tokio::test]
async fn a_wait_for_the_allowance_is_reported_again_after_a_restart() {
    let mut client = scripted("wait_for_limits = true", &json!([used_up()])).await;
    let thread = start(&mut client).await;
    let input = json!([{"type": "text", "text": "hi"}]);
    client.ok("turn/start", json!({"threadId": thread, "input": input})).await;
    let said = waiting(&mut client).await;
    assert!(said.starts_with("usage limit reached: limit; it resets in 2 h; waiting until 20"), "{said}");

    std::fs::write(client.home("script.json"), json!([answer()]).to_string()).expect("it can be written");
    let mut client = client.start_again().await;
    let resumed = client.ok("thread/resume", json!({"threadId": thread})).await;
    assert_eq!(resumed["thread"]["id"], json!(thread));
    assert_eq!(waiting(&mut client).await, said);
    // New input retries at once.
    client.ok("turn/start", json!({"threadId": thread, "input": input})).await;
    let completed = client.next_notification("turn/completed").await;
    assert_eq!(completed["turn"]["status"], "completed", "{completed}");
    client.end_unread().await;
}
