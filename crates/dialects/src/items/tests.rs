use std::collections::BTreeMap;
use std::path::PathBuf;

use std::sync::Arc;
use std::time::Duration;

use codex_log::item::{McpCall, McpCallEnd, Reasoning, WebSearch};
use codex_log::{
    Abort, AgentMessage, Answer, CommandEnd, CommandItem, Delta, Failure, PatchItem, Question, QuestionId,
    QuestionKind, TurnId, UserMessage,
};
use codex_wire::change::FileChange;
use codex_wire::decision::ReviewDecision;
use codex_wire::error_info::CodexErrorInfo;
use codex_wire::ids::ThreadId;
use codex_wire::mcp::{CallToolResult, McpInvocation};
use codex_wire::tokens::{TokenUsage, TokenUsageInfo};
use serde_json::{Value, json};

use super::*;

/// A client that reads one thread.
struct Reader {
    projector: ItemsProjector,
    thread: ThreadId,
}

impl Reader {
    fn new() -> Self {
        Self { projector: ItemsProjector::default(), thread: ThreadId::fresh() }
    }

    /// The messages of an event: the method, and the item or the event.
    fn read(&mut self, body: Body) -> Vec<(String, Value)> {
        let turn = Some(TurnId::new("t"));
        let event = Event { thread: self.thread, seq: codex_log::Seq::new(7), at_ms: 0, turn, body };
        let mut messages = Vec::new();
        self.projector.project(&event, false, &mut messages);
        let shown = |message: ItemsMessage| match message {
            ItemsMessage::Item(told) => (told.method().to_owned(), serde_json::to_value(&told).unwrap()["item"].take()),
            ItemsMessage::Event(named) => (named.kind().to_owned(), serde_json::to_value(named.msg()).unwrap()),
        };
        messages.into_iter().map(shown).collect()
    }

    fn kinds(&mut self, body: Body) -> Vec<String> {
        self.read(body).into_iter().map(|(kind, _)| kind).collect()
    }

    /// The only message of an event, which has these members.
    #[track_caller]
    fn check(&mut self, body: Body, kind: &str, members: &Value) -> Value {
        let mut messages = self.read(body);
        assert_eq!(messages.len(), 1, "{messages:#?}");
        let (method, message) = messages.remove(0);
        assert_eq!(method, kind);
        for (name, value) in members.as_object().unwrap() {
            assert_eq!(&message[name], value, "{name}: {message}");
        }
        message
    }
}

fn message(text: &str) -> Item {
    Item::AgentMessage(AgentMessage { id: ItemId::new("m"), text: text.into() })
}

fn command(status: Status, end: Option<CommandEnd>) -> Item {
    Item::Command(Arc::new(CommandItem {
        id: ItemId::new("c"),
        argv: vec!["touch".to_owned(), "out".to_owned()],
        cwd: PathBuf::from("/work"),
        parsed: Vec::new(),
        terminal: None,
        is_users_own: false,
        status,
        end,
    }))
}

fn patch(status: Status) -> Item {
    let changes = BTreeMap::from([(PathBuf::from("/work/a"), FileChange::Add { content: "x\n".to_owned() })]);
    let id = ItemId::new("p");
    Item::Patch(Arc::new(PatchItem { id, changes: Arc::new(changes), is_auto_approved: false, status, end: None }))
}

fn tool(arguments: Option<Value>, end: Option<Result<CallToolResult, String>>) -> Item {
    let invocation = McpInvocation { server: "tiny".to_owned(), tool: "echo".to_owned(), arguments };
    let status = if end.is_some() { Status::Completed } else { Status::Running };
    let end = end.map(|result| McpCallEnd { duration: Duration::ZERO, result });
    Item::McpCall(Arc::new(McpCall { id: ItemId::new("x"), invocation, status, end }))
}

fn search(query: &str) -> Item {
    Item::WebSearch(WebSearch { id: ItemId::new("s"), query: query.to_owned() })
}

fn answered(decision: ReviewDecision, item: Item) -> Body {
    Body::Answered {
        question: QuestionId::first(item.id().clone()),
        answer: Answer::Decision(decision),
        item: Some(item),
    }
}

fn has_null(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(values) => values.iter().any(has_null),
        Value::Object(members) => members.values().any(has_null),
        _ => false,
    }
}

#[test]
fn a_text_comes_in_pieces_and_then_once_as_a_whole() {
    let mut reader = Reader::new();
    let piece = |text: &str| Body::ItemDelta { item: ItemId::new("m"), delta: Delta::Text(text.into()) };
    reader.check(piece("H"), "item/created", &json!({"type": "assistant", "id": "m", "textDelta": "H"}));
    reader.check(piece("i"), "item/delta", &json!({"type": "assistant", "id": "m", "textDelta": "i"}));
    let whole = reader.check(Body::ItemCompleted(message("Hi")), "agent_message", &json!({"message": "Hi"}));
    // Readers join a whole text with the pieces of the turn that it names.
    assert_eq!(whole.get("turnId"), None);
}

