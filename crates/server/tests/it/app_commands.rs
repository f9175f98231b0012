//! Commands of a client, outside of all threads.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use codex_dialects::ProtocolRelease;
use serde_json::{Value, json};

use crate::app_client::AppClient;

/// A configuration without a sandbox and without approvals.
const FREE: &str = "sandbox_mode = 'danger-full-access'\n";

fn shell(script: &str) -> Value {
    json!({"command": ["/bin/sh", "-c", script]})
}

/// The same request with more members.
fn with(mut request: Value, more: Value) -> Value {
    let more = more.as_object().expect("an object").clone();
    request.as_object_mut().expect("an object").extend(more);
    request
}

fn encode(text: &str) -> String {
    STANDARD.encode(text)
}

/// Reads the output of a command until it contains a text.
async fn read_until(client: &mut AppClient, wanted: &str) -> String {
    let mut said = String::new();
    while !said.contains(wanted) {
        let delta = client.next_notification("command/exec/outputDelta").await;
        let bytes = STANDARD.decode(delta["deltaBase64"].as_str().expect("a text")).expect("Base64");
        said.push_str(&String::from_utf8_lossy(&bytes));
    }
    said
}

#[tokio::test]
async fn output_and_exit_code_come_back() {
    let mut client = AppClient::start(FREE).await;
    let answer = client.ok("command/exec", shell("echo out; echo err >&2; exit 4")).await;
    assert_eq!(answer, json!({"exitCode": 4, "stdout": "out\n", "stderr": "err\n"}));
    std::fs::create_dir(client.work("sub")).expect("a folder can be made");
    let answer = client.ok("execOneOffCommand", with(shell("pwd"), json!({"cwd": "sub"}))).await;
    assert_eq!(answer["stdout"], json!(format!("{}\n", client.work("sub").display())));
    let (code, message) = client.refused("command/exec", json!({"command": []})).await;
    assert_eq!((code, message.as_str()), (-32600, "command must not be empty"));
    let (code, message) = client.refused("command/exec", json!({"command": ["no-such-program-at-all"]})).await;
    assert!(code == -32603 && message.starts_with("exec failed: "), "{message}");
    client.end().await;
}

#[tokio::test]
async fn a_command_is_confined_by_the_configuration_or_the_request() {
    let mut client = AppClient::start("sandbox_mode = 'read-only'\n").await;
    let touch = shell("touch made");
    assert_ne!(client.ok("command/exec", touch.clone()).await["exitCode"], 0);
    assert!(!client.work("made").exists());
    let policy = json!({"sandboxPolicy": {"type": "workspaceWrite"}});
    assert_eq!(client.ok("command/exec", with(touch, policy)).await["exitCode"], 0);
    assert!(client.work("made").exists());
    client.end().await;
}

#[tokio::test]
async fn variables_follow_the_policy_and_then_the_request() {
    let config = "[shell_environment_policy]\ninherit = 'none'\nset = { A = 'a', B = 'b' }\n";
    let mut client = AppClient::start(&format!("{FREE}model_provider = 'openai'\n{config}")).await;
    let show = json!({"command": ["/bin/sh", "-c", "echo $A.$B.$C"], "env": {"A": null, "C": "c"}});
    assert_eq!(client.ok("command/exec", show).await["stdout"], ".b.c\n");
    client.end().await;
}

#[tokio::test]
async fn a_timeout_is_reported_in_the_form_of_each_release() {
    let slow = with(shell("echo begun; sleep 600"), json!({"timeoutMs": 300}));
    let mut client = AppClient::start(FREE).await;
    let (code, message) = client.refused("command/exec", slow.clone()).await;
    assert_eq!((code, message.as_str()), (-32603, "exec failed: command timed out"));
    client.end().await;
    let mut client = AppClient::start_new(FREE).await;
    let answer = client.ok("command/exec", slow).await;
    assert_eq!(answer, json!({"exitCode": 124, "stdout": "begun\n", "stderr": ""}));
    client.end().await;
}

#[tokio::test]
async fn output_is_cut_at_the_limit() {
    let mut client = AppClient::start_new(FREE).await;
    let much = with(shell("head -c 100000 /dev/zero | tr '\\0' a"), json!({"outputBytesCap": 1000}));
    let answer = client.ok("command/exec", much.clone()).await;
    assert_eq!(answer["stdout"].as_str().map(str::len), Some(1000));
    let streamed = with(much, json!({"processId": "p", "streamStdoutStderr": true}));
    let id = client.ask("command/exec", streamed).await;
    let mut bytes = 0;
    loop {
        let delta = client.next_notification("command/exec/outputDelta").await;
        assert_eq!((&delta["processId"], &delta["stream"]), (&json!("p"), &json!("stdout")));
        bytes += STANDARD.decode(delta["deltaBase64"].as_str().expect("a text")).expect("Base64").len();
        if delta["capReached"] == true {
            break;
        }
    }
    assert_eq!(bytes, 1000);
    let answer = client.answer(id).await;
    assert_eq!(answer, Ok(json!({"exitCode": 0, "stdout": "", "stderr": ""})));
    client.end().await;
}

