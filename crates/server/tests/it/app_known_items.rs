//! Items as test programs of other releases check them: questions, refusals, patches and reviews.

use serde_json::{Value, json};

use crate::app_client::AppClient;
use crate::app_threads::{scripted, start};

const ASKS: &str = "approval_policy = 'untrusted'\n";

fn done() -> Value {
    json!({"items": [{"text": "Done."}]})
}

/// The tools of several releases can be called whether they are offered or not.
fn shell_command(id: &str, line: &str) -> Value {
    json!({"items": [{"call": "shell_command", "id": id, "args": {"command": line, "workdir": null, "timeout_ms": 5000}}]})
}

async fn begin(client: &mut AppClient, thread: &str, more: Value) -> String {
    let mut params = json!({"threadId": thread, "input": [{"type": "text", "text": "go"}]});
    params.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    let started = client.ok("turn/start", params).await;
    started["turn"]["id"].as_str().expect("it has a name").to_owned()
}

/// Reads up to the next `item/started` or `item/completed` of a kind.
async fn item(client: &mut AppClient, which: &str, kind: &str) -> Value {
    loop {
        let told = client.next_notification(which).await;
        if told["item"]["type"] == kind {
            return told;
        }
    }
}

#[tokio::test]
async fn a_declined_command_has_no_exit_code_and_no_output() {
    let mut client = scripted(ASKS, &json!([shell_command("call-1", "python3 -c 'print(42)'"), done()])).await;
    let thread = start(&mut client).await;
    let turn = begin(&mut client, &thread, json!({})).await;
    let started = item(&mut client, "item/started", "commandExecution").await;
    assert_eq!((&started["item"]["id"], &started["item"]["status"]), (&json!("call-1"), &json!("inProgress")));
    let (id, asked) = client.next_request("item/commandExecution/requestApproval").await;
    let names = (&asked["threadId"], &asked["turnId"], &asked["itemId"]);
    assert_eq!(names, (&json!(thread), &json!(turn), &json!("call-1")));
    client.respond(id, json!({"result": {"decision": "decline"}})).await;
    let declined = item(&mut client, "item/completed", "commandExecution").await;
    let item = &declined["item"];
    assert_eq!((&item["id"], &item["status"]), (&json!("call-1"), &json!("declined")));
    assert_eq!((&item["exitCode"], &item["aggregatedOutput"]), (&Value::Null, &Value::Null));
    assert_eq!(client.next_notification("turn/completed").await["turn"]["status"], "completed");
    client.end_unread().await;
}

#[tokio::test]
async fn a_policy_of_a_later_turn_asks_nothing_any_more() {
    let script = json!([
        shell_command("call-1", "python3 -c 'print(42)'"),
        done(),
        shell_command("call-2", "python3 -c 'print(42)'"),
        done()
    ]);
    let mut client = scripted(ASKS, &script).await;
    let thread = start(&mut client).await;
    begin(&mut client, &thread, json!({})).await;
    let (id, asked) = client.next_request("item/commandExecution/requestApproval").await;
    assert_eq!(asked["itemId"], "call-1");
    client.respond(id, json!({"result": {"decision": "accept"}})).await;
    client.next_notification("turn/completed").await;
    let looser = json!({"approvalPolicy": "never", "sandboxPolicy": {"type": "dangerFullAccess"}, "effort": "medium"});
    begin(&mut client, &thread, looser).await;
    let names = client.names_until("turn/completed").await;
    assert!(!names.iter().any(|name| name.ends_with("requestApproval")), "{names:?}");
    client.end_unread().await;
}

#[tokio::test]
async fn a_turn_has_a_folder_and_a_sandbox_of_its_own() {
    let script = json!([shell_command("call-1", "pwd"), done(), shell_command("call-2", "pwd"), done()]);
    let mut client = scripted(ASKS, &script).await;
    let thread = start(&mut client).await;
    let writes = |root: &Value| json!({"type": "workspaceWrite", "writableRoots": [root], "networkAccess": false});
    for name in ["one", "two"] {
        let folder = json!(client.work(name));
        std::fs::create_dir(client.work(name)).expect("a folder can be made");
        let sandbox = if name == "one" { writes(&folder) } else { json!({"type": "dangerFullAccess"}) };
        let settings = json!({"cwd": folder, "approvalPolicy": "never", "sandboxPolicy": sandbox});
        begin(&mut client, &thread, settings).await;
        let started = item(&mut client, "item/started", "commandExecution").await;
        assert_eq!((&started["item"]["cwd"], &started["item"]["status"]), (&folder, &json!("inProgress")));
        // The user's shell, as a login shell.
        assert!(
            started["item"]["command"].as_str().is_some_and(|command| command.ends_with("sh -lc pwd")),
            "{started}"
        );
        client.next_notification("turn/completed").await;
    }
    client.end_unread().await;
}

