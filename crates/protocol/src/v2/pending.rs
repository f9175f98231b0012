//! `serverRequest/list`: the open requests to a client.

use std::borrow::Cow;

use codex_wire::ids::RequestId;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// `serverRequest/list`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ServerRequestListParams {
    /// The thread that wants to know.
    #[serde(alias = "thread_id", alias = "conversationId")]
    pub thread_id: String,
}

/// The response of `serverRequest/list`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ServerRequestListResponse {
    /// The requests, oldest first. Their ids are answered like those of the requests themselves.
    pub data: Vec<PendingServerRequest>,
}

/// A server request that waits for an answer.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PendingServerRequest {
    /// The id that the response repeats.
    pub id: RequestId,
    pub method: Cow<'static, str>,
    pub params: Value,
}
