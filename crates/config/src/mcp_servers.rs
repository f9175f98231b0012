//! The configured MCP servers: `[mcp_servers.<name>]`.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::Duration,
};

use crate::{Config, Origin, Reader, Secret, ValueError, words::words};

/// The default time limit for the start of a server.
const STARTUP: Duration = Duration::from_secs(10);
/// The default time limit of a call.
const CALL: Duration = Duration::from_secs(60);
/// The default limit of tokens that the model answers a server with during one call.
const SAMPLING_TOKENS: u32 = 4_096;
/// The longest time that can be set without overflowing a timer.
const LONGEST_SECONDS: f64 = 86_400.0 * 365.0;

words! {
    /// The approval mode of a tool.
    pub enum McpApprovalMode {
        /// Depends on the approval policy and on the tool's annotations.
        "auto" => Auto,
        /// Before every call.
        "prompt" => Prompt,
        /// Never.
        "approve" => Approve,
    }
}

/// An MCP server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpServer {
    /// Its key in `[mcp_servers]`.
    pub name: String,
    pub transport: McpTransport,
    /// `enabled`.
    pub is_enabled: bool,
    /// `required`: whether a turn waits for it, up to its time to start.
    pub is_required: bool,
    /// `startup_timeout_sec` or `startup_timeout_ms`.
    pub startup_timeout: Duration,
    /// `tool_timeout_sec`: the time limit of a call without an answer or progress.
    pub tool_timeout: Duration,
    /// `enabled_tools`: the only tools that are offered.
    pub enabled_tools: Option<Vec<String>>,
    /// `disabled_tools`: tools that are not offered.
    pub disabled_tools: Vec<String>,
    /// `supports_parallel_tool_calls`: whether all of its tools may run concurrently.
    pub runs_in_parallel: bool,
    /// `default_tools_approval_mode`.
    pub approval: McpApprovalMode,
    /// `tools.<name>.approval_mode`.
    pub tool_approvals: BTreeMap<String, McpApprovalMode>,
    pub oauth: McpOauth,
    /// `sampling` and `sampling_max_tokens`: the most tokens of the model's answers during one call, if the server may ask
    /// the model.
    pub sampling: Option<u32>,
}

/// The transport of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum McpTransport {
    /// A program that is started, and communicates over its standard streams.
    Stdio(McpProgram),
    /// A server at a URL.
    Http(McpAddress),
}

/// A server that is started as a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpProgram {
    pub command: String,
    pub args: Vec<String>,
    /// Variables and their values, which may be keys.
    pub env: BTreeMap<String, Secret>,
    /// Variables of this process that are passed on.
    pub env_vars: Vec<String>,
    /// Its working directory; that of the thread if unset.
    pub cwd: Option<PathBuf>,
}

/// A server at a URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpAddress {
    pub url: String,
    /// The variable that holds the token of its requests.
    pub bearer_token_env_var: Option<String>,
    /// Headers of all requests.
    pub http_headers: BTreeMap<String, Secret>,
    /// Headers whose value is in a variable: header name to variable name.
    pub env_http_headers: BTreeMap<String, String>,
    /// `legacy_sse`: whether the transport of 2024-11-05 is tried if the server refuses the newer one.
    pub legacy_sse: bool,
}

/// The settings for logging in to a server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct McpOauth {
    /// `scopes`.
    pub scopes: Option<Vec<String>>,
    /// `oauth.client_id`.
    pub client_id: Option<String>,
    /// `oauth.client_secret_env_var`: the variable that holds the secret of the client.
    pub client_secret_env_var: Option<String>,
    /// `oauth.callback_port`.
    pub callback_port: Option<u16>,
    /// `oauth_resource`.
    pub resource: Option<String>,
}

impl McpServer {
    /// Whether the configuration itself names the token of its requests.
    #[must_use]
    pub fn has_bearer_token(&self) -> bool {
        let McpTransport::Http(address) = &self.transport else { return false };
        let mut names = address.http_headers.keys().chain(address.env_http_headers.keys());
        address.bearer_token_env_var.is_some() || names.any(|name| name.eq_ignore_ascii_case("authorization"))
    }

    /// The approval mode of a tool.
    #[must_use]
    pub fn approval_of(&self, tool: &str) -> McpApprovalMode {
        self.tool_approvals.get(tool).copied().unwrap_or(self.approval)
    }

    /// Whether a tool is offered.
    #[must_use]
    pub fn offers(&self, tool: &str) -> bool {
        let is_listed = |names: &Vec<String>| names.iter().any(|name| name == tool);
        self.enabled_tools.as_ref().is_none_or(is_listed) && !is_listed(&self.disabled_tools)
    }
}

impl Config {
    /// The MCP servers, by name; `user_dir` replaces `~` in their paths.
    #[must_use]
    pub fn mcp_servers(&self, user_dir: Option<&Path>) -> Vec<McpServer> {
        // They were read without an error before.
        read_mcp_servers(&Reader::new(&self.tree, user_dir)).unwrap_or_default()
    }
}

