//! Several dialects on one connection: the dialect of a message follows from the request that subscribed, and no
//! message is sent twice.

use codex_dialects::ProtocolRelease;
use codex_server::app::Dialect;
use serde_json::{Value, json};

use crate::app_client::{AppClient, Hello};
use crate::v1_conversations::{FREE, command, conversing, last_words, listen, open, say, saying, text};

const ASKS: &str = "approval_policy = 'untrusted'\nsandbox_mode = 'danger-full-access'";

/// A client that chooses a dialect.
fn choosing(dialect: &str) -> Hello {
    Hello { capabilities: Some(json!({"dialect": dialect})), ..Hello::default() }
}

/// Starts a thread with a v2 method.
async fn start(client: &mut AppClient) -> String {
    client.ok("thread/start", json!({})).await["thread"]["id"].as_str().expect("a name").to_owned()
}

/// Starts a turn with a v2 method.
async fn turn(client: &mut AppClient, thread: &str) {
    let input = json!([{"type": "text", "text": "Go."}]);
    client.ok("turn/start", json!({"threadId": thread, "input": input})).await;
}

/// The methods of messages, in the order of arrival.
fn names(messages: &[Value]) -> Vec<&str> {
    messages.iter().filter_map(|message| message["method"].as_str()).collect()
}

fn count(messages: &[Value], name: &str) -> usize {
    names(messages).iter().filter(|it| **it == name).count()
}

#[tokio::test]
async fn a_thread_with_both_subscriptions_is_delivered_once_in_each() {
    let script = json!([command("touch out"), {"items": [{"text": "Done.", "deltas": ["Do", "ne."]}]}]);
    let mut client = conversing(ASKS, &script).await;
    let thread = start(&mut client).await;
    listen(&mut client, &thread).await;
    listen(&mut client, &thread).await;
    turn(&mut client, &thread).await;
    let mut heard = client.messages_until("item/commandExecution/requestApproval").await;
    let id = heard.last().and_then(|question| question["id"].as_i64()).expect("a number");
    client.respond(id, json!({"result": {"decision": "accept"}})).await;
    heard.extend(client.messages_until("turn/completed").await);
    assert!(client.work("out").exists());
    for once in [
        "item/commandExecution/requestApproval",
        "turn/started",
        "turn/completed",
        "codex/event/task_started",
        "codex/event/task_complete",
        "codex/event/agent_message",
        "codex/event/exec_command_begin",
        "codex/event/exec_command_end",
        "serverRequest/resolved",
    ] {
        assert_eq!(count(&heard, once), 1, "{once}: {:#?}", names(&heard));
    }
    for twice in ["item/agentMessage/delta", "codex/event/agent_message_delta"] {
        assert_eq!(count(&heard, twice), 2, "{twice}: {:#?}", names(&heard));
    }
    client.end_unread().await;
}

#[tokio::test]
async fn threads_and_conversations_share_a_connection() {
    let hello = Hello { release: Some(ProtocolRelease::V0166), ..Hello::default() };
    let mut client = saying(hello, FREE, &json!([text("Done.")])).await;
    let thread = start(&mut client).await;
    let (conversation, _) = open(&mut client).await;
    listen(&mut client, &conversation).await;
    turn(&mut client, &thread).await;
    client.next_notification("turn/completed").await;
    say(&mut client, &conversation, "Hello").await;
    assert_eq!(last_words(&mut client, &conversation).await, "Done.");
    for message in client.end_with_rest().await {
        let name = message["method"].as_str().expect("a name");
        if name.starts_with("codex/event/") {
            assert_eq!(message["params"]["conversationId"], json!(conversation), "a thread has notifications alone");
        } else if let Some(about) = message["params"].get("threadId") {
            assert_eq!(about, &json!(thread), "a conversation has events alone: {name}");
        }
    }
}

