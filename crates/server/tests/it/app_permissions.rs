//! `thread/permissions/*`.

use serde_json::{Value, json};

use crate::app_threads::{scripted, start};

const RULES: &str = "# The team's.\n\
    prefix_rule(pattern=[\"rm\"], decision=\"forbidden\", justification=\"use trash\")\n\
    prefix_rule(pattern=[\"cargo\", \"test\"])\n";

#[tokio::test]
async fn rules_and_approvals_are_listed_tried_and_taken_back() {
    let run = |command: &str| json!({"items": [{"call": "shell_command", "args": {"command": command}}]});
    let script =
        json!([run("touch a"), {"items": [{"text": "Done."}]}, run("touch a"), {"items": [{"text": "Done."}]}]);
    let mut client = scripted("sandbox_mode = 'danger-full-access'\napproval_policy = 'untrusted'", &script).await;
    std::fs::create_dir_all(client.home("rules")).expect("a folder can be made");
    std::fs::write(client.home("rules/team.rules"), RULES).expect("a file can be written");
    let thread = start(&mut client).await;
    let named = json!({"threadId": thread});

    let before = client.ok("thread/permissions/read", named.clone()).await;
    let places: Vec<(&Value, &Value)> =
        before["rules"].as_array().expect("rules").iter().map(|rule| (&rule["decision"], &rule["line"])).collect();
    assert_eq!(places, [(&json!("forbidden"), &json!(2)), (&json!("allow"), &json!(3))]);
    assert_eq!(before["rules"][0]["justification"], "use trash");
    assert_eq!((&before["approvalPolicy"], &before["grants"]), (&json!("untrusted"), &json!([])));

    for (command, outcome, rules) in
        [("rm -r x", "refuse", 1), ("cargo test -p a", "run", 1), ("ls", "run", 0), ("touch a", "ask", 0)]
    {
        let told = client.ok("thread/permissions/check", json!({"threadId": thread, "command": command})).await;
        assert_eq!(told["outcome"], outcome, "{command}: {told}");
        assert_eq!(told["rules"].as_array().map(Vec::len), Some(rules), "{command}: {told}");
    }
    let (_, why) = client.refused("thread/permissions/check", json!({"threadId": thread, "command": " "})).await;
    assert_eq!(why, "the command is empty");

    // An approval for the session is listed, counts, and counts no more once it is taken back.
    let input = json!([{"type": "text", "text": "go"}]);
    client.ok("turn/start", json!({"threadId": thread, "input": input})).await;
    let (id, _) = client.next_request("item/commandExecution/requestApproval").await;
    client.respond(id, json!({"result": {"decision": "acceptForSession"}})).await;
    client.next_notification("turn/completed").await;
    let granted = client.ok("thread/permissions/read", named.clone()).await;
    let grant = &granted["grants"][0];
    assert_eq!(grant["kind"], "command");
    assert!(grant["text"].as_str().is_some_and(|text| text.contains("touch a' in ")), "{grant}");
    let try_it = json!({"threadId": thread, "command": "touch a"});
    assert_eq!(client.ok("thread/permissions/check", try_it.clone()).await["outcome"], "run");
    let revoke = json!({"threadId": thread, "grantId": grant["id"]});
    assert_eq!(client.ok("thread/permissions/revoke", revoke.clone()).await, json!({"revoked": true}));
    assert_eq!(client.ok("thread/permissions/revoke", revoke).await, json!({"revoked": false}));
    assert_eq!(client.ok("thread/permissions/check", try_it).await["outcome"], "ask");

    // A rule is deleted by its place and text, and only if it is still there.
    let first = &before["rules"][0];
    let delete = json!({"threadId": thread, "file": first["file"], "line": first["line"], "text": first["text"]});
    client.ok("thread/permissions/rule/delete", delete.clone()).await;
    let (_, why) = client.refused("thread/permissions/rule/delete", delete).await;
    assert!(why.contains("team.rules:2: there is no such rule"), "{why}");
    let after = client.ok("thread/permissions/read", named).await;
    assert_eq!(after["rules"][0]["line"], 2, "{after}");
    let told = client.ok("thread/permissions/check", json!({"threadId": thread, "command": "rm x"})).await;
    assert_eq!(told["outcome"], "ask", "{told}");
    client.end_unread().await;
}
