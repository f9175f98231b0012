//! The start of a conversation with a server, and its lists.
//!
//! Servers of 2024 and 2025 expect a handshake. Those of 2026-07-28 have none: each request identifies the client, and
//! `server/discover` returns the capabilities. The handshake goes first, because older servers may never answer a method
//! that they do not know, while newer ones refuse the handshake at once; a server that had none when it last ran is
//! asked without.

use std::time::Duration;

use codex_wire::foreign_json::value_bytes;
use codex_wire::mcp::Tool;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::connection::{Connection, RequestError};

/// The newest version with a handshake.
const WITH_HANDSHAKE: &str = "2025-11-25";
/// The version without a handshake.
const STATELESS: &str = "2026-07-28";
/// The time limit for a server without a handshake to report its capabilities.
const DISCOVERY: Duration = Duration::from_secs(1);

/// The maximum number of tools of one server.
const MOST_TOOLS: usize = 2_000;
/// The maximum number of pages of one list.
const MOST_PAGES: usize = 100;
/// The maximum memory that the entries of one list may take.
const MOST_LIST: usize = 16 * 1024 * 1024;
/// The maximum number of tools of which a warning says why they are not offered.
const MOST_WARNINGS: usize = 20;
/// The maximum length of a tool's schema, as JSON.
const MOST_SCHEMA: usize = 128 * 1024;
/// The maximum length of a tool's description.
const MOST_DESCRIPTION: usize = 16 * 1024;

/// The description that a server gives of itself.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Introduction {
    pub(crate) info: Value,
    capabilities: Value,
    /// The version of the protocol.
    pub(crate) version: String,
}

impl Introduction {
    /// Whether the server has a capability.
    pub(crate) fn has(&self, capability: &str) -> bool {
        self.capabilities.get(capability).is_some_and(|value| !value.is_null())
    }

    /// Whether the server can tell that its tools have changed.
    pub(crate) fn tells_changes(&self) -> bool {
        self.capabilities["tools"]["listChanged"] == true
    }

    /// Whether results may ask for input instead of the server.
    pub(crate) fn is_stateless(&self) -> bool {
        self.version == STATELESS
    }
}

fn client() -> Value {
    json!({"name": "codex-mcp-client", "title": "Codex", "version": env!("CARGO_PKG_VERSION")})
}

fn client_capabilities(connection: &Connection) -> Value {
    let mut capabilities = json!({"elicitation": {"form": {}, "url": {}}, "roots": {}});
    if connection.allows_sampling() {
        capabilities["sampling"] = json!({});
    }
    capabilities
}

/// Greets a server, which may be known to have no handshake.
pub(crate) async fn introduce(
    connection: &Connection,
    is_stateless: bool,
    within: Duration,
) -> Result<Introduction, RequestError> {
    if is_stateless {
        match discover(connection).await {
            Some(introduction) => return Ok(introduction),
            // It has become another server.
            None => connection.set_meta(None),
        }
    }
    let params = json!({
        "protocolVersion": WITH_HANDSHAKE,
        "capabilities": client_capabilities(connection),
        "clientInfo": client(),
    });
    match connection.request("initialize", params, within).await {
        Ok(said) => {
            connection.notify("notifications/initialized", &json!({}));
            Ok(Introduction {
                info: said["serverInfo"].clone(),
                capabilities: said["capabilities"].clone(),
                version: said["protocolVersion"].as_str().unwrap_or(WITH_HANDSHAKE).to_owned(),
            })
        }
        Err(refused @ RequestError::Refused(_)) => discover(connection).await.ok_or(refused),
        Err(error) => Err(error),
    }
}

/// Asks a server without a handshake for its capabilities.
async fn discover(connection: &Connection) -> Option<Introduction> {
    connection.set_meta(Some(json!({
        "io.modelcontextprotocol/protocolVersion": STATELESS,
        "io.modelcontextprotocol/clientCapabilities": client_capabilities(connection),
        "io.modelcontextprotocol/clientInfo": client(),
    })));
    let said = connection.request("server/discover", json!({}), DISCOVERY).await.ok()?;
    let versions = said["supportedVersions"].as_array()?;
    versions.iter().any(|version| version == STATELESS).then(|| Introduction {
        info: said["serverInfo"].clone(),
        capabilities: said["capabilities"].clone(),
        version: STATELESS.to_owned(),
    })
}