/// 0.77 sent these notifications to the listeners of conversations too; its clients may rely on them.
#[tokio::test]
async fn a_listener_of_0_77_receives_items_but_not_thread_notifications() {
    let mut client = conversing(FREE, &json!([text("Done.")])).await;
    let (conversation, _) = open(&mut client).await;
    listen(&mut client, &conversation).await;
    say(&mut client, &conversation, "Hello").await;
    let heard = client.messages_until("turn/completed").await;
    for there in ["item/started", "item/completed", "codex/event/agent_message"] {
        assert!(count(&heard, there) > 0, "{there}");
    }
    for absent in ["thread/started", "turn/started", "thread/status/changed"] {
        assert_eq!(count(&heard, absent), 0, "{absent}");
    }
    client.end().await;
}

#[tokio::test]
async fn a_conversation_is_a_thread_once_v2_methods_use_it() {
    let hello = Hello { release: Some(ProtocolRelease::V0166), ..Hello::default() };
    let mut client = saying(hello, FREE, &json!([text("One."), text("Two.")])).await;
    let (conversation, _) = open(&mut client).await;
    listen(&mut client, &conversation).await;
    say(&mut client, &conversation, "Hello").await;
    let heard = client.messages_until("codex/event/task_complete").await;
    assert!(names(&heard).iter().all(|name| name.starts_with("codex/event/")), "{:#?}", names(&heard));
    turn(&mut client, &conversation).await;
    let heard = client.messages_until("turn/completed").await;
    assert_eq!((count(&heard, "turn/started"), count(&heard, "codex/event/task_complete")), (1, 1));
    // One subscription ends without the other.
    let left = client.ok("thread/unsubscribe", json!({"threadId": conversation})).await;
    assert_eq!(left["status"], "unsubscribed");
    say(&mut client, &conversation, "Hello").await;
    let heard = client.messages_until("codex/event/task_complete").await;
    assert!(names(&heard).iter().all(|name| name.starts_with("codex/event/")), "{:#?}", names(&heard));
    client.end_unread().await;
}

#[tokio::test]
async fn a_dialect_that_was_chosen_holds_whatever_is_asked() {
    for (dialect, has_events, has_notifications) in [("v1", true, false), ("v2", false, true), ("both", true, true)] {
        let mut client = saying(choosing(dialect), FREE, &json!([text("Done.")])).await;
        let thread = start(&mut client).await;
        listen(&mut client, &thread).await;
        turn(&mut client, &thread).await;
        let last = if has_notifications { "turn/completed" } else { "codex/event/task_complete" };
        let heard = client.messages_until(last).await;
        assert_eq!(count(&heard, "codex/event/agent_message"), usize::from(has_events), "{dialect}");
        assert_eq!(count(&heard, "turn/started"), usize::from(has_notifications), "{dialect}");
        assert_eq!(count(&heard, "thread/started"), usize::from(has_notifications), "{dialect}");
        client.end_unread().await;
    }
}

#[tokio::test]
async fn the_dialect_of_a_server_precedes_the_choice_of_a_client() {
    let script = json!([text("Done.")]);
    let hello = Hello { dialect: Some(Dialect::V1), ..Hello::default() };
    let mut client = saying(hello.clone(), FREE, &script).await;
    let thread = start(&mut client).await;
    turn(&mut client, &thread).await;
    let heard = client.messages_until("codex/event/task_complete").await;
    assert!(names(&heard).iter().all(|name| name.starts_with("codex/event/")), "{:#?}", names(&heard));
    client.end().await;
    let chosen = Hello { capabilities: Some(json!({"dialect": "v2"})), ..hello };
    let mut client = saying(chosen, FREE, &script).await;
    let thread = start(&mut client).await;
    turn(&mut client, &thread).await;
    let heard = client.messages_until("codex/event/task_complete").await;
    assert!(names(&heard).iter().all(|name| name.starts_with("codex/event/")), "{:#?}", names(&heard));
    client.end().await;
}

