//! JSON-RPC 2.0 as MCP uses it: messages in and out.

use codex_wire::ids::RequestId;
use serde::Serialize;
use serde_json::{Map, Value};

/// A line that is not JSON.
pub(super) const PARSE_ERROR: i64 = -32700;
/// A message of the wrong form, or at the wrong time.
pub(super) const INVALID_REQUEST: i64 = -32600;
/// A method that does not exist.
pub(super) const METHOD_NOT_FOUND: i64 = -32601;
/// Invalid parameters.
pub(super) const INVALID_PARAMS: i64 = -32602;

/// A message of the client.
#[derive(Debug, PartialEq)]
pub(super) enum Incoming {
    Request {
        id: RequestId,
        method: String,
        params: Map<String, Value>,
    },
    Notification {
        method: String,
        params: Map<String, Value>,
    },
    /// The answer to a server request; an error has no result.
    Response {
        id: RequestId,
        result: Option<Value>,
    },
}

/// An invalid message, and its id if it has one.
#[derive(Debug, PartialEq)]
pub(super) struct Malformed {
    pub(super) id: Option<RequestId>,
    pub(super) error: RpcError,
}

/// An error as a client sees it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct RpcError {
    pub(super) code: i64,
    pub(super) message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) data: Option<Box<Value>>,
}

impl RpcError {
    pub(super) fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    pub(super) fn method_not_found(method: &str) -> Self {
        Self::new(METHOD_NOT_FOUND, format!("method not found: {method}"))
    }
}

/// Decodes the messages of a line: one, or an array of them as version 2025-03-26 allows.
pub(super) fn read(line: &[u8]) -> Vec<Result<Incoming, Malformed>> {
    match serde_json::from_slice(line) {
        Ok(Value::Array(messages)) if !messages.is_empty() => messages.into_iter().map(read_one).collect(),
        Ok(message) => vec![read_one(message)],
        Err(error) => {
            let error = RpcError::new(PARSE_ERROR, format!("the line is not JSON: {error}"));
            vec![Err(Malformed { id: None, error })]
        }
    }
}

fn read_one(message: Value) -> Result<Incoming, Malformed> {
    let malformed = |id, why: &str| Malformed { id, error: RpcError::new(INVALID_REQUEST, why) };
    let Value::Object(mut message) = message else {
        return Err(malformed(None, "a message is an object"));
    };
    let id = match message.remove("id") {
        None | Some(Value::Null) => None,
        Some(id) => {
            Some(serde_json::from_value(id).map_err(|_| malformed(None, "an id must be a string or an integer"))?)
        }
    };
    let params = match message.remove("params") {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(params)) => params,
        Some(_) => return Err(malformed(id, "`params` is an object")),
    };
    match (id, message.remove("method")) {
        (Some(id), Some(Value::String(method))) => Ok(Incoming::Request { id, method, params }),
        (None, Some(Value::String(method))) => Ok(Incoming::Notification { method, params }),
        (Some(id), None) if message.contains_key("result") || message.contains_key("error") => {
            Ok(Incoming::Response { id, result: message.remove("result") })
        }
        (id, _) => Err(malformed(id, "a message has a `method`, a `result` or an `error`")),
    }
}

/// The version of JSON-RPC.
const JSONRPC: &str = "2.0";

#[derive(Serialize)]
struct Message<'a, P> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<i64>,
    jsonrpc: &'static str,
    method: &'a str,
    params: P,
}

#[derive(Serialize)]
struct Answer<'a, R> {
    id: &'a RequestId,
    jsonrpc: &'static str,
    result: R,
}

#[derive(Serialize)]
struct Refusal<'a> {
    error: RpcError,
    id: Option<&'a RequestId>,
    jsonrpc: &'static str,
}

/// A server request.
pub(super) fn request(id: i64, method: &str, params: impl Serialize) -> Vec<u8> {
    codex_lines::encoded(&Message { id: Some(id), jsonrpc: JSONRPC, method, params })
}

/// Adds a notification as a line.
pub(super) fn add_notification(lines: &mut Vec<u8>, method: &str, params: impl Serialize) {
    codex_lines::add_line(lines, &Message { id: None, jsonrpc: JSONRPC, method, params });
}

/// The answer to a request.
pub(super) fn answer(id: &RequestId, result: impl Serialize) -> Vec<u8> {
    codex_lines::encoded(&Answer { id, jsonrpc: JSONRPC, result })
}

/// The answer to a request that failed; without an id, to an invalid line.
pub(super) fn refusal(id: Option<&RequestId>, error: RpcError) -> Vec<u8> {
    codex_lines::encoded(&Refusal { error, id, jsonrpc: JSONRPC })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read_line(line: &Value) -> Result<Incoming, Malformed> {
        read(line.to_string().as_bytes()).remove(0)
    }

    #[test]
    fn messages_are_distinguished() {
        let (id, method, params) = (RequestId::Integer(1), "ping".to_owned(), Map::new());
        let asked = read_line(&json!({"id": 1, "method": "ping", "params": null}));
        assert_eq!(asked, Ok(Incoming::Request { id: id.clone(), method: method.clone(), params: params.clone() }));
        assert_eq!(read_line(&json!({"method": "ping"})), Ok(Incoming::Notification { method, params }));
        let answered = read_line(&json!({"id": 1, "result": 2}));
        assert_eq!(answered, Ok(Incoming::Response { id: id.clone(), result: Some(json!(2)) }));
        let refused = read_line(&json!({"id": 1, "error": {"code": 1, "message": ""}}));
        assert_eq!(refused, Ok(Incoming::Response { id, result: None }));
    }

    #[test]
    fn bad_messages_keep_their_id() {
        let code = |line: Value| read_line(&line).map_err(|bad| (bad.id, bad.error.code));
        let id = || Some(RequestId::Integer(3));
        assert_eq!(code(json!({"id": 3})), Err((id(), INVALID_REQUEST)));
        assert_eq!(code(json!({"id": 3, "method": "x", "params": [1]})), Err((id(), INVALID_REQUEST)));
        assert_eq!(code(json!({"id": 1.5, "method": "x"})), Err((None, INVALID_REQUEST)));
        assert_eq!(code(json!([])), Err((None, INVALID_REQUEST)));
        assert_eq!(read(b"{")[0].as_ref().map_err(|bad| bad.error.code), Err(PARSE_ERROR));
    }

    #[test]
    fn an_array_is_several_messages() {
        let batch = json!([{"method": "a"}, 7, {"id": "x", "method": "b"}]).to_string();
        let read = read(batch.as_bytes());
        assert_eq!(read.len(), 3);
        assert!(matches!(&read[2], Ok(Incoming::Request { method, .. }) if method == "b"));
    }
}
