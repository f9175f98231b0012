//! MCP servers: their state and their tools and resources, and calls and reads for clients.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use codex_methods::pagination::page;
use codex_protocol::rpc::ErrorObject;
use codex_protocol::v2::empty::Empty;
use codex_protocol::v2::mcp_status::{
    CustomPromptListParams, CustomPromptListResponse, ListMcpServerStatusParams, ListMcpServerStatusResponse,
    ListedPrompt, McpAuthStatus, McpResourceReadParams, McpResourceReadResponse, McpServerConnectionStatus,
    McpServerOauthLoginCompletedNotification, McpServerOauthLoginParams, McpServerOauthLoginResponse,
    McpServerRestartParams, McpServerStatus, McpServerStatusDetail, McpServerToolCallParams, McpServerToolCallResponse,
};
use codex_protocol::v2::notification::ServerNotification;
use codex_thread::Thread;
use codex_tools::servers::{ServerLoginRequest, ServerScope, ServerState, ServerStatus, ThreadServers};
use codex_wire::mcp::{McpAuthStatus as Auth, McpInvocation};

use super::account::refused;
use crate::app::connection::Connection;
use crate::app::dispatch::serve;
use crate::app::stored_threads::{parse_name, tell_all};

serve! {
    plain {
        McpServerRestart => restart,
    }
    waits {
        McpServerStatusList => list,
        McpServerOauthLogin => log_in,
        CustomPromptList => prompts,
        McpServerToolCall => call,
        McpResourceRead => read,
    }
}

/// The configured servers, as a thread in this folder would have them, or in the working directory of this program.
fn configured(connection: &Connection, cwd: Option<PathBuf>) -> Result<Option<Arc<dyn ThreadServers>>, ErrorObject> {
    let Some(servers) = &connection.host.start.servers else { return Ok(None) };
    let mut scope = scope(connection)?;
    scope.cwd = cwd.unwrap_or(scope.cwd);
    Ok(Some(servers.open(scope)))
}

fn scope(connection: &Connection) -> Result<ServerScope, ErrorObject> {
    let (config, start) = (connection.host.config()?, &connection.host.start);
    Ok(ServerScope { config, home: start.config.home().clone(), cwd: start.cwd.clone(), reload: None })
}

fn thread(connection: &Connection, name: &str) -> Result<Thread, ErrorObject> {
    let id = parse_name(name)?;
    connection.host.start.threads.get(id).ok_or_else(|| ErrorObject::invalid(format!("thread not loaded: {name}")))
}

fn failed(error: impl ToString) -> ErrorObject {
    ErrorObject::internal(error.to_string())
}

async fn list(
    connection: &Arc<Connection>,
    params: ListMcpServerStatusParams,
) -> Result<ListMcpServerStatusResponse, ErrorObject> {
    let cwd = match &params.thread_id {
        Some(name) => Some(thread(connection, name)?.started().settings.cwd.clone()),
        None => None,
    };
    let mut servers = match configured(connection, cwd)? {
        Some(servers) => servers.list().await,
        None => Vec::new(),
    };
    servers.retain(|server| params.server_name.as_ref().is_none_or(|wanted| *wanted == server.name));
    let (servers, next_cursor) =
        page(servers, params.cursor.as_deref(), params.limit).map_err(ErrorObject::from_display)?;
    let is_brief = params.detail == Some(McpServerStatusDetail::ToolsAndAuthOnly);
    Ok(ListMcpServerStatusResponse {
        data: servers.into_iter().map(|server| shown(server, is_brief)).collect(),
        next_cursor,
    })
}

fn shown(server: ServerStatus, is_brief: bool) -> McpServerStatus {
    let is_login_missing = server.auth == Auth::NotLoggedIn;
    let (runtime, tools_error) = match server.state {
        ServerState::Disabled => (McpServerConnectionStatus::Disabled, None),
        ServerState::Starting => (McpServerConnectionStatus::Starting, None),
        ServerState::Connected => (McpServerConnectionStatus::Connected, None),
        ServerState::Failed(why) if is_login_missing => (McpServerConnectionStatus::AuthenticationRequired, Some(why)),
        ServerState::Failed(why) => (McpServerConnectionStatus::Failed, Some(why)),
    };
    McpServerStatus {
        name: server.name,
        server_info: server.info,
        tools: server.tools,
        resources: if is_brief { Vec::new() } else { server.resources },
        resource_templates: if is_brief { Vec::new() } else { server.resource_templates },
        auth_status: match server.auth {
            Auth::Unsupported => McpAuthStatus::Unsupported,
            Auth::NotLoggedIn => McpAuthStatus::NotLoggedIn,
            Auth::BearerToken => McpAuthStatus::BearerToken,
            Auth::OAuth => McpAuthStatus::OAuth,
            Auth::Other(_) => McpAuthStatus::Unknown,
        },
        runtime_status: Some(runtime),
        tools_error,
    }
}

