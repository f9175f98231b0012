//! Conversations on disk: list, summary, resume, fork, archive.

use serde_json::{Value, json};

use crate::app_client::AppClient;
use crate::v1_conversations::{FREE, conversing, event, last_words, listen, open, say, text};

/// Opens a conversation with one turn.
async fn spoken(client: &mut AppClient, words: &str) -> (String, String) {
    let (conversation, path) = open(client).await;
    listen(client, &conversation).await;
    say(client, &conversation, words).await;
    last_words(client, &conversation).await;
    (conversation, path)
}

/// The texts of the messages of a conversation.
fn said(messages: &Value) -> Vec<&str> {
    let messages = messages.as_array().into_iter().flatten();
    messages.filter_map(|message| message["message"].as_str()).collect()
}

#[tokio::test]
async fn conversations_are_listed_in_pages_the_newest_first() {
    let mut client = conversing(FREE, &json!([text("One.")])).await;
    let mut all = Vec::new();
    for words in ["first", "second", "third"] {
        all.push(spoken(&mut client, words).await);
    }
    open(&mut client).await;
    let (mut cursor, mut found) = (json!(null), Vec::new());
    for size in [2, 1] {
        let page = client.ok("listConversations", json!({"pageSize": 2, "cursor": cursor})).await;
        let items = page["items"].as_array().expect("a list").clone();
        assert_eq!(items.len(), size, "{page:#}");
        found.extend(items);
        cursor = page["nextCursor"].clone();
    }
    assert_eq!(cursor, json!(null));
    let names: Vec<_> = found.iter().map(|item| item["conversationId"].as_str().expect("a name")).collect();
    let expected: Vec<_> = all.iter().rev().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, expected, "the one in which nothing was said is left out");
    let first = found.iter().find(|item| item["preview"] == "first").expect("it is listed");
    assert_eq!((&first["conversationId"], &first["path"]), (&json!(all[0].0), &json!(all[0].1)));
    assert_eq!((&first["modelProvider"], &first["source"]), (&json!("mine"), &json!("vscode")));
    let folder = client.work(".").canonicalize().expect("it exists");
    assert_eq!((&first["cwd"], &first["gitInfo"]), (&json!(folder), &json!(null)));
    assert!(first["timestamp"].as_str().is_some_and(|time| time.ends_with('Z')), "{first}");
    let (code, _) = client.refused("listConversations", json!({"cursor": "nonsense"})).await;
    assert_eq!(code, -32600);
    client.end_unread().await;
}

#[tokio::test]
async fn a_filter_by_provider_fills_its_page_from_further_back() {
    let other = "[model_providers.other]\nname = 'Other'\nwire_api = 'scripted'\nscript = 'script.json'\n";
    let mut client = conversing(FREE, &json!([text("One.")])).await;
    let config = std::fs::read_to_string(client.home("config.toml")).expect("it is there");
    std::fs::write(client.home("config.toml"), format!("{config}\n{other}")).expect("a file can be written");
    let mut mine = Vec::new();
    for provider in ["mine", "mine", "other", "other", "other"] {
        let opened = client.ok("newConversation", json!({"modelProvider": provider})).await;
        let name = opened["conversationId"].as_str().expect("a name").to_owned();
        listen(&mut client, &name).await;
        say(&mut client, &name, provider).await;
        last_words(&mut client, &name).await;
        if provider == "mine" {
            mine.push(name);
        }
    }
    let page = client.ok("listConversations", json!({"pageSize": 2, "modelProviders": ["mine"]})).await;
    let names: Vec<_> = page["items"].as_array().into_iter().flatten().map(|item| &item["modelProvider"]).collect();
    assert_eq!(names, ["mine", "mine"], "{page:#}");
    let count = |list: Value| list["items"].as_array().map(Vec::len);
    assert_eq!(
        count(client.ok("listConversations", json!({})).await),
        Some(2),
        "nothing said means the configured one"
    );
    assert_eq!(count(client.ok("listConversations", json!({"model_providers": []})).await), Some(5));
    client.end_unread().await;
}

#[tokio::test]
async fn a_conversation_is_summed_up_by_name_and_by_file() {
    let mut client = conversing(FREE, &json!([text("One.")])).await;
    let (conversation, path) = spoken(&mut client, "About this").await;
    let by_name = client.ok("getConversationSummary", json!({"conversationId": conversation})).await;
    let by_file = client.ok("getConversationSummary", json!({"rolloutPath": path})).await;
    assert_eq!(by_name, by_file);
    assert_eq!((&by_name["summary"]["preview"], &by_name["summary"]["path"]), (&json!("About this"), &json!(path)));
    let home = client.home("").canonicalize().expect("it exists");
    let relative = std::path::Path::new(&path).strip_prefix(home).expect("it lies in the home").to_owned();
    assert_eq!(client.ok("getConversationSummary", json!({"rolloutPath": relative})).await, by_name);
    for params in [
        json!({}),
        json!({"conversationId": "00000000-0000-7000-8000-000000000000"}),
        json!({"rolloutPath": "/etc/passwd"}),
    ] {
        assert_eq!(client.refused("getConversationSummary", params.clone()).await.0, -32600, "{params}");
    }
    client.end_unread().await;
}

