//! Conversations end to end: opening, listening, input, interruption.

use codex_dialects::ProtocolRelease;
use serde_json::{Value, json};

use crate::app_client::{AppClient, Hello};

/// A client of 0.77 whose model plays a script from its start for each conversation.
pub(crate) async fn conversing(config: &str, script: &Value) -> AppClient {
    saying(Hello { release: Some(ProtocolRelease::V077), ..Hello::default() }, config, script).await
}

/// A client with this `clientInfo`, whose model plays a script from its start for each conversation.
pub(crate) async fn saying(hello: Hello, config: &str, script: &Value) -> AppClient {
    let provider = "model_provider = 'mine'\n[model_providers.mine]\nname = 'Mine'\nwire_api = 'scripted'\n\
                    script = 'script.json'\n";
    let client = AppClient::start_with(hello, &format!("{config}\n{provider}")).await;
    std::fs::write(client.home("script.json"), script.to_string()).expect("a file can be written");
    client
}

/// Opens a conversation and returns its id and its file.
pub(crate) async fn open(client: &mut AppClient) -> (String, String) {
    let opened = client.ok("newConversation", json!({})).await;
    let text = |name: &str| opened[name].as_str().expect("a text").to_owned();
    (text("conversationId"), text("rolloutPath"))
}

/// Adds a listener and returns its id.
pub(crate) async fn listen(client: &mut AppClient, conversation: &str) -> String {
    let added = client.ok("addConversationListener", json!({"conversationId": conversation})).await;
    added["subscriptionId"].as_str().expect("a name").to_owned()
}

/// Sends a message.
pub(crate) async fn say(client: &mut AppClient, conversation: &str, text: &str) {
    let items = json!([{"type": "text", "data": {"text": text}}]);
    let said = client.ok("sendUserMessage", json!({"conversationId": conversation, "items": items})).await;
    assert_eq!(said, json!({}));
}

/// The payload of the next event of that kind, which must belong to that conversation.
pub(crate) async fn event(client: &mut AppClient, conversation: &str, kind: &str) -> Value {
    let mut event = client.next_notification(&format!("codex/event/{kind}")).await;
    assert_eq!(event["conversationId"], json!(conversation));
    assert_eq!(event["msg"]["type"], json!(kind));
    event["msg"].take()
}

/// The last message of a turn.
pub(crate) async fn last_words(client: &mut AppClient, conversation: &str) -> Value {
    event(client, conversation, "task_complete").await["last_agent_message"].take()
}

/// A call that runs a command line.
pub(crate) fn command(line: &str) -> Value {
    json!({"items": [{"call": "shell", "args": {"command": ["sh", "-c", line]}}]})
}

/// A message of the model.
pub(crate) fn text(text: &str) -> Value {
    json!({"items": [{"text": text}]})
}

/// A configuration that runs everything without asking.
pub(crate) const FREE: &str = "approval_policy = 'never'\nsandbox_mode = 'danger-full-access'";

fn kinds(messages: &[Value]) -> Vec<String> {
    messages.iter().map(|message| message["method"].as_str().unwrap_or("answer").to_owned()).collect()
}

#[tokio::test]
async fn a_conversation_is_delivered_from_its_first_message_to_its_last() {
    let mut client = conversing(FREE, &json!([command("echo hi"), text("Done.")])).await;
    let opened = client.ok("newConversation", json!({"model": "other"})).await;
    assert_eq!((&opened["model"], &opened["reasoningEffort"]), (&json!("other"), &json!(null)));
    assert!(std::path::Path::new(opened["rolloutPath"].as_str().expect("a path")).is_file());
    let conversation = opened["conversationId"].as_str().expect("a name").to_owned();
    let listener = listen(&mut client, &conversation).await;
    say(&mut client, &conversation, "Run it.").await;
    assert_eq!(event(&mut client, &conversation, "user_message").await["message"], "Run it.");
    assert_eq!(
        event(&mut client, &conversation, "exec_command_begin").await["command"],
        json!(["sh", "-c", "echo hi"])
    );
    assert_eq!(event(&mut client, &conversation, "exec_command_end").await["stdout"], "hi\n");
    assert_eq!(last_words(&mut client, &conversation).await, "Done.");
    assert_eq!(client.ok("removeConversationListener", json!({"subscriptionId": listener})).await, json!({}));
    let (code, message) = client.refused("removeConversationListener", json!({"subscriptionId": listener})).await;
    assert_eq!((code, message), (-32600, format!("subscription not found: {listener}")));
    client.end_unread().await;
}

