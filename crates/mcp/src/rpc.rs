//! JSON-RPC messages.

use std::borrow::Cow;

use codex_wire::foreign_json::{self, MAX_TREE_BYTES};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::connection::RequestError;

/// The code for a request that is too large.
pub(crate) const INVALID_REQUEST: i64 = -32600;
/// The code for a method that the receiver does not know.
pub(crate) const METHOD_NOT_FOUND: i64 = -32601;
/// The code for a request that the user has rejected.
pub(crate) const REJECTED: i64 = -1;

/// The maximum memory that an id may take, and the parameters of a message that the server sends by itself.
const MOST_ID: usize = 1024;
const MOST_PARAMS: usize = 2 * 1024 * 1024;
/// The maximum length of the text of an error.
const MOST_ERROR: usize = 64 * 1024;

/// A message of a server.
#[derive(Debug, PartialEq)]
pub(crate) enum Incoming {
    Answer {
        id: u64,
        result: Result<Value, RequestError>,
    },
    Request {
        id: Value,
        method: String,
        params: Value,
    },
    /// A request whose parameters take too much memory.
    TooLarge {
        id: Value,
    },
    Notification {
        method: String,
        params: Value,
    },
}

/// An error that a server answers with.
#[derive(Debug, Clone, PartialEq, Deserialize, thiserror::Error)]
#[error("{message} (code {code})")]
pub(crate) struct RpcError {
    #[serde(default)]
    pub(crate) code: i64,
    #[serde(default)]
    pub(crate) message: String,
}

/// The members that matter, still encoded. All others are skipped without being kept.
#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

fn tree(raw: Option<&RawValue>, most: usize) -> serde_json::Result<Value> {
    raw.map_or(Ok(Value::Null), |raw| foreign_json::read_within(raw.get(), most))
}

/// Decodes a message; `None` if it is invalid, or the answer to a request that we cannot have sent.
pub(crate) fn read(line: &[u8]) -> Option<Incoming> {
    let message: Message<'_> = serde_json::from_slice(line).ok()?;
    let (id, params) = (tree(message.id, MOST_ID).ok()?, || tree(message.params, MOST_PARAMS));
    Some(match (message.method, id) {
        (Some(method), Value::Null) => Incoming::Notification { method: method.into_owned(), params: params().ok()? },
        (Some(method), id) => match params() {
            Ok(params) => Incoming::Request { id, method: method.into_owned(), params },
            Err(_) => Incoming::TooLarge { id },
        },
        (None, id) => Incoming::Answer { id: id.as_u64()?, result: answer_of(message.result, message.error)? },
    })
}

/// The result or the error of an answer; `None` if that is invalid.
fn answer_of(result: Option<&RawValue>, error: Option<&RawValue>) -> Option<Result<Value, RequestError>> {
    if let Some(error) = error {
        let RpcError { code, message } = serde_json::from_str(error.get()).ok()?;
        let message = shortened(&message, MOST_ERROR).to_owned();
        return Some(Err(RpcError { code, message }.into()));
    }
    Some(tree(result, MAX_TREE_BYTES).map_err(|_| RequestError::TooLarge { limit: MAX_TREE_BYTES }))
}

/// The beginning of a text, of at most this many bytes.
pub(crate) fn shortened(text: &str, most: usize) -> &str {
    let end = (0..=most.min(text.len())).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    &text[..end]
}

/// The number of the request that the start of a message answers, for messages that are too long to keep.
pub(crate) fn answered_by(head: &[u8]) -> Option<u64> {
    let head = String::from_utf8_lossy(head);
    // The result may contain the same word, so only the part before it counts.
    let head = head.split("\"result\"").next()?;
    let (_, after) = head.split_once("\"id\"")?;
    let after = after.trim_start().strip_prefix(':')?.trim_start();
    let digits = after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len());
    after[..digits].parse().ok()
}

pub(crate) fn request(id: u64, method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

pub(crate) fn notification(method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "method": method, "params": params})
}

pub(crate) fn answer(id: &Value, result: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

pub(crate) fn refusal(id: &Value, code: i64, message: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_distinguished() {
        let answered = |result| Some(Incoming::Answer { id: 3, result });
        assert_eq!(read(br#"{"jsonrpc":"2.0","id":3,"result":{"a":1}}"#), answered(Ok(json!({"a": 1}))));
        let error = RpcError { code: -1, message: "no".to_owned() };
        assert_eq!(read(br#"{"id":3,"error":{"code":-1,"message":"no"}}"#), answered(Err(error.into())));
        assert_eq!(
            read(br#"{"id":"x","method":"ping"}"#),
            Some(Incoming::Request { id: json!("x"), method: "ping".to_owned(), params: Value::Null })
        );
        assert_eq!(
            read(br#"{"method":"n","params":[]}"#),
            Some(Incoming::Notification { method: "n".to_owned(), params: json!([]) })
        );
    }

    #[test]
    fn noise_is_no_message() {
        for noise in ["starting up...", "\0\u{ff} }{", "[]", "7", r#"{"id":"mine","result":{}}"#, r#"{"id":-1}"#] {
            assert_eq!(read(noise.as_bytes()), None, "{noise}");
        }
    }

    /// A list of sixteen megabytes used to take half a gigabyte, and a hundred pages of it ended the program.
    #[test]
    fn a_message_that_would_take_too_much_memory_is_not_kept() {
        let much = format!("[{}0]", "0,".repeat(1 << 20));
        let read = |text: String| read(text.as_bytes());
        let limit = MAX_TREE_BYTES;
        assert_eq!(
            read(format!(r#"{{"id":3,"result":{much}}}"#)),
            Some(Incoming::Answer { id: 3, result: Err(RequestError::TooLarge { limit }) })
        );
        assert_eq!(
            read(format!(r#"{{"id":3,"result":7,"x":{much}}}"#)),
            Some(Incoming::Answer { id: 3, result: Ok(json!(7)) })
        );
        assert_eq!(
            read(format!(r#"{{"id":"q","method":"elicitation/create","params":{much}}}"#)),
            Some(Incoming::TooLarge { id: json!("q") })
        );
        for ignored in [format!(r#"{{"method":"n","params":{much}}}"#), format!(r#"{{"id":{much},"method":"n"}}"#)] {
            assert_eq!(read(ignored), None);
        }
        let error = format!(r#"{{"id":3,"error":{{"message":"{}","data":{much}}}}}"#, "é".repeat(MOST_ERROR));
        let Some(Incoming::Answer { result: Err(RequestError::Refused(error)), .. }) = read(error) else { panic!() };
        assert_eq!(error.message.len(), MOST_ERROR);
    }

    #[test]
    fn the_start_of_a_message_names_its_request() {
        assert_eq!(answered_by(br#"{"jsonrpc": "2.0", "id": 12, "result": {"con"#), Some(12));
        assert_eq!(answered_by(br#"{"result": {"id": 12, "#), None);
        assert_eq!(answered_by(b"QQQQ"), None);
    }
}
