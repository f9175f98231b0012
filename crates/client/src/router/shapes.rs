//! Ids, texts and durations, in all the shapes in which servers have sent them.

use serde_json::{Map, Value};

/// The first member that is a text and not empty.
pub(super) fn text<'a>(members: &'a Value, names: &[&str]) -> Option<&'a str> {
    names.iter().find_map(|name| members.get(name)?.as_str().filter(|text| !text.is_empty()))
}

/// The thread that parameters are about; empty if they name none.
pub(crate) fn thread_id(params: &Value) -> &str {
    const NAMES: &[&str] = &["threadId", "thread_id", "conversationId", "conversation_id"];
    let inner = |name: &str| params.get(name);
    text(params, NAMES)
        .or_else(|| text(inner("thread")?, &["id"]))
        .or_else(|| text(inner("msg")?, NAMES))
        .or_else(|| text(params, &["sessionId", "session_id"]))
        .or_else(|| text(inner("msg")?, &["sessionId", "session_id"]))
        .unwrap_or_default()
}

/// The turn that parameters are about; empty if they name none.
pub(super) fn turn_id(params: &Value) -> &str {
    const NAMES: &[&str] = &["turnId", "turn_id"];
    let inner = |name: &str| params.get(name);
    text(params, NAMES)
        .or_else(|| text(inner("turn")?, &["id"]))
        .or_else(|| text(inner("msg")?, NAMES))
        .or_else(|| inner("msg").and_then(|_| text(params, &["id"])))
        .unwrap_or_default()
}

/// The text in a value: itself, a member of it, or the texts of its parts put together.
pub(super) fn any_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Object(_) => text_member(value)
            .map(str::to_owned)
            .or_else(|| value.get("content").and_then(any_text))
            .or_else(|| value.get("item").and_then(any_text)),
        Value::Array(parts) => {
            let texts: Vec<String> = parts.iter().filter_map(any_text).collect();
            (!texts.is_empty()).then(|| texts.concat())
        }
        _ => None,
    }
}

fn text_member(value: &Value) -> Option<&str> {
    ["text", "textDelta", "delta", "message"].iter().find_map(|name| value.get(name)?.as_str())
}

/// Members that are milliseconds.
const MILLISECONDS: &[&str] = &["millis", "milliseconds", "durationMs", "duration_ms", "ms"];
/// Members that are parts of a duration, with their nanoseconds.
const PARTS: &[(&str, f64)] = &[
    ("hours", 3.6e12),
    ("minutes", 6e10),
    ("seconds", 1e9),
    ("secs", 1e9),
    ("microseconds", 1e3),
    ("micros", 1e3),
    ("nanos", 1.0),
    ("nanoseconds", 1.0),
];
/// Members for people.
const WORDS: &[&str] = &["approximate", "pretty", "human"];

/// A duration in whole milliseconds.
pub(super) fn duration_ms(value: &Value) -> Option<i64> {
    match value {
        Value::Number(number) => number.as_f64().map(whole),
        Value::String(text) => duration_text(text),
        Value::Array(parts) => parts.iter().find_map(duration_ms),
        Value::Object(members) => duration_members(members),
        Value::Bool(_) | Value::Null => None,
    }
}

fn duration_members(members: &Map<String, Value>) -> Option<i64> {
    if let Some(number) = MILLISECONDS.iter().find_map(|name| members.get(*name)?.as_f64()) {
        return Some(whole(number));
    }
    let parts: Vec<f64> =
        PARTS.iter().filter_map(|(name, nanos)| Some(members.get(*name)?.as_f64()? * nanos)).collect();
    if !parts.is_empty() {
        return Some(whole(parts.iter().sum::<f64>() / 1e6));
    }
    let words = WORDS.iter().find_map(|name| duration_ms(members.get(*name)?));
    words.or_else(|| members.values().find_map(duration_ms))
}

/// Reads `1.5s`, `250ms`, `~30s`, `2m 3s`; a number alone is milliseconds.
fn duration_text(text: &str) -> Option<i64> {
    let text = text.trim().trim_start_matches(['~', '≈']).trim();
    let (mut rest, mut total, mut parts) = (text, 0.0, 0);
    while !rest.is_empty() {
        let digits = rest.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(rest.len());
        let number: f64 = rest.get(..digits)?.parse().ok()?;
        rest = rest[digits..].trim_start();
        let letters = rest.find(|letter: char| !letter.is_alphabetic()).unwrap_or(rest.len());
        let milliseconds = match &rest[..letters] {
            "" | "ms" | "msec" | "millis" => 1.0,
            "s" | "sec" | "secs" | "second" | "seconds" => 1e3,
            "m" | "min" | "mins" | "minute" | "minutes" => 6e4,
            "h" | "hr" | "hour" | "hours" => 3.6e6,
            "us" | "µs" => 1e-3,
            "ns" => 1e-6,
            _ => return None,
        };
        total += number * milliseconds;
        parts += 1;
        rest = rest[letters..].trim_start();
    }
    (parts > 0).then(|| whole(total))
}

#[expect(clippy::cast_possible_truncation, reason = "no duration has that many milliseconds")]
fn whole(milliseconds: f64) -> i64 {
    milliseconds.floor() as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values and what is read from them, which all client libraries share.
    fn vectors(name: &str) -> Vec<Value> {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../clients/vectors/answers/shapes.json");
        let file = std::fs::read_to_string(path).unwrap_or_default();
        let mut vectors: Value = serde_json::from_str(&file).unwrap_or_default();
        let Value::Array(cases) = vectors[name].take() else { panic!("there are no {name}") };
        assert!(cases.len() > 10);
        cases
    }

    #[test]
    fn durations_are_read_in_all_shapes() {
        for case in vectors("durations") {
            assert_eq!(duration_ms(&case[0]), case[1].as_i64(), "{case}");
        }
    }

    #[test]
    fn texts_are_read_in_all_shapes() {
        for case in vectors("texts") {
            assert_eq!(any_text(&case[0]).as_deref(), case[1].as_str(), "{case}");
        }
    }

    #[test]
    fn ids_are_found_wherever_they_are() {
        for case in vectors("ids") {
            let ids = (thread_id(&case[0]), turn_id(&case[0]));
            assert_eq!(ids, (case[1].as_str().unwrap_or_default(), case[2].as_str().unwrap_or_default()), "{case}");
        }
    }
}
