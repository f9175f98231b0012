//! MCP servers of threads, as clients see them.

use codex_testkit::mcp_server::config;
use serde_json::{Value, json};

use crate::app_client::AppClient;
use crate::app_threads::start;

/// A client of a server with a script, and with these MCP servers.
async fn with_servers(servers: &str, script: &Value) -> AppClient {
    let provider = "model_provider = 'mine'\n[model_providers.mine]\nname = 'Mine'\nwire_api = 'scripted'\n\
                    script = 'script.json'\n";
    let client = AppClient::start_new(&format!("{provider}{servers}")).await;
    std::fs::write(client.home("script.json"), script.to_string()).expect("a file can be written");
    client
}

fn text(text: &str) -> Value {
    json!({"items": [{"text": text}]})
}

async fn send(client: &mut AppClient, thread: &str) {
    let input = json!([{"type": "text", "text": "go"}]);
    client.ok("turn/start", json!({"threadId": thread, "input": input})).await;
}

#[tokio::test]
async fn a_turn_fails_if_a_required_server_does_not_start() {
    let servers = config("needed", "crash", "required = true");
    let mut client = with_servers(&servers, &json!([text("It goes on.")])).await;
    let thread = start(&mut client).await;
    send(&mut client, &thread).await;
    let ended = client.next_notification("turn/completed").await;
    let error = ended["turn"]["error"]["message"].as_str().unwrap_or_default();
    assert_eq!(ended["turn"]["status"], "failed");
    assert!(error.starts_with("the required MCP server `needed` cannot be used: "), "{error}");
    assert!(error.contains("MCP-STDERR-TEXT"), "{error}");
    client.end_unread().await;
}

#[tokio::test]
async fn a_turn_goes_on_without_a_server_that_does_not_start() {
    let mut client = with_servers(&config("extra", "crash", ""), &json!([text("It goes on.")])).await;
    let thread = start(&mut client).await;
    send(&mut client, &thread).await;
    assert_eq!(client.next_notification("turn/completed").await["turn"]["status"], "completed");
    client.end_unread().await;
}

#[tokio::test]
async fn servers_of_a_thread_are_listed_called_and_read() {
    let mut client = with_servers(&config("s", "good", ""), &json!([])).await;
    let thread = start(&mut client).await;
    let listed = client.ok("mcpServerStatus/list", json!({"threadId": thread})).await;
    assert_eq!((&listed["data"][0]["name"], &listed["data"][0]["runtimeStatus"]), (&json!("s"), &json!("connected")));
    assert!(listed["data"][0]["tools"]["echo"].is_object(), "{listed}");
    let call = json!({"threadId": thread, "server": "s", "tool": "echo", "arguments": {"text": "hi"}});
    assert_eq!(client.ok("mcpServer/tool/call", call).await["structuredContent"], json!({"text": "hi"}));
    let read = json!({"threadId": thread, "server": "s", "uri": "memo://note"});
    assert_eq!(client.ok("mcpServer/resource/read", read).await["contents"][0]["text"], "a note");
    let (_, message) = client.refused("mcpServerStatus/list", json!({"threadId": "nobody"})).await;
    assert!(message.starts_with("invalid thread id"), "{message}");
    client.end_unread().await;
}

#[tokio::test]
async fn prompts_are_listed_and_a_server_is_restarted_for_a_client() {
    let mut client = with_servers(&config("s", "good", ""), &json!([])).await;
    let thread = start(&mut client).await;
    assert_eq!(client.ok("customPrompt/list", json!({})).await["data"], json!([]));
    let listed = client.ok("customPrompt/list", json!({"threadId": thread})).await;
    assert_eq!(
        listed["data"],
        json!([{"name": "mcp__s__weather", "description": "Asks.", "argumentHint": "CITY=",
                "content": "The weather in $CITY?"}])
    );
    let call = json!({"threadId": thread, "server": "s", "tool": "pid", "arguments": {}});
    let before = client.ok("mcpServer/tool/call", call.clone()).await["content"].clone();
    while client.next_notification("mcpServer/startupStatus/updated").await["status"] != "ready" {}
    client.ok("mcpServer/restart", json!({"name": "s"})).await;
    while client.next_notification("mcpServer/startupStatus/updated").await["status"] != "starting" {}
    while client.next_notification("mcpServer/startupStatus/updated").await["status"] != "ready" {}
    assert_ne!(client.ok("mcpServer/tool/call", call).await["content"], before, "it is another process");
    let (_, message) = client.refused("mcpServer/restart", json!({"name": "t"})).await;
    assert_eq!(message, "no MCP server named `t` is in use");
    client.end_unread().await;
}

#[tokio::test]
async fn an_approval_for_good_is_not_asked_for_again() {
    let call = json!({"items": [{"call": "mcp__s__write", "args": {"text": "x"}}]});
    let script = json!([call, text("One."), call, text("Two.")]);
    let mut client = with_servers(&config("s", "good", ""), &script).await;
    for turn in 0..2 {
        let thread = start(&mut client).await;
        send(&mut client, &thread).await;
        if turn == 0 {
            let (id, asked) = client.next_request("mcpServer/elicitation/request").await;
            assert_eq!(asked["_meta"]["persist"], json!(["session", "always"]));
            client.respond(id, json!({"result": {"action": "accept", "_meta": {"persist": "always"}}})).await;
        }
        assert_eq!(client.next_notification("turn/completed").await["turn"]["status"], "completed");
    }
    client.end_unread().await;
}
