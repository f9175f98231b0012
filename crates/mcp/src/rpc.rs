//! JSON-RPC messages.

use serde::Deserialize;
use serde_json::{Value, json};

/// The code for a method that the receiver does not know.
pub(crate) const METHOD_NOT_FOUND: i64 = -32601;
/// The code for a request that the user has rejected.
pub(crate) const REJECTED: i64 = -1;

/// A message of a server.
#[derive(Debug, PartialEq)]
pub(crate) enum Incoming {
    Answer { id: u64, result: Result<Value, RpcError> },
    Request { id: Value, method: String, params: Value },
    Notification { method: String, params: Value },
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

#[derive(Deserialize)]
struct Message {
    #[serde(default)]
    id: Value,
    #[serde(default)]
    method: Option<String>,
    #[serde(default)]
    params: Value,
    #[serde(default)]
    result: Value,
    #[serde(default)]
    error: Option<RpcError>,
}

/// Decodes a message; `None` if it is invalid, or the answer to a request that we cannot have sent.
pub(crate) fn read(line: &[u8]) -> Option<Incoming> {
    serde_json::from_slice(line).ok().and_then(understand)
}

/// The same as [`read`], for a parsed message.
fn understand(message: Message) -> Option<Incoming> {
    let Message { id, method, params, result, error } = message;
    match (method, id) {
        (Some(method), Value::Null) => Some(Incoming::Notification { method, params }),
        (Some(method), id) => Some(Incoming::Request { id, method, params }),
        (None, id) => Some(Incoming::Answer { id: id.as_u64()?, result: error.map_or(Ok(result), Err) }),
    }
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
        assert_eq!(read(br#"{"id":3,"error":{"code":-1,"message":"no"}}"#), answered(Err(error)));
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

    #[test]
    fn the_start_of_a_message_names_its_request() {
        assert_eq!(answered_by(br#"{"jsonrpc": "2.0", "id": 12, "result": {"con"#), Some(12));
        assert_eq!(answered_by(br#"{"result": {"id": 12, "#), None);
        assert_eq!(answered_by(b"QQQQ"), None);
    }
}