#[tokio::test]
async fn a_patch_is_shown_asked_about_and_made_or_not() {
    let patch = "*** Begin Patch\n*** Add File: README.md\n+new line\n*** End Patch";
    let calls = [
        json!({"custom": "apply_patch", "id": "patch-1", "input": patch}),
        json!({"call": "shell_command", "id": "patch-1",
            "args": {"command": format!("apply_patch <<'EOF'\n{patch}\nEOF")}}),
    ];
    for (call, decision) in [(&calls[0], "accept"), (&calls[1], "accept"), (&calls[0], "decline")] {
        let mut client = scripted(ASKS, &json!([{"items": [call]}, done()])).await;
        let thread = start(&mut client).await;
        let turn = begin(&mut client, &thread, json!({})).await;
        let file = client.work("README.md");
        let started = item(&mut client, "item/started", "fileChange").await;
        assert_eq!((&started["item"]["id"], &started["item"]["status"]), (&json!("patch-1"), &json!("inProgress")));
        let change = &started["item"]["changes"][0];
        assert_eq!((&change["path"], &change["diff"]), (&json!(file), &json!("new line\n")));
        assert_eq!(change["kind"]["type"], "add");
        let (id, asked) = client.next_request("item/fileChange/requestApproval").await;
        let names = (&asked["threadId"], &asked["turnId"], &asked["itemId"]);
        assert_eq!(names, (&json!(thread), &json!(turn), &json!("patch-1")));
        assert!(!file.exists());
        client.respond(id, json!({"result": {"decision": decision}})).await;
        if decision == "accept" {
            let told = client.next_notification("item/fileChange/outputDelta").await;
            assert!(told["delta"].as_str().is_some_and(|delta| delta.starts_with("Success.")), "{told}");
        }
        let completed = item(&mut client, "item/completed", "fileChange").await;
        let status = if decision == "accept" { "completed" } else { "declined" };
        assert_eq!(completed["item"]["status"], status);
        client.next_notification("turn/completed").await;
        let content = std::fs::read_to_string(&file).ok();
        assert_eq!(content.as_deref(), (decision == "accept").then_some("new line\n"));
        client.end_unread().await;
    }
}

#[tokio::test]
async fn a_terminal_has_one_process_id_from_its_start_to_its_end() {
    let call = json!({"call": "exec_command", "id": "call-1", "args": {"cmd": "echo unified", "yield_time_ms": 5000}});
    let config = "approval_policy = 'never'\nfeatures.unified_exec = true\n";
    let mut client = scripted(config, &json!([{"items": [call]}, done()])).await;
    let thread = start(&mut client).await;
    begin(&mut client, &thread, json!({})).await;
    let started = item(&mut client, "item/started", "commandExecution").await;
    let completed = item(&mut client, "item/completed", "commandExecution").await;
    assert!(started["item"]["processId"].is_string(), "{started}");
    assert_eq!(completed["item"]["processId"], started["item"]["processId"]);
    assert_eq!((&completed["item"]["status"], &completed["item"]["exitCode"]), (&json!("completed"), &json!(0)));
    client.end_unread().await;
}

#[tokio::test]
async fn a_review_in_the_thread_shows_its_target_and_findings() {
    let found = json!({"title": "Wrong sign", "body": "Turn it.", "confidence_score": 0.9, "priority": 1,
        "code_location": {"absolute_file_path": "/src/a.rs", "line_range": {"start": 10, "end": 20}}});
    let answer = json!({"findings": [found], "overall_correctness": "good", "overall_explanation": "Nearly.",
        "overall_confidence_score": 0.75});
    let mut client = scripted("", &json!([{"items": [{"text": answer.to_string()}]}])).await;
    let thread = start(&mut client).await;
    let target = json!({"type": "commit", "sha": "1234567deadbeef", "title": " Tidy up "});
    let params = json!({"threadId": thread, "delivery": "inline", "target": target});
    let answered = client.ok("review/start", params).await;
    let (hint, turn) = ("commit 1234567: Tidy up", &answered["turn"]["id"]);
    assert_eq!(answered["reviewThreadId"], json!(thread));
    assert_eq!(answered["turn"]["items"][0]["content"][0]["text"], hint);
    let entered = item(&mut client, "item/started", "enteredReviewMode").await;
    assert_eq!((&entered["item"]["review"], &entered["item"]["id"]), (&json!(hint), turn));
    let begun = client.next_notification("turn/started").await;
    assert_eq!(begun["turn"]["items"], answered["turn"]["items"]);
    let exited = item(&mut client, "item/completed", "exitedReviewMode").await;
    let text = "Nearly.\n\nReview comment:\n\n- Wrong sign — /src/a.rs:10-20\n  Turn it.";
    assert_eq!((&exited["item"]["review"], &exited["turnId"]), (&json!(text), turn));
    client.next_notification("turn/completed").await;
    client.end_unread().await;
}

#[tokio::test]
async fn a_review_of_nothing_is_refused() {
    let mut client = scripted("", &json!([])).await;
    let thread = start(&mut client).await;
    for (target, expected) in [
        (json!({"type": "baseBranch", "branch": "   "}), "branch must not be empty"),
        (json!({"type": "commit", "sha": "\t"}), "sha must not be empty"),
        (json!({"type": "custom", "instructions": "\n\n"}), "instructions must not be empty"),
    ] {
        let refused = client.refused("review/start", json!({"threadId": thread, "target": target})).await;
        assert_eq!(refused, (-32600, expected.to_owned()));
    }
    client.end().await;
}

#[tokio::test]
async fn an_interrupt_ends_a_turn_whose_command_runs() {
    let config = "approval_policy = 'never'\nsandbox_mode = 'danger-full-access'\n";
    let mut client = scripted(config, &json!([shell_command("call-1", "sleep 60"), done()])).await;
    let thread = start(&mut client).await;
    let turn = begin(&mut client, &thread, json!({})).await;
    item(&mut client, "item/started", "commandExecution").await;
    client.ok("turn/interrupt", json!({"threadId": thread, "turnId": turn})).await;
    let ended = client.next_notification("turn/completed").await;
    assert_eq!((&ended["threadId"], &ended["turn"]["status"]), (&json!(thread), &json!("interrupted")));
    client.end_unread().await;
}
