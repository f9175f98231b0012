//! Events of the queue: `codex/event/TYPE`, in snake case and in camel case.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use codex_wire::event::EventMsg;
use serde_json::{Value, json};

use super::items::{index, plan};
use super::shapes::{any_text, duration_ms, text, thread_id, turn_id};
use super::{piece, turn_ended};
use crate::event::{Event, Members, Part, Teller};

const CALL: &[&str] = &["call_id", "callId", "item_id", "itemId", "id"];

/// The thread and the turn of an event.
type Place = (String, String);

/// An event of the queue.
pub(super) fn event(method: &str, params: Value) -> Event {
    let message = params.get("msg").filter(|message| message.is_object()).unwrap_or(&params);
    let kind = match method.strip_prefix("codex/event/") {
        Some(kind) => kind,
        None => text(message, &["type"]).unwrap_or_default(),
    };
    let place = (thread_id(&params).to_owned(), turn_id(&params).to_owned());
    if let Some(event) = turn(kind, place.clone(), message, &params)
        .or_else(|| words(kind, place.clone(), message))
        .or_else(|| call(kind, place, message))
    {
        return event;
    }
    let is_known = EventMsg::KINDS.contains(&kind) || OTHER_KINDS.contains(&kind);
    let method = method.to_owned();
    if is_known { Event::Other { method, params } } else { Event::Unknown { method, params } }
}

/// Kinds of other releases that change nothing of a thread.
const OTHER_KINDS: &[&str] = &["mcp_startup_update", "mcp_startup_complete", "terminal_interaction"];

fn turn(kind: &str, (thread, turn): Place, message: &Value, params: &Value) -> Option<Event> {
    Some(match kind {
        "session_configured" => {
            let mut members = Members::new();
            members.insert("id".to_owned(), json!(thread));
            members.extend(message.get("model").map(|model| ("model".to_owned(), model.clone())));
            Event::Thread { id: thread, value: members, whole: false }
        }
        "task_started" | "turn_started" => Event::TurnStarted { thread, turn },
        "task_complete" | "turn_complete" => turn_ended(params),
        "turn_aborted" => {
            Event::TurnEnded { thread, turn, status: "interrupted".to_owned(), error: Value::Null, duration_ms: None }
        }
        "plan_update" => plan(thread, turn, message)?,
        "turn_diff" => {
            Event::Diff { thread, turn, diff: text(message, &["unified_diff", "unifiedDiff", "diff"])?.to_owned() }
        }
        "token_count" => usage(thread, message)?,
        "error" => Event::Error { thread, turn, message: any_text(message).unwrap_or_default(), will_retry: false },
        "stream_error" => {
            Event::Error { thread, turn, message: any_text(message).unwrap_or_default(), will_retry: true }
        }
        "warning" => Event::Warning { thread, message: any_text(message)? },
        _ => return None,
    })
}

/// The tokens of a thread in the form of v2.
fn usage(thread: String, message: &Value) -> Option<Event> {
    let info = message.get("info")?;
    let counts = |names: [&str; 2]| {
        let counts = names.iter().find_map(|name| info.get(name)).unwrap_or(&Value::Null);
        let count = |names: [&str; 2]| names.iter().find_map(|name| counts.get(name)?.as_i64()).unwrap_or_default();
        json!({
            "totalTokens": count(["total_tokens", "totalTokens"]),
            "inputTokens": count(["input_tokens", "inputTokens"]),
            "cachedInputTokens": count(["cached_input_tokens", "cachedInputTokens"]),
            "outputTokens": count(["output_tokens", "outputTokens"]),
            "reasoningOutputTokens": count(["reasoning_output_tokens", "reasoningOutputTokens"]),
        })
    };
    info.as_object()?;
    let window = ["model_context_window", "modelContextWindow"].iter().find_map(|name| info.get(name));
    let usage = json!({
        "total": counts(["total_token_usage", "totalTokenUsage"]),
        "last": counts(["last_token_usage", "lastTokenUsage"]),
        "modelContextWindow": window.cloned().unwrap_or_default(),
    });
    Some(Event::Usage { thread, usage })
}

