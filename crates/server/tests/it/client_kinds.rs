//! The effects of the signs of a client: its name, the spelling of its policies, its listeners and its answers.

use codex_dialects::ProtocolRelease;
use codex_dialects::event_filter::Dialect;
use serde_json::{Value, json};

use crate::app_client::{AppClient, Hello};
use crate::v1_conversations::{command, listen, saying, text};

const ASKS: &str = "approval_policy = 'untrusted'\nsandbox_mode = 'danger-full-access'";
const READS: &str = "approval_policy = 'on-request'\nsandbox_mode = 'read-only'";

/// The parameters of clients of 0.56–0.68.
fn old_policies() -> Value {
    json!({"approvalPolicy": "unlessTrusted", "sandbox": "dangerFullAccess"})
}

fn plugin() -> Hello {
    Hello { name: Some("jetbrains-codex"), has_own_form: true, ..Hello::default() }
}

fn old() -> Hello {
    Hello { has_own_form: true, ..Hello::default() }
}

async fn start(client: &mut AppClient, params: Value) -> String {
    let answer = client.ok("thread/start", params).await;
    answer["thread"]["id"].as_str().expect("an id").to_owned()
}

async fn say(client: &mut AppClient, thread: &str) {
    let input = json!([{"type": "text", "text": "Go."}]);
    client.ok("turn/start", json!({"threadId": thread, "input": input})).await;
}

fn names(messages: &[Value]) -> Vec<&str> {
    messages.iter().filter_map(|message| message["method"].as_str()).collect()
}

/// The messages with this method.
fn of<'a>(messages: &'a [Value], method: &str) -> Vec<&'a Value> {
    messages.iter().filter(|message| message["method"] == method).collect()
}

fn place(messages: &[Value], method: &str) -> usize {
    let place = messages.iter().position(|message| message["method"] == method);
    place.unwrap_or_else(|| panic!("no {method}: {:#?}", names(messages)))
}

fn nulls(value: &Value, path: &str) -> Vec<String> {
    match value {
        Value::Null => vec![path.to_owned()],
        Value::Array(values) => values.iter().flat_map(|value| nulls(value, path)).collect(),
        Value::Object(members) => {
            members.iter().flat_map(|(name, value)| nulls(value, &format!("{path}.{name}"))).collect()
        }
        _ => Vec::new(),
    }
}

fn patch() -> Value {
    let patch = "*** Begin Patch\n*** Add File: a.txt\n+hi\n*** End Patch";
    json!({"items": [{"call": "apply_patch", "args": {"input": patch}}]})
}

#[tokio::test]
async fn a_client_that_is_known_by_its_name_is_served_its_dialect() {
    let script = json!([command("touch out"), {"items": [{"text": "Done.", "deltas": ["Do", "ne."]}]}]);
    let mut client = saying(plugin(), ASKS, &script).await;
    let thread = start(&mut client, json!({"approvalPolicy": "unlessTrusted"})).await;
    say(&mut client, &thread).await;
    let mut heard = client.messages_until("execCommandApproval").await;
    let asked = heard.last().expect("the request").clone();
    assert!(asked["params"]["command"].is_array() && asked["params"].get("reason").is_none(), "{asked}");
    let id = asked["id"].as_i64().expect("the id is a number");
    client.respond(id, json!({"result": {"decision": "approved"}})).await;
    heard.extend(client.messages_until("turn/completed").await);
    assert!(place(&heard, "turn/started") < place(&heard, "codex/event/task_started"));
    assert!(place(&heard, "execCommandApproval") < place(&heard, "codex/event/exec_command_begin"));
    let ended = of(&heard, "codex/event/exec_command_end")[0];
    assert_eq!(ended["params"]["msg"]["exitCode"], 0);
    let whole = of(&heard, "codex/event/agent_message");
    assert_eq!((whole.len(), &whole[0]["params"]["msg"]["message"]), (1, &json!("Done.")));
    let absent: Vec<_> = heard.iter().flat_map(|message| nulls(message, "")).collect();
    assert!(absent.is_empty(), "members without a value are left out: {absent:?}");
    client.end_unread().await;
}

#[tokio::test]
async fn a_refused_or_aborted_patch_ends_for_a_client_that_draws_cards() {
    for (decision, last) in [("denied", "codex/event/task_complete"), ("abort", "codex/event/turn_aborted")] {
        let mut client = saying(plugin(), READS, &json!([patch(), text("Well.")])).await;
        let thread = start(&mut client, json!({})).await;
        say(&mut client, &thread).await;
        let (id, asked) = client.next_request("applyPatchApproval").await;
        assert!(asked["fileChanges"].as_object().is_some_and(|changes| changes.len() == 1), "{asked}");
        client.respond(id, json!({"result": {"decision": decision}})).await;
        let heard = client.messages_until(last).await;
        let ended = of(&heard, "codex/event/patch_apply_end");
        assert_eq!((ended.len(), &ended[0]["params"]["msg"]["success"]), (1, &json!(false)), "{decision}");
        client.end_unread().await;
    }
}

