//! Tools of programs outside of this one: the interface between threads and the component that runs such servers.
//!
//! Invariant: nothing here waits for a server, except where a method says so.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use codex_config::{AccountError, BegunLogin, Config, Home};
use codex_log::Body;
use codex_wire::event::{McpListToolsResponseEvent, McpStartupCompleteEvent};
use codex_wire::mcp::{CallToolResult, McpAuthStatus, Resource, ResourceTemplate, Tool};
use codex_wire::prompt::CustomPrompt;
use futures_util::future::BoxFuture;
use serde_json::Value;

use crate::registry::ToolSource;

/// Reads the configuration again.
pub type Reload = Arc<dyn Fn() -> Result<Arc<Config>, String> + Send + Sync>;

/// The scope that determines the servers of a thread.
#[derive(Clone)]
pub struct ServerScope {
    pub config: Arc<Config>,
    pub home: Home,
    /// The working directory of the thread.
    pub cwd: PathBuf,
    /// Reads the configuration of the thread again, if it can change.
    pub reload: Option<Reload>,
}

impl fmt::Debug for ServerScope {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ServerScope").field("cwd", &self.cwd).finish_non_exhaustive()
    }
}

/// The servers for new threads.
#[derive(Clone)]
pub struct ServerAccess {
    pub servers: Arc<dyn ToolServers>,
    /// Reads the configuration of the thread again, if it can change.
    pub reload: Option<Reload>,
}

/// The wishes of a user who logs in to a server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerLoginRequest {
    pub name: String,
    /// The scopes, in place of those of the configuration and of the server.
    pub scopes: Option<Vec<String>>,
    /// The time limit for the user.
    pub timeout: Option<Duration>,
}

/// Runs servers of tools, and shares them between threads.
pub trait ToolServers: Send + Sync + fmt::Debug {
    /// The servers of a thread. Those that do not run are started in the background. It needs a runtime.
    fn open(&self, scope: ServerScope) -> Arc<dyn ThreadServers>;
    /// Reads the configuration of all threads again. Servers that are no longer configured end, new ones start.
    fn reload(&self) -> Result<(), String>;
    /// Restarts the servers of this name, in all threads. Returns whether there was one.
    fn restart(&self, name: &str) -> bool;
    /// Begins a login to a server, which goes on by itself. Another one to the same server is given up.
    fn log_in(
        &self,
        scope: ServerScope,
        request: ServerLoginRequest,
    ) -> BoxFuture<'static, Result<BegunLogin, AccountError>>;
}

/// The servers of one thread, as a source of tools. They may end when it is dropped.
pub trait ThreadServers: ToolSource {
    /// Waits for the next event for the log of the thread. Cancel safe.
    fn next_event(&self) -> BoxFuture<'_, Body>;
    /// The wait before a request of a turn, if a server is starting that is worth a wait. It fails if a server does not
    /// start without which the user wants no turn.
    fn before_turn(&self) -> Option<BoxFuture<'static, Result<(), String>>>;
    /// The servers that have started and those that have failed; `None` while one of them starts.
    fn startup(&self) -> Option<McpStartupCompleteEvent>;
    /// The servers by name. Waits until each has started or failed, and for the lists of its resources.
    fn list(&self) -> BoxFuture<'static, Vec<ServerStatus>>;
    /// The prompts of the servers, by name. Waits until each server has started or failed.
    fn prompts(&self) -> BoxFuture<'static, Vec<CustomPrompt>>;
    /// Calls a tool for a client, which has decided that it may run.
    fn call(
        &self,
        server: String,
        tool: String,
        arguments: Option<Value>,
    ) -> BoxFuture<'static, Result<CallToolResult, String>>;
    /// Reads a resource for a client.
    fn read_resource(&self, server: String, uri: String) -> BoxFuture<'static, Result<Vec<Value>, String>>;
}

/// The offer and the state of a server.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerStatus {
    pub name: String,
    pub state: ServerState,
    /// Its description of itself.
    pub info: Option<Value>,
    /// Its tools that are offered, by their name on the server.
    pub tools: BTreeMap<String, Tool>,
    /// The same tools by the name that a model calls them.
    pub names: BTreeMap<String, String>,
    pub resources: Vec<Resource>,
    pub resource_templates: Vec<ResourceTemplate>,
    pub auth: McpAuthStatus,
}

/// The state of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerState {
    Disabled,
    Starting,
    Connected,
    /// It did not start, or has ended too often, with the reason.
    Failed(String),
}

/// The offer of all servers as one event of the queue.
#[must_use]
pub fn offered(servers: Vec<ServerStatus>) -> McpListToolsResponseEvent {
    let mut offered = McpListToolsResponseEvent::default();
    for mut server in servers {
        let tools = &mut server.tools;
        let named = server.names.into_iter().filter_map(|(name, tool)| Some((name, tools.remove(&tool)?)));
        offered.tools.extend(named);
        offered.resources.insert(server.name.clone(), server.resources);
        offered.resource_templates.insert(server.name.clone(), server.resource_templates);
        offered.auth_statuses.insert(server.name, server.auth);
    }
    offered
}
