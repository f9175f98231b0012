//! Requests of clients of 0.166 about things that this program has none of, and members that such clients leave out.

use serde_json::{Value, json};

use crate::app_client::AppClient;
use crate::app_threads::{scripted, start};

#[tokio::test]
async fn lists_of_things_that_there_are_not_are_empty() {
    let mut client = AppClient::start_new("").await;
    let plugins = json!({"marketplaces": [], "marketplaceLoadErrors": [], "featuredPluginIds": []});
    for (method, expected) in [
        ("app/list", json!({"data": [], "nextCursor": null})),
        ("plugin/list", plugins.clone()),
        ("plugin/installed", plugins),
        ("marketplace/upgrade", json!({"selectedMarketplaces": [], "upgradedRoots": [], "errors": []})),
        ("externalAgentConfig/detect", json!({"items": [], "connectors": []})),
        ("memory/reset", json!({})),
    ] {
        assert_eq!(client.ok(method, json!({})).await, expected, "{method}");
    }
    let (_, message) = client.refused("marketplace/upgrade", json!({"marketplaceName": "mine"})).await;
    assert_eq!(message, "marketplace `mine` is not configured");
    client.end().await;
}

#[tokio::test]
async fn the_memory_mode_of_a_thread_that_there_is_can_be_set() {
    let mut client = AppClient::start_new("").await;
    let thread = start(&mut client).await;
    for mode in ["disabled", "enabled"] {
        let set = json!({"threadId": thread, "mode": mode});
        assert_eq!(client.ok("thread/memoryMode/set", set).await, json!({}));
    }
    let strange = "01a1e21c-0000-7000-8000-000000000000";
    let (_, message) = client.refused("thread/memoryMode/set", json!({"threadId": strange, "mode": "disabled"})).await;
    assert_eq!(message, format!("no rollout found for thread id {strange}"));
    client.end_unread().await;
}

#[tokio::test]
async fn a_tool_without_a_type_is_offered_and_called() {
    let script = json!([{"items": [{"call": "look", "id": "call-1", "args": {}}]}, {"items": [{"text": "Done."}]}]);
    let mut client = scripted("", &script).await;
    let tool = json!({"name": "look", "description": "Looks.", "inputSchema": {"type": "object"}});
    let started = client.ok("thread/start", json!({"dynamicTools": [tool]})).await;
    let turn = json!({"threadId": started["thread"]["id"], "input": [{"type": "text", "text": "go"}]});
    client.ok("turn/start", turn).await;
    let (id, asked) = client.next_request("item/tool/call").await;
    assert_eq!(asked["tool"], "look");
    client.respond(id, json!({"result": {"contentItems": [], "success": true}})).await;
    client.next_notification("turn/completed").await;
    client.end_unread().await;
}

#[tokio::test]
async fn a_collaboration_mode_without_a_model_leaves_the_model_as_it_is() {
    let mut client = scripted("model = 'gpt-5'", &json!([{"items": [{"text": "Planned."}]}])).await;
    let thread = start(&mut client).await;
    let mode = json!({"mode": "plan", "settings": {}});
    let turn = json!({"threadId": thread, "input": [{"type": "text", "text": "go"}], "collaborationMode": mode});
    client.ok("turn/start", turn).await;
    client.next_notification("turn/completed").await;
    let resumed = client.ok("thread/resume", json!({"threadId": thread})).await;
    assert_eq!(resumed["model"], "gpt-5");
    client.end_unread().await;
}

#[tokio::test]
async fn a_search_without_roots_looks_in_its_folder() {
    let mut client = AppClient::start_new("").await;
    let folder = client.work("below");
    std::fs::create_dir(&folder).expect("a folder can be made");
    std::fs::write(folder.join("needle.txt"), "").expect("a file can be written");
    let names = |answer: &Value| {
        let files = answer["files"].as_array().expect("a list").clone();
        files.iter().map(|file| file["path"].as_str().expect("a path").to_owned()).collect::<Vec<_>>()
    };
    for roots in [json!(null), json!([])] {
        let mut params = json!({"query": "needle", "cwd": folder});
        if !roots.is_null() {
            params["roots"] = roots;
        }
        assert_eq!(names(&client.ok("fuzzyFileSearch", params).await), ["needle.txt"]);
    }
    client.end().await;
}
