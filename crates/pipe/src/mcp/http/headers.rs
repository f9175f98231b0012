//! The headers of requests: what a client accepts, which version it speaks, and whether they agree with the message.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, StatusCode};
use serde_json::{Map, Value};

use super::super::message::{
    INVALID_PARAMS, INVALID_REQUEST, Incoming, METHOD_NOT_FOUND, Malformed, PARSE_ERROR, RpcError,
};
use super::super::session::{Reply, VERSIONS};
use super::super::stateless::{self, Envelope};
use super::{Refusal, json, refusal};

/// The header with the version of the protocol.
const VERSION: &str = "mcp-protocol-version";
/// The header that repeats the method.
const METHOD: &str = "mcp-method";
/// The header that repeats the name of the tool.
const NAME: &str = "mcp-name";
/// The code for a header that contradicts the message.
const HEADER_MISMATCH: i64 = -32020;

/// A header as text, if there is one and it is text.
pub(super) fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// Refuses a POST whose sender could not read the answer.
pub(super) fn check_post(headers: &HeaderMap) -> Result<(), Refusal> {
    let kind = text(headers, CONTENT_TYPE.as_str()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if !kind.eq_ignore_ascii_case("application/json") {
        return Err(Box::new(refusal(StatusCode::UNSUPPORTED_MEDIA_TYPE, "the body must be application/json")));
    }
    if !accepts(headers, "application/json") || !accepts(headers, "text/event-stream") {
        let why = "the client must accept application/json and text/event-stream";
        return Err(Box::new(refusal(StatusCode::NOT_ACCEPTABLE, why)));
    }
    Ok(())
}

/// Refuses a GET whose sender could not read a stream.
pub(super) fn check_get(headers: &HeaderMap) -> Result<(), Refusal> {
    if !accepts(headers, "text/event-stream") {
        return Err(Box::new(refusal(StatusCode::NOT_ACCEPTABLE, "the client must accept text/event-stream")));
    }
    check_version(headers)
}

fn accepts(headers: &HeaderMap, kind: &str) -> bool {
    let family = kind.split_once('/').map(|(family, _)| format!("{family}/*")).unwrap_or_default();
    let all = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let mut kinds =
        all.flat_map(|value| value.split(',')).map(|part| part.split(';').next().unwrap_or_default().trim());
    kinds.any(|accepted| accepted.eq_ignore_ascii_case(kind) || accepted == "*/*" || accepted == family)
}

/// Refuses versions that are not spoken. Without the header, it is one of those that had none.
pub(super) fn check_version(headers: &HeaderMap) -> Result<(), Refusal> {
    match text(headers, VERSION) {
        Some(version) if !VERSIONS.contains(&version) => {
            let reply = Reply::refusal(None, stateless::unsupported(version));
            Err(Box::new(json(StatusCode::BAD_REQUEST, reply)))
        }
        _ => Ok(()),
    }
}

/// Whether a request belongs to the version without sessions.
pub(super) fn is_stateless(headers: &HeaderMap, messages: &[Result<Incoming, Malformed>]) -> bool {
    if text(headers, VERSION) == Some(stateless::VERSION) {
        return true;
    }
    matches!(messages, [Ok(Incoming::Request { method, params, .. })] if Envelope::read(method, params).is_some())
}

/// Checks that the headers repeat what the message says.
pub(super) fn check_mirrored(headers: &HeaderMap, method: &str, params: &Map<String, Value>) -> Result<(), RpcError> {
    let mismatch = |header: &str, what: &str| {
        Err(RpcError::new(HEADER_MISMATCH, format!("the header {header} does not repeat the {what} of the message")))
    };
    let version = Envelope::version(params).ok_or_else(Envelope::missing)?;
    if text(headers, VERSION) != Some(version) {
        return mismatch("MCP-Protocol-Version", "version");
    }
    if let Some(Err(error)) = Envelope::read(method, params) {
        return Err(error);
    }
    if text(headers, METHOD) != Some(method) {
        return mismatch("Mcp-Method", "method");
    }
    if method == "tools/call"
        && let Some(name) = params.get("name").and_then(Value::as_str)
        && text(headers, NAME).and_then(decoded).as_deref() != Some(name)
    {
        return mismatch("Mcp-Name", "name");
    }
    Ok(())
}

/// The value of a header. One that is no plain text comes as `=?base64?…?=`.
fn decoded(value: &str) -> Option<String> {
    match value.strip_prefix("=?base64?").and_then(|value| value.strip_suffix("?=")) {
        Some(encoded) => String::from_utf8(STANDARD.decode(encoded).ok()?).ok(),
        None => Some(value.to_owned()),
    }
}

/// The status for the code of an error, in the version without sessions.
pub(super) fn status_of(code: i64) -> StatusCode {
    match code {
        METHOD_NOT_FOUND => StatusCode::NOT_FOUND,
        PARSE_ERROR | INVALID_REQUEST | INVALID_PARAMS | HEADER_MISMATCH | stateless::UNSUPPORTED_VERSION => {
            StatusCode::BAD_REQUEST
        }
        _ => StatusCode::OK,
    }
}
