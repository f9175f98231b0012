//! The options of `codex mcp`.

use clap::{Args as ClapArgs, Subcommand};

/// Options of `mcp`.
#[derive(Debug, ClapArgs)]
pub(crate) struct McpArgs {
    #[command(subcommand)]
    pub(crate) form: Option<McpCommand>,
}

/// The forms of `mcp`.
#[derive(Debug, Subcommand)]
pub(crate) enum McpCommand {
    /// List the configured MCP servers
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show one configured MCP server
    Get {
        /// Name of the server
        name: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Add an MCP server to config.toml, or replace one
    #[command(override_usage = "codex mcp add [OPTIONS] <NAME> (--url <URL> | -- <COMMAND>...)")]
    Add(AddArgs),
    /// Remove an MCP server from config.toml
    Remove {
        /// Name of the server
        name: String,
    },
    /// Log in to an MCP server with OAuth, in a browser
    Login {
        /// Name of the server
        name: String,
        /// Scopes to request, separated by commas, in place of those of the configuration and of the server
        #[arg(long, value_name = "SCOPE,SCOPE", value_delimiter = ',')]
        scopes: Vec<String>,
    },
    /// Log out of an MCP server: remove its stored credentials
    Logout {
        /// Name of the server
        name: String,
    },
    /// Approve an MCP server of the project in this folder, as it is now
    Approve {
        /// Name of the server
        name: String,
        /// Do not ask for confirmation; required without a terminal
        #[arg(long)]
        yes: bool,
    },
    /// Serve as `mcp-server` does, with the conversations of 0.42 on the same stream
    #[command(hide = true)]
    Serve,
}

/// Options of `mcp add`.
#[derive(Debug, ClapArgs)]
pub(crate) struct AddArgs {
    /// Name of the server: letters, digits, `-` and `_`
    pub(crate) name: String,
    /// Environment variable of the server's process
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair, conflicts_with = "url")]
    pub(crate) env: Vec<(String, String)>,
    /// Address of a server that speaks streamable HTTP
    #[arg(long, conflicts_with = "command")]
    pub(crate) url: Option<String>,
    /// Environment variable with the bearer token for the address
    #[arg(long, value_name = "ENV_VAR", requires = "url", conflicts_with = "command")]
    pub(crate) bearer_token_env_var: Option<String>,
    /// Client id for logins to the address
    #[arg(long, value_name = "CLIENT_ID", requires = "url", conflicts_with = "command")]
    pub(crate) oauth_client_id: Option<String>,
    /// Name of the address in requests for tokens
    #[arg(long, value_name = "RESOURCE", requires = "url", conflicts_with = "command")]
    pub(crate) oauth_resource: Option<String>,
    /// Command that starts the server, with its arguments
    #[arg(last = true, required_unless_present = "url", num_args = 1..)]
    pub(crate) command: Vec<String>,
}

fn pair(word: &str) -> Result<(String, String), String> {
    match word.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => Ok((key.trim().to_owned(), value.to_owned())),
        _ => Err("environment entries must be in KEY=VALUE form".to_owned()),
    }
}
