//! Commands in terminals, with real processes.

use codex_log::{Body, CommandStatus, Delta, Event, Item};
use serde_json::{Value, json};
use std::sync::Arc;

use crate::commands::{ended, outputs, wait_until_gone};
use crate::world::{Client, World};

async fn start(entries: &[Value]) -> Client {
    let mut script = entries.to_vec();
    script.push(json!({"items": [{"text": "done"}]}));
    let world = World::new().set("approval_policy=never").set("sandbox_mode=danger-full-access");
    world.set("features.unified_exec=true").start(&Value::Array(script).to_string()).await
}

/// A call of `exec_command` that waits for this many milliseconds.
fn exec(command: &str, patience: u64) -> Value {
    let args = json!({"cmd": command, "shell": "/bin/sh", "login": false, "yield_time_ms": patience});
    json!({"items": [{"call": "exec_command", "args": args}]})
}

fn write(chars: &str, patience: u64) -> Value {
    let args = json!({"session_id": 1, "chars": chars, "yield_time_ms": patience});
    json!({"items": [{"call": "write_stdin", "args": args}]})
}

/// The output of all commands, as clients see it.
fn printed(events: &[Arc<Event>]) -> String {
    let bytes = events.iter().filter_map(|event| match &event.body {
        Body::ItemDelta { delta: Delta::Output { bytes, .. }, .. } => Some(bytes.as_slice()),
        _ => None,
    });
    String::from_utf8_lossy(&bytes.collect::<Vec<_>>().concat()).into_owned()
}

#[tokio::test]
async fn a_short_command_ends_with_its_call() {
    let mut client = start(&[exec("echo hello; exit 3", 10_000)]).await;
    let events = client.turn("1", "hi").await;
    let commands = ended(&events);
    assert_eq!(commands.len(), 1);
    assert_eq!((commands[0].status, commands[0].terminal), (CommandStatus::Failed, Some(1)));
    assert_eq!(printed(&events), "hello\r\n");
    let output = &outputs(&client)[0];
    assert!(output.starts_with("Chunk ID: "), "{output}");
    let end = "Process exited with code 3\nOriginal token count: 2\nOutput:\nhello\r\n";
    assert!(output.ends_with(end), "{output}");
}

#[tokio::test]
async fn a_long_command_is_looked_at_and_typed_into() {
    let mut client = start(&[exec("read line; echo got $line", 250), write("apple\n", 10_000)]).await;
    let events = client.turn("1", "hi").await;
    let outputs = outputs(&client);
    assert!(outputs[0].contains("Process running with session ID 1\n"), "{}", outputs[0]);
    assert!(outputs[1].contains("Process exited with code 0\n"), "{}", outputs[1]);
    assert_eq!(printed(&events), "apple\r\ngot apple\r\n");
    let written = |event: &Arc<Event>| matches!(&event.body, Body::TerminalWritten { terminal: 1, stdin, .. } if stdin == "apple\n");
    assert!(events.iter().any(written));
    let commands = ended(&events);
    assert_eq!(commands.len(), 1, "the item of the command is completed once");
    let text = commands[0].end.as_ref().map(|end| end.aggregated.as_str());
    assert_eq!(text, Some("apple\r\ngot apple\r\n"));
}

#[tokio::test]
async fn an_unknown_session_is_reported_to_the_model() {
    let mut client = start(&[write("x", 250)]).await;
    client.turn("1", "hi").await;
    assert_eq!(outputs(&client), ["there is no running process with session ID 1"]);
}

#[tokio::test]
async fn a_terminal_outlives_its_turn_and_ends_with_the_thread() {
    let mut client = start(&[exec("echo $$; exec sleep 600", 250)]).await;
    let events = client.turn("1", "hi").await;
    assert!(ended(&events).is_empty());
    let pid = printed(&events).trim().to_owned();
    assert!(std::path::Path::new("/proc").join(&pid).exists());
    let events = client.close().await;
    wait_until_gone(&pid);
    let commands = ended(&events);
    assert_eq!(commands.len(), 1);
    assert_eq!(commands[0].status, CommandStatus::Failed);
}

#[tokio::test]
async fn an_interrupt_ends_the_terminal_that_is_being_started() {
    let mut client = start(&[exec("exec sleep 600", 30_000)]).await;
    client.say("1", "hi").await;
    client.until(|body| matches!(body, Body::ItemStarted(Item::Command(_)))).await;
    assert_eq!(client.thread.interrupt().await, Ok(true));
    let events = client.until_ended().await;
    assert_eq!(ended(&events).len(), 1);
}
