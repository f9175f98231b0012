//! JSON-RPC 2.0 as MCP uses it: messages in and out.

use codex_wire::foreign_json;
use codex_wire::ids::RequestId;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// A line that is not JSON.
pub(super) const PARSE_ERROR: i64 = -32700;
/// A message of the wrong form, or at the wrong time.
pub(super) const INVALID_REQUEST: i64 = -32600;
/// A method that does not exist.
pub(super) const METHOD_NOT_FOUND: i64 = -32601;
/// Invalid parameters.
pub(super) const INVALID_PARAMS: i64 = -32602;

/// The maximum memory that the parameters of a request, or the result of an answer, may take.
const MOST_PARAMS: usize = 16 * 1024 * 1024;

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

/// The members that matter, still encoded. All others are skipped without being kept.
#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Option<&'a RawValue>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    error: Option<&'a RawValue>,
}

/// A member that is there, even if it is null.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

/// Decodes the messages of a line: one, or an array of them as version 2025-03-26 allows.
pub(super) fn read(line: &[u8]) -> Vec<Result<Incoming, Malformed>> {
    let refused = |code, why| vec![Err(Malformed { id: None, error: RpcError::new(code, why) })];
    let message: &RawValue = match serde_json::from_slice(line) {
        Ok(message) => message,
        Err(error) => return refused(PARSE_ERROR, format!("the line is not JSON: {error}")),
    };
    if !message.get().starts_with('[') {
        return vec![read_one(message)];
    }
    match foreign_json::read::<Vec<&RawValue>>(message.get()) {
        Ok(messages) if messages.is_empty() => vec![read_one(message)],
        Ok(messages) => messages.into_iter().map(read_one).collect(),
        Err(error) => refused(INVALID_REQUEST, format!("the messages cannot be read: {error}")),
    }
}

fn read_one(message: &RawValue) -> Result<Incoming, Malformed> {
    let malformed = |id, why: &str| Malformed { id, error: RpcError::new(INVALID_REQUEST, why) };
    if !message.get().starts_with('{') {
        return Err(malformed(None, "a message is an object"));
    }
    let Envelope { id, method, params, result, error } =
        serde_json::from_str(message.get()).map_err(|error| malformed(None, &error.to_string()))?;
    let id = id.map(|id| serde_json::from_str(id.get())).transpose();
    let id: Option<RequestId> = id.map_err(|_| malformed(None, "an id must be a string or an integer"))?;
    let method = method.and_then(|method| serde_json::from_str(method.get()).ok());
    let params = match params.map(RawValue::get) {
        None => Map::new(),
        Some(params) if params.starts_with('{') => foreign_json::read_within(params, MOST_PARAMS)
            .map_err(|error| malformed(id.clone(), &format!("`params` cannot be read: {error}")))?,
        Some(_) => return Err(malformed(id, "`params` is an object")),
    };
    match (id, method) {
        (Some(id), Some(method)) => Ok(Incoming::Request { id, method, params }),
        (None, Some(method)) => Ok(Incoming::Notification { method, params }),
        (Some(id), None) if result.is_some() || error.is_some() => {
            let result = result.and_then(|result| foreign_json::read_within(result.get(), MOST_PARAMS).ok());
            Ok(Incoming::Response { id, result })
        }
        (id, None) => Err(malformed(id, "a message has a `method`, a `result` or an `error`")),
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

    /// A body of 30 MB used to become a gigabyte of values.
    #[test]
    fn a_message_that_would_take_too_much_memory_is_refused() {
        let much = format!("[{}0]", "0,".repeat(1 << 20));
        let refused = |line: String| {
            let Err(Malformed { id, error }) = read(line.as_bytes()).remove(0) else { panic!("it was read") };
            assert_eq!(error.code, INVALID_REQUEST, "{}", error.message);
            id
        };
        let id = Some(RequestId::Integer(3));
        assert_eq!(refused(format!(r#"{{"id":3,"method":"tools/list","params":{{"x":{much}}}}}"#)), id);
        assert_eq!(refused(much.clone()), None);
        assert_eq!(refused(format!(r#"{{"id":{much},"method":"ping"}}"#)), None);
        let ignored = read(format!(r#"{{"id":3,"method":"ping","x":{much}}}"#).as_bytes()).remove(0);
        assert!(matches!(ignored, Ok(Incoming::Request { params, .. }) if params.is_empty()));
        let answer = read(format!(r#"{{"id":3,"result":{much}}}"#).as_bytes()).remove(0);
        assert!(matches!(answer, Ok(Incoming::Response { result: None, .. })));
    }

    #[test]
    fn an_array_is_several_messages() {
        let batch = json!([{"method": "a"}, 7, {"id": "x", "method": "b"}]).to_string();
        let read = read(batch.as_bytes());
        assert_eq!(read.len(), 3);
        assert!(matches!(&read[2], Ok(Incoming::Request { method, .. }) if method == "b"));
    }
}
