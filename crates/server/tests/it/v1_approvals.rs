//! Questions to the listener of a conversation, and the effects of its answers.

use serde_json::{Value, json};

use crate::v1_conversations::{command, conversing, event, last_words, listen, open, say, text};

const ASKS: &str = "approval_policy = 'untrusted'\nsandbox_mode = 'danger-full-access'";

#[tokio::test]
async fn a_command_is_asked_about_in_full_and_runs_when_it_is_approved() {
    let line = "python3 -c 'print(42)' > out";
    let script = json!([command(line), text("Done."), command("touch unasked"), text("Again.")]);
    let mut client = conversing(ASKS, &script).await;
    let (conversation, _) = open(&mut client).await;
    listen(&mut client, &conversation).await;
    say(&mut client, &conversation, "Go.").await;
    let (id, asked) = client.next_request("execCommandApproval").await;
    let call = event(&mut client, &conversation, "exec_approval_request").await["call_id"].clone();
    let expected = json!({
        "conversationId": conversation, "callId": call, "command": ["sh", "-c", line],
        "cwd": client.work(".").canonicalize().expect("it exists"), "reason": null,
        "parsedCmd": [{"type": "unknown", "cmd": line}],
    });
    assert_eq!(asked, expected);
    client.respond(id, json!({"result": {"decision": "approved"}})).await;
    assert_eq!(last_words(&mut client, &conversation).await, "Done.");
    assert!(client.work("out").exists());
    let turn = json!({
        "conversationId": conversation, "items": [{"type": "text", "data": {"text": "Go."}}], "cwd": client.work(""),
        "approvalPolicy": "never", "sandboxPolicy": {"type": "danger-full-access"}, "model": "m", "summary": "auto",
    });
    client.ok("sendUserTurn", turn).await;
    assert_eq!(last_words(&mut client, &conversation).await, "Again.");
    assert!(client.work("unasked").exists());
    let rest = client.end_with_rest().await;
    assert!(rest.iter().all(|message| message.get("id").is_none()), "nothing else was asked: {rest:#?}");
}

#[tokio::test]
async fn every_answer_but_a_yes_keeps_a_command_from_running() {
    for (answer, aborts) in [
        (json!({"result": {"decision": "denied"}}), false),
        (json!({"result": {"decision": "perhaps"}}), false),
        (json!({"error": {"code": -1, "message": "no"}}), false),
        (json!({"result": {"decision": "abort"}}), true),
    ] {
        let mut client = conversing(ASKS, &json!([command("touch out"), text("As you wish.")])).await;
        let (conversation, _) = open(&mut client).await;
        listen(&mut client, &conversation).await;
        say(&mut client, &conversation, "Go.").await;
        let (id, _) = client.next_request("execCommandApproval").await;
        client.respond(id, answer.clone()).await;
        if aborts {
            assert_eq!(event(&mut client, &conversation, "turn_aborted").await["reason"], "interrupted");
        } else {
            assert_eq!(last_words(&mut client, &conversation).await, "As you wish.", "{answer}");
        }
        assert!(!client.work("out").exists(), "{answer}");
        client.end_unread().await;
    }
}

#[tokio::test]
async fn a_yes_for_the_session_is_not_asked_for_again() {
    let script = json!([command("touch out"), command("touch out"), text("Done.")]);
    let mut client = conversing(ASKS, &script).await;
    let (conversation, _) = open(&mut client).await;
    listen(&mut client, &conversation).await;
    say(&mut client, &conversation, "Go.").await;
    let (id, _) = client.next_request("execCommandApproval").await;
    client.respond(id, json!({"result": {"decision": "approved_for_session"}})).await;
    assert_eq!(last_words(&mut client, &conversation).await, "Done.");
    let rest = client.end_with_rest().await;
    assert!(rest.iter().all(|message| message.get("id").is_none()), "{rest:#?}");
}

fn patch(text: &str) -> Value {
    json!({"items": [{"custom": "apply_patch", "input": format!("*** Begin Patch\n{text}\n*** End Patch")}]})
}