#[tokio::test]
async fn policies_in_camel_case_make_a_client_one_of_0_58() {
    let script = json!([command("touch out"), patch(), text("Done.")]);
    let mut client = saying(old(), READS, &script).await;
    let thread = start(&mut client, old_policies()).await;
    let input = json!([{"type": "text", "text": "Go."}]);
    let answer = client.ok("turn/start", json!({"threadId": thread, "input": input})).await;
    let (turn, first) = (answer["turn"]["id"].clone(), answer["turn"]["items"][0].clone());
    assert_eq!((&first["type"], &first["id"]), (&json!("userMessage"), &turn));
    let mut heard = client.messages_until("execCommandApproval").await;
    let id = heard.last().and_then(|asked| asked["id"].as_i64()).expect("a number");
    client.respond(id, json!({"result": {"decision": "approved"}})).await;
    heard.extend(client.messages_until("applyPatchApproval").await);
    let asked = heard.last().expect("the request");
    let changes = asked["params"]["fileChanges"].as_object().expect("changes");
    assert!(changes.values().all(|change| change["add"]["content"] == "hi\n"), "{asked}");
    client.respond(asked["id"].as_i64().expect("a number"), json!({"result": {"decision": "approved"}})).await;
    heard.extend(client.messages_until("turn/completed").await);
    assert!(client.work("out").exists());
    assert!(!names(&heard).iter().any(|name| name.ends_with("/requestApproval")), "{:#?}", names(&heard));
    assert!(place(&heard, "turn/started") < place(&heard, "codex/event/task_started"));
    assert_eq!(of(&heard, "turn/started")[0]["params"]["turn"]["items"][0]["id"], turn);
    let items: Vec<_> = of(&heard, "codex/event/item_completed")
        .iter()
        .map(|message| message["params"]["msg"]["item"].as_object().expect("an item").keys().cloned().collect())
        .collect::<Vec<Vec<String>>>();
    assert_eq!(items, [["UserMessage"], ["AgentMessage"]]);
    let message = &of(&heard, "codex/event/item_completed")[1]["params"]["msg"]["item"]["AgentMessage"];
    assert_eq!(message["content"], json!([{"Text": {"text": "Done."}}]));
    let changes = &of(&heard, "codex/event/patch_apply_begin")[0]["params"]["msg"]["changes"];
    assert!(changes.as_object().expect("changes").values().all(|change| change["add"].is_object()), "{changes}");
    let begun = &of(&heard, "codex/event/exec_command_begin")[0]["params"]["msg"];
    assert_eq!(begun["is_user_shell_command"], false);
    client.end_unread().await;
}

#[tokio::test]
async fn a_policy_of_a_turn_tells_the_age_too() {
    let mut client = saying(old(), ASKS, &json!([command("touch out"), text("Done.")])).await;
    let thread = start(&mut client, json!({})).await;
    let input = json!([{"type": "text", "data": {"text": "An item of another age."}}]);
    let turn = json!({"threadId": thread, "input": input, "approvalPolicy": "unlessTrusted"});
    client.ok("turn/start", turn).await;
    let (id, _) = client.next_request("execCommandApproval").await;
    client.respond(id, json!({"result": {"decision": "approved"}})).await;
    client.next_notification("turn/completed").await;
    assert!(client.work("out").exists());
    client.end_unread().await;
}

#[tokio::test]
async fn a_client_of_two_ages_is_asked_in_both_forms() {
    let hello = Hello { capabilities: Some(json!({"experimentalApi": true})), ..old() };
    let mut client = saying(hello, ASKS, &json!([command("touch out"), text("Done.")])).await;
    let thread = start(&mut client, old_policies()).await;
    say(&mut client, &thread).await;
    client.next_request("execCommandApproval").await;
    let (id, _) = client.next_request("item/commandExecution/requestApproval").await;
    client.respond(id, json!({"result": {"decision": "accept"}})).await;
    client.next_notification("turn/completed").await;
    assert!(client.work("out").exists());
    client.end_unread().await;
}

