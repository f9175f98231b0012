//! `item/permissions/requestApproval`: wider permissions for commands.

use serde_json::{Value, json};

use crate::app_threads::{scripted, start};

const CONFIG: &str =
    "approval_policy = 'on-request'\nsandbox_mode = 'read-only'\nfeatures.request_permissions_tool = true\n";

fn script(outside: &std::path::Path) -> Value {
    let permissions = json!({"file_system": {"write": [outside]}, "network": {"enabled": true}});
    let arguments = json!({"reason": "to build", "permissions": permissions});
    json!([
        {"items": [{"call": "request_permissions", "id": "call-1", "args": arguments}]},
        {"items": [{"text": "done"}]}
    ])
}

#[tokio::test]
async fn a_client_is_asked_for_permissions_and_its_answer_reaches_the_model() {
    let mut client = scripted(CONFIG, &json!([])).await;
    let outside = client.work("outside");
    std::fs::create_dir_all(&outside).expect("a folder can be made");
    std::fs::write(client.home("script.json"), script(&outside).to_string()).expect("a script can be written");
    let thread = start(&mut client).await;
    let input = json!([{"type": "text", "text": "go"}]);
    let turn = client.ok("turn/start", json!({"threadId": thread, "input": input})).await["turn"]["id"].clone();
    let (id, params) = client.next_request("item/permissions/requestApproval").await;
    assert_eq!(
        (&params["threadId"], &params["turnId"], &params["itemId"], &params["reason"]),
        (&json!(thread), &turn, &json!("call-1"), &json!("to build"))
    );
    let granted = params["permissions"].clone();
    assert_eq!(granted["network"], json!({"enabled": true}));
    let write = granted["fileSystem"]["write"].as_array().expect("a list").clone();
    assert_eq!(write.len(), 1);
    let entries = json!([{"access": "write", "path": {"type": "path", "path": write[0]}}]);
    let granted = json!({"permissions": {"fileSystem": {"entries": entries}}, "scope": "session"});
    client.respond(id, json!({"result": granted})).await;
    client.next_notification("turn/completed").await;
    let path = client.ok("thread/read", json!({"threadId": thread})).await["thread"]["path"].clone();
    let lines = std::fs::read_to_string(path.as_str().expect("it has a file")).expect("it can be read");
    let output = lines.lines().find(|line| line.contains("function_call_output")).expect("the call has an output");
    assert!(output.contains(r#"\"scope\":\"session\""#) && output.contains(r#"\"enabled\":false"#), "{output}");
    client.end_unread().await;
}
