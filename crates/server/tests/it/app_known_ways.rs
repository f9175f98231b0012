//! Behaviour of other releases that clients and their tests rely on.

use codex_dialects::ProtocolRelease;
use serde_json::{Value, json};

use crate::app_client::{AppClient, Hello};
use crate::app_threads::{scripted, start, turn};
use crate::v1_conversations::{FREE, conversing, open, saying, text};

/// A client without capabilities, of a server that emulates no release.
async fn plain(script: &Value) -> AppClient {
    saying(Hello::default(), FREE, script).await
}

fn agent(answer: &Value) -> &str {
    answer["userAgent"].as_str().expect("a text")
}

#[tokio::test]
async fn the_client_is_the_originator_of_its_threads() {
    let mut client = plain(&json!([])).await;
    let told = client.ok("getUserAgent", json!(null)).await;
    assert!(agent(&told).starts_with(concat!("test/", env!("CARGO_PKG_VERSION"), " (")), "{told}");
    let started = client.ok("thread/start", json!({})).await;
    assert_eq!(started["thread"]["originator"], "test");
    // 0.77 had one originator for all clients; when it is emulated, that is still so.
    client.end_unread().await;
    let mut client = conversing(FREE, &json!([])).await;
    let told = client.ok("getUserAgent", json!(null)).await;
    assert!(agent(&told).starts_with("codex_cli_rs/"), "{told}");
    client.end().await;
}

#[tokio::test]
async fn a_name_that_no_header_can_carry_is_refused() {
    let mut client = plain(&json!([])).await;
    let info = json!({"name": "bad\rname", "version": "1"});
    let (code, message) = client.refused("initialize", json!({"clientInfo": info})).await;
    assert_eq!(
        (code, message.as_str()),
        (-32600, "Invalid clientInfo.name: 'bad\rname'. Must be a valid HTTP header value.")
    );
    client.end().await;
}

#[tokio::test]
async fn spans_of_input_are_returned_and_stored() {
    let script = json!([text("One.")]);
    let span = |start: usize, end: usize| json!({"byteRange": {"start": start, "end": end}, "placeholder": "@a"});
    let mut client = scripted("", &script).await;
    let thread = start(&mut client).await;
    let input = json!([
        {"type": "text", "text": "see @a", "text_elements": [span(4, 6)]},
        {"type": "text", "text": "@b", "text_elements": [{"byteRange": {"start": 0, "end": 2}}]},
    ]);
    client.ok("turn/start", json!({"threadId": thread, "input": input})).await;
    let said = client.next_notification("item/completed").await["item"].take();
    assert_eq!(said["content"][0]["text_elements"], json!([span(4, 6)]));
    client.next_notification("turn/completed").await;
    let mut client = client.start_again().await;
    // The input is one text in the file, so the offset of the second span has changed.
    let both = json!([span(4, 6), {"byteRange": {"start": 6, "end": 8}, "placeholder": null}]);
    let resumed = client.ok("thread/resume", json!({"threadId": thread})).await;
    let content = &resumed["thread"]["turns"][0]["items"][0]["content"];
    assert_eq!((&content[0]["text"], &content[0]["text_elements"]), (&json!("see @a@b"), &both));
    let resumed = client.ok("resumeConversation", json!({"conversationId": thread})).await;
    let kept = json!([
        {"byte_range": {"start": 4, "end": 6}, "placeholder": "@a"},
        {"byte_range": {"start": 6, "end": 8}, "placeholder": null},
    ]);
    let message = resumed["initialMessages"].as_array().expect("a list").iter();
    let message = message.filter(|message| message["type"] == "user_message").collect::<Vec<_>>();
    assert_eq!((message.len(), &message[0]["text_elements"]), (1, &kept));
    client.end_unread().await;
}

#[tokio::test]
async fn files_of_instructions_are_named() {
    let mut client = scripted("", &json!([text("One.")])).await;
    for file in [client.home("AGENTS.md"), client.work("AGENTS.md")] {
        std::fs::write(file, "Be kind.").expect("a file can be written");
    }
    let expected = json!([client.home("AGENTS.md"), client.work("AGENTS.md")]);
    let started = client.ok("thread/start", json!({})).await;
    assert_eq!(started["instructionSources"], expected);
    let thread = started["thread"]["id"].as_str().expect("a name").to_owned();
    turn(&mut client, &thread, "hi").await;
    let mut client = client.start_again().await;
    let resumed = client.ok("thread/resume", json!({"threadId": thread})).await;
    assert_eq!(resumed["instructionSources"], expected);
    client.end_unread().await;
}

#[tokio::test]
async fn a_copy_is_reported_with_its_turns_but_in_the_newest_release() {
    for (release, turns) in [(ProtocolRelease::V077, 1), (ProtocolRelease::V0166, 0)] {
        let hello = Hello { release: Some(release), ..Hello::default() };
        let mut client = saying(hello, FREE, &json!([text("One.")])).await;
        let thread = start(&mut client).await;
        turn(&mut client, &thread, "a").await;
        let copy = client.ok("thread/fork", json!({"threadId": thread})).await;
        assert_eq!(copy["thread"]["turns"].as_array().map(Vec::len), Some(1));
        let told = client.next_notification("thread/started").await;
        assert_eq!(told["thread"]["turns"].as_array().map(Vec::len), Some(turns), "{release:?}");
        client.end_unread().await;
    }
}

