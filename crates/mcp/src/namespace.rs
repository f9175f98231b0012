//! The tools of a server as one namespace, for clients and models of newer releases.

use std::collections::BTreeSet;
use std::sync::OnceLock;

use codex_wire::tool_spec::ToolSpec;

use crate::names;

/// The tools of one server under one name.
pub(crate) struct ServerNamespace {
    name: String,
    description: String,
    /// The names of the tools in the namespace, and the tools under their full names.
    tools: Vec<(String, ToolSpec)>,
    /// Built when it is first offered: most threads never see it.
    spec: OnceLock<ToolSpec>,
}

impl ServerNamespace {
    /// The namespace of a server with these tools: their names on the server, and their descriptions.
    pub(crate) fn new(server: &str, tools: Vec<(String, ToolSpec)>) -> Self {
        let name = names::namespace(server);
        let description = format!("Tools of the MCP server {server}.");
        Self { name, description, tools, spec: OnceLock::new() }
    }

    /// The names in the namespace for tools of a server, in order.
    pub(crate) fn names<'a>(tools: impl Iterator<Item = &'a str>) -> Vec<String> {
        let mut taken = BTreeSet::new();
        tools.map(|tool| names::short_name(tool, &mut taken)).collect()
    }

    pub(crate) fn spec(&self) -> ToolSpec {
        let spec = self.spec.get_or_init(|| {
            let tools = self.tools.iter().map(|(name, tool)| tool.named(name.clone())).collect();
            ToolSpec::namespace(self.name.clone(), self.description.clone(), tools)
        });
        spec.clone()
    }
}
