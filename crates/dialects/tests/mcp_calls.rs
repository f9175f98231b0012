//! A call of an MCP tool in every dialect, and in the file.
#![expect(clippy::unwrap_used, reason = "a test may fail where it stands")]

use std::sync::Arc;
use std::time::Duration;

use codex_dialects::eq::{self, Vocabulary};
use codex_dialects::v2::project::{ProjectionOptions, Projector};
use codex_dialects::{ProtocolRelease, exec};
use codex_log::decode::{Decoder, Wanted};
use codex_log::encode::{LineSink, encode};
use codex_log::item::{McpCall, McpCallEnd};
use codex_log::line::Line;
use codex_log::{Body, Event, Item, ItemId, Seq, Status, TurnId};
use codex_wire::ids::ThreadId;
use codex_wire::mcp::{CallToolResult, McpInvocation};
use expect_test::{Expect, expect};
use serde::Serialize;
use serde_json::{Value, json};

fn call(result: Option<Result<CallToolResult, String>>) -> Item {
    let status = match &result {
        None => Status::Running,
        Some(Ok(_)) => Status::Completed,
        Some(Err(_)) => Status::Failed,
    };
    let arguments = Some(json!({"text": "hi"}));
    Item::McpCall(Arc::new(McpCall {
        id: ItemId::new("call_1"),
        invocation: McpInvocation { server: "tiny".to_owned(), tool: "echo".to_owned(), arguments },
        status,
        end: result.map(|result| McpCallEnd { duration: Duration::from_millis(1500), result }),
    }))
}

fn answer() -> CallToolResult {
    let content = vec![json!({"type": "text", "text": "echo:hi"})];
    CallToolResult { content, structured_content: Some(json!({"v": 1})), is_error: None }
}

fn event(body: Body) -> Event {
    let turn = Some(TurnId::new("t1"));
    Event { thread: ThreadId::unknown(), seq: Seq::default(), at_ms: 1000, turn, body }
}

fn bodies() -> [Body; 3] {
    let failed = call(Some(Err("the server is gone".to_owned())));
    [Body::ItemStarted(call(None)), Body::ItemCompleted(call(Some(Ok(answer())))), Body::ItemCompleted(failed)]
}

fn check<M: Serialize>(mut project: impl FnMut(&Event, &mut Vec<M>), expected: &Expect) {
    let mut messages = Vec::new();
    for body in bodies() {
        project(&event(body), &mut messages);
    }
    let lines = messages.iter().map(|message| serde_json::to_string(message).unwrap() + "\n");
    expected.assert_eq(&lines.collect::<String>());
}

#[test]
fn a_call_is_an_event_of_the_queue() {
    check(
        |event, out| eq::project(event, Vocabulary::default(), out),
        &expect![[r#"
        {"type":"mcp_tool_call_begin","call_id":"call_1","invocation":{"server":"tiny","tool":"echo","arguments":{"text":"hi"}}}
        {"type":"mcp_tool_call_end","call_id":"call_1","invocation":{"server":"tiny","tool":"echo","arguments":{"text":"hi"}},"duration":{"secs":1,"nanos":500000000},"result":{"Ok":{"content":[{"type":"text","text":"echo:hi"}],"structuredContent":{"v":1}}}}
        {"type":"mcp_tool_call_end","call_id":"call_1","invocation":{"server":"tiny","tool":"echo","arguments":{"text":"hi"}},"duration":{"secs":1,"nanos":500000000},"result":{"Err":"the server is gone"}}
    "#]],
    );
}

#[test]
fn a_call_is_an_item_of_v2() {
    let mut projector = Projector::new("th".to_owned(), ProtocolRelease::V0166, ProjectionOptions::default());
    let mut project = |event: &Event, out: &mut Vec<Value>| {
        let mut notifications = Vec::new();
        projector.project(event, &mut notifications);
        out.extend(notifications.iter().map(|it| json!([it.method(), serde_json::to_value(it).unwrap()["item"]])));
    };
    check(
        &mut project,
        &expect![[r#"
            ["item/started",{"type":"mcpToolCall","id":"call_1","server":"tiny","tool":"echo","status":"inProgress","arguments":{"text":"hi"},"result":null,"error":null,"durationMs":null,"appContext":null,"mcpAppUi":null,"pluginId":null,"readOnlyHint":null,"startedAtMs":1000,"completedAtMs":null}]
            ["item/completed",{"type":"mcpToolCall","id":"call_1","server":"tiny","tool":"echo","status":"completed","arguments":{"text":"hi"},"result":{"content":[{"type":"text","text":"echo:hi"}],"structuredContent":{"v":1},"_meta":null},"error":null,"durationMs":1500,"appContext":null,"mcpAppUi":null,"pluginId":null,"readOnlyHint":null,"startedAtMs":1000,"completedAtMs":1000}]
            ["item/completed",{"type":"mcpToolCall","id":"call_1","server":"tiny","tool":"echo","status":"failed","arguments":{"text":"hi"},"result":null,"error":{"message":"the server is gone"},"durationMs":1500,"appContext":null,"mcpAppUi":null,"pluginId":null,"readOnlyHint":null,"startedAtMs":1000,"completedAtMs":1000}]
        "#]],
    );
}

#[test]
fn a_call_is_an_item_of_exec() {
    let mut projector = exec::Projector::default();
    check(
        |event, out| projector.project(event, out),
        &expect![[r#"
        {"type":"item.started","item":{"id":"item_0","type":"mcp_tool_call","server":"tiny","tool":"echo","arguments":{"text":"hi"},"result":null,"error":null,"status":"in_progress"}}
        {"type":"item.completed","item":{"id":"item_0","type":"mcp_tool_call","server":"tiny","tool":"echo","arguments":{"text":"hi"},"result":{"content":[{"type":"text","text":"echo:hi"}],"structured_content":{"v":1}},"error":null,"status":"completed"}}
        {"type":"item.completed","item":{"id":"item_1","type":"mcp_tool_call","server":"tiny","tool":"echo","arguments":{"text":"hi"},"result":null,"error":{"message":"the server is gone"},"status":"failed"}}
    "#]],
    );
}

#[derive(Default)]
struct Lines(Vec<String>);

impl LineSink for Lines {
    type Error = serde_json::Error;

    fn line<P: Serialize + ?Sized>(&mut self, _: i64, kind: &str, payload: &P) -> Result<(), Self::Error> {
        let payload = serde_json::to_string(payload)?;
        self.0.push(format!(r#"{{"timestamp":"1970-01-01T00:00:01.000Z","type":"{kind}","payload":{payload}}}"#));
        Ok(())
    }
}

#[test]
fn a_call_is_stored_completely() {
    for body in bodies().into_iter().skip(1) {
        let Body::ItemCompleted(kept) = &body else { panic!("it is whole") };
        let mut lines = Lines::default();
        encode(&event(Body::TurnStarted { context_window: None }), &mut lines).unwrap();
        encode(&event(body.clone()), &mut lines).unwrap();
        let (mut decoder, mut events) = (Decoder::new(Wanted::ALL), Vec::new());
        for line in &lines.0 {
            decoder.line(&Line::parse(line).unwrap(), &mut events);
        }
        let whole = events.iter().find_map(|event| match &event.body {
            Body::ItemCompleted(item) => Some(item),
            _ => None,
        });
        assert_eq!(whole, Some(kept), "{:?}", lines.0);
        assert!(events.iter().any(|event| matches!(&event.body, Body::ItemStarted(item) if *item == kept.begun())));
    }
}