#[test]
fn a_text_without_pieces_is_one_piece_and_then_whole() {
    let mut reader = Reader::new();
    let messages = reader.read(Body::ItemCompleted(message("Hi")));
    assert_eq!(messages[0], ("item/created".to_owned(), json!({"type": "assistant", "id": "m", "textDelta": "Hi"})));
    assert_eq!((messages[1].0.as_str(), &messages[1].1["message"]), ("agent_message", &json!("Hi")));
    assert!(reader.read(Body::ItemCompleted(message(""))).is_empty());
    let said = Item::UserMessage(UserMessage { id: ItemId::new("u"), key: None, content: Vec::new() });
    assert_eq!(reader.kinds(Body::ItemCompleted(said)), ["user_message"]);
}

#[test]
fn the_parts_of_a_thought_are_one_text() {
    let mut reader = Reader::new();
    let piece = |index, text: &str| Body::ItemDelta {
        item: ItemId::new("r"),
        delta: Delta::Summary { index, text: text.into() },
    };
    reader.check(piece(0, "One"), "item/created", &json!({"purpose": "reasoning", "textDelta": "One"}));
    reader.check(piece(1, "Two"), "item/delta", &json!({"textDelta": "\n\nTwo"}));
    reader.check(piece(1, "!"), "item/delta", &json!({"textDelta": "!"}));
    let summary = vec!["One".to_owned(), "Two!".to_owned()];
    let whole = Item::Reasoning(Reasoning { id: ItemId::new("r"), summary, raw: vec!["raw".to_owned()] });
    reader.check(Body::ItemCompleted(whole), "agent_reasoning", &json!({"content": "One\n\nTwo!"}));
}

#[test]
fn an_interrupted_text_is_told_as_far_as_it_came() {
    let mut reader = Reader::new();
    reader.check(Body::ItemInterrupted(message("Hal")), "agent_message", &json!({"message": "Hal"}));
    assert!(reader.read(Body::ItemInterrupted(message(""))).is_empty());
}

#[test]
fn a_command_begins_once_it_may_run() {
    let mut reader = Reader::new();
    assert!(reader.read(Body::ItemStarted(command(Status::AwaitingApproval, None))).is_empty());
    let members = json!({"callId": "c", "call_id": "c", "command": ["touch", "out"], "cwd": "/work"});
    reader.check(answered(ReviewDecision::Approved, command(Status::Running, None)), "exec_command_begin", &members);
    let end = CommandEnd { exit_code: 3, ..CommandEnd::declined("") };
    let members = json!({"callId": "c", "exitCode": 3});
    reader.check(Body::ItemCompleted(command(Status::Failed, Some(end))), "exec_command_end", &members);
    assert_eq!(reader.kinds(Body::TurnEnded(Outcome::Aborted(Abort::Interrupted))), ["turn_aborted"]);
}

#[test]
fn a_declined_command_has_no_card() {
    let mut reader = Reader::new();
    assert!(reader.read(Body::ItemStarted(command(Status::AwaitingApproval, None))).is_empty());
    let declined = command(Status::Declined, Some(CommandEnd::declined("no")));
    assert!(reader.read(answered(ReviewDecision::Denied, declined.clone())).is_empty());
    assert!(reader.read(Body::ItemCompleted(declined)).is_empty());
}

#[test]
fn every_call_that_begins_ends() {
    let calls = [command(Status::Running, None), patch(Status::Running), tool(None, None)];
    for item in calls {
        let mut reader = Reader::new();
        let begin = reader.kinds(Body::ItemStarted(item.clone())).remove(0);
        let end = begin.replace("_begin", "_end");
        assert_eq!(reader.kinds(Body::ItemInterrupted(item.clone())), std::slice::from_ref(&end));
        assert!(reader.kinds(Body::ItemInterrupted(item.clone())).is_empty(), "{end} comes once");
        // The end of the turn closes what nothing else has closed.
        reader.read(Body::ItemStarted(item.clone()));
        let kinds = reader.kinds(Body::TurnEnded(Outcome::Aborted(Abort::Interrupted)));
        assert_eq!(kinds, [end.clone(), "turn_aborted".to_owned()]);
        // So does a no after it has begun.
        reader.read(Body::ItemStarted(item.clone()));
        assert_eq!(reader.kinds(Body::ItemCompleted(item.with_status(Status::Declined))), [end]);
    }
}

#[test]
fn a_terminal_outlives_its_turn() {
    let terminal = |status, end| match command(status, end) {
        Item::Command(command) => Item::Command(Arc::new(CommandItem { terminal: Some(1), ..(*command).clone() })),
        item => item,
    };
    let mut reader = Reader::new();
    reader.read(Body::ItemStarted(terminal(Status::Running, None)));
    let over = Outcome::Completed { last_message: None, bookmark: None };
    assert_eq!(reader.kinds(Body::TurnEnded(over)), ["task_complete"]);
    let end = CommandEnd { exit_code: 0, ..CommandEnd::declined("") };
    assert_eq!(reader.kinds(Body::ItemCompleted(terminal(Status::Completed, Some(end)))), ["exec_command_end"]);
}

