//! A thread as readable text: what `codex threads export` prints.
//!
//! Invariant: pure. A text cannot end the block that it is shown in.

use std::fmt::Write as _;

use serde_json::Value;

use crate::event::Members;
use crate::state::{Item, Thread, Turn};

/// The most bytes that are shown of an output.
const OUTPUT_BYTES: usize = 8 << 10;

/// A whole thread.
#[must_use]
pub fn thread(thread: &Thread) -> String {
    let mut text = title(thread.members());
    for shown in thread.turns() {
        text.push_str(&turn(shown));
    }
    text
}

/// The title of a thread, and the facts about it.
#[must_use]
pub fn title(members: &Members) -> String {
    let text = |name: &str| members.get(name).and_then(Value::as_str);
    let branch = members.get("gitInfo").and_then(|git| git.get("branch")?.as_str());
    let mut title = format!("# Thread {}\n\n", text("id").unwrap_or_default());
    if let Some(began) = members.get("createdAt").and_then(Value::as_i64) {
        title.extend(["- began: ", &time(began), "\n"]);
    }
    let facts = [
        ("folder", text("cwd")),
        ("branch", branch),
        ("provider", text("modelProvider")),
        ("release", text("cliVersion")),
    ];
    for (name, value) in facts {
        title.extend(value.filter(|value| !value.is_empty()).map(|value| format!("- {name}: {}\n", code(value))));
    }
    title.push('\n');
    title
}

/// A turn: its items, and how it ended unless it is complete.
#[must_use]
pub fn turn(turn: &Turn) -> String {
    let mut text: String = turn.items().iter().filter_map(item).collect();
    match turn.status() {
        "interrupted" => text.push_str("*The turn was interrupted.*\n\n"),
        "failed" => {
            let why = turn.error().get("message").and_then(Value::as_str).unwrap_or_default();
            let why =
                why.lines().next().filter(|why| !why.is_empty()).map(|why| format!(": {why}")).unwrap_or_default();
            text.extend(["*The turn failed", &why, "*\n\n"]);
        }
        _ => {}
    }
    text
}

fn item(item: &Item) -> Option<String> {
    let member = |name: &str| item.members().get(name).unwrap_or(&Value::Null);
    let text = |name: &str| member(name).as_str().unwrap_or_default();
    match item.kind() {
        "userMessage" => section("User", &input(member("content"))),
        "agentMessage" => section("Assistant", text("text")),
        "plan" => section("Plan", text("text")),
        "exitedReviewMode" => section("Review", text("review")),
        "enteredReviewMode" => Some(format!("*A review begins: {}*\n\n", text("review"))),
        "reasoning" => quoted(&strings(member("summary"))).or_else(|| quoted(&strings(member("content")))),
        "commandExecution" => Some(command(item)),
        "fileChange" => Some(changes(item)),
        "mcpToolCall" => Some(call(&format!("{}.{}", text("server"), text("tool")), item)),
        "dynamicToolCall" | "collabAgentToolCall" => Some(call(text("tool"), item)),
        "webSearch" => Some(format!("**Web search** {}\n\n", code(text("query")))),
        "imageView" => Some(format!("**Image** {}\n\n", code(text("path")))),
        "contextCompaction" => Some("---\n\n*The conversation above was compacted for the model.*\n\n".to_owned()),
        kind => Some(format!("**{kind}**\n\n")),
    }
}

fn section(title: &str, text: &str) -> Option<String> {
    let text = text.trim();
    (!text.is_empty()).then(|| format!("## {title}\n\n{text}\n\n"))
}

/// The texts of a message; pictures and others by their names.
fn input(content: &Value) -> String {
    let parts = content.as_array().into_iter().flatten().filter_map(|part| {
        let text = |name: &str| part.get(name).and_then(Value::as_str);
        match text("type") {
            Some("text") => text("text").map(str::to_owned),
            Some("image") => Some("*image*".to_owned()),
            Some("localImage") => Some(format!("*image* {}", code(text("path")?))),
            _ => text("name").or_else(|| text("path")).map(code),
        }
    });
    parts.collect::<Vec<_>>().join("\n")
}

