//! `dynamicTools` and `item/tool/call`: tools that a client supplies.

use serde_json::{Value, json};

use crate::app_client::AppClient;
use crate::app_threads::scripted;

fn tools() -> Value {
    let tool =
        |name: &str| json!({"type": "function", "name": name, "description": "d", "inputSchema": {"type": "object"}});
    let group = json!({"type": "namespace", "name": "board", "description": "d", "tools": [tool("move")]});
    json!([tool("lookup"), group])
}

fn calls(tool: &str) -> Value {
    json!([
        {"items": [{"call": tool, "id": "call-1", "args": {"id": 7}}]}, {"items": [{"text": "Done."}]},
        {"items": [{"call": tool, "id": "call-2", "args": {"id": 8}}]}, {"items": [{"text": "Done again."}]}
    ])
}

async fn start(client: &mut AppClient) -> String {
    let started = client.ok("thread/start", json!({"dynamicTools": tools()})).await;
    started["thread"]["id"].as_str().expect("a name").to_owned()
}

async fn say(client: &mut AppClient, thread: &str) -> Value {
    let input = json!([{"type": "text", "text": "go"}]);
    client.ok("turn/start", json!({"threadId": thread, "input": input})).await["turn"]["id"].clone()
}

fn text(text: &str) -> Value {
    json!({"result": {"contentItems": [{"type": "inputText", "text": text}], "success": true}})
}

/// The completed call among messages.
fn completed(messages: &[Value]) -> &Value {
    let is_call = |message: &&Value| {
        message["method"] == "item/completed" && message["params"]["item"]["type"] == "dynamicToolCall"
    };
    &messages.iter().find(is_call).expect("the call ends")["params"]["item"]
}

#[tokio::test]
async fn a_tool_is_called_after_its_item_has_started_and_only_its_client_is_asked() {
    let mut client = scripted("", &calls("lookup")).await;
    let thread = start(&mut client).await;
    let mut other = client.another().await;
    other.ok("thread/resume", json!({"threadId": thread})).await;
    let turn = say(&mut client, &thread).await;
    let before = client.messages_until("item/tool/call").await;
    let asked = before.last().expect("it is asked").clone();
    assert_eq!(
        asked["params"],
        json!({"threadId": thread, "turnId": turn, "callId": "call-1", "namespace": null, "tool": "lookup", "arguments": {"id": 7}})
    );
    let started = before.iter().find(|message| message["params"]["item"]["type"] == "dynamicToolCall");
    let started = &started.expect("the item has started")["params"]["item"];
    assert_eq!((&started["id"], &started["status"]), (&json!("call-1"), &json!("inProgress")));
    client.respond(asked["id"].as_i64().expect("a number"), text("seven")).await;
    let after = client.messages_until("turn/completed").await;
    let item = completed(&after);
    assert_eq!((&item["status"], &item["success"]), (&json!("completed"), &json!(true)));
    assert_eq!(item["contentItems"], json!([{"type": "inputText", "text": "seven"}]));
    let resolved = after.iter().find(|message| message["method"] == "serverRequest/resolved").expect("it is told");
    assert_eq!(resolved["params"]["requestId"], asked["id"]);
    let told = other.messages_until("turn/completed").await;
    assert!(told.iter().all(|message| message["method"] != "item/tool/call"));
    let read = client.ok("thread/read", json!({"threadId": thread, "includeTurns": true})).await;
    // Files do not record when a call started.
    let without_start = |item: &Value| {
        Value::Object(
            item.as_object().expect("an item").clone().into_iter().filter(|(name, _)| name != "startedAtMs").collect(),
        )
    };
    assert_eq!(without_start(&read["thread"]["turns"][0]["items"][1]), without_start(item));
    other.end_unread().await;
    client.end_unread().await;
}