#[tokio::test]
async fn a_patch_is_asked_about_with_its_changes() {
    let script = json!([patch("*** Add File: new.txt\n+hello"), patch("*** Delete File: old.txt"), text("Done.")]);
    let mut client = conversing(ASKS, &script).await;
    std::fs::write(client.work("old.txt"), "kept\n").expect("a file can be written");
    let (conversation, _) = open(&mut client).await;
    listen(&mut client, &conversation).await;
    say(&mut client, &conversation, "Patch it.").await;
    let (id, asked) = client.next_request("applyPatchApproval").await;
    let folder = client.work(".").canonicalize().expect("it exists");
    let new = folder.join("new.txt").display().to_string();
    let call = event(&mut client, &conversation, "apply_patch_approval_request").await["call_id"].clone();
    let expected = json!({
        "conversationId": conversation, "callId": call, "fileChanges": {new: {"type": "add", "content": "hello\n"}},
        "reason": null, "grantRoot": null,
    });
    assert_eq!(asked, expected);
    client.respond(id, json!({"result": {"decision": "approved"}})).await;
    let (id, asked) = client.next_request("applyPatchApproval").await;
    let old = folder.join("old.txt").display().to_string();
    assert_eq!(asked["fileChanges"], json!({old: {"type": "delete", "content": "kept\n"}}));
    client.respond(id, json!({"result": {"decision": "denied"}})).await;
    assert_eq!(last_words(&mut client, &conversation).await, "Done.");
    assert_eq!(std::fs::read_to_string(client.work("new.txt")).ok().as_deref(), Some("hello\n"));
    assert!(client.work("old.txt").exists());
    client.end_unread().await;
}

#[tokio::test]
async fn a_command_that_fails_in_the_sandbox_is_asked_about_on_failure() {
    let script = json!([command("touch out"), text("Done.")]);
    let mut client = conversing("", &script).await;
    let wishes = json!({"approvalPolicy": "on-failure", "sandbox": "read-only"});
    let opened = client.ok("newConversation", wishes).await;
    let conversation = opened["conversationId"].as_str().expect("a name").to_owned();
    listen(&mut client, &conversation).await;
    say(&mut client, &conversation, "Go.").await;
    let (id, asked) = client.next_request("execCommandApproval").await;
    assert!(asked["reason"].as_str().is_some_and(|reason| !reason.is_empty()), "{asked}");
    client.respond(id, json!({"result": {"decision": "approved"}})).await;
    assert_eq!(last_words(&mut client, &conversation).await, "Done.");
    assert!(client.work("out").exists());
    client.end_unread().await;
}

#[tokio::test]
async fn a_question_waits_for_the_first_listener() {
    let mut client = conversing(ASKS, &json!([command("touch out"), text("Done.")])).await;
    let (conversation, _) = open(&mut client).await;
    say(&mut client, &conversation, "Go.").await;
    listen(&mut client, &conversation).await;
    let (id, _) = client.next_request("execCommandApproval").await;
    client.respond(id, json!({"result": {"decision": "approved"}})).await;
    assert_eq!(last_words(&mut client, &conversation).await, "Done.");
    client.end_unread().await;
}

#[tokio::test]
async fn a_question_that_was_settled_meanwhile_is_not_put() {
    let mut client = conversing(ASKS, &json!([command("touch out"), text("Done.")])).await;
    let (conversation, _) = open(&mut client).await;
    let listener = listen(&mut client, &conversation).await;
    say(&mut client, &conversation, "Go.").await;
    client.next_request("execCommandApproval").await;
    client.ok("removeConversationListener", json!({"subscriptionId": listener})).await;
    client.ok("interruptConversation", json!({"conversationId": conversation})).await;
    listen(&mut client, &conversation).await;
    event(&mut client, &conversation, "turn_aborted").await;
    let rest = client.end_with_rest().await;
    assert!(rest.iter().all(|message| message["method"] != "execCommandApproval"), "{rest:#?}");
}

/// 0.77 derives these notifications from events, and its clients rely on that.
#[tokio::test]
async fn denied_items_fail_or_are_missing_for_listeners_of_the_older_release() {
    let script = json!([command("touch out"), patch("*** Add File: new.txt\n+hello"), text("Done.")]);
    let mut client = conversing(ASKS, &script).await;
    let (conversation, _) = open(&mut client).await;
    listen(&mut client, &conversation).await;
    say(&mut client, &conversation, "Go.").await;
    for question in ["execCommandApproval", "applyPatchApproval"] {
        let (id, _) = client.next_request(question).await;
        client.respond(id, json!({"result": {"decision": "denied"}})).await;
    }
    assert_eq!(last_words(&mut client, &conversation).await, "Done.");
    let rest = client.end_with_rest().await;
    let items = |method: &str, kind: &str| -> Vec<Value> {
        let about = rest.iter().filter(|message| message["method"] == method);
        about.map(|message| message["params"]["item"].clone()).filter(|item| item["type"] == kind).collect()
    };
    let ended = items("item/completed", "commandExecution");
    assert_eq!(ended.len(), 1, "{ended:#?}");
    assert_eq!((&ended[0]["status"], &ended[0]["exitCode"]), (&json!("failed"), &json!(-1)));
    assert!(items("item/started", "fileChange").is_empty() && items("item/completed", "fileChange").is_empty());
}