#[tokio::test]
async fn a_command_can_be_talked_to_at_once() {
    let mut client = AppClient::start_new(FREE).await;
    let cat = json!({"command": ["cat"], "processId": "p", "streamStdin": true});
    // The request to write follows at once, because a client cannot know when a command has started.
    let id = client.ask("command/exec", cat.clone()).await;
    let first = client.ask("command/exec/write", json!({"processId": "p", "deltaBase64": encode("to ")})).await;
    let (_, message) = client.refused("command/exec", cat).await;
    assert_eq!(message, "duplicate active command/exec process id: \"p\"");
    let last = json!({"processId": "p", "deltaBase64": encode("and fro"), "closeStdin": true});
    client.ok("command/exec/write", last).await;
    assert_eq!(client.answer(first).await, Ok(json!({})));
    assert_eq!(client.answer(id).await, Ok(json!({"exitCode": 0, "stdout": "to and fro", "stderr": ""})));
    let (code, message) = client.refused("command/exec/write", json!({"processId": "p", "closeStdin": true})).await;
    assert_eq!((code, message.as_str()), (-32600, "no active command/exec for process id \"p\""));
    client.end().await;
}

#[tokio::test]
async fn a_terminal_has_a_size_that_changes() {
    let mut client = AppClient::start_new(FREE).await;
    let script = "stty size; read line; stty size; read line";
    let params = json!({"processId": "t", "tty": true, "size": {"rows": 10, "cols": 20}});
    let id = client.ask("command/exec", with(shell(script), params)).await;
    assert_eq!(read_until(&mut client, "10 20").await.trim(), "10 20");
    client.ok("command/exec/resize", json!({"processId": "t", "size": {"rows": 30, "cols": 40}})).await;
    client.ok("command/exec/write", json!({"processId": "t", "deltaBase64": encode("go\n")})).await;
    read_until(&mut client, "30 40").await;
    client.ok("command/exec/terminate", json!({"processId": "t"})).await;
    assert_eq!(client.answer(id).await, Ok(json!({"exitCode": 137, "stdout": "", "stderr": ""})));
    client.end_unread().await;
}

#[tokio::test]
async fn conflicting_options_are_refused() {
    let mut client = AppClient::start_new(FREE).await;
    for (more, part) in [
        (json!({"tty": true}), "needs a processId"),
        (json!({"streamStdoutStderr": true}), "needs a processId"),
        (json!({"size": {"rows": 1, "cols": 1}}), "only with tty"),
        (json!({"disableTimeout": true, "timeoutMs": 1}), "both timeoutMs and disableTimeout"),
        (json!({"disableOutputCap": true, "outputBytesCap": 1}), "both outputBytesCap and disableOutputCap"),
        (json!({"timeoutMs": -1}), "must not be negative"),
    ] {
        let (code, message) = client.refused("command/exec", with(shell("true"), more)).await;
        assert!(code == -32600 && message.contains(part), "{message}");
    }
    let id = client.ask("command/exec", json!({"command": ["sleep", "600"], "processId": "p"})).await;
    let (_, message) = client.refused("command/exec/write", json!({"processId": "p", "deltaBase64": ""})).await;
    assert!(message.contains("without streamStdin"), "{message}");
    let (_, message) =
        client.refused("command/exec/resize", json!({"processId": "p", "size": {"rows": 1, "cols": 1}})).await;
    assert!(message.contains("without tty"), "{message}");
    client.ok("command/exec/terminate", json!({"processId": "p"})).await;
    assert_eq!(client.answer(id).await.expect("it ends")["exitCode"], 137);
    client.end().await;
}

/// A client that disconnects can no longer control a command, so none may be left.
#[tokio::test]
async fn a_command_without_an_end_of_its_own_ends_with_the_connection() {
    for release in [ProtocolRelease::V077, ProtocolRelease::V0166] {
        let mut client = AppClient::start_as(release, FREE).await;
        let pid = client.work("pid");
        let endless = shell("echo $$ > pid.new; mv pid.new pid; echo up; sleep 600");
        let params = json!({"processId": "p", "disableTimeout": true, "streamStdoutStderr": true});
        client.ask("command/exec", with(endless, params)).await;
        read_until(&mut client, "up").await;
        let pid = std::fs::read_to_string(pid).expect("it runs").trim().to_owned();
        client.end_unread().await;
        assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists(), "{pid} is still there");
    }
}

/// A client that has died may have left its end of the pipe to another process.
#[tokio::test]
async fn a_command_ends_when_the_output_of_its_client_is_closed() {
    let mut client = AppClient::start_new(FREE).await;
    assert_eq!(client.ok("command/exec", json!({"command": ["mkfifo", "alive"]})).await["exitCode"], 0);
    let fifo = client.work("alive");
    // It runs on its own thread, because a runtime would wait for it even if the test fails.
    let (sender, ends) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || sender.send(std::fs::read_to_string(fifo)));
    let more = json!({"processId": "p", "disableTimeout": true, "streamStdoutStderr": true});
    client.ask("command/exec", with(shell("exec 3>alive; echo up; sleep 600"), more)).await;
    read_until(&mut client, "up").await;
    client.stop_reading();
    // The server notices the loss when it writes.
    client.ask("model/list", json!({})).await;
    let ends = tokio::time::timeout(std::time::Duration::from_secs(30), ends).await;
    assert_eq!(ends.expect("it ends in time").expect("it is read").expect("it can be read"), "");
    client.end_unread().await;
}
