//! Turns over the app-server: the order of messages, questions, steering and interruption.

use serde_json::{Value, json};

use crate::app_threads::{scripted, start, turn};

fn command(line: &str) -> Value {
    json!({"items": [{"call": "shell", "args": {"command": ["sh", "-c", line]}}]})
}

fn text(text: &str) -> Value {
    json!({"items": [{"text": text}]})
}

const ASKS: &str = "approval_policy = 'untrusted'\nsandbox_mode = 'danger-full-access'";

#[tokio::test]
async fn a_turn_is_reported_in_order() {
    let script = json!([{"items": [{"text": "Hi there.", "deltas": ["Hi ", "there."]}]}]);
    let mut client = scripted("", &script).await;
    let thread = start(&mut client).await;
    let input = json!([{"type": "text", "text": "hi"}]);
    client.ask("turn/start", json!({"threadId": thread, "input": input})).await;
    let names = client.names_until("turn/completed").await;
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    assert_eq!(
        names,
        [
            "answer",
            "thread/status/changed",
            "turn/started",
            "item/started",
            "item/completed",
            "account/rateLimits/updated",
            "item/started",
            "item/agentMessage/delta",
            "item/agentMessage/delta",
            "item/completed",
            "thread/tokenUsage/updated",
            "account/rateLimits/updated",
            "thread/status/changed",
            "turn/completed",
        ]
    );
    client.end().await;
}

#[tokio::test]
async fn a_command_is_asked_about_once_and_runs_when_it_is_accepted() {
    let mut client = scripted(ASKS, &json!([command("echo ran > out"), text("Done.")])).await;
    let thread = start(&mut client).await;
    let input = json!([{"type": "text", "text": "go"}]);
    client.ok("turn/start", json!({"threadId": thread, "input": input})).await;
    let (id, asked) = client.next_request("item/commandExecution/requestApproval").await;
    assert_eq!(asked["command"], "sh -c 'echo ran > out'");
    client.respond(id, json!({"result": {"decision": "accept"}})).await;
    assert_eq!(client.next_notification("serverRequest/resolved").await["requestId"], json!(id));
    client.next_notification("turn/completed").await;
    assert_eq!(std::fs::read_to_string(client.work("out")).ok().as_deref(), Some("ran\n"));
    client.end_unread().await;
}

#[tokio::test]
async fn a_reviewer_that_is_not_the_user_is_not_asked() {
    let script = json!([command("echo ran > out"), command("echo ran > out"), text("Done.")]);
    let input = json!([{"type": "text", "text": "go"}]);
    for (of_thread, of_turn) in [
        (json!("auto_review"), json!(null)),
        (json!(null), json!("guardian_subagent")),
        (json!("user"), json!("somebody_new")),
    ] {
        let mut client = scripted(ASKS, &script).await;
        let started = client.ok("thread/start", json!({"approvalsReviewer": of_thread})).await;
        let expected = if of_thread.is_null() { json!("user") } else { of_thread.clone() };
        assert_eq!(started["approvalsReviewer"], expected);
        let thread = &started["thread"]["id"];
        client.ok("turn/start", json!({"threadId": thread, "input": input, "approvalsReviewer": of_turn})).await;
        let names = client.names_until("turn/completed").await;
        assert!(!names.iter().any(|name| name.ends_with("requestApproval")), "{names:?}");
        assert_eq!(names.iter().filter(|name| *name == "warning").count(), 1, "{names:?}");
        assert!(!client.work("out").exists(), "{of_thread} {of_turn}");
        client.end_unread().await;
    }
}

#[tokio::test]
async fn an_error_or_nonsense_as_an_answer_is_no_approval() {
    for answer in [
        json!({"error": {"code": -1, "message": "no"}}),
        json!({"result": {"decision": "perhaps"}}),
        json!({"result": null}),
        json!({"result": {"decision": "decline"}}),
    ] {
        let mut client = scripted(ASKS, &json!([command("echo ran > out"), text("As you wish.")])).await;
        let thread = start(&mut client).await;
        let input = json!([{"type": "text", "text": "go"}]);
        client.ok("turn/start", json!({"threadId": thread, "input": input})).await;
        let (id, _) = client.next_request("item/commandExecution/requestApproval").await;
        client.respond(id, answer.clone()).await;
        let ended = client.next_notification("turn/completed").await;
        assert_eq!(ended["turn"]["status"], "completed", "{answer}");
        assert!(!client.work("out").exists(), "{answer}");
        client.end_unread().await;
    }
}

#[tokio::test]
async fn a_client_that_joins_a_thread_gets_its_open_requests() {
    let mut client = scripted(ASKS, &json!([command("echo ran > out"), text("Done.")])).await;
    let thread = start(&mut client).await;
    let input = json!([{"type": "text", "text": "go"}]);
    client.ok("turn/start", json!({"threadId": thread, "input": input})).await;
    let (first, _) = client.next_request("item/commandExecution/requestApproval").await;
    let joined = client.ok("thread/resume", json!({"threadId": thread})).await;
    assert_eq!(joined["thread"]["status"], json!({"type": "active", "activeFlags": ["waitingOnApproval"]}));
    let (second, _) = client.next_request("item/commandExecution/requestApproval").await;
    assert_ne!(first, second);
    client.respond(second, json!({"result": {"decision": "accept"}})).await;
    client.next_notification("turn/completed").await;
    assert!(client.work("out").exists());
    client.end_unread().await;
}