#[tokio::test]
async fn a_client_that_unsubscribes_is_notified() {
    let mut client = scripted("", &json!([text("One.")])).await;
    let thread = start(&mut client).await;
    turn(&mut client, &thread, "a").await;
    let leave = json!({"threadId": thread});
    // Both questions are sent before the first is answered.
    let (first, second) =
        (client.ask("thread/unsubscribe", leave.clone()).await, client.ask("thread/unsubscribe", leave.clone()).await);
    assert_eq!(client.answer(first).await.expect("it works")["status"], "unsubscribed");
    assert_eq!(client.answer(second).await.expect("it works")["status"], "notSubscribed");
    assert_eq!(client.ok("thread/unsubscribe", leave.clone()).await["status"], "notSubscribed");
    let mut client = client.start_again().await;
    assert_eq!(client.ok("thread/unsubscribe", leave).await["status"], "notLoaded");
    client.end().await;
}

#[tokio::test]
async fn an_archived_thread_is_unloaded() {
    let mut client = scripted("", &json!([text("One.")])).await;
    let thread = start(&mut client).await;
    turn(&mut client, &thread, "a").await;
    client.ask("thread/archive", json!({"threadId": thread})).await;
    let told = client.messages_until("thread/archived").await;
    let status = told.iter().rfind(|message| message["method"] == "thread/status/changed");
    assert_eq!(status.expect("it is told")["params"]["status"], json!({"type": "notLoaded"}));
    client.end_unread().await;
}

#[tokio::test]
async fn a_bad_cursor_is_named() {
    let mut client = scripted("", &json!([])).await;
    for method in ["thread/list", "thread/loaded/list", "model/list", "listConversations"] {
        let (code, message) = client.refused(method, json!({"cursor": "odd"})).await;
        assert_eq!((code, message.as_str()), (-32600, "invalid cursor: odd"), "{method}");
    }
    client.end().await;
}

#[tokio::test]
async fn a_conversation_that_is_brought_along_has_no_messages() {
    let mut client = conversing(FREE, &json!([])).await;
    let said = json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]});
    let resumed = client.ok("resumeConversation", json!({"history": [said]})).await;
    assert_eq!(resumed["initialMessages"], json!([]));
    assert_eq!(client.next_notification("sessionConfigured").await["initialMessages"], json!([]));
    client.end().await;
}

#[tokio::test]
async fn the_first_items_come_before_the_response_to_input() {
    let mut client = conversing(FREE, &json!([text("Done.")])).await;
    let (conversation, _) = open(&mut client).await;
    // The client does not wait for the first answer.
    let listens = json!({"conversationId": conversation, "experimentalRawEvents": true});
    client.ask("addConversationListener", listens).await;
    let items = json!([{"type": "text", "data": {"text": "hi"}}]);
    let said = client.ask("sendUserMessage", json!({"conversationId": conversation, "items": items})).await;
    let told = client.messages_until("codex/event/task_complete").await;
    let answer = told.iter().position(|message| message["id"] == json!(said)).expect("it is answered");
    let is_raw = |message: &&Value| message["method"] == "codex/event/raw_response_item";
    assert_eq!(told[..answer].iter().filter(is_raw).count(), 2, "{told:#?}");
    client.end_unread().await;
}

#[tokio::test]
async fn a_mode_sets_the_model_its_effort_and_what_it_is_reported() {
    let script = json!([
        {"when": "You are in the default mode", "items": [{"text": "default"}]},
        {"when": "Only look.", "items": [{"text": "mine"}]},
        {"when": "You are in plan mode", "items": [{"text": "plan"}], "repeat": true},
    ]);
    let mut client = scripted("model = 'usual'", &script).await;
    let listed = client.ok("collaborationMode/list", json!({})).await;
    assert_eq!(
        listed["data"],
        json!([
            {"name": "Plan", "mode": "plan", "model": null, "reasoning_effort": "medium"},
            {"name": "Default", "mode": "default", "model": null, "reasoning_effort": null},
        ])
    );
    let thread = start(&mut client).await;
    let input = json!([{"type": "text", "text": "hi"}]);
    let mode = |mode: &str, told: Option<&str>| {
        let settings = json!({"model": "planner", "reasoning_effort": "high", "developer_instructions": told});
        json!({"threadId": thread, "input": input, "model": "other",
               "collaborationMode": {"mode": mode, "settings": settings}})
    };
    client.ok("turn/start", mode("plan", None)).await;
    let said = |message: &Value| message["item"]["text"] == "plan";
    while !said(&client.next_notification("item/completed").await) {}
    client.next_notification("turn/completed").await;
    let mut client = client.start_again().await;
    let resumed = client.ok("thread/resume", json!({"threadId": thread})).await;
    assert_eq!((&resumed["model"], &resumed["reasoningEffort"]), (&json!("planner"), &json!("high")));
    assert_eq!(resumed["collaborationMode"]["mode"], "plan");
    for (mode, expected) in [(mode("plan", Some("Only look.")), "mine"), (mode("default", None), "default")] {
        client.ok("turn/start", mode).await;
        while client.next_notification("item/completed").await["item"]["text"] != expected {}
        client.next_notification("turn/completed").await;
    }
    client.end_unread().await;
}

#[tokio::test]
async fn matches_have_no_kind_in_releases_that_list_only_files() {
    for (release, kind) in [(ProtocolRelease::V077, None), (ProtocolRelease::V0166, Some(&json!("file")))] {
        let mut client = AppClient::start_as(release, "").await;
        std::fs::write(client.work("alpha.txt"), "").expect("a file can be written");
        let roots = [client.work("")];
        let found = client.ok("fuzzyFileSearch", json!({"query": "alp", "roots": roots})).await;
        assert_eq!(found["files"][0].get("match_type"), kind, "{found}");
        client.end().await;
    }
}