#[tokio::test]
async fn input_reaches_the_model_verbatim() {
    // The scripted model matches only this request, so the request had this text.
    let script = json!([{"when": "Exactly these words.", "items": [{"text": "Heard."}]}]);
    let mut client = conversing(FREE, &script).await;
    let (conversation, _) = open(&mut client).await;
    listen(&mut client, &conversation).await;
    say(&mut client, &conversation, "Exactly these words.").await;
    assert_eq!(last_words(&mut client, &conversation).await, "Heard.");
    client.end_unread().await;
}

#[tokio::test]
async fn two_messages_are_two_turns() {
    let mut client = conversing(FREE, &json!([text("One."), text("Two.")])).await;
    let (conversation, _) = open(&mut client).await;
    listen(&mut client, &conversation).await;
    for (said, answered) in [("First", "One."), ("Second", "Two.")] {
        say(&mut client, &conversation, said).await;
        assert_eq!(event(&mut client, &conversation, "user_message").await["message"], said);
        assert_eq!(last_words(&mut client, &conversation).await, answered);
    }
    client.end_unread().await;
}

#[tokio::test]
async fn a_listener_of_raw_events_receives_every_item_in_order() {
    let config = format!("{FREE}\ndeveloper_instructions = 'Be brief.'");
    let mut client = conversing(&config, &json!([text("Done.")])).await;
    std::fs::write(client.work("AGENTS.md"), "Be kind.").expect("a file can be written");
    let (conversation, _) = open(&mut client).await;
    let wishes = json!({"conversationId": conversation, "experimentalRawEvents": true});
    client.ok("addConversationListener", wishes).await;
    say(&mut client, &conversation, "Hello").await;
    let mut items = Vec::new();
    for _ in 0..5 {
        let item = event(&mut client, &conversation, "raw_response_item").await["item"].take();
        let text = item["content"][0]["text"].as_str().expect("a text").to_owned();
        items.push((item["role"].as_str().expect("a role").to_owned(), text));
    }
    let has = |place: usize, role: &str, text: &str| items[place].0 == role && items[place].1.contains(text);
    assert!(has(0, "developer", "Be brief."), "{items:#?}");
    assert!(has(1, "user", "Be kind."), "{items:#?}");
    assert!(has(2, "user", "<environment_context>"), "{items:#?}");
    assert!(has(3, "user", "Hello") && has(4, "assistant", "Done."), "{items:#?}");
    client.end_unread().await;
}

#[tokio::test]
async fn a_listener_receives_raw_events_only_on_request() {
    let mut client = conversing(FREE, &json!([text("Done.")])).await;
    let (conversation, _) = open(&mut client).await;
    listen(&mut client, &conversation).await;
    say(&mut client, &conversation, "Hello").await;
    let heard = kinds(&client.messages_until("codex/event/task_complete").await);
    assert!(!heard.contains(&"codex/event/raw_response_item".to_owned()), "{heard:?}");
    client.end_unread().await;
}

#[tokio::test]
async fn unknown_names_are_errors() {
    let mut client = conversing("", &json!([])).await;
    let nobody = "00000000-0000-7000-8000-000000000000";
    let items = json!([{"type": "text", "data": {"text": "Hello"}}]);
    for (method, params) in [
        ("sendUserMessage", json!({"conversationId": nobody, "items": items})),
        ("addConversationListener", json!({"conversationId": nobody})),
        ("interruptConversation", json!({"conversationId": nobody})),
    ] {
        let (code, message) = client.refused(method, params).await;
        assert_eq!((code, message), (-32600, format!("conversation not found: {nobody}")), "{method}");
    }
    let (code, message) = client.refused("sendUserMessage", json!({"conversationId": "thr_1", "items": items})).await;
    assert!(code == -32600 && message.starts_with("Invalid request:"), "{message}");
    let (conversation, _) = open(&mut client).await;
    let (_, message) = client.refused("sendUserMessage", json!({"conversationId": conversation, "items": []})).await;
    assert_eq!(message, "items must not be empty");
    client.end().await;
}

