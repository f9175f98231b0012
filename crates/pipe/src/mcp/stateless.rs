//! The version 2026-07-28, which has no handshake: each request says in `_meta` which version it speaks and what its
//! client can do.

use serde_json::{Map, Value, json};

use super::elicitation::Elicits;
use super::message::{INVALID_PARAMS, RpcError};
use super::{session, tool};

/// The version without a handshake.
pub(super) const VERSION: &str = "2026-07-28";
/// The code for a version that is not spoken.
pub(super) const UNSUPPORTED_VERSION: i64 = -32022;
/// The time for which a client may cache a list, in milliseconds. The lists change only with the program.
const LIST_MS: u64 = 60 * 60 * 1000;

const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";

/// The properties of a client that each of its requests repeats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Envelope {
    pub(super) elicits: Elicits,
}

impl Envelope {
    /// Reads the envelope of a request; `None` if the request belongs to a version with a handshake.
    pub(super) fn read(method: &str, params: &Map<String, Value>) -> Option<Result<Self, RpcError>> {
        let meta = params.get("_meta").and_then(Value::as_object);
        let member = |key: &str| meta.and_then(|meta| meta.get(key));
        match member(PROTOCOL_VERSION) {
            None if method == "server/discover" => Some(Err(missing(PROTOCOL_VERSION))),
            None => None,
            Some(Value::String(version)) if version == VERSION => Some(match member(CLIENT_CAPABILITIES) {
                Some(capabilities) => Ok(Self { elicits: Elicits::of(capabilities) }),
                None => Err(missing(CLIENT_CAPABILITIES)),
            }),
            Some(Value::String(other)) => Some(Err(unsupported(other))),
            Some(_) => Some(Err(RpcError::new(
                INVALID_PARAMS,
                format!("`_meta` has a `{PROTOCOL_VERSION}` that is not a string"),
            ))),
        }
    }

    /// The version that a request says it speaks.
    pub(super) fn version(params: &Map<String, Value>) -> Option<&str> {
        params.get("_meta").and_then(|meta| meta.get(PROTOCOL_VERSION)).and_then(Value::as_str)
    }

    /// The error for a request without an envelope where there must be one.
    pub(super) fn missing() -> RpcError {
        missing(PROTOCOL_VERSION)
    }
}

fn missing(key: &str) -> RpcError {
    RpcError::new(INVALID_PARAMS, format!("`_meta` has no `{key}`"))
}

/// The error for a version that is not spoken, with those that are.
pub(super) fn unsupported(version: &str) -> RpcError {
    let data = json!({"supported": supported_versions(), "requested": version});
    let message = format!("the protocol version {version} is not supported");
    RpcError { data: Some(Box::new(data)), ..RpcError::new(UNSUPPORTED_VERSION, message) }
}

fn supported_versions() -> Vec<&'static str> {
    [session::VERSIONS, &[VERSION]].concat()
}

/// The result of `server/discover`. The list of tools never changes, so there is nothing to subscribe to.
pub(super) fn discovery() -> Value {
    complete(cacheable(json!({
        "_meta": {SERVER_INFO: session::server_info()},
        "supportedVersions": supported_versions(),
        "capabilities": {"tools": {}},
    })))
}

/// The result of `tools/list`.
pub(super) fn tools() -> Value {
    complete(cacheable(tool::list()))
}

/// Marks a result as final.
pub(super) fn complete(mut result: Value) -> Value {
    result["resultType"] = "complete".into();
    result
}

fn cacheable(mut result: Value) -> Value {
    result["ttlMs"] = LIST_MS.into();
    result["cacheScope"] = "public".into();
    result
}

/// The result of a call that needs answers: the requests by their keys, and the state that comes back with them.
pub(super) fn input_required(requests: Map<String, Value>, state: String) -> Value {
    json!({"resultType": "input_required", "inputRequests": requests, "requestState": state})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(method: &str, meta: Value) -> Option<Result<Envelope, i64>> {
        let Value::Object(params) = json!({"_meta": meta}) else { panic!("it is an object") };
        Envelope::read(method, &params).map(|read| read.map_err(|error| error.code))
    }

    #[test]
    fn a_request_says_which_era_it_belongs_to() {
        assert_eq!(read("tools/list", json!({})), None);
        assert_eq!(read("tools/list", json!({"progressToken": 1})), None);
        assert_eq!(read("server/discover", json!({})), Some(Err(INVALID_PARAMS)));
        let envelope = |version: Value| json!({PROTOCOL_VERSION: version, CLIENT_CAPABILITIES: {"elicitation": {}}});
        let known = read("tools/list", envelope(json!(VERSION))).expect("it has an envelope").expect("it is complete");
        assert!(known.elicits.form && !known.elicits.url);
        assert_eq!(read("tools/list", envelope(json!("2030-01-01"))), Some(Err(UNSUPPORTED_VERSION)));
        assert_eq!(read("tools/list", envelope(json!(7))), Some(Err(INVALID_PARAMS)));
        assert_eq!(read("tools/list", json!({PROTOCOL_VERSION: VERSION})), Some(Err(INVALID_PARAMS)));
    }

    #[test]
    fn an_unsupported_version_is_told_the_supported_ones() {
        let data = unsupported("x").data.expect("it has data");
        assert_eq!(data["requested"], "x");
        assert_eq!(data["supported"].as_array().and_then(|all| all.last()), Some(&json!(VERSION)));
    }
}
