//! What the configuration says about MCP servers, for `mcpServerStatus/list`.

use std::collections::BTreeMap;

use codex_protocol::v2::mcp_status::{
    ListMcpServerStatusParams, ListMcpServerStatusResponse, McpAuthStatus, McpServerConnectionStatus, McpServerStatus,
};

use crate::{
    Config, Reader, Table, Value,
    page::{CursorError, page},
};

/// One page of the servers in `[mcp_servers]`, as they are before anybody has spoken to them: without tools.
pub fn list_mcp_servers(
    config: &Config,
    params: &ListMcpServerStatusParams,
) -> Result<ListMcpServerStatusResponse, CursorError> {
    let wanted = |name: &&str| params.server_name.as_deref().is_none_or(|wanted| wanted == *name);
    let entries = Reader::new(&config.tree, None).section("mcp_servers").ok();
    let names = entries.iter().flat_map(Reader::keys).filter(wanted);
    let servers = names.map(|name| {
        let table = entries.as_ref().and_then(|entries| entries.node(name)).and_then(|node| node.value.as_table());
        status(name, table)
    });
    let (data, next_cursor) = page(servers.collect(), params.cursor.as_deref(), params.limit)?;
    Ok(ListMcpServerStatusResponse { data, next_cursor })
}

fn status(name: &str, entry: Option<&Table>) -> McpServerStatus {
    let has = |key: &str| entry.is_some_and(|entry| entry.contains_key(key));
    let enabled = entry.and_then(|entry| entry.get("enabled")).map(|node| &node.value) != Some(&Value::Boolean(false));
    let auth_status = match (has("url"), has("bearer_token_env_var")) {
        (true, true) => McpAuthStatus::BearerToken,
        (true, false) => McpAuthStatus::Unknown,
        (false, _) => McpAuthStatus::Unsupported,
    };
    let runtime = if enabled { McpServerConnectionStatus::NotStarted } else { McpServerConnectionStatus::Disabled };
    McpServerStatus {
        name: name.to_owned(),
        server_info: None,
        tools: BTreeMap::new(),
        resources: Vec::new(),
        resource_templates: Vec::new(),
        auth_status,
        runtime_status: Some(runtime),
        tools_error: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Overrides, config::tests::load};

    #[test]
    fn servers_are_listed_by_name_with_how_they_are_reached() {
        let file = "[mcp_servers.b]\nurl = 'http://h'\nbearer_token_env_var = 'T'\n[mcp_servers.a]\ncommand = 'x'\n\
            [mcp_servers.c]\nurl = 'http://h'\nenabled = false\n";
        let (_temp, config) = load(file, &Overrides::default());
        let config = config.unwrap();
        let list = |params: &ListMcpServerStatusParams| {
            let response = list_mcp_servers(&config, params).unwrap();
            let line = |server: &McpServerStatus| {
                let runtime = server.runtime_status.as_ref().map_or("", |status| status.as_str());
                format!("{} {} {runtime}", server.name, server.auth_status)
            };
            response.data.iter().map(line).collect::<Vec<_>>()
        };
        assert_eq!(
            list(&ListMcpServerStatusParams::default()),
            ["a unsupported notStarted", "b bearerToken notStarted", "c unknown disabled"]
        );
        let one = ListMcpServerStatusParams { server_name: Some("b".into()), ..ListMcpServerStatusParams::default() };
        assert_eq!(list(&one), ["b bearerToken notStarted"]);
    }

    #[test]
    fn without_servers_the_list_is_empty() {
        let (_temp, config) = load("", &Overrides::default());
        let response = list_mcp_servers(&config.unwrap(), &ListMcpServerStatusParams::default()).unwrap();
        assert_eq!(response, ListMcpServerStatusResponse::default());
    }
}