#[test]
fn a_refused_patch_ends() {
    let mut reader = Reader::new();
    assert!(reader.read(Body::ItemStarted(patch(Status::AwaitingApproval))).is_empty());
    let changes = Arc::new(BTreeMap::from([(PathBuf::from("/work/a"), FileChange::Add { content: "x\n".to_owned() })]));
    let question = Question {
        id: QuestionId::first(ItemId::new("p")),
        reason: None,
        kind: QuestionKind::Patch { changes, grant_root: None },
        deadline: None,
    };
    let shown = json!({"/work/a": {"type": "add", "content": "x\n"}});
    let members = json!({"callId": "p", "fileChanges": shown});
    let asked = reader.check(Body::Asked(Arc::new(question)), "apply_patch_approval_request", &members);
    assert!(!has_null(&asked), "{asked}");
    let members = json!({"callId": "p", "success": false});
    reader.check(Body::ItemCompleted(patch(Status::Declined)), "patch_apply_end", &members);
}

#[test]
fn a_search_begins_with_its_query() {
    let mut reader = Reader::new();
    assert!(reader.read(Body::ItemStarted(search(""))).is_empty());
    let messages = reader.read(Body::ItemCompleted(search("docs")));
    assert_eq!((messages[0].0.as_str(), &messages[0].1["query"]), ("web_search_begin", &json!("docs")));
    assert_eq!((messages[1].0.as_str(), messages.len()), ("web_search_end", 2));
    reader.check(Body::ItemStarted(search("known")), "web_search_begin", &json!({"query": "known", "callId": "s"}));
    reader.check(Body::ItemCompleted(search("known")), "web_search_end", &json!({"callId": "s"}));
    assert!(reader.read(Body::ItemInterrupted(search(""))).is_empty(), "one that has not begun has no end");
}

#[test]
fn a_tool_call_is_flat_and_its_failure_is_a_text() {
    let mut reader = Reader::new();
    let begin = reader.check(
        Body::ItemStarted(tool(Some(json!({"text": "hi", "none": null})), None)),
        "mcp_tool_call_begin",
        &json!({"callId": "x", "server": "tiny", "tool": "echo", "arguments": {"text": "hi", "none": null}}),
    );
    assert_eq!(begin.get("invocation"), None);
    for arguments in [None, Some(Value::Null), Some(json!([1])), Some(json!("text"))] {
        let begin = reader.read(Body::ItemStarted(tool(arguments, None))).remove(0).1;
        assert_eq!(begin.get("arguments"), None, "{begin}");
    }
    let result = |text: &str, is_error| CallToolResult {
        content: vec![json!({"type": "text", "text": text})],
        structured_content: None,
        is_error,
    };
    let shown = json!({"content": [{"type": "text", "text": "hi"}]});
    let end = Body::ItemCompleted(tool(None, Some(Ok(result("hi", None)))));
    let told = reader.check(end, "mcp_tool_call_end", &json!({"callId": "x", "result": shown}));
    assert_eq!(told.get("error"), None);
    let end = Body::ItemCompleted(tool(None, Some(Ok(result("no", Some(true))))));
    reader.check(end, "mcp_tool_call_end", &json!({"error": "no"}));
    let end = Body::ItemCompleted(tool(None, Some(Err("broken".to_owned()))));
    let told = reader.check(end, "mcp_tool_call_end", &json!({"error": "broken"}));
    assert_eq!(told.get("result"), None);
}

#[test]
fn turns_are_named_and_tokens_are_numbers() {
    let mut reader = Reader::new();
    let start = reader.check(Body::TurnStarted { context_window: None }, "task_started", &json!({"turnId": "t"}));
    assert!(!has_null(&start), "{start}");
    let members = json!({"modelContextWindow": 9, "model_context_window": 9});
    reader.check(Body::TurnStarted { context_window: Some(9) }, "task_started", &members);
    let usage = |total_tokens| TokenUsage { total_tokens, ..TokenUsage::default() };
    let info = TokenUsageInfo {
        total_token_usage: usage(220),
        last_token_usage: usage(110),
        model_context_window: None,
        turn_cost: None,
        thread_cost: None,
    };
    let counted = Body::TokensCounted { info: Some(info), rate_limits: None };
    let counted = reader.read(counted).remove(0).1;
    assert_eq!((&counted["info"]["totalTokenUsage"], &counted["info"]["lastTokenUsage"]), (&json!(220), &json!(110)));
    let over = Outcome::Completed { last_message: Some("Hi".into()), bookmark: None };
    let members = json!({"turnId": "t", "status": "completed", "lastAgentMessage": "Hi"});
    reader.check(Body::TurnEnded(over), "task_complete", &members);
    let failure = Failure { message: "no".to_owned(), info: CodexErrorInfo::Other, hint: None };
    let messages = reader.read(Body::TurnEnded(Outcome::Failed(failure)));
    assert_eq!((messages[0].0.as_str(), &messages[0].1["message"]), ("error", &json!("no")));
    assert_eq!((messages[1].0.as_str(), &messages[1].1["status"]), ("task_complete", &json!("failed")));
    assert!(!messages.iter().any(|(_, message)| has_null(message)), "{messages:#?}");
}
