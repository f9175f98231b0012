//! The tools that list and read resources of servers.

use std::sync::Arc;

use codex_log::Answer;
use codex_tools::call::{Concurrency, ToolCall, ToolInput};
use codex_tools::command::cut;
use codex_tools::context::ToolContext;
use codex_tools::grants::Grants;
use codex_tools::lifecycle::{Call, Effect, ToolOutput};
use codex_tools::registry::{Offer, Tool};
use codex_wire::tool_spec::ToolSpec;
use futures_util::future::{BoxFuture, join_all};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::thread_servers::{Slot, entries, read_resource, ready};

/// One of the tools.
pub(crate) struct ResourceTool {
    kind: Kind,
    spec: ToolSpec,
    servers: Arc<[Slot]>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    List,
    Templates,
    Read,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::List => "list_mcp_resources",
            Self::Templates => "list_mcp_resource_templates",
            Self::Read => "read_mcp_resource",
        }
    }

    fn spec(self) -> ToolSpec {
        let server = json!({"type": "string", "description": "The name of the MCP server; all servers if left out."});
        let listing = json!({"type": "object", "properties": {"server": server}, "additionalProperties": false});
        match self {
            Self::List => ToolSpec::function(
                self.name(),
                "Lists resources of MCP servers: data that servers share, such as files, schemas or records.",
                listing,
            ),
            Self::Templates => ToolSpec::function(
                self.name(),
                "Lists resource templates of MCP servers: resources whose address has parameters.",
                listing,
            ),
            Self::Read => ToolSpec::function(
                self.name(),
                "Reads a resource of an MCP server.",
                json!({
                    "type": "object",
                    "properties": {
                        "server": {"type": "string", "description": "The name of the MCP server, as listed."},
                        "uri": {"type": "string", "description": "The address of the resource, as listed."},
                    },
                    "required": ["server", "uri"],
                    "additionalProperties": false,
                }),
            ),
        }
    }
}

#[derive(Debug, Default, Deserialize)]
struct Arguments {
    #[serde(default)]
    server: Option<String>,
    #[serde(default)]
    uri: Option<String>,
}

impl ResourceTool {
    pub(crate) fn all(servers: &[Slot]) -> impl Iterator<Item = Arc<dyn Tool>> {
        let servers: Arc<[Slot]> = servers.into();
        [Kind::List, Kind::Templates, Kind::Read]
            .into_iter()
            .map(move |kind| Arc::new(Self { kind, spec: kind.spec(), servers: Arc::clone(&servers) }) as Arc<dyn Tool>)
    }
}

impl Tool for ResourceTool {
    fn spec(&self, _: Offer) -> Option<ToolSpec> {
        Some(self.spec.clone())
    }

    fn takes(&self, call: &ToolCall) -> bool {
        call.tool == self.kind.name() && matches!(call.input, ToolInput::Function(_))
    }

    fn concurrency(&self, _: &ToolCall) -> Concurrency {
        Concurrency::Beside
    }

    fn begin(&self, call: ToolCall, cx: &Arc<ToolContext>, _: &Grants) -> Box<dyn Call> {
        let (kind, servers, most) = (self.kind, Arc::clone(&self.servers), cx.output_bytes());
        let arguments = match &call.input {
            ToolInput::Function(text) if text.trim().is_empty() => Ok(Arguments::default()),
            ToolInput::Function(text) => serde_json::from_str(text).map_err(|error| error.to_string()),
            ToolInput::Custom(_) | ToolInput::UserShell { .. } => Err("the tool takes JSON".to_owned()),
        };
        Box::new(Lookup(Box::pin(async move {
            let found = match arguments {
                Ok(arguments) => look_up(kind, &servers, arguments).await,
                Err(why) => Err(format!("failed to parse function arguments: {why}")),
            };
            let text = found.map_or_else(|why| why, |value| value.to_string());
            cut(&text, most, text.len() as u64, text.lines().count())
        })))
    }
}

async fn look_up(kind: Kind, servers: &[Slot], arguments: Arguments) -> Result<Value, String> {
    let chosen: Vec<&Slot> = match &arguments.server {
        Some(name) => servers.iter().filter(|slot| slot.config.name == *name).collect(),
        None => servers.iter().filter(|slot| slot.server().is_some()).collect(),
    };
    if let (Some(name), true) = (&arguments.server, chosen.is_empty()) {
        return Err(format!("there is no MCP server `{name}`"));
    }
    let (method, key) = match kind {
        Kind::List => ("resources/list", "resources"),
        Kind::Templates => ("resources/templates/list", "resourceTemplates"),
        Kind::Read => {
            let (Some(slot), Some(uri)) = (chosen.first().filter(|_| arguments.server.is_some()), &arguments.uri)
            else {
                return Err("`server` and `uri` are needed".to_owned());
            };
            let contents = read_resource(slot, uri).await?;
            return Ok(json!({"server": arguments.server, "uri": uri, "contents": contents}));
        }
    };
    let listed = join_all(chosen.into_iter().map(|slot| async move {
        let Ok(ready) = ready(slot).await else { return Vec::new() };
        let mut found: Vec<Value> = entries(&ready, method, key).await;
        for entry in found.iter_mut().filter(|entry| entry.is_object()) {
            entry["server"] = slot.config.name.clone().into();
        }
        found
    }))
    .await;
    Ok(json!({key: listed.concat()}))
}

/// A call that ends with a text.
struct Lookup(BoxFuture<'static, String>);

impl Call for Lookup {
    fn begun(&mut self) -> Vec<Effect> {
        Vec::new()
    }

    fn answered(&mut self, _: Answer) -> Vec<Effect> {
        Vec::new()
    }

    fn next(&mut self) -> BoxFuture<'_, Vec<Effect>> {
        Box::pin(async { vec![Effect::End(ToolOutput::Text((&mut self.0).await))] })
    }

    fn stop(&mut self) -> Vec<Effect> {
        Vec::new()
    }

    fn is_quiet(&self) -> bool {
        true
    }
}