#[tokio::test]
async fn an_interrupt_right_after_the_start_ends_the_turn() {
    let mut client = scripted("", &json!([{"items": [{"hang": true}]}])).await;
    let thread = start(&mut client).await;
    let input = json!([{"type": "text", "text": "go"}]);
    let answer = client.ok("turn/start", json!({"threadId": thread, "input": input})).await;
    let turn = &answer["turn"]["id"];
    let (_, message) = client.refused("turn/interrupt", json!({"threadId": thread, "turnId": "another"})).await;
    assert!(message.starts_with("expected active turn id `another`"), "{message}");
    client.ok("turn/interrupt", json!({"threadId": thread, "turnId": turn})).await;
    let ended = client.next_notification("turn/completed").await;
    assert_eq!((&ended["turn"]["id"], &ended["turn"]["status"]), (turn, &json!("interrupted")));
    let (_, message) = client.refused("turn/interrupt", json!({"threadId": thread, "turnId": turn})).await;
    assert_eq!(message, "no active turn");
    client.end_unread().await;
}

#[tokio::test]
async fn input_joins_the_running_turn() {
    let mut client = scripted(ASKS, &json!([command("echo ran > out"), text("Done.")])).await;
    let thread = start(&mut client).await;
    let say = |text: &str| json!([{"type": "text", "text": text}]);
    let first = client.ok("turn/start", json!({"threadId": thread, "input": say("go")})).await;
    let (id, _) = client.next_request("item/commandExecution/requestApproval").await;
    let second = client.ok("turn/start", json!({"threadId": thread, "input": say("and quick")})).await;
    assert_eq!(first["turn"]["id"], second["turn"]["id"]);
    let expected = first["turn"]["id"].clone();
    let steer = json!({"threadId": thread, "expectedTurnId": expected, "input": say("please")});
    assert_eq!(client.ok("turn/steer", steer).await["turnId"], expected);
    client.respond(id, json!({"result": {"decision": "acceptForSession"}})).await;
    client.next_notification("turn/completed").await;
    client.end_unread().await;
}

#[tokio::test]
async fn the_end_of_the_input_interrupts_what_runs() {
    let mut client = scripted("", &json!([{"items": [{"hang": true}]}])).await;
    let thread = start(&mut client).await;
    let input = json!([{"type": "text", "text": "go"}]);
    client.ok("turn/start", json!({"threadId": thread, "input": input})).await;
    client.close_input();
    let ended = client.next_notification("turn/completed").await;
    assert_eq!(ended["turn"]["status"], "interrupted");
    client.end_unread().await;
}

#[tokio::test]
async fn settings_of_a_turn_last() {
    let mut client = scripted("", &json!([text("one"), text("two")])).await;
    let thread = start(&mut client).await;
    let input = json!([{"type": "text", "text": "go"}]);
    let change = json!({"threadId": thread, "input": input, "model": "other", "sandboxPolicy": {"type": "readOnly"}});
    client.ok("turn/start", change).await;
    client.next_notification("turn/completed").await;
    let resumed = client.ok("thread/resume", json!({"threadId": thread})).await;
    assert_eq!((&resumed["model"], &resumed["sandbox"]["type"]), (&json!("other"), &json!("readOnly")));
    client.end_unread().await;
}

#[tokio::test]
async fn a_detached_review_runs_in_its_own_thread() {
    let mut client = scripted("", &json!([text("{\"findings\": [], \"overall_explanation\": \"Fine.\"}")])).await;
    let thread = start(&mut client).await;
    let target = json!({"type": "custom", "instructions": "Look."});
    let params = json!({"threadId": thread, "target": target, "delivery": "detached"});
    let started = client.ok("review/start", params).await;
    assert_ne!(started["reviewThreadId"], json!(thread));
    let asked = client.next_notification("item/completed").await;
    assert_eq!(asked["item"]["type"], "enteredReviewMode");
    let asked = client.next_notification("item/completed").await;
    let text = (&asked["item"]["type"], &asked["item"]["content"][0]["text"]);
    assert_eq!(text, (&json!("userMessage"), &json!("Look.")), "what the reviewer is asked is an item of its turn");
    let ended = client.next_notification("turn/completed").await;
    assert_eq!(ended["threadId"], started["reviewThreadId"]);
    let read = json!({"threadId": started["reviewThreadId"], "includeTurns": true});
    let read = client.ok("thread/read", read).await;
    let file = std::fs::read_to_string(read["thread"]["path"].as_str().expect("it has a file")).expect("it is there");
    assert!(file.contains("exited_review_mode") && file.contains("Fine."), "{file}");
    client.end_unread().await;
}

#[tokio::test]
async fn a_failed_turn_has_an_error_and_the_next_one_works() {
    let mut client = scripted("", &json!([{"status": 400, "body": "no such thing"}, text("Back.")])).await;
    let thread = start(&mut client).await;
    let input = json!([{"type": "text", "text": "go"}]);
    client.ok("turn/start", json!({"threadId": thread, "input": input})).await;
    let error = client.next_notification("error").await;
    assert_eq!(error["willRetry"], false);
    let ended = client.next_notification("turn/completed").await;
    assert_eq!(ended["turn"]["status"], "failed");
    turn(&mut client, &thread, "again").await;
    client.end_unread().await;
}