fn strings(parts: &Value) -> String {
    let parts: Vec<&str> = parts.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    parts.join("\n\n")
}

fn quoted(text: &str) -> Option<String> {
    let mut quoted = String::new();
    for line in text.trim().lines() {
        writeln!(quoted, "> {line}").ok()?;
    }
    (!quoted.is_empty()).then(|| quoted + "\n")
}

/// The end of a call that was not simply completed.
fn outcome(item: &Item) -> String {
    let code = item.members().get("exitCode").and_then(Value::as_i64).filter(|code| *code != 0);
    match (code, item.status()) {
        (Some(code), _) => format!(" (exit code {code})"),
        (None, "completed" | "inProgress") => String::new(),
        (None, status) => format!(" ({status})"),
    }
}

fn command(item: &Item) -> String {
    let text = |name: &str| item.members().get(name).and_then(Value::as_str).unwrap_or_default();
    format!("**Command**{}\n\n{}{}", outcome(item), fenced(text("command"), ""), output(text("aggregatedOutput")))
}

fn changes(item: &Item) -> String {
    let mut shown = format!("**Changes**{}\n\n", outcome(item));
    for change in item.members().get("changes").and_then(Value::as_array).into_iter().flatten() {
        let text = |value: &Value, name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
        let kind = change.get("kind").unwrap_or(&Value::Null);
        let word = text(kind, "type").unwrap_or_default();
        let moved = text(kind, "move_path").map(|path| format!(" to {}", code(&path))).unwrap_or_default();
        let path = code(&text(change, "path").unwrap_or_default());
        let diff = text(change, "diff").unwrap_or_default();
        let diff = cut(&diff, if word == "update" { "diff" } else { "" });
        shown.extend([word, " ".to_owned(), path, moved, "\n\n".to_owned(), diff]);
    }
    shown
}

fn call(name: &str, item: &Item) -> String {
    let member = |name: &str| item.members().get(name).filter(|value| !value.is_null());
    let arguments = member("arguments").or_else(|| member("prompt")).map(shown_value).unwrap_or_default();
    let error = member("error").and_then(|error| error.get("message")?.as_str());
    let parts = member("contentItems").or_else(|| member("result")?.get("content"));
    let texts = parts.and_then(Value::as_array).into_iter().flatten().filter_map(|part| part.get("text")?.as_str());
    let result = error.map_or_else(|| texts.collect::<Vec<_>>().join("\n"), str::to_owned);
    format!("**Call of {}**{}\n\n{}{}", code(name), outcome(item), output(&arguments), output(&result))
}