#[tokio::test]
async fn a_dialect_of_the_server_and_an_emulated_release_go_together() {
    let hello = Hello { dialect: Some(Dialect::Items), release: Some(ProtocolRelease::V0166), ..old() };
    let mut client = saying(hello, ASKS, &json!([command("touch out"), text("Done.")])).await;
    let thread = start(&mut client, json!({})).await;
    say(&mut client, &thread).await;
    let (id, _) = client.next_request("execCommandApproval").await;
    client.respond(id, json!({"result": {"decision": "approved"}})).await;
    let heard = client.messages_until("turn/completed").await;
    assert_eq!(of(&heard, "codex/event/agent_message").len(), 1);
    client.end_unread().await;
}

#[tokio::test]
async fn a_listener_adds_nothing_to_a_thread_that_its_client_receives_already() {
    let hello = Hello { capabilities: Some(json!({"experimentalApi": true})), ..Hello::default() };
    let script = json!([command("touch out"), {"items": [{"text": "Done.", "deltas": ["Do", "ne."]}]}]);
    let mut client = saying(hello, ASKS, &script).await;
    let thread = start(&mut client, json!({})).await;
    listen(&mut client, &thread).await;
    say(&mut client, &thread).await;
    let mut heard = client.messages_until("item/commandExecution/requestApproval").await;
    // Some clients write every id as a string.
    let id = heard.last().and_then(|asked| asked["id"].as_i64()).expect("a number");
    client.respond_as(json!(id.to_string()), json!({"result": {"decision": "accept"}})).await;
    heard.extend(client.messages_until("turn/completed").await);
    assert!(client.work("out").exists(), "a string of digits names the request with that number");
    assert_eq!(of(&heard, "execCommandApproval").len(), 0);
    assert_eq!(of(&heard, "item/agentMessage/delta").len(), 2);
    assert_eq!(of(&heard, "codex/event/agent_message_delta").len(), 0);
    assert_eq!(of(&heard, "codex/event/agent_message").len(), 1);
    client.end_unread().await;
}

#[tokio::test]
async fn a_request_that_nobody_answers_is_denied_and_the_turn_continues() {
    let config = format!("approval_timeout_sec = 1\n{ASKS}");
    let mut client = saying(plugin(), &config, &json!([command("touch out"), text("Well."), text("Again.")])).await;
    let thread = start(&mut client, json!({})).await;
    say(&mut client, &thread).await;
    let (id, _) = client.next_request("execCommandApproval").await;
    let heard = client.messages_until("turn/completed").await;
    assert_eq!(heard.last().expect("the end")["params"]["status"], "completed");
    assert_eq!(of(&heard, "codex/event/agent_message")[0]["params"]["msg"]["message"], "Well.");
    client.respond(id, json!({"result": {"decision": "approved"}})).await;
    say(&mut client, &thread).await;
    let heard = client.messages_until("turn/completed").await;
    assert_eq!(of(&heard, "codex/event/agent_message")[0]["params"]["msg"]["message"], "Again.");
    assert!(!client.work("out").exists(), "a late answer is ignored");
    client.end_unread().await;
}

#[tokio::test]
async fn ids_that_fit_no_request_are_passed_over() {
    let mut client = saying(old(), ASKS, &json!([command("touch out"), text("Done.")])).await;
    let thread = start(&mut client, old_policies()).await;
    say(&mut client, &thread).await;
    let (id, _) = client.next_request("execCommandApproval").await;
    let yes = json!({"result": {"decision": "approved"}});
    for stranger in [json!("x"), json!(""), json!("-1"), json!("99999999999999999999999"), json!(id + 1000)] {
        client.respond_as(stranger, yes.clone()).await;
    }
    client.respond(id, yes).await;
    client.next_notification("turn/completed").await;
    assert!(client.work("out").exists());
    client.end_unread().await;
}

#[tokio::test]
async fn every_thread_of_a_client_with_events_says_that_its_servers_have_started() {
    let mut client = saying(Hello::default(), ASKS, &json!([text("Done.")])).await;
    client.reads_startup = true;
    let thread = start(&mut client, json!({})).await;
    let heard = client.messages_until("codex/event/mcp_startup_complete").await;
    let told = &heard.last().expect("the event")["params"];
    assert_eq!(
        (&told["threadId"], &told["msg"]["ready"], &told["msg"]["failed"]),
        (&json!(thread), &json!([]), &json!([]))
    );
    let conversation = client.ok("newConversation", json!({})).await["conversationId"].clone();
    client.ok("addConversationListener", json!({"conversationId": conversation})).await;
    let told = client.next_notification("codex/event/mcp_startup_complete").await;
    assert_eq!(told["conversationId"], conversation);
    client.end_unread().await;
}