#[tokio::test]
async fn a_conversation_continues_in_another_process() {
    let script = json!([{"when": "Second", "items": [{"text": "Two."}]}, {"items": [{"reasoning": ["Easy."]}, {"text": "One."}]}]);
    let mut client = conversing(FREE, &script).await;
    let (conversation, path) = spoken(&mut client, "First").await;
    for params in [json!({"path": path, "overrides": {"model": "other"}}), json!({"conversationId": conversation})] {
        client = client.start_again().await;
        let id = client.ask("resumeConversation", params.clone()).await;
        let heard = client.messages_until("sessionConfigured").await;
        assert!(heard.iter().all(|message| message["id"] != json!(id)), "the news come before the answer");
        let configured = &heard.last().expect("the news")["params"];
        let resumed = client.answer(id).await.expect("it is resumed");
        assert_eq!((&resumed["conversationId"], &resumed["rolloutPath"]), (&json!(conversation), &json!(path)));
        assert_eq!((&configured["sessionId"], &configured["rolloutPath"]), (&json!(conversation), &json!(path)));
        assert_eq!(configured["initialMessages"], resumed["initialMessages"]);
        assert_eq!(said(&resumed["initialMessages"])[..2], ["First", "One."]);
        let thought = resumed["initialMessages"]
            .as_array()
            .into_iter()
            .flatten()
            .find(|message| message["type"] == "agent_reasoning");
        assert_eq!(thought.map(|thought| &thought["text"]), Some(&json!("Easy.")));
        if params.get("overrides").is_some() {
            assert_eq!((&resumed["model"], &configured["model"]), (&json!("other"), &json!("other")));
        }
    }
    listen(&mut client, &conversation).await;
    say(&mut client, &conversation, "Second").await;
    assert_eq!(last_words(&mut client, &conversation).await, "Two.");
    client.end_unread().await;
}

#[tokio::test]
async fn a_conversation_that_is_loaded_is_resumed_as_it_is() {
    let mut client = conversing(FREE, &json!([text("One."), text("Two.")])).await;
    let (conversation, path) = spoken(&mut client, "First").await;
    let resumed = client.ok("resumeConversation", json!({"path": path})).await;
    assert_eq!(
        (&resumed["conversationId"], said(&resumed["initialMessages"])),
        (&json!(conversation), vec!["First", "One."])
    );
    client.next_notification("sessionConfigured").await;
    say(&mut client, &conversation, "Second").await;
    assert_eq!(last_words(&mut client, &conversation).await, "Two.");
    client.end_unread().await;
}

#[tokio::test]
async fn a_conversation_is_taken_over_from_its_items_and_copied() {
    let script = json!([{"when": ["From elsewhere", "Go on"], "items": [{"text": "On."}]}]);
    let mut client = conversing(FREE, &script).await;
    let history =
        json!([{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "From elsewhere"}]}]);
    let overrides = json!({"model": "other", "approvalPolicy": "untrusted"});
    let resumed = client.ok("resumeConversation", json!({"history": history, "overrides": overrides})).await;
    assert_eq!(resumed["model"], "other");
    let first = resumed["conversationId"].as_str().expect("a name").to_owned();
    listen(&mut client, &first).await;
    say(&mut client, &first, "Go on").await;
    assert_eq!(last_words(&mut client, &first).await, "On.");
    let copy = client.ok("forkConversation", json!({"conversationId": first})).await;
    assert_ne!(copy["conversationId"], resumed["conversationId"]);
    assert_ne!(copy["rolloutPath"], resumed["rolloutPath"]);
    assert!(said(&copy["initialMessages"]).ends_with(&["Go on", "On."]), "{copy:#}");
    for params in [json!({}), json!({"history": []}), json!({"path": "/etc/passwd"})] {
        assert_eq!(client.refused("resumeConversation", params.clone()).await.0, -32600, "{params}");
    }
    client.end_unread().await;
}

#[tokio::test]
async fn rolled_back_turns_are_not_sent_again() {
    let mut client = conversing(FREE, &json!([text("One."), text("Two.")])).await;
    let (conversation, path) = spoken(&mut client, "First").await;
    say(&mut client, &conversation, "Second").await;
    assert_eq!(last_words(&mut client, &conversation).await, "Two.");
    client.ok("thread/rollback", json!({"threadId": conversation, "numTurns": 1})).await;
    let mut client = client.start_again().await;
    let resumed = client.ok("resumeConversation", json!({"path": path})).await;
    assert_eq!(said(&resumed["initialMessages"]), ["First", "One."]);
    client.end_unread().await;
}

#[tokio::test]
async fn a_loaded_conversation_is_archived_with_its_file() {
    let mut client = conversing(FREE, &json!([text("One.")])).await;
    let (conversation, path) = spoken(&mut client, "First").await;
    let (other, _) = open(&mut client).await;
    let (code, message) =
        client.refused("archiveConversation", json!({"conversationId": other, "rolloutPath": path})).await;
    assert!(code == -32600 && message.contains("does not match conversation id"), "{message}");
    let both = json!({"conversationId": conversation, "rolloutPath": path});
    assert_eq!(client.ok("archiveConversation", both.clone()).await, json!({}));
    assert!(!std::path::Path::new(&path).exists());
    let name = std::path::Path::new(&path).file_name().expect("a name").to_owned();
    let away = client.home("archived_sessions").join(name);
    assert!(away.is_file());
    event(&mut client, &conversation, "shutdown_complete").await;
    assert_eq!(client.ok("listConversations", json!({})).await["items"], json!([]));
    assert_eq!(client.refused("archiveConversation", both).await.0, -32600);
    let away = json!({"conversationId": conversation, "rolloutPath": away});
    let (_, message) = client.refused("archiveConversation", away).await;
    assert!(message.contains("must be in sessions directory"), "{message}");
    let (_, message) = client.refused("addConversationListener", json!({"conversationId": conversation})).await;
    assert_eq!(message, format!("conversation not found: {conversation}"));
    client.end_unread().await;
}