/// Reads `[mcp_servers]`.
pub(crate) fn read_mcp_servers(root: &Reader<'_>) -> Result<Vec<McpServer>, ValueError> {
    let servers = root.section("mcp_servers")?;
    servers.keys().map(|name| server(name, &servers.section(name)?, &servers)).collect()
}

fn server(name: &str, entry: &Reader<'_>, servers: &Reader<'_>) -> Result<McpServer, ValueError> {
    // Every key is read before the transport is chosen, so that each mistake is reported with its own line.
    let (program, address) = (program(entry)?, address(entry)?);
    let transport = match (program, address) {
        (Some(program), None) => McpTransport::Stdio(program),
        (None, Some(address)) => McpTransport::Http(address),
        (Some(_), Some(_)) => return Err(conflict(entry, "command", "url")),
        (None, None) => {
            let origin = servers.node(name).map_or(Origin::Default, |node| node.origin.clone());
            let problem = "expected `command` or `url`".to_owned();
            return Err(ValueError::new(origin, servers.path_of(name).to_string(), problem));
        }
    };
    let stray = match &transport {
        McpTransport::Stdio(_) => ["bearer_token_env_var", "http_headers", "env_http_headers", "legacy_sse"].as_slice(),
        McpTransport::Http(_) => &["args", "env", "env_vars", "cwd"],
    };
    let main = if matches!(transport, McpTransport::Stdio(_)) { "command" } else { "url" };
    if let Some(key) = stray.iter().find(|key| entry.node(key).is_some()) {
        return Err(conflict(entry, main, key));
    }
    let oauth = entry.section("oauth")?;
    let sampling_tokens = entry.integer("sampling_max_tokens", 1..)?.unwrap_or(SAMPLING_TOKENS);
    Ok(McpServer {
        name: name.to_owned(),
        transport,
        is_enabled: entry.bool("enabled")?.unwrap_or(true),
        is_required: entry.bool("required")?.unwrap_or(false),
        startup_timeout: match seconds(entry, "startup_timeout_sec")? {
            Some(timeout) => timeout,
            None => entry.integer("startup_timeout_ms", 1..)?.map_or(STARTUP, Duration::from_millis),
        },
        tool_timeout: seconds(entry, "tool_timeout_sec")?.unwrap_or(CALL),
        enabled_tools: entry.strings("enabled_tools")?,
        disabled_tools: entry.strings("disabled_tools")?.unwrap_or_default(),
        runs_in_parallel: entry.bool("supports_parallel_tool_calls")?.unwrap_or(false),
        approval: entry.word("default_tools_approval_mode")?.unwrap_or(McpApprovalMode::Auto),
        tool_approvals: entry.map("tools", |tools, tool| tools.section(tool)?.word("approval_mode"))?,
        oauth: McpOauth {
            scopes: entry.strings("scopes")?,
            client_id: oauth.str("client_id")?,
            client_secret_env_var: oauth.str("client_secret_env_var")?,
            callback_port: oauth.integer("callback_port", 1..)?,
            resource: entry.str("oauth_resource")?,
        },
        sampling: entry.bool("sampling")?.unwrap_or(false).then_some(sampling_tokens),
    })
}

fn program(entry: &Reader<'_>) -> Result<Option<McpProgram>, ValueError> {
    let (args, env) = (entry.strings("args")?.unwrap_or_default(), entry.secret_map("env")?);
    let (env_vars, cwd) = (entry.strings("env_vars")?.unwrap_or_default(), entry.path("cwd")?);
    Ok(entry.str("command")?.map(|command| McpProgram { command, args, env, env_vars, cwd }))
}

fn address(entry: &Reader<'_>) -> Result<Option<McpAddress>, ValueError> {
    let bearer_token_env_var = entry.str("bearer_token_env_var")?;
    let http_headers = entry.secret_map("http_headers")?;
    let env_http_headers = entry.string_map("env_http_headers")?;
    let legacy_sse = entry.bool("legacy_sse")?.unwrap_or(false);
    let url = entry.str("url")?;
    Ok(url.map(|url| McpAddress { url, bearer_token_env_var, http_headers, env_http_headers, legacy_sse }))
}

/// The error that a server has keys of both transports, at the second one.
fn conflict(entry: &Reader<'_>, main: &str, other: &str) -> ValueError {
    let origin = entry.node(other).map_or(Origin::Default, |node| node.origin.clone());
    let problem = format!("a server with `{main}` cannot have `{other}`");
    ValueError::new(origin, entry.path_of(other).to_string(), problem)
}