/// Begins a login. All clients are told how it ends.
async fn log_in(
    connection: &Arc<Connection>,
    params: McpServerOauthLoginParams,
) -> Result<McpServerOauthLoginResponse, ErrorObject> {
    let McpServerOauthLoginParams { name, scopes, timeout_secs, thread_id } = params;
    let timeout = timeout_secs.and_then(|seconds| u64::try_from(seconds).ok()).map(Duration::from_secs);
    let Some(servers) = &connection.host.start.servers else {
        return Err(ErrorObject::invalid(format!("No MCP server named '{name}' found.")));
    };
    let request = ServerLoginRequest { name: name.clone(), scopes, timeout };
    let begun = servers.log_in(scope(connection)?, request).await.map_err(refused)?;
    let (connection, login_id) = (Arc::clone(connection), Some(begun.id.clone()));
    tokio::spawn(async move {
        let error = begun.end.await.err().map(|error| error.message);
        let ended =
            McpServerOauthLoginCompletedNotification { name, success: error.is_none(), error, login_id, thread_id };
        tell_all(&connection, &ServerNotification::McpServerOauthLoginCompleted(ended)).await;
    });
    Ok(McpServerOauthLoginResponse { authorization_url: begun.url, login_id: Some(begun.id) })
}

fn restart(
    connection: &Arc<Connection>,
    McpServerRestartParams { name }: McpServerRestartParams,
) -> Result<Empty, ErrorObject> {
    let is_used = connection.host.start.servers.as_ref().is_some_and(|servers| servers.restart(&name));
    is_used.then_some(Empty {}).ok_or_else(|| ErrorObject::invalid(format!("no MCP server named `{name}` is in use")))
}

/// The prompts of the user come first, and hide those of servers with the same name.
async fn prompts(
    connection: &Arc<Connection>,
    params: CustomPromptListParams,
) -> Result<CustomPromptListResponse, ErrorObject> {
    let folder = connection.host.start.config.home().prompts();
    let read = tokio::task::spawn_blocking(move || codex_config::custom_prompts(&folder));
    let mut data = read.await.map_err(failed)?.map_err(failed)?;
    if let Some(name) = &params.thread_id {
        let of_servers = thread(connection, name)?.list_server_prompts().await.map_err(failed)?;
        let mut known: BTreeSet<String> = data.iter().map(|prompt| prompt.name.clone()).collect();
        data.extend(of_servers.into_iter().filter(|prompt| known.insert(prompt.name.clone())));
    }
    Ok(CustomPromptListResponse { data: data.into_iter().map(ListedPrompt::from).collect() })
}

async fn call(
    connection: &Arc<Connection>,
    params: McpServerToolCallParams,
) -> Result<McpServerToolCallResponse, ErrorObject> {
    let McpServerToolCallParams { thread_id, server, tool, arguments, .. } = params;
    let invocation = McpInvocation { server, tool, arguments };
    let called = thread(connection, &thread_id)?.call_tool(invocation).await.map_err(failed)?;
    let result = called.map_err(failed)?;
    Ok(McpServerToolCallResponse {
        content: result.content,
        structured_content: result.structured_content,
        is_error: result.is_error,
        meta: None,
    })
}

async fn read(
    connection: &Arc<Connection>,
    params: McpResourceReadParams,
) -> Result<McpResourceReadResponse, ErrorObject> {
    let McpResourceReadParams { thread_id, server, uri } = params;
    let contents = match (thread_id, configured(connection, None)?) {
        (Some(name), _) => thread(connection, &name)?.read_resource(server, uri).await.map_err(failed)?,
        (None, Some(servers)) => servers.read_resource(server, uri).await,
        (None, None) => Err("there are no MCP servers".to_owned()),
    };
    Ok(McpResourceReadResponse { contents: contents.map_err(failed)? })
}