fn shown_value(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn output(text: &str) -> String {
    cut(text, "")
}

/// The beginning of a text between fences; nothing if it is empty.
fn cut(text: &str, language: &str) -> String {
    if text.trim().is_empty() {
        return String::new();
    }
    let end = (0..=OUTPUT_BYTES.min(text.len())).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    let rest = text.len() - end;
    let note = if rest > 0 { format!("*{rest} more bytes*\n\n") } else { String::new() };
    fenced(&text[..end], language) + &note
}

/// Text between fences that nothing in it can close.
fn fenced(text: &str, language: &str) -> String {
    let fence = "`".repeat(longest_run(text).max(2) + 1);
    format!("{fence}{language}\n{}\n{fence}\n\n", text.trim_end())
}

/// Inline code.
fn code(text: &str) -> String {
    let mark = "`".repeat(longest_run(text) + 1);
    let text = text.replace('\n', " ");
    if text.contains('`') { format!("{mark} {text} {mark}") } else { format!("{mark}{text}{mark}") }
}

/// The longest run of backticks in a text.
fn longest_run(text: &str) -> usize {
    text.split(|letter| letter != '`').map(str::len).max().unwrap_or(0)
}

/// Seconds of Unix time as a date and a time of day.
fn time(seconds: i64) -> String {
    let (day, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    // The days are counted in eras of 400 years that begin in March, so that a leap day is the last of its year.
    let day = day + 719_468;
    let (era, day) = (day.div_euclid(146_097), day.rem_euclid(146_097));
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, turn_of_year) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    let year = year + era * 400 + turn_of_year;
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::router;
    use crate::state::State;

    fn shown(turns: &Value) -> String {
        let told = json!({"thread": {
            "id": "t", "createdAt": 1_763_330_400, "cwd": "/w", "modelProvider": "p`q", "cliVersion": "1.0",
            "gitInfo": {"branch": "main"}, "turns": turns,
        }});
        let mut state = State::default();
        if let Some(event) = router::response(&told) {
            state.apply(&event);
        }
        state.thread("t").map(thread).unwrap_or_default()
    }

    #[test]
    fn every_kind_of_item_is_shown() {
        let text = shown(&json!([
            {"id": "1", "status": "completed", "items": [
                {"type": "userMessage", "id": "a", "content": [
                    {"type": "text", "text": "Do it"}, {"type": "localImage", "path": "p.png"}]},
                {"type": "reasoning", "id": "b", "summary": ["one", "two"], "content": []},
                {"type": "commandExecution", "id": "c", "command": "make", "status": "failed", "exitCode": 2,
                    "aggregatedOutput": "```\nno\n"},
                {"type": "fileChange", "id": "d", "status": "declined", "changes": [
                    {"path": "x", "kind": {"type": "update", "move_path": null}, "diff": "@@ -1 +1 @@\n-a\n+b\n"}]},
                {"type": "mcpToolCall", "id": "e", "server": "s", "tool": "t", "status": "completed",
                    "arguments": {"k": 1}, "result": {"content": [{"type": "text", "text": "found"}]}},
                {"type": "webSearch", "id": "f", "query": "q"},
                {"type": "contextCompaction", "id": "g"},
                {"type": "fromTheFuture", "id": "h"},
                {"type": "agentMessage", "id": "i", "text": " Done. \n"},
            ]},
            {"id": "2", "status": "failed", "error": {"message": "no answer\nhint"}, "items": []},
            {"id": "3", "status": "interrupted", "items": []},
        ]));
        let expected = "# Thread t\n\n- began: 2025-11-16T22:00:00Z\n- folder: `/w`\n- branch: `main`\n\
            - provider: `` p`q ``\n- release: `1.0`\n\n\
            ## User\n\nDo it\n*image* `p.png`\n\n> one\n> \n> two\n\n\
            **Command** (exit code 2)\n\n```\nmake\n```\n\n````\n```\nno\n````\n\n\
            **Changes** (declined)\n\nupdate `x`\n\n```diff\n@@ -1 +1 @@\n-a\n+b\n```\n\n\
            **Call of `s.t`**\n\n```\n{\"k\":1}\n```\n\n```\nfound\n```\n\n\
            **Web search** `q`\n\n---\n\n*The conversation above was compacted for the model.*\n\n**fromTheFuture**\n\n\
            ## Assistant\n\nDone.\n\n*The turn failed: no answer*\n\n*The turn was interrupted.*\n\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn a_long_output_is_cut() {
        let output = "ä".repeat(OUTPUT_BYTES);
        let items = json!([{"type": "commandExecution", "id": "c", "command": "x", "aggregatedOutput": output}]);
        let text = shown(&json!([{"id": "1", "status": "completed", "items": items}]));
        assert!(text.ends_with(&format!("*{OUTPUT_BYTES} more bytes*\n\n")), "{}", &text[text.len() - 100..]);
    }

    #[test]
    fn times_are_those_of_the_calendar() {
        for (seconds, expected) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_709_251_199, "2024-02-29T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
            (-1, "1969-12-31T23:59:59Z"),
        ] {
            assert_eq!(time(seconds), expected);
        }
    }
}
