//! The configured MCP servers.

use crate::{Config, Reader, Table, Value};

/// An MCP server of `[mcp_servers]`, before it is contacted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpServer {
    pub name: String,
    /// Whether it has an address, and is not started as a program.
    pub is_remote: bool,
    /// Whether a variable holds a token for it.
    pub has_token: bool,
    pub is_enabled: bool,
}

/// The servers by name.
#[must_use]
pub fn list_mcp_servers(config: &Config) -> Vec<McpServer> {
    let entries = Reader::new(&config.tree, None).section("mcp_servers").ok();
    let names = entries.iter().flat_map(Reader::keys);
    let servers = names.map(|name| {
        let table = entries.as_ref().and_then(|entries| entries.node(name)).and_then(|node| node.value.as_table());
        server(name, table)
    });
    servers.collect()
}

fn server(name: &str, entry: Option<&Table>) -> McpServer {
    let has = |key: &str| entry.is_some_and(|entry| entry.contains_key(key));
    let enabled = entry.and_then(|entry| entry.get("enabled")).map(|node| &node.value);
    McpServer {
        name: name.to_owned(),
        is_remote: has("url"),
        has_token: has("bearer_token_env_var"),
        is_enabled: enabled != Some(&Value::Boolean(false)),
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
        let server = |name: &str, is_remote, has_token, is_enabled| McpServer {
            name: name.to_owned(),
            is_remote,
            has_token,
            is_enabled,
        };
        assert_eq!(
            list_mcp_servers(&config.unwrap()),
            [server("a", false, false, true), server("b", true, true, true), server("c", true, false, false)]
        );
    }

    #[test]
    fn without_servers_the_list_is_empty() {
        let (_temp, config) = load("", &Overrides::default());
        assert_eq!(list_mcp_servers(&config.unwrap()), []);
    }
}