#[tokio::test]
async fn a_turn_brings_its_folder_and_its_policies_along() {
    let asks = "approval_policy = 'untrusted'\nsandbox_mode = 'read-only'";
    let script = json!([command("pwd; touch made"), text("One."), command("pwd"), text("Two.")]);
    let mut client = conversing(asks, &script).await;
    for name in ["first", "second"] {
        std::fs::create_dir(client.work(name)).expect("a folder can be made");
    }
    let (conversation, _) = open(&mut client).await;
    listen(&mut client, &conversation).await;
    let policy = json!({"type": "workspace-write", "writable_roots": [], "network_access": false});
    for (folder, policy) in [("first", policy), ("second", json!({"mode": "danger-full-access"}))] {
        let turn = json!({
            "conversationId": conversation, "items": [{"type": "text", "data": {"text": "Go."}}],
            "cwd": client.work(folder), "approvalPolicy": "never", "sandboxPolicy": policy,
            "model": "other", "effort": "high", "summary": "auto",
        });
        client.ok("sendUserTurn", turn).await;
        let begun = event(&mut client, &conversation, "exec_command_begin").await;
        assert_eq!(begun["cwd"], json!(client.work(folder)));
        let ended = event(&mut client, &conversation, "exec_command_end").await;
        assert_eq!(ended["stdout"], json!(format!("{}\n", client.work(folder).display())));
        last_words(&mut client, &conversation).await;
    }
    assert!(client.work("first/made").exists(), "the turn may write where it works");
    let nowhere = json!({
        "conversationId": conversation, "items": [{"type": "text", "data": {"text": "Go."}}], "cwd": "/no/such/folder",
        "approvalPolicy": "never", "sandboxPolicy": {"type": "read-only"}, "model": "other", "summary": "auto",
    });
    let (code, message) = client.refused("sendUserTurn", nowhere).await;
    assert_eq!((code, message.as_str()), (-32600, "the working directory /no/such/folder does not exist"));
    client.end_unread().await;
}

#[tokio::test]
async fn both_spellings_of_input_and_parameters_are_understood() {
    let script = json!([{"when": ["plain words", "wrapped words"], "items": [{"text": "Both."}]}]);
    let mut client = conversing(FREE, &script).await;
    let opened = client.ok("newConversation", json!({"approval_policy": "on-failure", "sandbox": "read-only"})).await;
    let conversation = opened["conversationId"].as_str().expect("a name").to_owned();
    client.ok("addConversationListener", json!({"conversation_id": conversation})).await;
    let turn = json!({
        "conversation_id": conversation,
        "items": [{"type": "text", "text": "plain words"}, {"type": "text", "data": {"text": "wrapped words"}}],
        "cwd": client.work(""), "approval_policy": "untrusted",
        "sandbox_policy": {"mode": "workspace-write", "writableRoots": [], "networkAccess": false},
        "model": "m", "summary": "concise",
    });
    client.ok("sendUserTurn", turn).await;
    assert_eq!(last_words(&mut client, &conversation).await, "Both.");
    client.end_unread().await;
}

#[tokio::test]
async fn an_interrupt_is_answered_when_the_turn_has_ended() {
    let mut client = conversing(FREE, &json!([command("sleep 4545"), text("Yes.")])).await;
    let (conversation, _) = open(&mut client).await;
    listen(&mut client, &conversation).await;
    say(&mut client, &conversation, "Sleep.").await;
    event(&mut client, &conversation, "exec_command_begin").await;
    let id = client.ask("interruptConversation", json!({"conversationId": conversation})).await;
    let heard = client.messages_until("codex/event/turn_aborted").await;
    assert!(heard.iter().all(|message| message["id"] != json!(id)), "the answer comes behind the news");
    assert_eq!(client.answer(id).await, Ok(json!({"abortReason": "interrupted"})));
    let (code, message) = client.refused("interruptConversation", json!({"conversationId": conversation})).await;
    assert_eq!((code, message.as_str()), (-32600, "no turn is running that could be interrupted"));
    say(&mut client, &conversation, "Still there?").await;
    assert_eq!(last_words(&mut client, &conversation).await, "Yes.");
    client.end_unread().await;
}

#[tokio::test]
async fn an_interrupt_without_listeners_is_answered_too() {
    let mut client = conversing(FREE, &json!([{"items": [{"hang": true}]}])).await;
    let (conversation, _) = open(&mut client).await;
    say(&mut client, &conversation, "Hang.").await;
    let stopped = client.ok("interruptConversation", json!({"conversationId": conversation})).await;
    assert_eq!(stopped, json!({"abortReason": "interrupted"}));
    client.end().await;
}