#[tokio::test]
async fn nonsense_and_errors_are_told_to_the_model_and_late_answers_are_ignored() {
    let mut client = scripted("", &calls("board__move")).await;
    let thread = start(&mut client).await;
    say(&mut client, &thread).await;
    let (id, params) = client.next_request("item/tool/call").await;
    assert_eq!((&params["namespace"], &params["tool"]), (&json!("board"), &json!("move")));
    client.respond(id, json!({"result": {"content": "what?"}})).await;
    let messages = client.messages_until("turn/completed").await;
    assert_eq!((&completed(&messages)["status"], &completed(&messages)["success"]), (&json!("failed"), &json!(false)));
    client.respond(id, text("late")).await;
    let turn = say(&mut client, &thread).await;
    let (id, _) = client.next_request("item/tool/call").await;
    client.ok("turn/interrupt", json!({"threadId": thread, "turnId": turn})).await;
    let resolved = client.next_notification("serverRequest/resolved").await;
    assert_eq!(resolved["requestId"], json!(id));
    client.respond(id, text("late")).await;
    let read = client.ok("thread/read", json!({"threadId": thread, "includeTurns": true})).await;
    assert_eq!(read["thread"]["turns"][1]["status"], "interrupted");
    client.end_unread().await;
}

#[tokio::test]
async fn a_client_that_leaves_fails_its_calls_and_its_next_connection_is_asked() {
    let mut watcher = scripted("", &calls("lookup")).await;
    let mut client = watcher.another().await;
    let thread = start(&mut client).await;
    say(&mut client, &thread).await;
    client.next_request("item/tool/call").await;
    watcher.ok("thread/resume", json!({"threadId": thread})).await;
    client.end_unread().await;
    let told = watcher.messages_until("turn/completed").await;
    assert_eq!(completed(&told)["status"], "failed");
    let mut client = watcher.another().await;
    client.ok("thread/resume", json!({"threadId": thread})).await;
    say(&mut client, &thread).await;
    let (id, params) = client.next_request("item/tool/call").await;
    assert_eq!(params["callId"], "call-2");
    client.respond(id, text("eight")).await;
    let told = client.messages_until("turn/completed").await;
    assert_eq!(completed(&told)["status"], "completed");
    client.end_unread().await;
    watcher.end_unread().await;
}

#[tokio::test]
async fn tools_outlive_the_server_and_older_dialects_see_calls_of_a_server() {
    let mut client = scripted("", &calls("lookup")).await;
    let thread = start(&mut client).await;
    say(&mut client, &thread).await;
    let (id, _) = client.next_request("item/tool/call").await;
    client.respond(id, text("seven")).await;
    client.next_notification("turn/completed").await;
    let mut client = client.start_again().await;
    client.ok("thread/resume", json!({"threadId": thread})).await;
    let mut old = client.another().await;
    old.ok("addConversationListener", json!({"conversationId": thread})).await;
    say(&mut client, &thread).await;
    let (id, _) = client.next_request("item/tool/call").await;
    client.respond(id, text("seven again")).await;
    client.next_notification("turn/completed").await;
    let told = old.messages_until("codex/event/mcp_tool_call_end").await;
    let end = &told.last().expect("it ends")["params"]["msg"];
    assert_eq!((&end["invocation"]["server"], &end["invocation"]["tool"]), (&json!("client"), &json!("lookup")));
    assert_eq!(end["result"]["Ok"]["content"][0]["text"], "seven again");
    old.end_unread().await;
    client.end_unread().await;
}

#[tokio::test]
async fn invalid_tools_are_refused_with_their_place() {
    let mut client = scripted("", &json!([])).await;
    let tool =
        |name: &str, schema: Value| json!({"type": "function", "name": name, "description": "", "inputSchema": schema});
    for (tools, code, why) in [
        (
            json!([tool("a", json!({})), tool("shell", json!({}))]),
            -32602,
            "dynamicTools[1].name: `shell` is a name of this program",
        ),
        (json!([tool("a", json!({"type": "array"}))]), -32602, "dynamicTools[0].inputSchema.type: must be \"object\""),
        (json!([{"type": "odd"}]), -32600, "odd"),
    ] {
        let (refused, message) = client.refused("thread/start", json!({"dynamicTools": tools})).await;
        assert!(refused == code && message.contains(why), "{refused} {message}");
    }
    client.end().await;
}