/// The tools of a server, and a warning for each that cannot be offered.
pub(crate) async fn tools(connection: &Connection, within: Duration) -> Result<(Vec<Tool>, Vec<String>), RequestError> {
    let (mut tools, mut warnings, mut unnamed) = (Vec::new(), Vec::new(), 0);
    let is_whole = entries(connection, "tools/list", "tools", within, |entry| {
        match usable(entry) {
            Ok(tool) => tools.push(tool),
            Err(why) if warnings.len() < MOST_WARNINGS => warnings.push(why),
            Err(_) => unnamed += 1,
        }
        tools.len() < MOST_TOOLS
    });
    let is_whole = is_whole.await?;
    if unnamed > 0 {
        warnings.push(format!("{unnamed} more tools are not offered"));
    }
    if !is_whole {
        warnings.push(format!("only the first {} tools are offered", tools.len()));
    }
    Ok((tools, warnings))
}

/// The valid entries of a list.
pub(crate) async fn list<T: DeserializeOwned>(
    connection: &Connection,
    method: &str,
    key: &str,
    within: Duration,
) -> Result<Vec<T>, RequestError> {
    let mut list = Vec::new();
    let keep = |entry| {
        list.extend(serde_json::from_value(entry));
        list.len() < MOST_TOOLS
    };
    entries(connection, method, key, within, keep).await?;
    Ok(list)
}

/// Reads the pages of a list, and passes on each entry until `keep` returns false, or they take too much memory.
/// Returns whether that was all.
async fn entries(
    connection: &Connection,
    method: &str,
    key: &str,
    within: Duration,
    mut keep: impl FnMut(Value) -> bool,
) -> Result<bool, RequestError> {
    let (mut room, mut params) = (MOST_LIST, json!({}));
    for _ in 0..MOST_PAGES {
        let mut page = connection.request(method, params.clone(), within).await?;
        let entries = if let Value::Array(entries) = page[key].take() { entries } else { Vec::new() };
        let mut entries = entries.into_iter().peekable();
        while let Some(entry) = entries.next() {
            let Some(left) = room.checked_sub(value_bytes(&entry)) else { return Ok(false) };
            room = left;
            if !keep(entry) {
                return Ok(entries.peek().is_none() && !page["nextCursor"].is_string());
            }
        }
        match page["nextCursor"].take() {
            // A server that repeats a cursor has no more pages.
            Value::String(cursor) if params["cursor"] != *cursor => params = json!({"cursor": cursor}),
            _ => return Ok(true),
        }
    }
    Ok(false)
}

/// A tool that a model can be offered, or the reason why it cannot.
pub(crate) fn usable(entry: Value) -> Result<Tool, String> {
    let name = entry["name"].as_str().unwrap_or_default().to_owned();
    if name.is_empty() || name.len() > 256 {
        return Err("a tool without a usable name is not offered".to_owned());
    }
    let mut tool: Tool =
        serde_json::from_value(entry).map_err(|error| format!("the tool `{name}` is not offered: {error}"))?;
    let schema = match &mut tool.input_schema {
        Value::Object(schema) => schema,
        Value::Null => return Err(format!("the tool `{name}` is not offered: it has no schema")),
        _ => return Err(format!("the tool `{name}` is not offered: its schema is not an object")),
    };
    // Providers reject a whole request if one schema of it has no type.
    if schema.get("type").is_some_and(|kind| kind != "object") {
        return Err(format!("the tool `{name}` is not offered: its schema is not that of an object"));
    }
    let bytes = serde_json::to_string(&*schema).map_or(0, |text| text.len());
    if bytes > MOST_SCHEMA {
        return Err(format!(
            "the tool `{name}` is not offered: its schema has {bytes} bytes, {MOST_SCHEMA} are allowed"
        ));
    }
    if let Some(description) = tool.description.as_mut().filter(|text| text.len() > MOST_DESCRIPTION) {
        *description = codex_tools::command::cut(description, MOST_DESCRIPTION, description.len() as u64, 1);
    }
    Ok(tool)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invalid_tool_is_reported() {
        let why = |entry| usable(entry).unwrap_err();
        let tool = |schema| json!({"name": "t", "inputSchema": schema});
        assert_eq!(why(json!({})), "a tool without a usable name is not offered");
        assert_eq!(why(json!({"name": "t"})), "the tool `t` is not offered: it has no schema");
        assert_eq!(why(tool(json!("x"))), "the tool `t` is not offered: its schema is not an object");
        assert_eq!(
            why(tool(json!({"type": "string"}))),
            "the tool `t` is not offered: its schema is not that of an object"
        );
        let huge = why(tool(json!({"description": "x".repeat(MOST_SCHEMA)})));
        assert!(huge.contains("131090 bytes, 131072 are allowed"), "{huge}");
        assert_eq!(
            why(json!({"name": "t", "inputSchema": {}, "title": 7})).split(": ").next(),
            Some("the tool `t` is not offered")
        );
        let circular = tool(json!({"type": "object", "properties": {"a": {"$ref": "#"}}}));
        assert_eq!(usable(circular.clone()).unwrap().input_schema, circular["inputSchema"]);
    }
}