#[tokio::test]
async fn the_last_listener_takes_the_events_with_it_and_the_next_brings_them_back() {
    let mut client = conversing(FREE, &json!([text("First."), text("Second.")])).await;
    let (conversation, _) = open(&mut client).await;
    let [one, two] = [listen(&mut client, &conversation).await, listen(&mut client, &conversation).await];
    assert_ne!(one, two);
    say(&mut client, &conversation, "One.").await;
    let heard = kinds(&client.messages_until("codex/event/task_complete").await);
    let count = heard.iter().filter(|kind| *kind == "codex/event/agent_message").count();
    assert_eq!(count, 1, "two listeners hear everything once: {heard:?}");
    client.ok("removeConversationListener", json!({"subscriptionId": one})).await;
    client.next_notification("turn/completed").await;
    client.ok("removeConversationListener", json!({"subscriptionId": two})).await;
    say(&mut client, &conversation, "Two.").await;
    listen(&mut client, &conversation).await;
    let heard = client.messages_until("codex/event/task_complete").await;
    assert_eq!(heard[0]["method"], "codex/event/task_started", "{heard:#?}");
    assert_eq!(heard.last().expect("the end")["params"]["msg"]["last_agent_message"], "Second.");
    client.next_notification("turn/completed").await;
    client.end().await;
}

#[tokio::test]
async fn messages_before_the_first_listener_are_delivered() {
    let mut client = conversing(FREE, &json!([text("Early.")])).await;
    let (conversation, _) = open(&mut client).await;
    say(&mut client, &conversation, "Hello").await;
    listen(&mut client, &conversation).await;
    assert_eq!(event(&mut client, &conversation, "user_message").await["message"], "Hello");
    assert_eq!(last_words(&mut client, &conversation).await, "Early.");
    client.end_unread().await;
}

#[tokio::test]
async fn an_interrupt_is_answered_though_its_listener_goes() {
    let mut client = conversing(FREE, &json!([{"items": [{"hang": true}]}])).await;
    let (conversation, _) = open(&mut client).await;
    let listener = listen(&mut client, &conversation).await;
    say(&mut client, &conversation, "Hang.").await;
    let interrupt = client.ask("interruptConversation", json!({"conversationId": conversation})).await;
    let remove = client.ask("removeConversationListener", json!({"subscriptionId": listener})).await;
    assert_eq!(client.answer(interrupt).await, Ok(json!({"abortReason": "interrupted"})));
    assert_eq!(client.answer(remove).await, Ok(json!({})));
    client.end_unread().await;
}

#[tokio::test]
async fn a_conversation_has_only_so_many_listeners() {
    let mut client = conversing(FREE, &json!([])).await;
    let (conversation, _) = open(&mut client).await;
    for _ in 0..256 {
        listen(&mut client, &conversation).await;
    }
    let (code, message) = client.refused("addConversationListener", json!({"conversationId": conversation})).await;
    assert_eq!((code, message.as_str()), (-32600, "a conversation has at most 256 listeners"));
    client.end().await;
}

#[tokio::test]
async fn a_conversation_starts_with_a_profile_and_what_goes_over_it() {
    let mut client = conversing(FREE, &json!([])).await;
    let file = std::fs::read_to_string(client.home("config.toml")).expect("it is there");
    let profile = "[profiles.fast]\nmodel = 'quick'\nmodel_reasoning_effort = 'low'\n";
    std::fs::write(client.home("config.toml"), format!("{file}\n{profile}")).expect("a file can be written");
    let opened = client.ok("newConversation", json!({"profile": "fast"})).await;
    assert_eq!((&opened["model"], &opened["reasoningEffort"]), (&json!("quick"), &json!("low")));
    let wishes = json!({"profile": "fast", "model": "slow", "config": {"model_reasoning_effort": "high"}});
    let opened = client.ok("newConversation", wishes).await;
    assert_eq!((&opened["model"], &opened["reasoningEffort"]), (&json!("slow"), &json!("high")));
    let (code, message) = client.refused("newConversation", json!({"profile": "no such"})).await;
    assert!(code == -32600 && message.contains("no such"), "{message}");
    let (code, _) = client.refused("newConversation", json!({"cwd": "/no/such/folder"})).await;
    assert_eq!(code, -32600);
    client.end().await;
}