/// A duration in seconds, with or without a fraction.
fn seconds(entry: &Reader<'_>, key: &str) -> Result<Option<Duration>, ValueError> {
    let Some(seconds) = entry.amount(key)? else { return Ok(None) };
    match (entry.node(key), seconds > 0.0) {
        (Some(node), false) => Err(entry.error(key, node, "expected a number above 0".to_owned())),
        _ => Ok(Some(Duration::from_secs_f64(seconds.min(LONGEST_SECONDS)))),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;
    use crate::{Overrides, config::tests::load};

    fn servers(file: &str) -> Result<Vec<McpServer>, String> {
        let (temp, config) = load(file, &Overrides::default());
        let place = temp.path().display().to_string();
        config.map(|config| config.mcp_servers(None)).map_err(|error| error.to_string().replace(&place, "@"))
    }

    #[track_caller]
    fn refused(file: &str, expected: Expect) {
        expected.assert_eq(&servers(file).unwrap_err());
    }

    #[test]
    fn a_program_has_all_its_keys() {
        let read = servers(
            "[mcp_servers.a]\ncommand = 'x'\nargs = ['1']\nenv = { K = 'secret' }\nenv_vars = ['V']\ncwd = '/w'\n\
             startup_timeout_sec = 2.5\ntool_timeout_sec = 7\nrequired = true\nenabled_tools = ['p', 'q']\n\
             disabled_tools = ['q']\nsupports_parallel_tool_calls = true\ndefault_tools_approval_mode = 'prompt'\n\
             tools.p.approval_mode = 'approve'\nscopes = ['s']\noauth = { client_id = 'c', client_secret_env_var = 'S', callback_port = 80 }\n\
             oauth_resource = 'r'\nsampling = true\nsampling_max_tokens = 100\n",
        )
        .unwrap();
        expect![[r#"
            [McpServer { name: "a", transport: Stdio(McpProgram { command: "x", args: ["1"], env: {"K": ***}, env_vars: ["V"], cwd: Some("/w") }), is_enabled: true, is_required: true, startup_timeout: 2.5s, tool_timeout: 7s, enabled_tools: Some(["p", "q"]), disabled_tools: ["q"], runs_in_parallel: true, approval: Prompt, tool_approvals: {"p": Approve}, oauth: McpOauth { scopes: Some(["s"]), client_id: Some("c"), client_secret_env_var: Some("S"), callback_port: Some(80), resource: Some("r") }, sampling: Some(100) }]"#]]
        .assert_eq(&format!("{read:?}"));
        let server = &read[0];
        assert!(server.offers("p") && !server.offers("q") && !server.offers("r"));
        assert_eq!(server.approval_of("p"), McpApprovalMode::Approve);
        assert_eq!(server.approval_of("r"), McpApprovalMode::Prompt);
    }

    #[test]
    fn an_address_has_all_its_keys_and_the_rest_is_usual() {
        let read = servers(
            "[mcp_servers.b]\nurl = 'http://h'\nbearer_token_env_var = 'T'\nhttp_headers = { X = 'secret' }\n\
             env_http_headers = { Y = 'V' }\nlegacy_sse = true\nenabled = false\nstartup_timeout_ms = 300\n[mcp_servers.a]\ncommand = 'x'\n",
        )
        .unwrap();
        assert_eq!(read.iter().map(|server| &*server.name).collect::<Vec<_>>(), ["a", "b"]);
        expect![[r#"Http(McpAddress { url: "http://h", bearer_token_env_var: Some("T"), http_headers: {"X": ***}, env_http_headers: {"Y": "V"}, legacy_sse: true })"#]]
            .assert_eq(&format!("{:?}", read[1].transport));
        assert!(!read[1].is_enabled && read[0].is_enabled && !read[0].is_required);
        assert_eq!((read[0].startup_timeout, read[0].tool_timeout), (STARTUP, CALL));
        assert_eq!(read[1].startup_timeout, Duration::from_millis(300));
        assert_eq!(read[0].sampling, None);
        assert_eq!(servers("").unwrap(), []);
    }

    #[test]
    fn mistakes_name_file_and_line() {
        refused(
            "[mcp_servers.a]\ncommand = 'x'\nurl = 'http://h'\n",
            expect!["@/config.toml:3: mcp_servers.a.url: a server with `command` cannot have `url`"],
        );
        refused(
            "[mcp_servers.a]\nurl = 'http://h'\nargs = []\n",
            expect!["@/config.toml:3: mcp_servers.a.args: a server with `url` cannot have `args`"],
        );
        refused(
            "[mcp_servers.a]\nenabled = true\n",
            expect!["@/config.toml:1: mcp_servers.a: expected `command` or `url`"],
        );
        refused(
            "[mcp_servers.a]\ncommand = 'x'\ntool_timeout_sec = 0\n",
            expect!["@/config.toml:3: mcp_servers.a.tool_timeout_sec: expected a number above 0"],
        );
        refused(
            "[mcp_servers.a]\ncommand = 'x'\n[mcp_servers.a.tools.p]\napproval_mode = 'never'\n",
            expect![
                "@/config.toml:4: mcp_servers.a.tools.p.approval_mode: unknown value `never`, expected one of auto, prompt, approve"
            ],
        );
        refused(
            "[mcp_servers.a]\ncommand = 'x'\nenv = { K = 5 }\n",
            expect!["@/config.toml:3: mcp_servers.a.env.K: expected a string, found an integer"],
        );
    }
}