#[tokio::test]
async fn a_question_in_two_wordings_is_refused_only_when_both_are() {
    for (second, runs) in [
        (json!({"result": {"decision": "accept"}}), true),
        (json!({"error": {"code": -32601, "message": "unknown method"}}), false),
    ] {
        let mut client = saying(choosing("both"), ASKS, &json!([command("touch out"), text("Done.")])).await;
        let thread = start(&mut client).await;
        turn(&mut client, &thread).await;
        let (v1, _) = client.next_request("execCommandApproval").await;
        let (v2, _) = client.next_request("item/commandExecution/requestApproval").await;
        client.respond(v1, json!({"error": {"code": -32601, "message": "unknown method"}})).await;
        client.respond(v2, second).await;
        client.next_notification("turn/completed").await;
        assert_eq!(client.work("out").exists(), runs);
        client.end_unread().await;
    }
}

#[tokio::test]
async fn items_are_created_and_grow_for_clients_that_ask_for_it() {
    let plan = json!({"explanation": "First things first.", "plan": [{"step": "Look", "status": "in_progress"}]});
    let script = json!([
        {"items": [{"reasoning": ["Easy."]}, {"call": "update_plan", "args": plan}]},
        command("touch out"),
        {"items": [{"text": "2 + 2", "deltas": ["2", " + 2"]}]},
    ]);
    let hello = Hello { has_own_form: true, ..choosing("items") };
    let mut client = saying(hello, ASKS, &script).await;
    let thread = start(&mut client).await;
    assert_eq!(client.next_notification("thread/started").await["thread"]["id"], json!(thread));
    turn(&mut client, &thread).await;
    let mut heard = client.messages_until("execCommandApproval").await;
    let id = heard.last().and_then(|question| question["id"].as_i64()).expect("a number");
    client.respond(id, json!({"result": {"decision": "approved"}})).await;
    heard.extend(client.messages_until("turn/completed").await);
    let ended = heard.last().expect("the end")["params"].clone();
    assert_eq!((&ended["threadId"], &ended["status"]), (&json!(thread), &json!("completed")));
    let of = |name: &str| -> Vec<Value> {
        heard.iter().filter(|message| message["method"] == name).map(|message| message["params"].clone()).collect()
    };
    let [created, deltas] = [of("item/created"), of("item/delta")];
    assert_eq!(created[0]["item"]["type"], "reasoning");
    assert_eq!((&created[0]["item"]["purpose"], &created[0]["threadId"]), (&json!("reasoning"), &json!(thread)));
    assert_eq!((&created[1]["item"]["type"], &created[1]["item"]["plan"][0]["step"]), (&json!("plan"), &json!("Look")));
    assert_eq!((&created[2]["item"]["type"], &created[2]["item"]["textDelta"]), (&json!("assistant"), &json!("2")));
    assert_eq!(created.len(), 3, "{created:#?}");
    let last = deltas.last().expect("more of the answer");
    assert_eq!((&last["delta"], &last["item"]["textDelta"]), (&json!(" + 2"), &json!(" + 2")));
    assert_eq!((&last["itemId"], &last["turnId"]), (&created[2]["item"]["id"], &ended["turnId"]));
    for absent in [
        "item/started",
        "item/completed",
        "codex/event/agent_message_delta",
        "codex/event/plan_update",
        "turn/plan/updated",
    ] {
        assert_eq!(count(&heard, absent), 0, "{absent} says the same again");
    }
    for there in [
        "turn/started",
        "codex/event/exec_command_begin",
        "codex/event/exec_command_end",
        "codex/event/agent_message",
        "codex/event/agent_reasoning",
        "codex/event/token_count",
        "codex/event/task_complete",
    ] {
        assert!(count(&heard, there) > 0, "{there}: {:#?}", names(&heard));
    }
    client.end_unread().await;
}

#[tokio::test]
async fn an_unknown_dialect_is_refused() {
    let mut client = AppClient::start("").await;
    let hello = json!({"clientInfo": {"name": "x", "version": "1"}, "capabilities": {"dialect": "v3"}});
    let (code, message) = client.refused("initialize", hello).await;
    assert!(code == -32600 && message.contains("v3") && message.contains("items"), "{message}");
    client.end().await;
}