/// Messages and reasoning.
fn words(kind: &str, (thread, turn): Place, message: &Value) -> Option<Event> {
    let named = |part: Part| {
        let item = text(message, &["item_id", "itemId"])?.to_owned();
        Some(piece(thread.clone(), turn.clone(), item, part, text_of(message)?, Teller::Queue))
    };
    let unnamed = |part: Part| {
        Some(piece(thread.clone(), turn.clone(), String::new(), part, text_of(message)?, Teller::OldQueue))
    };
    let whole = |members: Value| {
        let item = members.as_object()?.clone();
        let teller = Teller::OldQueue;
        Some(Event::ItemCompleted { thread: thread.clone(), turn: turn.clone(), item, teller, at_ms: None })
    };
    match kind {
        "item_started" | "item_completed" => {
            let (item, teller) = (camel_item(message.get("item")?)?, Teller::Queue);
            Some(if kind == "item_started" {
                Event::ItemStarted { thread, turn, item, teller, at_ms: None }
            } else {
                Event::ItemCompleted { thread, turn, item, teller, at_ms: None }
            })
        }
        "agent_message_content_delta" => named(Part::Message),
        "reasoning_content_delta" => named(Part::Summary(index(message, &["summary_index", "summaryIndex"]))),
        "reasoning_raw_content_delta" => named(Part::Reasoning(index(message, &["content_index", "contentIndex"]))),
        "agent_message_delta" => unnamed(Part::Message),
        "agent_reasoning_delta" => unnamed(Part::Summary(0)),
        "agent_message" => whole(json!({"type": "agentMessage", "text": any_text(message)?})),
        "agent_reasoning" => whole(json!({"type": "reasoning", "summary": [any_text(message)?], "content": []})),
        "user_message" => {
            whole(json!({"type": "userMessage", "content": [{"type": "text", "text": any_text(message)?}]}))
        }
        _ => None,
    }
}

fn text_of(message: &Value) -> Option<String> {
    message.get("delta").and_then(any_text)
}

/// An item of the queue as the second dialect tells it.
fn camel_item(item: &Value) -> Option<Members> {
    let mut members = item.as_object()?.clone();
    let kind = text(item, &["type"])?;
    let mut letters = kind.chars();
    let camel: String = letters.next().into_iter().flat_map(char::to_lowercase).chain(letters).collect();
    match camel.as_str() {
        "agentMessage" => {
            members.shift_remove("content");
            let whole = item.get("content").and_then(any_text).unwrap_or_default();
            members.insert("text".to_owned(), json!(whole));
        }
        "reasoning" => {
            let summary = members.shift_remove("summary_text").unwrap_or_else(|| json!([]));
            let content = members.shift_remove("raw_content").unwrap_or_else(|| json!([]));
            members.insert("summary".to_owned(), summary);
            members.insert("content".to_owned(), content);
        }
        _ => {}
    }
    members.insert("type".to_owned(), json!(camel));
    Some(members)
}

/// Calls of tools: commands, patches, tools of MCP servers, searches.
fn call(kind: &str, (thread, turn): Place, message: &Value) -> Option<Event> {
    let teller = Teller::Queue;
    let id = text(message, CALL)?.to_owned();
    let begun = |members: Value| {
        let item = members.as_object()?.clone();
        Some(Event::ItemStarted { thread: thread.clone(), turn: turn.clone(), item, teller, at_ms: None })
    };
    let ended = |members: Value| {
        let item = members.as_object()?.clone();
        Some(Event::ItemCompleted { thread: thread.clone(), turn: turn.clone(), item, teller, at_ms: None })
    };
    match kind {
        "exec_command_begin" => begun(command(&id, message)),
        "exec_command_output_delta" => {
            let chunk = text(message, &["chunk"])?;
            Some(piece(thread.clone(), turn.clone(), id, Part::Output, bytes_or_text(message, chunk), teller))
        }
        "exec_command_end" => ended(command_end(&id, message)),
        "patch_apply_begin" => begun(json!({
            "type": "fileChange", "id": id, "status": "inProgress", "changes": changes(message),
        })),
        "patch_apply_end" => {
            let is_done = message.get("success").and_then(Value::as_bool).unwrap_or_default();
            let status = if is_done { "completed" } else { "failed" };
            ended(json!({"type": "fileChange", "id": id, "status": status, "changes": changes(message)}))
        }
        "mcp_tool_call_begin" => begun(tool(&id, message, "inProgress")),
        "mcp_tool_call_end" => ended(tool_end(&id, message)),
        "web_search_begin" => begun(search(&id, message)),
        "web_search_end" => ended(search(&id, message)),
        "view_image_tool_call" => ended(json!({
            "type": "imageView", "id": id, "path": message.get("path").cloned().unwrap_or_default(),
        })),
        _ => None,
    }
}

/// A piece of output. Real servers, which spell `call_id`, send its bytes in Base64.
fn bytes_or_text(message: &Value, chunk: &str) -> String {
    let bytes = message.get("call_id").and_then(|_| BASE64.decode(chunk).ok());
    bytes.map_or_else(|| chunk.to_owned(), |bytes| String::from_utf8_lossy(&bytes).into_owned())
}

