//! JSON-RPC as the app-server uses it: one object per line, no `jsonrpc` member needed, ids that are numbers or
//! strings.

use std::borrow::Cow;

use codex_wire::ids::RequestId;
use serde::{Deserialize, Serialize, de::Error as _};
use serde_json::value::RawValue;

/// An error of the caller: unknown method, invalid parameters, wrong state.
pub const INVALID_REQUEST: i64 = -32600;
/// A failure of this program.
pub const INTERNAL_ERROR: i64 = -32603;
/// Too many requests are pending; a later attempt may succeed.
pub const OVERLOADED: i64 = -32001;

/// A message from the other side.
#[derive(Debug)]
pub enum Incoming<'a> {
    /// A request, which needs an answer.
    Request {
        /// The id that the response repeats.
        id: RequestId,
        method: Cow<'a, str>,
        /// The parameters; `None` if they are absent or `null`.
        params: Option<&'a RawValue>,
    },
    /// A notification, which needs none.
    Notification { method: Cow<'a, str> },
    /// The answer to a request of this side.
    Response {
        id: RequestId,
        /// The result, `None` if it is absent or `null`; or the error.
        result: Result<Option<&'a RawValue>, ErrorObject>,
    },
}

impl<'a> Incoming<'a> {
    /// Parses one line.
    ///
    /// # Errors
    /// If it is not a JSON object, or neither request, notification nor response.
    pub fn read(line: &'a [u8]) -> Result<Self, serde_json::Error> {
        #[derive(Deserialize)]
        struct Shape<'a> {
            #[serde(default, borrow)]
            id: Option<&'a RawValue>,
            #[serde(default, borrow)]
            method: Option<Cow<'a, str>>,
            #[serde(default, borrow)]
            params: Option<&'a RawValue>,
            #[serde(default, borrow)]
            result: Option<&'a RawValue>,
            #[serde(default)]
            error: Option<ErrorObject>,
        }
        let Shape { id, method, params, result, error } = serde_json::from_slice(line)?;
        let id =
            id.filter(|id| id.get() != "null").map(|id| serde_json::from_str::<RequestId>(id.get())).transpose()?;
        let params = params.filter(|params| params.get() != "null");
        match (id, method) {
            (Some(id), Some(method)) => Ok(Self::Request { id, method, params }),
            (None, Some(method)) => Ok(Self::Notification { method }),
            (Some(id), None) => Ok(Self::Response { id, result: error.map_or(Ok(result), Err) }),
            (None, None) => Err(serde_json::Error::missing_field("method")),
        }
    }
}

/// The error of a response.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "JSONRPCErrorError"))]
pub struct ErrorObject {
    /// The kind of error.
    #[serde(default)]
    pub code: i64,
    /// One sentence about it.
    #[serde(default)]
    pub message: String,
    /// Additional data for programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<serde_json::Value>,
}

impl ErrorObject {
    /// A mistake of the caller.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self { code: INVALID_REQUEST, message: message.into(), data: None }
    }

    /// A failure of this program.
    pub fn internal(message: impl Into<String>) -> Self {
        Self { code: INTERNAL_ERROR, message: message.into(), data: None }
    }

    /// An error of the caller, with the text of another error.
    pub fn from_display(error: impl std::fmt::Display) -> Self {
        Self::invalid(error.to_string())
    }

    /// An internal error, with the text of another error.
    pub fn internal_from(error: impl std::fmt::Display) -> Self {
        Self::internal(error.to_string())
    }

    /// The same with more for programs.
    #[must_use]
    pub fn with(mut self, data: serde_json::Value) -> Self {
        self.data = Some(data);
        self
    }
}

/// An answer to a request.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum Response<'a, R> {
    /// The request succeeded.
    Result {
        /// The request.
        id: &'a RequestId,
        result: R,
    },
    /// The request failed.
    Error {
        /// The reason for the failure.
        error: ErrorObject,
        /// The request.
        id: &'a RequestId,
    },
}

/// A request of ours.
#[derive(Debug, Serialize)]
pub struct Request<'a, P> {
    pub method: &'a str,
    /// The id that the response repeats.
    pub id: i64,
    pub params: P,
}

/// A notification of ours.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Notification<'a, P> {
    pub method: &'a str,
    /// The news.
    pub params: P,
    /// The time in Unix milliseconds.
    pub emitted_at_ms: i64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> String {
        format!("{:?}", Incoming::read(line.as_bytes()).map_err(|error| error.to_string()))
    }

    #[test]
    fn both_kinds_of_ids_and_all_shapes_are_read() {
        assert!(read(r#"{"id":1,"method":"a","params":{}}"#).contains("Request { id: Integer(1)"));
        assert!(read(r#"{"jsonrpc":"2.0","id":"x","method":"a","params":null}"#).contains("params: None"));
        assert!(read(r#"{"method":"initialized"}"#).contains("Notification"));
        assert!(read(r#"{"id":0,"result":null}"#).contains("result: Ok(None)"));
        assert!(read(r#"{"id":0,"result":{"decision":"accept"}}"#).contains("Response"));
        assert!(read(r#"{"id":0,"error":{"code":-1,"message":"no"}}"#).contains("Err(ErrorObject"));
    }

    #[test]
    fn invalid_messages_are_errors() {
        for line in ["[]", "1", "{}", r#"{"id":1.5,"method":"a"}"#, r#"{"id":{},"method":"a"}"#, r#"{"id":1"#] {
            assert!(read(line).starts_with("Err"), "{line}: {}", read(line));
        }
    }

    #[test]
    fn an_error_is_written_error_first() {
        let id = RequestId::Integer(4);
        let error: Response<'_, ()> = Response::Error { error: ErrorObject::invalid("no"), id: &id };
        assert_eq!(serde_json::to_string(&error).unwrap(), r#"{"error":{"code":-32600,"message":"no"},"id":4}"#);
    }
}
