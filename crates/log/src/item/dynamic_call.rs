//! A call of a tool that a client supplies.

use std::time::Duration;

use codex_wire::dynamic_tool::DynamicToolCallOutputContentItem as Part;
use codex_wire::mcp::{CallToolResult, McpInvocation};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{ItemId, McpCall, McpCallEnd, Status};

/// The name of the server under which dialects without such calls show them.
const SERVER: &str = "client";

/// A call of a tool that a client supplies.
#[derive(Debug, Clone, PartialEq)]
pub struct DynamicCall {
    /// The id of the model's call.
    pub id: ItemId,
    pub namespace: Option<String>,
    pub tool: String,
    pub arguments: Value,
    pub status: Status,
    /// Its result, once it has ended.
    pub end: Option<DynamicCallEnd>,
}

/// The result of a call of a tool that a client supplies.
#[derive(Debug, Clone, PartialEq)]
pub struct DynamicCallEnd {
    pub duration: Duration,
    /// The parts of the result; `None` if the client gave none.
    pub content: Option<Vec<Part>>,
}

impl DynamicCall {
    pub(super) fn begun(&self) -> Self {
        Self { status: Status::Running, end: None, ..self.clone() }
    }

    pub(super) fn title(&self) -> String {
        self.namespace.as_ref().map_or_else(|| self.tool.clone(), |namespace| format!("{namespace}.{}", self.tool))
    }

    pub(super) fn weight(&self) -> usize {
        self.content().map_or(0, |parts| parts.iter().map(part_length).sum())
    }

    fn content(&self) -> Option<&[Part]> {
        self.end.as_ref()?.content.as_deref()
    }

    /// The same as a call of a tool of a server, for clients that know no other.
    #[must_use]
    pub fn as_mcp_call(&self) -> McpCall {
        let part = |part: &Part| match part {
            Part::InputText { text } => json!({"type": "text", "text": text}),
            Part::InputImage { image_url: url } | Part::InputAudio { audio_url: url } => {
                json!({"type": "resource_link", "name": "content", "uri": url})
            }
        };
        let result = |end: &DynamicCallEnd| match &end.content {
            Some(parts) => Ok(CallToolResult {
                content: parts.iter().map(part).collect(),
                structured_content: None,
                is_error: Some(self.status != Status::Completed),
            }),
            None => Err("the client gave no result".to_owned()),
        };
        McpCall {
            id: self.id.clone(),
            invocation: McpInvocation {
                server: self.namespace.clone().unwrap_or_else(|| SERVER.to_owned()),
                tool: self.tool.clone(),
                arguments: Some(self.arguments.clone()),
            },
            status: self.status,
            end: self.end.as_ref().map(|end| McpCallEnd { duration: end.duration, result: result(end) }),
        }
    }

    pub(super) fn stored_form(&self) -> StoredForm<'_> {
        StoredForm {
            id: self.id.as_str(),
            namespace: self.namespace.as_deref(),
            tool: &self.tool,
            arguments: &self.arguments,
            status: self.status.word(),
            content_items: self.content(),
            success: self.content().map(|_| self.status == Status::Completed),
            duration: self.end.as_ref().map(|end| end.duration),
        }
    }
}

fn part_length(part: &Part) -> usize {
    match part {
        Part::InputText { text } => text.len(),
        Part::InputImage { image_url: url } | Part::InputAudio { audio_url: url } => url.len(),
    }
}

#[derive(Serialize)]
pub(crate) struct StoredForm<'a> {
    id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    namespace: Option<&'a str>,
    tool: &'a str,
    arguments: &'a Value,
    status: &'static str,
    content_items: Option<&'a [Part]>,
    success: Option<bool>,
    duration: Option<Duration>,
}

#[derive(Deserialize)]
pub struct Stored {
    id: String,
    #[serde(default)]
    namespace: Option<String>,
    tool: String,
    #[serde(default)]
    arguments: Value,
    #[serde(default)]
    status: String,
    #[serde(default)]
    content_items: Option<Vec<Part>>,
    #[serde(default)]
    duration: Option<Duration>,
}

impl From<Stored> for DynamicCall {
    fn from(stored: Stored) -> Self {
        Self {
            id: ItemId::new(stored.id),
            namespace: stored.namespace,
            tool: stored.tool,
            arguments: stored.arguments,
            status: Status::of_ended(&stored.status),
            end: Some(DynamicCallEnd { duration: stored.duration.unwrap_or_default(), content: stored.content_items }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Item, StoredItem};

    #[test]
    fn a_call_survives_being_stored_and_is_shown_as_one_of_a_server() {
        let call = DynamicCall {
            id: ItemId::new("c"),
            namespace: Some("board".to_owned()),
            tool: "move".to_owned(),
            arguments: json!({"to": 3}),
            status: Status::Failed,
            end: Some(DynamicCallEnd {
                duration: Duration::from_millis(1500),
                content: Some(vec![Part::InputText { text: "no".to_owned() }]),
            }),
        };
        let item = Item::DynamicCall(std::sync::Arc::new(call.clone()));
        let json = serde_json::to_string(&item.stored_form()).unwrap();
        assert!(json.starts_with(r#"{"type":"DynamicToolCall","id":"c","namespace":"board""#), "{json}");
        assert_eq!(StoredItem::read(&json), Some(item));
        let shown = call.as_mcp_call();
        assert_eq!((shown.invocation.server.as_str(), shown.invocation.tool.as_str()), ("board", "move"));
        let result = shown.end.unwrap().result.unwrap();
        assert_eq!((result.is_error, &result.content[0]["text"]), (Some(true), &json!("no")));
    }
}