fn search(id: &str, message: &Value) -> Value {
    json!({"type": "webSearch", "id": id, "query": text(message, &["query"]).unwrap_or_default()})
}

/// A word as a shell reads it; clients in all languages quote alike.
fn quoted(word: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "+-./:@_=,%".contains(letter);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

fn command(id: &str, message: &Value) -> Value {
    let line = match message.get("command") {
        Some(Value::Array(words)) => {
            let words: Vec<String> = words.iter().filter_map(Value::as_str).map(quoted).collect();
            words.join(" ")
        }
        other => other.and_then(Value::as_str).unwrap_or_default().to_owned(),
    };
    json!({
        "type": "commandExecution", "id": id, "command": line, "status": "inProgress",
        "cwd": message.get("cwd").cloned().unwrap_or_default(),
        "aggregatedOutput": null, "exitCode": null, "durationMs": null,
    })
}

fn command_end(id: &str, message: &Value) -> Value {
    let exit_code = ["exit_code", "exitCode"].iter().find_map(|name| message.get(name)?.as_i64());
    let output = text(message, &["aggregated_output", "aggregatedOutput"]).map(str::to_owned).or_else(|| {
        let parts: Vec<&str> = ["stdout", "stderr"].iter().filter_map(|name| message.get(name)?.as_str()).collect();
        (!parts.is_empty()).then(|| parts.concat())
    });
    let mut members = json!({
        "type": "commandExecution", "id": id,
        "status": if exit_code.unwrap_or_default() == 0 { "completed" } else { "failed" },
        "exitCode": exit_code,
        "durationMs": message.get("duration").and_then(duration_ms),
    });
    if let (Some(members), Some(output)) = (members.as_object_mut(), output) {
        members.insert("aggregatedOutput".to_owned(), json!(output));
    }
    members
}

/// The changes of a patch as a list in the order of paths.
pub(crate) fn changes(message: &Value) -> Value {
    let changes = ["changes", "fileChanges", "file_changes"].iter().find_map(|name| message.get(name)?.as_object());
    let mut list: Vec<(&String, Value)> = changes
        .into_iter()
        .flatten()
        .map(|(path, change)| {
            let old = change.as_object().filter(|members| members.len() == 1).and_then(|members| members.iter().next());
            let (kind, change) = match (text(change, &["type"]), old) {
                (Some(kind), _) => (kind.to_owned(), change),
                (None, Some((kind, change))) => (kind.clone(), change),
                (None, None) => (String::new(), change),
            };
            let diff = text(change, &["unified_diff", "unifiedDiff", "content"]).unwrap_or_default();
            let mut told = json!({"type": kind});
            if kind == "update" {
                let moved = ["move_path", "movePath"].iter().find_map(|name| change.get(name)).cloned();
                told["move_path"] = moved.unwrap_or_default();
            }
            (path, json!({"path": path, "kind": told, "diff": diff}))
        })
        .collect();
    list.sort_by_key(|(path, _)| path.as_str());
    list.into_iter().map(|(_, change)| change).collect()
}

fn tool(id: &str, message: &Value, status: &str) -> Value {
    let invocation = message.get("invocation").unwrap_or(message);
    json!({
        "type": "mcpToolCall", "id": id, "status": status,
        "server": text(invocation, &["server"]).unwrap_or_default(),
        "tool": text(invocation, &["tool"]).unwrap_or_default(),
        "arguments": invocation.get("arguments").cloned().unwrap_or_default(),
        "result": null, "error": null,
    })
}

fn tool_end(id: &str, message: &Value) -> Value {
    let result = message.get("result").unwrap_or(&Value::Null);
    let failure = result.get("Err").or_else(|| message.get("error").filter(|error| !error.is_null()));
    let done = result.get("Ok").unwrap_or(result);
    let is_error = done.get("isError").and_then(Value::as_bool).unwrap_or_default();
    let status = if failure.is_some() || is_error { "failed" } else { "completed" };
    let mut members = tool(id, message, status);
    members["durationMs"] = json!(message.get("duration").and_then(duration_ms));
    match failure {
        Some(failure) => members["error"] = json!({"message": any_text(failure).unwrap_or_default()}),
        None if done.is_object() => {
            members["result"] = json!({
                "content": done.get("content").cloned().unwrap_or_default(),
                "structuredContent": done.get("structuredContent").cloned().unwrap_or_default(),
            });
        }
        None => {}
    }
    members
}
